"""The purchase for a fleet: what to buy, what it brings, what it costs, what could go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.answers.forecast import NO, UNSURE, YES
from hybridsim.foundation.wording import factor, latency
from hybridsim.show import advice as of_one
from hybridsim.show import fleet_advice as words
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section, Table


def section(document: Mapping[str, Any]) -> Section:
    """Return the answer, its key figures, the SSDs of each server, and one kind for all."""
    answers = document["answers"]
    tone = YES if answers[YES] else UNSURE if answers[UNSURE] else NO
    labelled = dict(words.sentences(document))
    first = [labelled.pop("ADVICE"), *([labelled.pop("brings")] if "brings" in labelled else [])]
    blocks: list[Block] = [
        Prose(first, tone),
        KeyFigures(list(_figures(document))),
        Table("Before you buy", ["", ""], [*labelled.items(), *_notes(document)]),
    ]
    for caption, (heads, rows) in (
        ("The SSDs of each server", words.servers(document)),
        ("The same kind of cache for all that get one", words.kinds(document)),
    ):
        if rows:
            blocks.append(Table(caption, heads, rows))
    return Section("answer", "Advice", blocks)


def _notes(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for number, note in enumerate(document["notes"]):
        yield "" if number else "notes", note


def _figures(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    answers, waits = document["answers"], document["waits"]
    others = f"{answers[UNSURE]} not yet, {answers[NO]} no"
    yield "with a use", f"{answers[YES]} of {len(document['members'])}", others
    if document["purchase"]["drives"]:
        price = of_one.cost(document, document["purchase"]["cost"])
        yield "to buy", words.drives(document), price
    if waits and waits["gain"]:
        ends = ""
        if waits["low"] and waits["high"]:
            ends = f"90%: {factor(waits['low'])} to {factor(waits['high'])}"
        yield "gain of all", f"{factor(waits['gain'])} times", ends
        now, then = (latency(waits[each] / waits["requests"])
                     for each in ("cached_ns", "alone_ns"))  # fmt: skip
        yield "mean request", now, f"disks alone: {then}"
