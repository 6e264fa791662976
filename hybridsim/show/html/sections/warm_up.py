"""How long it takes until the cache is warm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.units import human_count
from hybridsim.foundation.wording import percent, span
from hybridsim.show.charts.documents import has_cache
from hybridsim.show.charts.warm_up import warm_up
from hybridsim.show.html.blocks import Prose, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return hit ratio, latency and occupancy on one time axis."""
    if not has_cache(document) or len(document["series"]["start_ns"]) < 2:
        return None
    lead = _in_words(document["warm_up"])
    hint = "Point at one chart to read all of them; drag along the time axis to look closer."
    return Section("warm-up", "Warm-up", [*warm_up(document), Prose([hint], "hint")], lead)


def _in_words(result: Mapping[str, Any]) -> str:
    if result["state"] == "flat":
        return f"Nothing warms up: {result['why']}."
    if result["state"] != "steady":
        return f"Not steady yet: {result['why']}."
    steps = ", ".join(
        f"{share}% {_after(result[f't{share}_ns'])}" for share in (50, 90, 95)
    )  # fmt: skip
    level = result["level"]
    steady = percent(level) if result["measure"] == "hit ratio" else f"{human_count(level)} IOPS"
    return f"Of the way from empty to steady: {steps}. Steady at {steady}."


def _after(time_ns: int) -> str:
    return f"after {span(time_ns)}" if time_ns else "at once"
