"""The caches that `advise` and `size` search, what each is held against, and what each costs.

A search is narrowed by what the scenario specifies: a kind, a mode, or a setting that only some
kinds support.  Rows of one table are judged on the same requests: those of the second half, those
from the latest warm moment of all rows on, and those of the whole run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hybridsim.answers.advice.alternatives import (
    Pricing,
    cache_cost,
    copies,
    drives_cost,
    human_drive,
)
from hybridsim.answers.judge import Both, Judgement, Pair, Side, judge
from hybridsim.answers.ledger import JOINED
from hybridsim.answers.result import Result
from hybridsim.answers.wear import Wear, wear
from hybridsim.caches import CACHES
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import format_size
from hybridsim.scenario import Scenario

BOTH_MODES = ("write-through", "write-back")
NOT_INSTALLABLE = ("page",)  # policies that no product has
ONE_MODE = "dm-writecache"
KIND, MODE, SIZE = ("cache", "kind"), ("cache", "mode"), ("cache", "size")


@dataclass(frozen=True)
class Candidate:
    """A kind and mode of cache in front of a scenario's disks."""

    scenario: Scenario

    @property
    def kind(self) -> str:
        """Kind of cache, as scenarios name it."""
        return self.scenario.cache.kind

    @property
    def mode(self) -> str:
        """Write policy, in the terms common to all kinds."""
        return self.scenario.cache.write_policy

    @property
    def name(self) -> str:
        """Kind and mode, in words."""
        if self.kind == ONE_MODE:
            return self.kind
        return f"{self.kind} {self.mode}"

    @property
    def installable(self) -> bool:
        """Whether a product has this cache."""
        return self.kind not in NOT_INSTALLABLE

    @property
    def keeps_writes(self) -> bool:
        """Whether the SSD has the only copy of what was written."""
        return copies(self.scenario) > 1

    @property
    def times(self) -> int:
        """Space that it needs for each byte held; buckets and blocks are never all full."""
        return 1 if self.kind == "page" else 2

    def sized(self, size_bytes: int) -> Scenario:
        """Return its scenario with a size."""
        return self.scenario.with_options(cache_size=format_size(size_bytes))


def is_specified(scenario: Scenario, path: tuple[str, ...]) -> bool:
    """Return whether a file or an option of the user sets a key."""
    return bool(scenario.origin.specifies(path) or scenario.origin.option(path))


def candidates(scenario: Scenario) -> tuple[list[Candidate], list[str]]:
    """Return the caches to search, and notes on those that the scenario's settings exclude.

    Raises UsageError where the scenario specifies that there is no cache, and the ScenarioError of
    the first kind where the settings suit no kind.
    """
    if scenario.cache.kind == "none" and is_specified(scenario, KIND):
        raise UsageError(
            "the scenario says that there is no cache: --cache page, or another kind under [cache]"
        )
    own = scenario.cache.kind
    of_preset = bool(scenario.origin.specified.get("preset")) and own != "none"
    is_fixed = is_specified(scenario, KIND) or of_preset
    kinds = [own] if is_fixed else [*(k for k in CACHES if k not in NOT_INSTALLABLE), "page"]
    result: dict[tuple[str, str], Candidate] = {}
    refused: dict[str, ScenarioError] = {}
    for kind in kinds:
        try:
            site = scenario if is_fixed else scenario.with_options(cache=kind)
            fixed_mode = is_specified(scenario, MODE) or kind == ONE_MODE
            modes = [None] if fixed_mode else BOTH_MODES
            for mode in modes:
                one = Candidate(site.with_options(cache_mode=mode))
                result.setdefault((one.kind, one.mode), one)
        except ScenarioError as error:
            refused[kind] = error
    if not result:
        raise next(iter(refused.values()))
    notes = [f"{kind} was left out: {error}" for kind, error in refused.items()]
    return list(result.values()), notes


@dataclass(frozen=True)
class Purchase:
    """The SSDs of a cache, bought whole."""

    drives: int
    drive: str
    drive_bytes: int
    mirrored: bool
    cost: float | None  # of the SSDs; None: the price is unknown
    disks_cost: float | None

    @property
    def words(self) -> str:
        """Return what is bought: 2 x 1.92 TB."""
        return f"{self.drives} x {human_drive(self.drive_bytes)}"

    @property
    def total(self) -> float | None:
        """What the disks and the SSDs cost together."""
        if self.cost is None or self.disks_cost is None:
            return None
        return self.cost + self.disks_cost

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**vars(self), "total_cost": self.total}


def purchase(candidate: Candidate, prices: Pricing) -> Purchase:
    """Return what is bought for a cache: whole drives, twice where dirty data must survive one."""
    site = candidate.scenario
    tier, number = site.cache, copies(site)
    return Purchase(
        number * tier.members,
        tier.drive.name,
        tier.drive.capacity_bytes,
        number > 1,
        cache_cost(site, prices.price),
        drives_cost(site.backing, prices.price),
    )


