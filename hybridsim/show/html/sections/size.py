"""The miss ratio of other cache sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import percent
from hybridsim.show.charts.curve import miss_ratio
from hybridsim.show.curve import no_knee
from hybridsim.show.html.blocks import Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the miss-ratio curve with the chosen size and the knee; None without a curve."""
    curve = document.get("miss_ratio_curve")
    if not curve or not curve["curve"]:
        return None
    chosen = (document.get("answer") or {}).get("size_bytes")
    if "answer" not in document:
        chosen = document["inputs"]["scenario"].get("cache_bytes")
    return Section("size", "Other sizes", [miss_ratio(curve, chosen)], _in_words(curve))


def _in_words(curve: Mapping[str, Any]) -> str:
    points = curve["curve"]
    page = human_size(curve["page_bytes"])
    basis = f"Simulated with {curve['policy'].upper()} and pages of {page}, without devices."
    why = no_knee(points[0]["miss_ratio"], points[-1]["miss_ratio"])
    if why is not None:
        return f"The curve has no knee: {why}. {basis}"
    knee = curve["knee_pages"]
    near = min(points, key=lambda each: abs(each["pages"] - knee))
    size, misses = human_size(knee * curve["page_bytes"]), percent(near["miss_ratio"])
    return f"Beyond the knee, {size} with {misses} misses, a larger cache gains little. {basis}"
