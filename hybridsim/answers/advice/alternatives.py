"""Alternatives to the machine, with prices: more disks, short-stroked disks, all SSD, the hybrid.

The guide's comparison (A7): each holds the same data and survives the same failures.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import format_size, human_size
from hybridsim.scenario import Backing, Price, Scenario
from hybridsim.scenario.backing import KINDS
from hybridsim.scenario.fast_tier import FastTier
from hybridsim.storage.catalog import FOLDER

NAMES = ("disks", "more-disks", "short-stroke", "all-ssd", "hybrid")
GB = 10**9
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
        number = copies(site) * site.cache.members
        words, has_cache = f"+ {number} x {human_drive(site.cache.drive.capacity_bytes)} SSD", True
    backing = site.backing
    number_of = f"{backing.members} x {human_drive(backing.drive.capacity_bytes)}"
    cost = drives_cost(backing, price)
    if cost is not None and has_cache:
        bought = cache_cost(site, price)
        cost = None if bought is None else cost + bought
    return Alternative(name, f"{number_of} {words}".strip(), site, has_cache, cost)


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
