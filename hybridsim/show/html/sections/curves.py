"""Curves of a real run and a simulated one, over each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts.overlay import overlays
from hybridsim.show.html.blocks import Row, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return a chart a curve; None where no curve reaches over some bins."""
    charts = overlays(document)
    return Section("curves", "Over time", [Row(charts)]) if charts else None
