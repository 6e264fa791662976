"""Sections of `advise`: the advice, all machines, the application and other purchases.

And of a fleet: the purchase for all, and the answer for each member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybridsim.answers.forecast import NO, UNSURE, YES
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import factor, lasting, latency, percent
from hybridsim.show import advice as words
from hybridsim.show import fleet_advice as of_fleet
from hybridsim.show.advice import Document
from hybridsim.show.charts import Axis, Ranges
from hybridsim.show.html.blocks import Block, Code, KeyFigure, KeyFigures, Prose, Section, Table
from hybridsim.show.page import labelled

WIDE = 10  # times between the ends of all intervals: from here on the axis is logarithmic
SHOWN = 40  # intervals drawn


def answer(document: Document) -> Section:
    """Return the first screen of `advise`, with nothing left out."""
    before = [("costs", words.costs(document))]
    risks = (f"{risk[:1].upper()}{risk[1:]}." for risk in words.risks(document))
    before += [*labelled("risks", risks), ("assumed", words.assumed(document))]
    longer = words.record(document)
    commands = {
        "Check it: replay this machine": ""
        if document["answer"] == NO
        else words.command(document),
        "Before you decide: capture for longer": longer,
        "Build it: print the commands, and run none": "" if longer else words.build(document),
    }
    blocks: list[Block | None] = [
        Prose([words.to_do(document), words.brings(document)], document["answer"]),
        KeyFigures(list(_figures(document))),
        Table("Before you buy", ["", ""], [*before, *labelled("notes", document["notes"])]),
        *(Code(caption, line) for caption, line in commands.items() if line),
    ]
    return Section("answer", "Advice", blocks)


def _figures(document: Document) -> Iterator[KeyFigure]:
    pick = document["recommended"]
    after = pick["judged"]["cached"]
    sure = "" if pick["low"] is None else f"{words.range_head(document)}: {words.interval(pick)}"
    yield "gain", f"{factor(pick['gain'])} times", sure
    known = pick["keeps_up"] and document["disks_keep_up"]
    for name in ("read", "write"):
        if after[name]["n"] and known:
            now, then = (words.mean(pick, side, name) for side in ("cached", "none"))
            yield f"mean {name}", now, f"disks alone: {then}"
    if known:
        then = latency(pick["p99_ns"]["none"])
        yield "p99", latency(pick["p99_ns"]["cached"]), f"disks alone: {then}"
    hit = "" if pick["hit"] is None else f"{percent(pick['hit'])} of the reads hit"
    yield "SSD in use", human_size(pick["size_bytes"]), hit
    yield "to buy", words.drives(pick["bought"]), words.cost(document, pick["bought"]["cost"])
    if pick["years"] is not None:
        yield "SSD lasts", lasting(pick["years"]), "at this load"


def machines(document: Document) -> Section:
    """Return the gains with their intervals, and the table of all machines."""
    rows = document["rows"]
    names = [(words.label(each), human_size(each["size_bytes"])) for each in rows]
    title = "Gain of each machine, with its interval of 90 %"
    if document["recommended"]["is_forecast"]:
        title = f"Forecast g{title[1:]}"
    reasons = [[*name, each["loses"]] for name, each in zip(names[1:], rows[1:])]
    blocks = [
        _gains("machines", title, zip(map(", ".join, names), rows)),
        Table("All replayed machines", *words.machines(document), [1]),
        Prose([words.same_requests(document)]),
        Table("Why the others are not recommended", ["machine", "SSD", "why not"], reasons)
        if reasons
        else None,
    ]
    lead = "Each machine serves the same requests; the first row is the recommended one."
    return Section("machines", "What else was tried", blocks, lead)


def _gains(
    gid: str, title: str, picks: Iterable[tuple[str, Document]], most: int | None = None
) -> Ranges | None:
    """Return the gains of named machines that have an interval."""
    rows = [
        (name, pick["low"], pick["forecast"] or pick["gain"], pick["high"])
        for name, pick in picks
        if pick["low"] and pick["high"]
    ]
    if not rows:
        return None
    ends = [each for row in rows for each in (row[1], row[3])]
    axis = Axis("gain", "times", log=max(ends) >= WIDE * min(ends))
    note = f"The first {most} of {len(rows)}." if most and len(rows) > most else ""
    return Ranges(gid, title, axis, rows[:most], [("no gain", 1.0)], note=note)


def questions(document: Document) -> Section:
    """Return the guide's questions with their answers, and the table of alternatives."""
    heads, rows = words.alternatives(document)
    basis = [f"Prices: {words.prices(document)}", f"Compared by {words.compared_by(document)}"]
    blocks: list[Block | None] = [
        Table("The application", ["", ""], words.questions(document)),
        Table("Other purchases", heads, rows, [len(rows) - 1]),
        Prose(basis),
    ]
    return Section("questions", "The application, and other purchases", blocks)


