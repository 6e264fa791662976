"""The cost of a replayed machine, and the latency that its cache saves."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from hybridsim.answers.advice.alternatives import (
    GB,
    Pricing,
    cache_cost,
    copies,
    drives_cost,
    human_drive,
    pricing,
)
from hybridsim.answers.result import Result
from hybridsim.scenario import Backing, Scenario
from hybridsim.scenario.fast_tier import FastTier

NS_PER_MS = 10**6


@dataclass(frozen=True)
class Bill:
    """Costs in the currency of the prices; None if the price of such drives is unknown."""

    pricing: Pricing
    is_own: bool  # the prices are those of the scenario; else of the catalog
    disks: str
    disks_cost: float | None  # of whole drives
    ssds: str
    ssds_cost: float | None  # of whole drives, mirrored if they hold the only copy of writes
    ssd_cost: float | None  # of the capacity that the cache uses on them
    what: str  # "reads", or "writes" if there are no reads
    saved_ns: float | None  # reduction of their mean latency; None: unknown, or no reduction

    @property
    def per_saved_ms(self) -> float | None:
        """Cost of the SSD capacity that the cache uses, per millisecond saved; None if unknown."""
        if self.ssd_cost is None or self.saved_ns is None:
            return None
        return self.ssd_cost / (self.saved_ns / NS_PER_MS)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        fields = asdict(self) | {"per_saved_ms": self.per_saved_ms}
        price, source = fields.pop("pricing")
        return {"price": {**price.model_dump(), "source": source}, **fields}


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
    is_priced = cache.drive.kind == "ssd"
    return Bill(
        prices,
        scenario.price is not None,
        _named(backing),
        drives_cost(backing, prices.price),
        _named(cache, copies(scenario)),
        cache_cost(scenario, prices.price),
        copies(scenario) * cache_bytes / GB * prices.price.ssd_per_gb if is_priced else None,
        what,
        saved_ns,
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
