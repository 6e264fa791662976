"""The warm-up of the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.units import human_count
from hybridsim.foundation.wording import percent, ranged, span
from hybridsim.show.charts.documents import has_cache
from hybridsim.show.charts.warm_up import warm_up
from hybridsim.show.html.blocks import Prose, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return charts of hit ratio, latency and occupancy over the same time axis."""
    if not has_cache(document) or len(document["series"]["start_ns"]) < 2:
        return None
    lead = _in_words(document["warm_up"])
    hint = (
        "Point at a chart to read the values of all; drag along the time axis to zoom in, "
        "double-click to zoom out."
    )
    return Section("warm-up", "Warm-up", [*warm_up(document), Prose([hint], "hint")], lead)


def _in_words(result: Mapping[str, Any]) -> str:
    if result["state"] == "flat":
        return f"No warm-up: {result['why']}."
    if result["state"] != "steady":
        return f"Not steady yet: {result['why']}."
    times = {share: _after(result[f"t{share}_ns"]) for share in (50, 90, 95)}
    known = result.get("t90")
    if known and known["value"]:
        times[90] = f"after {ranged(known['value'], known['low'], known['high'])}"
    steps = ", ".join(f"{share}% {time}" for share, time in times.items())
    level = result["level"]
    steady = percent(level) if result["measure"] == "hit ratio" else f"{human_count(level)} IOPS"
    return f"From the empty to the steady state: {steps}. Steady at {steady}."


def _after(time_ns: int) -> str:
    return f"after {span(time_ns)}" if time_ns else "at once"
