"""Rates and latencies by queue depth, of each parameter and state of the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts.bench import by_depth, latency_by_depth
from hybridsim.show.html.blocks import Row, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the charts of each parameter; None if only one depth was measured."""
    if len(document["setting"]["depths"]) < 2:
        return None
    lead = "The queue depth is the number of requests outstanding at a time."
    charts = [chart for pair in zip(by_depth(document), latency_by_depth(document))
              for chart in pair]  # fmt: skip
    return Section("depths", "By queue depth", [Row(charts)], lead)
