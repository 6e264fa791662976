"""Sections of `compare`: whether a simulated run agrees with a real one, figure by figure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybridsim.answers.comparison import Row as Figure
from hybridsim.show.charts import Axis, Ranges
from hybridsim.show.charts.answers import overlays
from hybridsim.show.charts.replay import Document
from hybridsim.show.comparison import (
    GAINS,
    HEADS,
    cells,
    gains_in_words,
    sure_in_words,
    verdict_on_gains,
)
from hybridsim.show.html.blocks import Block, Prose, Row, Section, Table

SIDES = ("real", "simulated")


def agreement(document: Document) -> Section:
    """Return whether the runs agree, and a table of all figures that both have."""
    judged = [each for each in document["rows"] if each["pass"] is not None]
    others = [each for each in document["rows"] if each["pass"] is None]
    wrong = [at for at, each in enumerate(judged) if not each["pass"]]
    sentence = f"Agrees. All {len(judged)} figures are within their tolerances."
    if wrong:
        sentence = f"Differs. {len(wrong)} of {len(judged)} figures exceed their tolerance."
    sources = [[side, each] for side in SIDES for each in document[side]]
    lone = [[side, ", ".join(names)] for side in SIDES if (names := document[f"only_{side}"])]
    blocks: list[Block | None] = [
        Prose([sentence], "no" if wrong else "yes"),
        _table("Checked figures", judged, wrong),
        *_sure(document),
        _table("Other figures, not checked", others, [], True) if others else None,
        Table("Compared files", ["", ""], sources, is_folded=True),
        Table("Reported by one run only", ["", ""], lone, is_folded=True) if lone else None,
        Prose(document["notes"]),
    ]
    return Section("agreement", "Agreement", blocks)


def _sure(document: Document) -> Iterator[Block]:
    """Yield the paired gains of two replays, or what the intervals rest on."""
    gains = document["gains"]
    sure = [Figure.from_dict(each) for each in document["rows"] if each["interval"]]
    if gains:
        rows = [(GAINS[name], each["low"], each["value"], each["high"])
                for name, each in gains.items()]  # fmt: skip
        title = f"Gain of the second machine, of the same {document['paired_requests']:,} requests"
        yield Prose([f"{verdict_on_gains(gains)}: {', '.join(gains_in_words(gains))}."])
        yield Ranges("paired", title, Axis("gain", "times"), rows, [("equal", 1.0)])
    elif sure:
        yield Prose([f"{'; '.join(map(sure_in_words, sure))}. {document['interval_basis']}."])


def _table(caption: str, rows: list[Any], strong: list[int], is_folded: bool = False) -> Table:
    return Table(
        caption, HEADS, [cells(Figure.from_dict(each)) for each in rows], strong, is_folded
    )


def curves(document: Document) -> Section:
    """Return one chart per curve that has more than a few bins."""
    charts = overlays(document)
    return Section("curves", "Over time", [Row(charts)] if charts else [])
