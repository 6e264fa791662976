"""Whether a simulated run agrees with a real one, figure by figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts.chart import Axis, Ranges
from hybridsim.show.comparison import (
    GAINS,
    allowed_in_words,
    error_in_words,
    gains_in_words,
    row_from,
    sure_in_words,
    value_in_words,
    verdict_on_gains,
)
from hybridsim.show.html.blocks import Block, Prose, Section, Table

SIDES = ("real", "simulated")
MARKS = {True: "✓", False: "✗", None: ""}


def section(document: Mapping[str, Any]) -> Section:
    """Return whether the runs agree, and a table of all figures that both have."""
    judged = [each for each in document["rows"] if each["pass"] is not None]
    failed = [each for each in judged if not each["pass"]]
    beyond = f"{len(failed)} of {len(judged)} figures exceed their tolerance."
    sentence = beyond if failed else f"All {len(judged)} figures are within their tolerances."
    wrong = [at for at, each in enumerate(judged) if not each["pass"]]
    blocks: list[Block] = [
        Prose([f"{'Differs' if failed else 'Agrees'}. {sentence}"], "no" if failed else "yes"),
        _table("Checked figures", judged, wrong),
    ]
    blocks += _sure(document)
    others = [each for each in document["rows"] if each["pass"] is None]
    if others:
        blocks.append(_table("Other figures, not checked", others, [], True))
    blocks += [_sources(document), *_left(document)]
    return Section("agreement", "Agreement", blocks)


def _sure(document: Mapping[str, Any]) -> list[Block]:
    """Return the paired gains of two replays, or what the intervals rest on."""
    gains = document["gains"]
    if gains:
        rows = [(GAINS[name], each["low"], each["value"], each["high"])
                for name, each in gains.items()]  # fmt: skip
        words = f"{verdict_on_gains(gains)}: {', '.join(gains_in_words(gains))}."
        title = f"Gain of the second machine, of the same {document['paired_requests']:,} requests"
        return [
            Prose([words]), Ranges("paired", title, Axis("gain", "times"), rows, [("equal", 1.0)])
        ]  # fmt: skip
    sure = [row_from(each) for each in document["rows"] if each["interval"]]
    if not sure:
        return []
    return [Prose([f"{'; '.join(map(sure_in_words, sure))}. {document['interval_basis']}."])]


def _table(caption: str, rows: list[Any], strong: list[int], is_folded: bool = False) -> Table:
    cells = []
    for each in map(row_from, rows):
        values = [value_in_words(each.name.measure, one) for one in (each.real, each.simulated)]
        allowed = "" if each.tolerance is None else allowed_in_words(each)
        cells.append([str(each.name), *values, error_in_words(each), allowed, MARKS[each.is_met]])
    heads = ["", "real", "simulated", "error", "allowed", ""]
    return Table(caption, heads, cells, strong, is_folded)


def _sources(document: Mapping[str, Any]) -> Table:
    rows = [[side, each] for side in SIDES for each in document[side]]
    return Table("Compared files", ["", ""], rows, is_folded=True)


def _left(document: Mapping[str, Any]) -> list[Block]:
    rows = [[side, ", ".join(document[f"only_{side}"])]
            for side in SIDES if document[f"only_{side}"]]  # fmt: skip
    blocks: list[Block] = []
    if rows:
        blocks.append(Table("Reported by one run only", ["", ""], rows, is_folded=True))
    return [*blocks, Prose(document["notes"])] if document["notes"] else blocks
