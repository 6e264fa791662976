"""Curves of a real run and a simulated one, overlaid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts.overlay import overlays
from hybridsim.show.html.blocks import Row, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return one chart per curve; None if no curve has more than a few bins."""
    charts = overlays(document)
    return Section("curves", "Over time", [Row(charts)]) if charts else None
