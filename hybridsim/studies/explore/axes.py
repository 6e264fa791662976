"""What an exploration changes: each axis is a list of choices, and a point has one of each.

A choice sets keys of the scenario, so that each point is a machine that `hybridsim replay` replays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import format_size, human_size, parse_size
from hybridsim.scenario import Scenario
from hybridsim.studies.candidates import candidates, is_specified

if TYPE_CHECKING:
    from hybridsim.traces.trace import Trace

CACHE, SIZE, SSD, MEMBERS, LOAD = "cache", "size", "ssd", "members", "load"
AT_CACHE, AT_SIZE = 0, 1  # of these axes in a place
POLICIES = ("learned", "lru")  # of a cache of pages
SECOND_SSD = "samsung-pm883-960gb"  # a SATA drive, beside the scenario's own
THIRD_SSD = "samsung-pm9a3-1920gb"  # where the scenario's own is that one
STEPS = 4  # sizes per factor of two
SMALLEST, LARGEST = 0.01, 1.0  # sizes, as shares of what the trace touches
LEAST_BYTES = 2**20
LOADS = (0.5, 0.6, 0.7, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0)  # times the scenario's speed
CHOICES_MAX = 64  # of one axis
SAMPLED_FROM, SAMPLED_PAGES = 2_000_000, 8192  # requests, and pages that LRU's curve is sampled by

Place = tuple[int, ...]  # the number of the choice of each axis


@dataclass(frozen=True)
class Choice:
    """One value of an axis: its name, the keys that it sets, and its place among the others."""

    name: str
    values: dict[str, Any]
    at: float  # where it lies: ln of a size or a factor, a number; 0.0 for words
    words: tuple[str, ...] = ()  # of a cache: kind, mode, policy


@dataclass(frozen=True)
class Axis:
    """What may be changed, and its choices in order."""

    name: str
    title: str
    choices: tuple[Choice, ...]
    base: int  # the scenario's own
    is_ordered: bool
    served: tuple[float, ...] = ()  # of sizes: the share of page accesses that LRU serves

    @property
    def varies(self) -> bool:
        """Whether there is more than one choice."""
        return len(self.choices) > 1


def axes(
    site: Scenario,
    footprint_bytes: int,
    *,
    caches: Sequence[str] = (),
    policies: Sequence[str] = (),
    sizes: str = "",
    ssds: Sequence[str] = (),
    members: Sequence[int] = (),
    loads: Sequence[float] = (),
) -> tuple[list[Axis], list[str]]:
    """Return the axes of an exploration, and notes on what cannot be built.

    Raises UsageError for choices that contradict each other, ScenarioError for one that no machine
    can have.
    """
    kinds, notes = _caches(site, caches, policies)
    return [
        kinds,
        _sizes(site, footprint_bytes, sizes),
        _ssds(site, ssds),
        _members(site, members),
        _loads(site, loads),
    ], notes


def values_at(of: Sequence[Axis], place: Place) -> dict[str, Any]:
    """Return the keys of the scenario that a place sets."""
    result: dict[str, Any] = {}
    for axis, number in zip(of, place):
        result |= axis.choices[number].values
    return result


def moved(place: Place, to: Mapping[int, int]) -> Place:
    """Return a place with other choices of some axes, by their numbers."""
    return tuple(to.get(axis, number) for axis, number in enumerate(place))


def with_served(axis: Axis, trace: Trace, page_bytes: int, requests: int) -> Axis:
    """Return the axis of sizes with what LRU serves at each, which costs one pass over the trace.

    Where the data of a working set begin to fit, all caches change, whatever their policy: sizes
    between which LRU serves much more are further apart than their logarithms.
    """
    from hybridsim.studies.mrc import miss_ratio_curve

    pages = [max(round(math.exp(each.at)) // page_bytes, 1) for each in axis.choices]
    sample = SAMPLED_PAGES if requests > SAMPLED_FROM else None
    try:
        curve = miss_ratio_curve(trace, sizes=pages, page=page_bytes, sample=sample)
    except UsageError:  # too small a sample, or one of a sample
        return axis
    by_pages = dict(zip(curve.pages.tolist(), (1 - curve.miss_ratio).tolist()))
    return replace(axis, served=tuple(round(by_pages[each], 6) for each in pages))


def _ordered(name: str, title: str, choices: Sequence[Choice], own: float) -> Axis:
    """Return an axis whose base is the choice nearest to where the scenario lies."""
    base = min(range(len(choices)), key=lambda number: abs(choices[number].at - own))
    return Axis(name, title, tuple(choices), base, True)


def _caches(
    site: Scenario, wanted: Sequence[str], policies: Sequence[str]
) -> tuple[Axis, list[str]]:
    several = [site.with_options(cache=kind) for kind in dict.fromkeys(wanted)] or [site]
    choices: dict[str, Choice] = {}
    notes: list[str] = []
    for each in several:
        found, left_out = candidates(each)
        notes += left_out
        for one in found:
            values: dict[str, Any] = {}
            if one.kind != site.cache.kind or not is_specified(site, ("cache", "kind")):
                values["cache.kind"] = one.kind
            if not is_specified(one.scenario, ("cache", "mode")) or len(found) > 1:
                if one.kind != "dm-writecache":
                    values["cache.mode"] = one.mode
            for policy in _policies(one.scenario, policies):
                more = {"cache.policy": policy} if policy else {}
                words = (one.kind, one.mode, policy)
                name = " ".join(word for word in words if word)
                choices.setdefault(name, Choice(name, values | more, 0.0, words))
    ordered = tuple(choices.values())
    own = (site.cache.kind, site.cache.write_policy)
    base = next((n for n, each in enumerate(ordered) if each.words[:2] == own), 0)
    return Axis(CACHE, "cache", ordered, base, False), notes


def _policies(site: Scenario, wanted: Sequence[str]) -> list[str]:
    """Return the policies of a cache to try; [""] if it has its own only."""
    if site.cache.kind != "page":
        return [""]
    fixed = any(is_specified(site, ("cache", key)) for key in ("admission", "replacement"))
    if wanted:
        return list(dict.fromkeys(wanted))
    return [""] if fixed else list(POLICIES)


def _sizes(site: Scenario, footprint_bytes: int, wanted: str) -> Axis:
    """Return sizes from 1% to all of what the trace touches, or those from LOW..HIGH."""
    low = max(SMALLEST * footprint_bytes, LEAST_BYTES)
    room = site.cache.members * site.cache.drive.capacity_bytes
    high = min(max(LARGEST * footprint_bytes, 4 * low), room)
    if wanted:
        low, high = _ends(wanted)
    own = site.cache.pages(footprint_bytes) * site.cache.page_bytes
    found = list(_between(low, high))
    if len(found) > CHOICES_MAX:
        raise UsageError(f"--size {wanted}: at most {CHOICES_MAX} sizes, {STEPS} per factor of 2")
    choices = [
        Choice(human_size(each), {"cache.size": format_size(each)}, math.log(each))
        for each in found
    ]
    return _ordered(SIZE, "cache size", choices, math.log(max(own, 1)))


def _ends(text: str) -> tuple[int, int]:
    low, dots, high = text.partition("..")
    try:
        ends = parse_size(low.strip()), parse_size(high.strip() if dots else low.strip())
    except ValueError as error:
        raise UsageError(f"--size {text}: {error}; expected for example 1GiB..64GiB") from None
    if not 0 < ends[0] <= ends[1]:
        raise UsageError(f"--size {text}: the smaller size comes first, for example 1GiB..64GiB")
    return ends


def _between(low: float, high: float) -> Iterator[int]:
    """Yield sizes in steps of a quarter of a factor of two, from below `low` to above `high`."""
    power = 2 ** math.floor(math.log2(low))
    while True:
        for part in range(STEPS):
            size = power + power * part // STEPS
            step = max(power // STEPS, 1)
            if size + step > low:
                yield size
            if size >= high:
                return
        power *= 2


def _ssds(site: Scenario, wanted: Sequence[str]) -> Axis:
    own = site.cache.drive
    names = list(dict.fromkeys(wanted))
    if not names:
        other = SECOND_SSD if own.like != SECOND_SSD else THIRD_SSD
        names = [own.like, other] if own.like and own.kind == "ssd" else []
    if not names:  # a drive that the scenario describes itself
        return Axis(SSD, "SSD model", (Choice(own.name, {}, 0.0),), 0, False)
    values = [{"cache.drive": name} for name in names]
    choices = tuple(Choice(site.with_values(each).cache.drive.name, each, 0.0) for each in values)
    base = names.index(own.like) if own.like in names else 0
    return Axis(SSD, "SSD model", choices, base, False)


def _members(site: Scenario, wanted: Sequence[int]) -> Axis:
    own = site.backing.members
    numbers = sorted(set(wanted)) or sorted({own, max(round(1.5 * own), own + 1), 2 * own})
    choices = []
    for number in numbers:
        try:
            site.with_values({"backing.members": number})
        except ScenarioError:
            if wanted:
                raise
            continue
        choices.append(Choice(str(number), {"backing.members": number}, math.log(number)))
    choices = choices or [Choice(str(own), {}, math.log(own))]
    return _ordered(MEMBERS, "disks", choices, math.log(own))


def _loads(site: Scenario, wanted: Sequence[float]) -> Axis:
    if site.replay.mode == "closed":  # a fixed number of requests is outstanding, at any speed
        return Axis(LOAD, "load", (Choice("1", {}, 0.0),), 0, True)
    speed = site.replay.speed
    numbers = sorted(set(wanted or LOADS))
    if min(numbers) <= 0:
        raise UsageError("--load: factors above 0, for example 0.5,1,2")
    choices = [
        Choice(f"{each:g}", {"replay.speed": float(f"{each * speed:.6g}")}, math.log(each))
        for each in numbers
    ]
    return _ordered(LOAD, "load", choices, 0.0)
