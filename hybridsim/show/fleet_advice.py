"""The report of `advise --fleet`: the purchase for all, then one line for each member."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.answers.advice.alternatives import human_drive
from hybridsim.answers.forecast import NO, UNSURE, YES
from hybridsim.answers.result import plain
from hybridsim.foundation.printable import shell_line
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, counted, factor, in_table, lasting, latency, percent
from hybridsim.show import advice as of_one
from hybridsim.show.advice import Document
from hybridsim.show.page import SCREEN, columns, page, paragraph, paragraphs, table

if TYPE_CHECKING:
    from hybridsim.studies.advise_fleet import FleetAdvice

ANSWERS = {YES: "yes", UNSURE: "not yet", NO: "no"}
SHORT = "probably", "prob."
NAME_MIN = 12  # characters


def text(advice: FleetAdvice, ascii_only: bool = False, details: bool = False) -> str:
    """Return the answer as text: one screen, or with `details` all members and servers."""
    document = plain(advice.to_dict())
    head = [line for label, words in sentences(document) for line in paragraph(label, words)]
    heads, rows = members(document)
    end = paragraph("next", f"{_command(document)} --details: one of them in full.")
    room = SCREEN - len(head) - len(end) - len(_failures(document)) - 2
    left = len(rows) + 1 - room
    shown = rows if details or left <= 0 else rows[: max(room - 2, 1)]
    lines = [*head, "", *table(heads, _fitting(heads, shown), " ")]
    if len(shown) < len(rows):
        lines.append(f"{len(rows) - len(shown)} more: --details")
    lines += _failures(document, details)
    if details:
        lines += ["", *table(*servers(document))]
        lines += ["", *table(*kinds(document))]
        lines += paragraphs("notes", document["notes"])
    return page([*lines, *end], ascii_only)


def _command(document: Document) -> str:
    """Return the command that answers for the first capture alone."""
    first = next(iter(document["members"]), None)
    return shell_line(["hybridsim", "advise", first["server"] if first else "NAME"])


def _failures(document: Document, all_of_them: bool = False) -> list[str]:
    """Return the reasons of failures as lines: of the first, or of all."""
    failed = [each for each in document["members"] if each["why"]]
    shown = failed if all_of_them else failed[:1]
    return [line for each in shown
            for line in paragraph("failed", f"{each['name']}: {each['why']}")]  # fmt: skip


def _fitting(heads: list[str], rows: list[list[str]]) -> list[list[str]]:
    """Return rows whose answers are short, and names cut, so that the table fits the screen."""
    rows = [[name, answer.replace(*SHORT), *others] for name, answer, *others in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows)]
    room = max(columns() - sum(widths[1:]) - len(widths) + 1, NAME_MIN)
    return [[_cut(name, room), *others] for name, *others in rows]


def _cut(name: str, room: int) -> str:
    """Return a name that fits; its end, which names the file and the volume, has two thirds."""
    end = (room - 3) * 2 // 3
    return name if len(name) <= room else f"{name[: room - 3 - end]}...{name[-end:]}"


def sentences(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the labelled sentences of the answer, in the order of a decision."""
    if document["interrupted"]:
        yield "interrupted", "The same command continues; below is what is known so far."
    yield "fleet", f"{_counts(document)}."
    yield "ADVICE", to_do(document)
    if document["waits"]:
        yield "brings", brings(document)
    yield "costs", costs(document)
    if document["answers"][YES]:
        yield "risks", risks(document)
    yield "assumed", assumed(document)


def _counts(document: Document) -> str:
    answers = document["answers"]
    parts = [f"{answers[each]} {word}" for each, word in ANSWERS.items()]
    if answers["failed"]:
        parts.append(f"{answers['failed']} failed")
    volumes = any(each["volume"] is not None for each in document["members"])
    of = counted(len(document["members"]), "volume" if volumes else "capture")
    return f"{of}: {', '.join(parts)}"


def to_do(document: Document) -> str:
    """Return what to buy, and for which."""
    bought, answers = document["purchase"], document["answers"]
    if not answers[YES]:
        if answers[UNSURE]:
            return f"Buy nothing yet: record longer captures of {undecided(document)}."
        return "Buy no SSD: none of them has a use for a cache."
    names = len(bought["servers"])
    of = len({each["server"] for each in document["members"]})
    what = f"Buy {of_one.drives(bought)} ({bought['drive']}) for {names} of {counted(of, 'server')}"
    if answers[UNSURE]:
        what += f"; record longer captures of {undecided(document)}"
    return f"{what}."


def undecided(document: Document) -> str:
    """Return of how many members the captures are too short."""
    number = document["answers"][UNSURE]
    return f"{number} of them" if len(document["members"]) > number else "all of them"


def brings(document: Document) -> str:
    """Return how much less the requests of those with a use wait, and who gains most."""
    waits = document["waits"]
    use = document["answers"][YES]
    result = []
    if waits["gain"]:
        now, then = (waits[each] / waits["requests"] for each in ("cached_ns", "alone_ns"))
        ends = f" ({of_one.interval(waits)})" if waits["low"] and waits["high"] else ""
        of = "with a cache" if waits["members"] == use else f"on {waits['members']} of {use}"
        result.append(
            f"A request {of} takes {latency(now)} on average instead of {latency(then)}: "
            f"{factor(waits['gain'])} times less{ends}."
        )
    if waits["members"] < use:
        words = counted(use - waits["members"], "array")
        kept = sum(
            each["answer"] == YES
            and each["advice"]["recommended"]["keeps_up"]
            and not each["advice"]["disks_keep_up"]
            for each in document["members"]
        )
        with_it = "; with it they do" if kept == use - waits["members"] else ""
        result.append(f"{words} cannot keep up with the load without a cache{with_it}.")
    best = next(iter(document["kinds"]), None)
    if best and best["members"] == use and use > 1 and best["waits"]["gain"]:
        result.append(f"With {best['name']} on all of them {factor(best['waits']['gain'])} times.")
    return " ".join(result)


