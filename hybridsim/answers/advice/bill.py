"""The cost of a replayed machine, and the latency that its cache saves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hybridsim.answers.advice.alternatives import (
    GB,
    cache_cost,
    copies,
    drives_cost,
    human_drive,
    pricing,
)
from hybridsim.answers.intervals import Interval, saved
from hybridsim.answers.result import Result
from hybridsim.foundation.documents import Document
from hybridsim.scenario import Backing, Scenario
from hybridsim.scenario.fast_tier import FastTier

NS_PER_MS = 10**6


@dataclass(frozen=True)
class Bill(Document):
    """Costs in the currency of the prices; None if the price of such drives is unknown."""

    price: dict[str, Any]  # per GB, and their source
    is_own: bool  # the prices are those of the scenario; else of the catalog
    disks: str
    disks_cost: float | None  # of whole drives
    ssds: str
    ssds_cost: float | None  # of whole drives, mirrored if they hold the only copy of writes
    ssd_cost: float | None  # of the capacity that the cache uses on them
    what: str  # "reads", or "writes" if there are no reads
    saved_ns: float | None  # reduction of their mean latency; None: unknown, or no reduction
    saved: Interval | None = None  # the same with its interval, whose lower end may be below 0

    _more = ("per_saved_ms", "per_saved_range")

    @property
    def per_saved_ms(self) -> float | None:
        """Cost of the SSD capacity that the cache uses, per millisecond saved; None if unknown."""
        if self.ssd_cost is None or self.saved_ns is None:
            return None
        return self.ssd_cost / (self.saved_ns / NS_PER_MS)

    @property
    def per_saved_range(self) -> tuple[float, float | None] | None:
        """The interval of `per_saved_ms`; it has no upper end if perhaps nothing is saved."""
        if self.per_saved_ms is None or self.ssd_cost is None or self.saved is None:
            return None
        return cost_per_ms(self.ssd_cost, self.saved)


def cost_per_ms(cost: float, saved: Interval) -> tuple[float, float | None] | None:
    """Return the interval of a cost per millisecond saved; None if surely nothing is saved.

    It has no upper end if perhaps nothing is.
    """
    if saved.high <= 0:
        return None
    most = cost / (saved.low / NS_PER_MS) if saved.low > 0 else None
    return cost / (saved.high / NS_PER_MS), most


def bill(scenario: Scenario, result: Result) -> Bill | None:
    """Return the costs of the replayed machine; None without a cache.

    The catalog has prices of drives only: the price of cloud volumes is unknown unless the
    scenario specifies it.
    """
    backing, cache, cache_bytes = scenario.backing, scenario.cache, result.scenario["cache_bytes"]
    if not cache_bytes or (scenario.price is None and backing.drive.kind == "volume"):
        return None
    prices = pricing(scenario)
    what, saved_ns = _saved(result)
    known = None if saved_ns is None else _interval(result, what, saved_ns)
    is_priced = cache.drive.kind == "ssd"
    return Bill(
        {**prices.price.model_dump(), "source": prices.source},
        scenario.price is not None,
        _named(backing),
        drives_cost(backing, prices.price),
        _named(cache, copies(scenario)),
        cache_cost(scenario, prices.price),
        copies(scenario) * cache_bytes / GB * prices.price.ssd_per_gb if is_priced else None,
        what,
        saved_ns,
        known,
    )


def _named(tier: Backing | FastTier, number: int = 1) -> str:
    return f"{number * tier.members} x {human_drive(tier.drive.capacity_bytes)}"


def _saved(result: Result) -> tuple[str, float | None]:
    """Return the kind of requests, and the reduction of their mean latency in the warm phase."""
    none, warm = result.phases["none"], result.phases["warm"]
    what = "reads" if none.figures.reads.count else "writes"
    if none.saturated or warm.saturated:
        return what, None
    before, after = (getattr(each.figures, what).mean_ns for each in (none, warm))
    saved = before - after if before is not None and after is not None else 0.0
    return what, saved if saved > 0 else None


def _interval(result: Result, what: str, saved_ns: float) -> Interval | None:
    """Return the reduction with its interval, from the warm requests on both machines."""
    warm = result.judgement.pairs.get("warm")
    both = result.both
    start = both.groups if warm is None else both.border(warm.first)
    if start >= both.groups:
        return None
    sides = both.sides(start, both.blocks(start), result.judgement.adapts)
    known = saved(sides["none"], sides["cached"], what.removesuffix("s"))
    if known is None:
        return None
    off = saved_ns - known.value  # of a few requests: the phase begins between two groups
    return replace(known, value=saved_ns, low=known.low + off, high=known.high + off)
