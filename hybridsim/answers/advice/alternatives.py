"""What machines cost: the replayed one, and alternatives to it.

More disks, short-stroked disks, all SSD, the hybrid, as in the guide's comparison (A7): each holds
the same data and survives the same failures.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hybridsim.answers.intervals import Interval, saved
from hybridsim.foundation.documents import Document
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import format_size, human_size
from hybridsim.scenario import Backing, Price, Scenario
from hybridsim.scenario.backing import KINDS
from hybridsim.scenario.fast_tier import FastTier
from hybridsim.storage.catalog import FOLDER

if TYPE_CHECKING:
    from hybridsim.answers.result import Result

NAMES = ("disks", "more-disks", "short-stroke", "all-ssd", "hybrid")
GB = 10**9
NS_PER_MS = 10**6
MEMBERS_MAX = 1024
KEEPS_WRITES = ("write-back", "write-only")  # modes in which the SSD holds the only copy


class Alternative(NamedTuple):
    """One machine that could be bought."""

    name: str  # one of NAMES
    words: str
    scenario: Scenario
    has_cache: bool
    cost: float | None  # None: the price of its drives is unknown


class Pricing(NamedTuple):
    """The prices per GB, and their source."""

    price: Price
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {**self.price.model_dump(), "source": self.source}


def pricing(scenario: Scenario) -> Pricing:
    """Return the prices of the scenario, or those of the catalog if it has none."""
    if scenario.price is not None:
        return Pricing(scenario.price, scenario.origin.name or "the scenario")
    known = dict(_usual())
    source = str(known.pop("source"))
    return Pricing(Price.model_validate(known), source)


@cache
def _usual() -> dict[str, str | float]:
    return tomllib.loads((FOLDER / "prices.toml").read_text(encoding="utf-8"))


def chosen(names: Sequence[str]) -> list[str]:
    """Return the names in the order of NAMES, always with "disks", the disks alone.

    Raises UsageError for an unknown name.
    """
    for name in names:
        if name not in NAMES:
            raise UsageError(f"unknown alternative {name!r}: {hint(name, NAMES)}")
    return [name for name in NAMES if name == "disks" or name in names]


def alternatives(
    scenario: Scenario,
    names: Sequence[str],
    data_bytes: int,
    cache_bytes: int,
    price: Price,
    volume_bytes: int = 0,
) -> list[Alternative]:
    """Return those of the named alternatives that can be built; each holds `data_bytes`.

    An alternative that is too small for a traced volume of `volume_bytes` is left out.
    """
    result = []
    for name in names:
        try:
            one = _built(name, scenario, data_bytes, cache_bytes, price)
            if one is not None:
                one.scenario.backing.member_bytes(volume_bytes)
                result.append(one)
        except ScenarioError:
            continue  # such as short stroking of an SSD
    return result


def _built(
    name: str, scenario: Scenario, data_bytes: int, cache_bytes: int, price: Price
) -> Alternative | None:
    own = scenario.backing
    members = _members(scenario, own.drive.capacity_bytes, data_bytes, own.members)
    is_solid = own.drive.kind == "ssd"
    site, words, has_cache = _of_members(scenario, members), "", False
    if name == "more-disks":
        site = _of_members(scenario, 2 * members)
    elif name == "short-stroke":
        if own.drive.kind != "hdd" or own.stroke == "short":
            return None
        site = _of_members(scenario, 2 * members).with_options(stroke="short")
    elif name == "all-ssd":
        drive = scenario.cache.drive
        if is_solid or not drive.like:
            return None
        minimum = KINDS[own.kind].min_members
        number = _members(scenario, drive.capacity_bytes, data_bytes, minimum)
        site = _of_members(scenario, number).with_options(backing_drive=drive.like, stroke="full")
    elif name == "hybrid":
        site = site.with_options(cache_size=format_size(cache_bytes))
        words, has_cache = f" + {_named(site.cache, copies(site))} SSD", True
    backing = site.backing
    cost = drives_cost(backing, price)
    if cost is not None and has_cache:
        bought = cache_cost(site, price)
        cost = None if bought is None else cost + bought
    return Alternative(name, f"{_named(backing)}{words}", site, has_cache, cost)


def human_drive(capacity_bytes: int) -> str:
    """Return a drive's size in decimal units, as in product names: 8 TB."""
    units = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))
    factor, unit = next(each for each in units if capacity_bytes >= each[0] or each[0] == 10**6)
    return f"{capacity_bytes / factor:.3g} {unit}"


def drives_cost(tier: Backing | FastTier, price: Price) -> float | None:
    """Return the cost of whole drives; None if the price of such drives is unknown."""
    per_gb = {"hdd": price.hdd_per_gb, "ssd": price.ssd_per_gb}.get(tier.drive.kind)
    return None if per_gb is None else tier.members * tier.drive.capacity_bytes / GB * per_gb


def copies(scenario: Scenario) -> int:
    """Return the copies of cached data: two if the cache may hold the only copy of a write."""
    return 2 if scenario.cache.write_policy in KEEPS_WRITES else 1


def cache_cost(scenario: Scenario, price: Price) -> float | None:
    """Return the cost of whole SSDs for the cache, mirrored where `copies` is two."""
    once = drives_cost(scenario.cache, price)
    return None if once is None else copies(scenario) * once


def _members(scenario: Scenario, drive_bytes: int, data_bytes: int, minimum: int) -> int:
    """Return the number of drives of a size that hold the data, at least `minimum`."""
    own = scenario.backing
    rows = -(-drive_bytes // own.chunk_bytes)  # rounded up: three drives of 8 TB hold 24 TB
    step = 2 if own.kind == "raid10" else 1
    if own.kind in ("single", "raid1"):
        return minimum
    for members in range(minimum, MEMBERS_MAX + 1, step):
        held = own.form._replace(members=members).chunks_held(rows) * own.chunk_bytes
        if held >= data_bytes:
            return members
    raise UsageError(
        f"{MEMBERS_MAX} drives of {human_size(drive_bytes)} are too small for the data: specify "
        "larger drives"
    )


def _of_members(scenario: Scenario, members: int) -> Scenario:
    """Return the scenario with this number of drives; more than one single drive is a stripe."""
    if members == scenario.backing.members:
        return scenario
    if scenario.backing.kind == "single":
        return scenario.with_options(backing="stripe", members=members)
    return scenario.with_options(members=members)


# What a replayed machine costs, and the latency that its cache saves.


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
        prices.to_dict(),
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