def fleet(document: Document) -> Section:
    """Return the answer, its key figures, the SSDs of each server, and one kind for all."""
    answers = document["answers"]
    tone = YES if answers[YES] else UNSURE if answers[UNSURE] else NO
    sentences = dict(of_fleet.sentences(document))
    first = [sentences.pop(each) for each in ("ADVICE", "brings") if each in sentences]
    before = [*sentences.items(), *labelled("notes", document["notes"])]
    more = {
        "The SSDs of each server": of_fleet.servers(document),
        "The same kind of cache for all that get one": of_fleet.kinds(document),
    }
    blocks: list[Block | None] = [
        Prose(first, tone),
        KeyFigures(list(_of_fleet(document))),
        Table("Before you buy", ["", ""], before),
        *(Table(caption, heads, rows) for caption, (heads, rows) in more.items() if rows),
    ]
    return Section("answer", "Advice", blocks)


def _of_fleet(document: Document) -> Iterator[KeyFigure]:
    answers, waits = document["answers"], document["waits"]
    others = f"{answers[UNSURE]} not yet, {answers[NO]} no"
    yield "with a use", f"{answers[YES]} of {len(document['members'])}", others
    if document["purchase"]["drives"]:
        price = words.cost(document, document["purchase"]["cost"])
        yield "to buy", words.drives(document["purchase"]), price
    if waits and waits["gain"]:
        ends = words.interval(waits) if waits["low"] and waits["high"] else ""
        yield "gain of all", f"{factor(waits['gain'])} times", ends and f"90%: {ends}"
        now, then = (latency(waits[each] / waits["requests"])
                     for each in ("cached_ns", "alone_ns"))  # fmt: skip
        yield "mean request", now, f"disks alone: {then}"


def members(document: Document) -> Section:
    """Return the gains of all members of a fleet, the table, and the command for each."""
    heads, rows = of_fleet.members(document)
    every = document["members"]
    names = [row[0] for row in rows]
    known = [(name, each) for name, each in zip(names, every) if each["advice"]]
    picks = [(f"{name}, {of_fleet.worded(each)}", each["advice"]["recommended"])
             for name, each in known]  # fmt: skip
    gain = "Forecast gain" if any(pick["is_forecast"] for _, pick in picks) else "Gain"
    title = f"{gain} of each, with its interval of 90 %"
    strong = [row for row, each in enumerate(every) if each["answer"] == YES]
    reasons = [[name, each["why"] or words.to_do(each["advice"])]
               for name, each in zip(names, every)]  # fmt: skip
    commands = "\n".join(words.command(each["advice"]) for _, each in known)
    blocks = [
        _gains("members", title, picks, SHOWN),
        Table("All members; those with a use are bold", heads, rows, strong),
        Table("Each in words", ["", ""], reasons),
        Code("Replay the machine of each", commands, True),
    ]
    lead = "Each is judged on its own; those whose requests gain most come first."
    return Section("members", "Each of them", blocks, lead)
