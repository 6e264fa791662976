"""The `[cache]` table of Open CAS, with casadm's terms and defaults.

Defaults: lines of 4 KiB, mode wt, promotion always, sequential cutoff full of 1 MiB, cleaning alru
(every 20 s, lines older than 120 s, 100 lines at a time, after 10 s without I/O); acp cleans 128
lines every 10 ms; nhit inserts at the third miss once the cache is 80 % full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.foundation.units import format_size, parse_percent, parse_time
from hybridsim.scenario.fast_tier import FastTier
from hybridsim.storage.drives import Size, Time

LINES = tuple(kib * 1024 for kib in (4, 8, 16, 32, 64))
AUTO = "auto"
ALRU, ACP = "alru", "acp"
WAKE_NS = {ALRU: 20 * 10**9, ACP: 10 * 10**6}
FLUSH_LINES = {ALRU: 100, ACP: 128}
FLUSH_LINES_MAX = 10_000
LEAST_WAKE_NS = 1_000_000
OTHER_WORDS = {
    "write-through": "wt",
    "write-back": "wb",
    "write-around": "wa",
    "write-invalidate": "wi",
    "write-only": "wo",
    "pass-through": "pt",
    "writethrough": "wt",
    "writeback": "wb",
}


def _mode(text: Any) -> Any:
    return OTHER_WORDS.get(text, text) if isinstance(text, str) else text


def _auto_or_time(text: Any) -> str:
    if text == AUTO:
        return AUTO
    if parse_time(text) < LEAST_WAKE_NS:
        raise ValueError(f"{text}: interval too short: the minimum is 1ms")
    return str(text)


def _auto_or_count(number: Any) -> Any:
    if number == AUTO:
        return AUTO
    if not isinstance(number, int) or not 1 <= number <= FLUSH_LINES_MAX:
        raise ValueError(f'{number!r} is not 1 to {FLUSH_LINES_MAX} lines or "auto"')
    return number


def _share(text: Any) -> str:
    if not 0 <= parse_percent(str(text)) <= 1:
        raise ValueError(f"{text!r} is not a share of the cache: 0% to 100%")
    return str(text)


class OpenCasTable(FastTier):
    """Open CAS."""

    kind: Literal["open-cas"]
    line_bytes: Size = Field(4 * 1024, alias="line")
    mode: Annotated[Literal["wt", "wb", "wa", "wi", "wo", "pt"], BeforeValidator(_mode)] = "wt"
    promotion: Literal["always", "nhit"] = "always"
    insertion_threshold: int = Field(3, ge=2, le=1000)  # nhit: insert at this miss
    trigger_threshold: Annotated[str, BeforeValidator(_share)] = "80%"  # nhit: when fuller
    sequential_cutoff_policy: Literal["full", "always", "never"] = "full"
    sequential_cutoff_bytes: Size = Field(2**20, alias="sequential_cutoff", ge=1024)
    cleaning: Literal["alru", "acp", "nop"] = "alru"
    wake_up: Annotated[str, BeforeValidator(_auto_or_time)] = AUTO  # auto: casadm's, by `cleaning`
    flush_max_buffers: Annotated[str | int, BeforeValidator(_auto_or_count)] = AUTO
    staleness_time_ns: Time = Field(120 * 10**9, alias="staleness_time", ge=0)  # alru
    activity_threshold_ns: Time = Field(10 * 10**9, alias="activity_threshold", ge=0)  # alru
    # How often `casadm -P` reads the counters (0: never), and when first: it stops the cleaner.
    stats_interval_ns: Time = Field(0, alias="stats_interval", ge=0)
    stats_start_ns: Time = Field(0, alias="stats_start", ge=0)

    @property
    def page_bytes(self) -> int:
        """Line size in bytes."""
        return self.line_bytes

    @property
    def wake_ns(self) -> int:
        """Interval between two runs of the cleaner, in ns."""
        return WAKE_NS.get(self.cleaning, 1) if self.wake_up == AUTO else parse_time(self.wake_up)

    @property
    def flush_lines(self) -> int:
        """Maximum number of lines that one run of the cleaner writes."""
        if self.flush_max_buffers == AUTO:
            return FLUSH_LINES.get(self.cleaning, 1)
        return int(self.flush_max_buffers)

    def trigger_lines(self, lines: int) -> int:
        """Return the number of used lines from which nhit refuses first misses."""
        return int(lines * parse_percent(self.trigger_threshold))

    @property
    def write_policy(self) -> str:
        """Write policy, in the terms common to all kinds of cache."""
        return next(word for word, own in OTHER_WORDS.items() if own == self.mode)

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        promotion = str(self.promotion)
        if promotion == "nhit":
            promotion += f" {self.insertion_threshold} from {self.trigger_threshold}"
        size = format_size(self.line_bytes)
        return f"Open CAS {self.mode}, {size} lines, promotion {promotion}"

    def pages(self, footprint_bytes: int) -> int:
        """Return the number of lines, for a trace with this footprint."""
        return self.pieces(self.line_bytes, footprint_bytes)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each value that casadm refuses."""
        if self.line_bytes not in LINES:
            yield "line", "an Open CAS cache line must be 4, 8, 16, 32 or 64 KiB"
        else:
            yield from self.wrong_size(self.line_bytes, "line")
        yield from self.wrong_chunk()
