"""Distributions of latencies, with the cache and without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.wording import latency
from hybridsim.show.charts.documents import phases
from hybridsim.show.charts.latency import distributions
from hybridsim.show.html.blocks import Block, Prose, Row, Section, Table

SHOWN = ("50", "90", "95", "99", "99.9", "99.99")


def section(document: Mapping[str, Any]) -> Section | None:
    """Return cumulative distributions and a table of percentiles."""
    charts = list(distributions(document))
    if not charts:
        return None
    blocks: list[Block] = [Row(charts), _percentiles(document)]
    if any(each.figures["saturated"] for each in phases(document)):
        remark = (
            "Some of these machines are saturated: their latencies depend on the length of the run."
        )
        blocks.insert(0, Prose([remark], "note"))
    lead = "Share of the requests that took at most this long; further to the left is better."
    return Section("latency", "Latency", blocks, lead)


def _percentiles(document: Mapping[str, Any]) -> Table:
    rows = [
        [each.label, *(latency(each.figures["read"]["p"][name]) for name in SHOWN)]
        for each in phases(document)
    ]
    return Table("Percentiles of the reads", ["", *(f"p{each}" for each in SHOWN)], rows,
                 is_folded=True)  # fmt: skip