@dataclass(frozen=True)
class Row:
    """What one cache of one size did, beside the disks alone."""

    candidate: Candidate
    size_bytes: int
    result: Result
    searched: Judgement  # on the first half of the requests
    bought: Purchase
    warm: Pair  # from the latest warm moment of all rows on; `alike` sets it
    worn: Wear | None  # by the whole capture, pauses included
    loses: str = ""  # why another row is recommended

    @property
    def judgement(self) -> Judgement:
        """The judge's answer on the second half of the requests."""
        return self.result.judgement

    @property
    def answer(self) -> str:
        """yes, no or unsure."""
        return self.result.verdict.answer

    @property
    def judged(self) -> Pair:
        """The requests of the second half on both machines."""
        return self.judgement.judged

    @property
    def whole(self) -> Pair:
        """All requests on both machines."""
        return self.judgement.pairs["whole"]

    @property
    def hit(self) -> float | None:
        """Hit ratio of the whole run's reads."""
        return self.result.phases["whole"].figures.hit_ratio

    @property
    def keeps_up(self) -> bool:
        """Whether its disks serve the load without a growing backlog."""
        return not self.result.phases["warm"].saturated

    @property
    def sure(self) -> float:
        """What the search ranks by: the lower end of the gain on the first half."""
        result = self.searched
        low = result.low if result.low is not None else result.gain
        return low or 0.0

    def of(self, pair: Pair) -> float | None:
        """Return the gain of some requests by the goal."""
        return pair.gain(self.judgement.goal, self.judgement.adapts)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        result, warm_up = self.judgement, self.result.warm_up
        return {
            "kind": self.candidate.kind,
            "mode": self.candidate.mode,
            "name": self.candidate.name,
            "installable": self.candidate.installable,
            "size_bytes": self.size_bytes,
            "options": self.result.scenario["options"],
            "hit": self.hit,
            "answer": self.answer,
            "gain": result.gain,
            "low": result.low,
            "high": result.high,
            "searched_gain": self.searched.gain,
            "searched_low": self.searched.low,
            "warm_gain": self.of(self.warm),
            "whole_gain": self.of(self.whole),
            "dirty_grown": result.dirty_grown,
            "judged": self.judged.to_dict(),
            "warm": self.warm.to_dict(),
            "whole": self.whole.to_dict(),
            "steady": warm_up.steady,
            "why_not_steady": warm_up.why,
            "keeps_up": self.keeps_up,
            "dirty_bytes": dirty_at_end(self.result),
            "dirty": self.result.dirty and self.result.dirty.to_dict(),
            "metadata_ram": self.result.metadata_ram,
            "drive_writes_per_day": self.worn and self.worn.drive_writes_per_day,
            "years": self.worn and self.worn.years,
            "bought": self.bought.to_dict(),
            "loses": self.loses,
        }


def row(candidate: Candidate, size_bytes: int, result: Result, prices: Pricing) -> Row:
    """Return what a replay found, judged on the first half of the requests too."""
    scenario = result.scenario
    whole = result.phases["whole"]
    return Row(
        candidate, size_bytes, result, on_first_half(result), purchase(candidate, prices),
        result.judgement.pairs.get("warm", result.judgement.judged),
        wear(whole, scenario.get("endurance_bytes"), scenario.get("capacity_bytes")),
    )  # fmt: skip


def on_first_half(result: Result) -> Judgement:
    """Judge the first half of the requests as if the capture had ended there."""
    plain, cached = result.sides
    half = Both(plain, cached).half
    results = result.judgement
    cut = [Side(_until(side, half), side.counters) for side in (plain, cached)]
    return judge(cut[0], cut[1], results.adapts, results.goal)


def _until(side: Side, group: int) -> Any:
    """Return a ledger that ends before a group; the arrays are shared."""
    cut = copy.copy(side.ledger)
    cut.requests = min(group * cut.each, cut.requests)
    return cut


def latest_warm(results: Iterable[Result]) -> int:
    """Return the request from which all machines are warm, as far as the runs show it."""
    result = [each.judgement.pairs["warm"].first for each in results
             if "warm" in each.judgement.pairs]  # fmt: skip
    return max(result, default=0)


def from_request(result: Result, first: int) -> Pair:
    """Return the requests from a number on, on both machines."""
    both = Both(*result.sides)
    last = max((both.groups - 1) // JOINED * JOINED, 0)
    return both.pair(min(both.border(first), last), both.groups)


def alike(rows: Sequence[Row]) -> list[Row]:
    """Return rows that are all judged from the latest warm moment of all of them on."""
    first = latest_warm(each.result for each in rows)
    return [replace(each, warm=from_request(each.result, first)) for each in rows]


def dirty_at_end(result: Result) -> int:
    """Return the bytes that only the SSD has when the run ends."""
    side = result.sides[1]
    levels = side.counters.column("dirty_bytes")
    return int(levels[-1]) if len(levels) else 0
