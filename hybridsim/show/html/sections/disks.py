"""Where the time of a request and of the devices goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts.disks import by_phase, over_time, per_request, ssds_over_time
from hybridsim.show.charts.latency import ways
from hybridsim.show.html.blocks import Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the parts of a read's latency, and the activities of disks and SSDs."""
    result = (
        ways(document), per_request(document), by_phase(document), over_time(document),
        ssds_over_time(document),
    )  # fmt: skip
    blocks = [each for each in result if each is not None]
    return Section("time", "Where the time goes", blocks) if blocks else None