def costs(document: Document) -> str:
    """Return what the SSDs cost, and what those may cost that are not decided yet."""
    bought = document["purchase"]
    parts = []
    if bought["drives"]:
        if bought["cost"] is None:
            parts.append("The price is unknown: specify [price] in a scenario.")
        else:
            mirrored = sum(each["mirrored"] for each in bought["servers"])
            words = f"{of_one.cost(document, bought['cost'])} for the SSDs"
            if mirrored:
                words += f", mirrored on {counted(mirrored, 'server')}"
            parts.append(f"{words}.")
        lives = [each["years"] for each in bought["servers"] if each["years"]]
        if lives:
            parts.append(f"The first to wear out lasts {lasting(min(lives))}.")
    if bought["later_drives"]:
        price = bought["later_cost"]
        amount = "" if price is None else f", {of_one.cost(document, price)}"
        parts.append(
            f"At most {counted(bought['later_drives'], 'more drive')}{amount}, for those not "
            "decided yet."
        )
    return " ".join(parts) or "Nothing."


def risks(document: Document) -> str:
    """Return how many of those with a use have which risk."""
    use = [each["advice"] for each in document["members"] if each["answer"] == YES]
    picks = [each["recommended"] for each in use]
    counts = {
        "dirty data on the SSDs alone": sum(each["bought"]["mirrored"] for each in picks),
        "slower slowest 1%": sum(map(of_one.is_tail_worse, picks)),
        "not steady at the end": sum(not each["steady"] for each in picks),
    }
    words = [f"{word}: {number} of {len(use)}" for word, number in counts.items() if number]
    result = "; ".join([*words, "another day's loads may differ"])
    return f"{result[:1].upper()}{result[1:]}."


def assumed(document: Document) -> str:
    """Return the assumptions."""
    price = document["price"]
    volumes = any(each["volume"] is not None for each in document["members"])
    share = "; volumes of one capture share its SSDs" if volumes else ""
    return (
        f"Each on disks of its own ({document['inputs']['scenario']['summary']}){share}; the "
        "interval holds if all are at the same end of theirs; "
        f"{price['ssd_per_gb']:g} {price['currency']} per GB of SSD ({price['date']})."
    )


def members(document: Document) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of the table of members."""
    every = document["members"]
    names = short([each["name"] for each in every])
    is_forecast = any(each["advice"] and each["advice"]["recommended"]["is_forecast"]
                      for each in every)  # fmt: skip
    heads = ["", "answer", "cache", "SSD", "gain", "forecast" if is_forecast else "90%"]
    rows = []
    for name, each in zip(names, every):
        if each["advice"] is None:
            rows.append([name, "failed", NONE, NONE, NONE, NONE])
            continue
        pick = each["advice"]["recommended"]
        rows.append([
            name, worded(each), of_one.label(pick), human_size(pick["size_bytes"]),
            factor(pick["gain"]), _forecast(pick),
        ])  # fmt: skip
    return heads, rows


def worded(member: Document) -> str:
    """Return a member's answer, as a cell: 'yes', 'probably not', 'not yet'."""
    answer = member["answer"]
    return (
        ANSWERS[UNSURE] if answer == UNSURE else in_table(answer, of_one.is_sure(member["advice"]))
    )


def _forecast(pick: Document) -> str:
    """Return the forecast gain with its interval; without a forecast, the interval of the gain."""
    ends = of_one.interval(pick)
    if not pick["is_forecast"] or not pick["forecast"] or ends == NONE:
        return ends
    return f"{factor(pick['forecast'])} ({ends})"


def servers(document: Document) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of the table of servers that get SSDs."""
    bought = document["purchase"]
    names = short([each["name"] for each in bought["servers"]])
    heads = ["server", "caches", "in use", "SSDs", "busy", "lasts", "cost"]
    rows = [
        [
            name, str(each["volumes"]), human_size(each["cache_bytes"]),
            f"{each['drives']} x {human_drive(bought['drive_bytes'])}",
            percent(each["busy"]), NONE if each["years"] is None else lasting(each["years"]),
            of_one.cost(document, each["cost"]),
        ]
        for name, each in zip(names, bought["servers"])
    ]  # fmt: skip
    return heads, rows


def kinds(document: Document) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of the table of kinds, the same one for all."""
    heads = ["one kind for all", "of them", "gain", "interval", "SSDs", "cost"]
    rows = []
    for each in document["kinds"]:
        waits = each["waits"]
        ends = of_one.interval(waits) if waits["low"] and waits["high"] else NONE
        rows.append([
            each["name"], f"{each['members']} of {document['answers'][YES]}",
            factor(waits["gain"]), ends, str(each["drives"]),
            of_one.cost(document, each["cost"]),
        ])  # fmt: skip
    kept = [at for at in range(len(heads)) if not rows or any(row[at] != NONE for row in rows)]
    return [heads[at] for at in kept], [[row[at] for at in kept] for row in rows]


def short(names: list[str]) -> list[str]:
    """Return names without the folders that all of them are in."""
    folder = ""
    if not any(each.startswith("gen:") for each in names):
        with contextlib.suppress(ValueError):  # no names, or absolute and relative ones
            folder = os.path.commonpath([os.path.dirname(each) for each in names])
    return [each.removeprefix(folder).lstrip("/") or each for each in names]
