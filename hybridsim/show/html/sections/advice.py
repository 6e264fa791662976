"""The advice: what to do, what it brings, what it costs, what could go wrong, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.answers.forecast import NO
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import factor, lasting, latency, percent
from hybridsim.show import advice as words
from hybridsim.show.html.blocks import Block, Code, KeyFigures, Prose, Section, Table


def section(document: Mapping[str, Any]) -> Section:
    """Return the first screen of `advise`, with nothing left out."""
    blocks: list[Block] = [
        Prose([words.to_do(document), words.brings(document)], document["answer"]),
        KeyFigures(list(_figures(document))),
        Table("Before you buy", ["", ""], list(_before(document))),
    ]
    if document["answer"] != NO:
        blocks.append(Code("Check it: replay this machine", words.command(document)))
    if line := words.record(document):
        blocks.append(Code("Before you decide: capture for longer", line))
    elif line := words.build(document):
        blocks.append(Code("Build it: print the commands, and run none", line))
    return Section("answer", "Advice", blocks)


def _figures(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    pick = document["recommended"]
    before, after = pick["judged"]["none"], pick["judged"]["cached"]
    sure = "" if pick["low"] is None else f"{words.range_head(document)}: {words.interval(pick)}"
    yield "gain", f"{factor(pick['gain'])} times", sure
    known = pick["keeps_up"] and document["disks_keep_up"]
    for name in ("read", "write"):
        if after[name]["n"] and known:
            now, then = (words.mean(pick, side, name, latency(each[name]["mean_ns"]))
                         for side, each in (("cached", after), ("none", before)))  # fmt: skip
            yield f"mean {name}", now, f"disks alone: {then}"
    if known:
        then = latency(pick["p99_ns"]["none"])
        yield "p99", latency(pick["p99_ns"]["cached"]), f"disks alone: {then}"
    hit = "" if pick["hit"] is None else f"{percent(pick['hit'])} of the reads hit"
    yield "SSD in use", human_size(pick["size_bytes"]), hit
    yield "to buy", words.drives(pick["bought"]), words.cost(document, pick["bought"]["cost"])
    if pick["years"] is not None:
        yield "SSD lasts", lasting(pick["years"]), "at this load"


def _before(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "costs", words.costs(document)
    for number, risk in enumerate(words.risks(document)):
        yield "" if number else "risks", f"{risk[:1].upper()}{risk[1:]}."
    yield "assumed", words.assumed(document)
    for number, note in enumerate(document["notes"]):
        yield "" if number else "notes", note
