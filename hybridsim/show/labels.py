"""Labels, the phases of a result and text joining, for all reports.

LABELS has all labels of figures; `hybridsim explain` has an entry for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hybridsim.answers.outcome import Phase
from hybridsim.answers.result import Result
from hybridsim.answers.warmup import State
from hybridsim.foundation.wording import span

MET, LIKELY, MISSED = "✓", "~", "✗"
LABELS = {
    "trace": "trace",
    "event": "event",
    "site": "machine",
    "verdict": "verdict",
    "gain": "gain",
    "risks": "risks",
    "assumed": "assumed",
    "reasons": "reasons",
    "required": "required",
    "warm_up": "warm-up",
    "warm_start": "warm start",
    "hit_ratio": "hit ratio",
    "iops": "IOPS",
    "interval": "interval",
    "reads": "reads",
    "writes": "writes",
    "number": "number",
    "hit": "hit",
    "mean": "mean",
    "p50": "p50",
    "p99": "p99",
    "p999": "p99.9",
    "max": "max",
    "busy": "busy",
    "none": "no cache",
    "cold": "cold",
    "warm": "warm",
    "cached": "with cache",
    "before": "before",
    "last_fifth": "at the end",
    "misses": "not from SSD",
    "page_hits": "page hits",
    "blocks": "blocks",
    "usage": "usage",
    "requests": "requests",
    "fill": "fill",
    "write_back": "write-back",
    "metadata_ram": "RAM",
    "writecache": "write cache",
    "bcache": "bcache",
    "wear": "SSD writes",
    "cost": "cost",
    "disk_time": "disk time",
    "volume_time": "volume time",
    "iops_limit": "IOPS limit",
    "bandwidth_limit": "bandwidth limit",
    "controller": "controller",
    "rebuild": "rebuild",
    "model": "model",
    "notes": "notes",
    "next": "next",
}
GLUE = "\ue000"  # a space at which no line may break
UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|[KMGTP]?i?B|[kMGT]|times)\b)")


def rows(result: Result) -> list[tuple[str, Phase]]:
    """Return label and figures of each phase with the cache; nothing if there is no cache."""
    if result.scenario.get("cache_pages") == 0:
        return []
    cold, warm = result.phases["cold"], result.phases["warm"]
    state = result.warm_up.state
    if state == State.FLAT or not cold.span_ns:
        return [(LABELS["cached"], warm)]
    border = span(cold.figures.end_ns)
    if state == State.STEADY:
        return [(f"{LABELS['cold']} < {border}", cold), (LABELS["warm"], warm)]
    return [(f"{LABELS['before']} {border}", cold), (LABELS["last_fifth"], warm)]


def joined(parts: Iterable[str]) -> str:
    """Join parts with dots; lines break only between parts, or within parts of 60 characters."""
    short = (part.replace(" ", GLUE) if len(part) < 60 else part for part in parts if part)
    return f"{GLUE}· ".join(short)


def unbroken(text: str) -> str:
    """Keep each number and its unit on one line."""
    return UNIT.sub(GLUE, text)


def mark(met: bool, sure: bool) -> str:
    """Return a sign: met at both ends of the interval, at the figure only, or not met."""
    return MET if sure else LIKELY if met else MISSED
