"""The gain of a warm start: a run with it compared with one of the same cache starting empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.answers.outcome import SECOND, Outcome
from hybridsim.answers.warmup import SHARES, State, WarmUp

FIRST_NS = 60 * SECOND
FIRST_SHARE = 10  # in a run shorter than ten minutes, its first tenth


@dataclass(frozen=True)
class Beginning:
    """The pages that a cache started with, and the first minute with and without them."""

    source: str
    is_kept: bool  # on the SSD from the start; else loaded from the disks
    listed: int  # pages in the source
    chosen: int  # pages of the source that fit into the cache
    remembers: bool  # the state of the learned policy was restored too
    counters: dict[str, int]  # at the end of the load
    loaded_ns: int | None  # when the last page had been loaded
    warm_up: WarmUp
    cold_warm_up: WarmUp
    first_ns: int
    first_hit_ratio: float | None
    cold_first_hit_ratio: float | None
    disk_ns: int | None  # busy time of all disks in the whole run
    cold_disk_ns: int | None
    ssd_bytes: int | None  # bytes written to the SSD in the whole run
    cold_ssd_bytes: int | None

    @property
    def there(self) -> int:
        """Number of pages that were kept or loaded."""
        return self.counters["pages_kept"] + self.counters["pages_preloaded"]

    @property
    def used_share(self) -> float | None:
        """Share of these pages that were used later; None if there are none."""
        return self.counters["warm_pages_used"] / self.there if self.there else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        reached = {
            "reached_ns": _reached(self.warm_up),
            "cold_reached_ns": _reached(self.cold_warm_up),
        }
        fields = {name: value for name, value in vars(self).items() if not name.endswith("warm_up")}
        return fields | reached


def _reached(warm_up: WarmUp) -> dict[str, int | None]:
    steady = warm_up.state == State.STEADY
    return {str(share): warm_up.reached_ns[share] if steady else None for share in SHARES}


def compared(
    source: str,
    is_kept: bool,
    listed: int,
    chosen: int,
    remembers: bool,
    begun: Outcome,
    cold: Outcome,
    warm_ups: tuple[WarmUp, WarmUp],
) -> Beginning:
    """Compare a run with the same one from an empty cache; `warm_ups` are those of both runs."""
    first_ns = min(FIRST_NS, begun.end_ns // FIRST_SHARE)
    counters = {
        name: number
        for name, number in begun.whole.counters.items()
        if name.startswith(("pages_kept", "preload", "pages_preloaded", "warm_pages"))
    }
    warm_up, cold_warm_up = warm_ups
    return Beginning(
        source,
        is_kept,
        listed,
        chosen,
        remembers,
        counters,
        _loaded_ns(begun),
        warm_up,
        cold_warm_up,
        first_ns,
        begun.phase(0, first_ns).figures.hit_ratio,
        cold.phase(0, first_ns).figures.hit_ratio,
        _total(begun, "slow_busy_ns"),
        _total(cold, "slow_busy_ns"),
        _total(begun, "fast_bytes_written"),
        _total(cold, "fast_bytes_written"),
    )


def _total(outcome: Outcome, name: str) -> int | None:
    return outcome.counters.between(name, 0, outcome.end_ns)


def _loaded_ns(outcome: Outcome) -> int | None:
    loaded = outcome.counters.column("pages_preloaded")
    if not loaded[-1]:
        return None
    return int(outcome.counters.column("time_ns")[int(np.searchsorted(loaded, loaded[-1]))])
