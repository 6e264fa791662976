"""The share of requests that missed, over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts import Axis, Chart, Line
from hybridsim.show.charts.replay import end_ns, has_cache, middles
from hybridsim.show.html.blocks import Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return a chart of the misses; None without a cache."""
    if not has_cache(document):
        return None
    series, end = document["series"], end_ns(document)
    missed = [None if hit is None else 1 - hit for hit in series["hit"]]
    line = Line("missed", "missed", middles(series, end), missed, "line", "real")
    chart = Chart("missed", "Misses", Axis.times(end), Axis("misses"), [line])
    return Section("misses", "Misses over time", [chart])
