"""The report of `advise`: recommendation, benefit, cost and risks on one screen; then details."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hybridsim.answers.forecast import NO
from hybridsim.answers.result import plain
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import factor, latency, percent
from hybridsim.show import advice as words
from hybridsim.show.advice import Document
from hybridsim.show.page import page, paragraph, table, trace_line

if TYPE_CHECKING:
    from hybridsim.studies.advise import Advice

SCREEN = 24  # lines of the first screen
OTHERS_SHOWN = 3  # lines for other machines, that the command that replays the chosen one yields to


def text(advice: Advice, ascii_only: bool = False, details: bool = False) -> str:
    """Return the advice as text: one screen, or with `details` all of it."""
    document = plain(advice.to_dict())
    end = _next(document)
    head = list(_head(document, words.RISKS_SHOWN))
    if not details and len(head) + len(end) + 2 + OTHERS_SHOWN > SCREEN:
        head = list(_head(document, words.RISKS_SHOWN, has_check=False))
    for risks in range(words.RISKS_SHOWN - 1, 0, -1):
        if details or len(head) + len(end) + 2 <= SCREEN:
            break
        # Fewer, so that --details can be named.
        head = list(_head(document, risks, has_check=False))
    if not details:
        others = _others(document, SCREEN - len(head) - len(end) - 1)
        return page([*head, *others, *end], ascii_only)
    return page([*head, "", *_details(document), *end], ascii_only)


def _head(document: Document, risks: int, has_check: bool = True) -> Iterator[str]:
    yield from trace_line(document["inputs"]["trace"])
    yield from paragraph("ADVICE", words.to_do(document))
    is_known = document["recommended"]["gain"] is not None
    if has_check and document["answer"] != NO and is_known:
        yield from paragraph("", f"Check: {words.command(document)}")
    yield from paragraph("brings", words.brings(document))
    if is_known:
        yield from paragraph("costs", words.costs(document))
    yield from paragraph("risks", words.risks_in_words(document, risks))
    yield from paragraph("assumed", words.assumed(document))


def _next(document: Document) -> list[str]:
    """Return the command that captures for longer, or prints how the cache is built, as lines."""
    line = words.record(document) or words.build(document)
    return paragraph("next", line) if line else []


def _others(document: Document, room: int) -> list[str]:
    """Return one line for each other machine, with the reason why it is not recommended.

    Only the recommended kind is tried with other settings: it is there with its defaults too.
    """
    pick = document["recommended"]
    if pick["gain"] is None:
        return []
    best: dict[str, Document] = {}
    for each in document["rows"][1:]:
        if each["name"] != pick["name"] or (pick["setting"] and not each["setting"]):
            best.setdefault(each["name"], each)
    rows = list(best.values())
    others = len(document["rows"]) - 1
    fits = max(room - 2, 0) if len(rows) > room - 1 or others > len(rows) else len(rows)
    if fits < len(rows):  # then what the chosen kind gains with its defaults is the first to stay
        rows.sort(key=lambda each: each["name"] != pick["name"])
    shown = rows[:fits]
    left = others - len(shown)
    head = "rejected, with defaults" if pick["setting"] else "rejected"
    lines = [*table(
        [head, "SSD", "gain", words.range_head(document), "why"],
        [[each["name"], human_size(each["size_bytes"]), factor(each["gain"]),
          words.interval(each), each["loses"]] for each in shown],
    )] if shown else []  # fmt: skip
    if left:
        lines.append(f"{left} more machines and the comparison with other purchases: --details")
    return ["", *lines[:room]]


def _details(document: Document) -> Iterator[str]:
    yield from _machines(document)
    yield ""
    for number, (name, answer) in enumerate(words.questions(document), 1):
        yield from paragraph(f"{number} {name}", answer)
    yield ""
    heads, rows = words.alternatives(document)
    yield from table(heads, rows)
    yield from paragraph("prices", words.prices(document))
    yield from paragraph("compared by", words.compared_by(document))
    for number, note in enumerate(document["notes"]):
        yield from paragraph("" if number else "notes", note)


def _machines(document: Document) -> Iterator[str]:
    """Yield all machines that were replayed: on the same requests, in each column."""
    heads = ["machine", "SSD", "gain", words.range_head(document), "warm", "whole", "read",
             "write", "p99", "hit", "cost"]  # fmt: skip
    yield from table(heads, [alone(document), *(machine(document, each)
                                                for each in document["rows"])], " ")  # fmt: skip
    star = "*: the advice; " if document["rows"] else ""
    yield from paragraph("compared", star + words.same_requests(document))
    for each in document["rows"][1:]:
        yield from paragraph(
            "", f"{words.label(each)}, {human_size(each['size_bytes'])}: {each['loses']}."
        )


def alone(document: Document) -> list[str]:
    """Return the row of the disks alone in the table of machines."""
    before = document["recommended"]["judged"]["none"]
    return [
        "disks alone", *[""] * 5,
        latency(before["read"]["mean_ns"]), latency(before["write"]["mean_ns"]),
        latency(document["recommended"]["p99_ns"]["none"]), "", "",
    ]  # fmt: skip


def machine(document: Document, row: Document) -> list[str]:
    """Return the row of a machine in that table; a star marks the recommended one."""
    after = row["judged"]["cached"]
    known = row["keeps_up"]
    star = " *" if row is document["rows"][0] else ""
    return [
        words.label(row) + star, human_size(row["size_bytes"]),
        factor(row["gain"]), words.interval(row), factor(row["warm_gain"]),
        factor(row["whole_gain"]),
        latency(after["read"]["mean_ns"] if known else None),
        latency(after["write"]["mean_ns"] if known else None),
        latency(row["p99_ns"]["cached"] if known else None),
        percent(row["hit"]), words.cost(document, row["bought"]["cost"]),
    ]  # fmt: skip
