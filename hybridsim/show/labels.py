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
SAME = """
trace event verdict gain risks assumed reasons required interval reads writes number hit
mean p50 p99 max busy cold warm before blocks usage requests fill bcache cost controller
rebuild model notes next
"""
LABELS = {word: word for word in SAME.split()} | {
    "site": "machine",
    "warm_up": "warm-up",
    "warm_start": "warm start",
    "hit_ratio": "hit ratio",
    "iops": "IOPS",
    "p999": "p99.9",
    "none": "no cache",
    "cached": "with cache",
    "last_fifth": "at the end",
    "misses": "not from SSD",
    "page_hits": "page hits",
    "write_back": "write-back",
    "metadata_ram": "RAM",
    "writecache": "write cache",
    "wear": "SSD writes",
    "disk_time": "disk time",
    "volume_time": "volume time",
    "iops_limit": "IOPS limit",
    "bandwidth_limit": "bandwidth limit",
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
