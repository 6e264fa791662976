"""The `[cache]` table of Open CAS, with casadm's terms and defaults.

Defaults: lines of 4 KiB, mode wt, promotion always, sequential cutoff full of 1 MiB, cleaning alru
(every 20 s, lines older than 120 s, 100 lines at a time, after 10 s without I/O); acp cleans 128
lines every 10 ms; nhit inserts at the third miss once the cache is 80 % full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from hybridsim.foundation.cache_parameters import OpenCasParameters as Model
from hybridsim.foundation.toml.table import Size, Time, percentage, word_or
from hybridsim.foundation.units import format_size, parse_percent, parse_time
from hybridsim.scenario.fast_tier import AUTO, FastTier, word

LINES = tuple(kib * 1024 for kib in (4, 8, 16, 32, 64))
ALRU, ACP = "alru", "acp"
WAKE_UP_NS = {ALRU: Model.wake_up_ns, ACP: 10 * 10**6}
FLUSH_MAX_BUFFERS = {ALRU: Model.flush_max_buffers, ACP: 128}
FLUSH_LINES_MAX = 10_000
LEAST_WAKE_NS = 1_000_000


def _interval(text: Any) -> str:
    if parse_time(text) < LEAST_WAKE_NS:
        raise ValueError(f"{text}: interval too short: the minimum is 1ms")
    return str(text)


def _lines(number: Any) -> Any:
    if not isinstance(number, int) or not 1 <= number <= FLUSH_LINES_MAX:
        raise ValueError(f'{number!r} is not 1 to {FLUSH_LINES_MAX} lines or "auto"')
    return number


Filled = Annotated[str, percentage("a share of the cache: 0% to 100%")]


class OpenCasTable(FastTier):
    """Open CAS."""

    kind: Literal["open-cas"]
    line_bytes: Size = 4 * 1024
    modes = {
        "write-through": "wt",
        "write-back": "wb",
        "write-around": "wa",
        "write-invalidate": "wi",
        "write-only": "wo",
        "pass-through": "pt",
        "writethrough": "wt",
        "writeback": "wb",
    }
    mode: Literal["wt", "wb", "wa", "wi", "wo", "pt"] = "wt"
    promotion: Literal["always", "nhit"] = word(Model.promotion)
    # nhit: insert at this miss
    insertion_threshold: int = Field(Model.insertion_threshold, ge=2, le=1000)
    trigger_threshold: Filled = "80%"  # nhit: when fuller
    sequential_cutoff_policy: Literal["full", "always", "never"] = word(
        Model.sequential_cutoff_policy
    )
    sequential_cutoff_bytes: Size = Field(Model.sequential_cutoff_bytes, ge=1024)
    cleaning: Literal["alru", "acp", "nop"] = word(Model.cleaning)
    wake_up: Annotated[str, word_or(_interval, AUTO)] = AUTO  # auto: casadm's, by `cleaning`
    most_buffers: Annotated[str | int, word_or(_lines, AUTO)] = Field(
        AUTO, alias="flush_max_buffers"
    )
    staleness_time_ns: Time = Field(Model.staleness_time_ns, ge=0)  # alru
    activity_threshold_ns: Time = Field(Model.activity_threshold_ns, ge=0)  # alru
    # How often `casadm -P` reads the counters (0: never), and when first: it stops the cleaner.
    stats_interval_ns: Time = Field(Model.stats_interval_ns, ge=0)
    stats_start_ns: Time = Field(Model.stats_start_ns, ge=0)
    # Its threads, one a CPU: one sleeps while the disk throttles a write or a flush that it sent.
    queues: int = Field(Model.queues, ge=1, le=1024)

    @property
    def page_bytes(self) -> int:
        """Line size in bytes."""
        return self.line_bytes

    @property
    def wake_up_ns(self) -> int:
        """Interval between two runs of the cleaner, in ns."""
        if self.wake_up == AUTO:
            return WAKE_UP_NS.get(self.cleaning, 1)
        return parse_time(self.wake_up)

    @property
    def flush_max_buffers(self) -> int:
        """Maximum number of lines that one run of the cleaner writes."""
        if self.most_buffers == AUTO:
            return FLUSH_MAX_BUFFERS.get(self.cleaning, 1)
        return int(self.most_buffers)

    @property
    def words(self) -> str:
        """Name of the cache in reports."""
        promotion = str(self.promotion)
        if promotion == "nhit":
            promotion += f" {self.insertion_threshold} from {self.trigger_threshold}"
        size = format_size(self.line_bytes)
        return f"Open CAS {self.mode}, {size} lines, promotion {promotion}"

    def parameters(self, lines: int, seed: int) -> Model:
        """Return the parameters of the model of a cache of so many lines."""
        threshold = int(lines * parse_percent(self.trigger_threshold))
        return self.parameters_of(Model, lines=lines, trigger_threshold_lines=threshold)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each value that casadm refuses."""
        if self.line_bytes not in LINES:
            yield "line", "an Open CAS cache line must be 4, 8, 16, 32 or 64 KiB"
        else:
            yield from self.wrong_size(self.line_bytes, "line")
        yield from self.wrong_chunk()
