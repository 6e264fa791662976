"""What a machine gives by queue depth: IOPS and latency, each parameter in each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts.bench import by_depth, latency_by_depth
from hybridsim.show.html.blocks import Row, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return a chart a parameter; None where only one depth was measured."""
    if len(document["setting"]["depths"]) < 2:
        return None
    lead = "By how many requests are under way at a time: depths double."
    charts = [chart for pair in zip(by_depth(document), latency_by_depth(document))
              for chart in pair]  # fmt: skip
    return Section("depths", "By queue depth", [Row(charts)], lead)
