"""The caches that `advise` and `size` search, with their results and costs.

The scenario narrows a search by specifying a kind, a mode, or a setting that only some kinds
support.  All rows of a table are judged on the same requests: those of the second half, those since
all rows are warm, and those of the whole run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hybridsim.answers.advice.alternatives import (
    Pricing,
    cache_cost,
    copies,
    drives_cost,
)
from hybridsim.answers.judge import Judgement, Pair
from hybridsim.answers.metrics import JOINED
from hybridsim.answers.result import Result
from hybridsim.caches import CACHES
from hybridsim.foundation.documents import Document, in_json
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import format_size
from hybridsim.scenario import Scenario

BOTH_MODES = ("write-through", "write-back")
NOT_INSTALLABLE = ("page",)  # kinds that no product has
FROM_SOURCE = ("open-cas",)  # kinds that no distribution packages
EFFORT = 1.1  # times: what a kernel has is taken, unless a kind of FROM_SOURCE gains more than that
ONE_MODE = "dm-writecache"
OF_CANDIDATE = ("kind", "mode", "name", "setting", "installable")  # in JSON
KIND, MODE, SIZE = ("cache", "kind"), ("cache", "mode"), ("cache", "size")
# Settings that change what a kind gains, each with its name in reports.
SETTINGS: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "bcache": (
        ("no cutoff", {"sequential_cutoff": "0B"}),
        ("never congested", {"congested_read": "0s", "congested_write": "0s"}),
    ),
    "dm-cache": (("32K blocks", {"block": "32KiB"}), ("256K blocks", {"block": "256KiB"})),
    "open-cas": (
        ("64K lines", {"line": "64KiB"}),
        ("nhit", {"promotion": "nhit"}),
        ("acp", {"cleaning": "acp"}),
    ),
    "dm-writecache": (("90% full", {"high_watermark": "90%", "low_watermark": "85%"}),),
}


def effort_of(kind: str) -> float:
    """Return how many times more a kind of cache must gain than one that a kernel has."""
    return EFFORT if kind in FROM_SOURCE else 1.0


@dataclass(frozen=True)
class Candidate:
    """A kind and mode of cache in front of a scenario's disks."""

    scenario: Scenario
    setting: str = ""  # name of the SETTINGS that differ from the defaults

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
    def label(self) -> str:
        """Kind, mode and the settings that differ from the defaults, in words."""
        return f"{self.name}, {self.setting}" if self.setting else self.name

    @property
    def installable(self) -> bool:
        """Whether a product has this cache."""
        return self.kind not in NOT_INSTALLABLE

    @property
    def effort(self) -> float:
        """How many times more it must gain than a kind that a kernel has."""
        return effort_of(self.kind)

    @property
    def keeps_writes(self) -> bool:
        """Whether the SSD may hold the only copy of written data."""
        return copies(self.scenario) > 1

    @property
    def times(self) -> int:
        """Cache size per byte of data held: buckets and blocks are never all full."""
        return 1 if self.kind == "page" else 2

    def room_for_writes(self, writes: int, bytes_written: int, footprint_bytes: int) -> int:
        """Return the bytes of data held when all that a trace writes is cached, at most.

        Data that are written once have no hit, and still need room until they are clean.  A write
        takes a whole page at least.
        """
        page_bytes = self.scenario.cache.page_bytes
        return min(max(bytes_written, writes * page_bytes), footprint_bytes)

    def sized(self, size_bytes: int) -> Scenario:
        """Return the scenario with a cache of this size."""
        return self.scenario.with_options(cache_size=format_size(size_bytes))

    def refused(self, size_bytes: int) -> str:
        """Return why the cache cannot have this size; empty if it can."""
        try:
            self.sized(size_bytes)
        except ScenarioError as error:
            return str(error).removeprefix("--cache-size: ")
        return ""


def variants(candidate: Candidate) -> list[Candidate]:
    """Return a candidate with other SETTINGS; keys that the user specifies stay."""
    result = []
    for name, values in SETTINGS.get(candidate.kind, ()):
        if any(is_specified(candidate.scenario, ("cache", key)) for key in values):
            continue
        if "cleaning" in values and not candidate.keeps_writes:
            continue
        site = candidate.scenario.with_values({f"cache.{key}": v for key, v in values.items()})
        result.append(Candidate(site, name))
    return result


def is_specified(scenario: Scenario, path: tuple[str, ...]) -> bool:
    """Return whether a file or an option of the user sets a key."""
    return bool(scenario.origin.specifies(path) or scenario.origin.option(path))


def candidates(scenario: Scenario) -> tuple[list[Candidate], list[str]]:
    """Return the caches to search, and notes on those that the scenario's settings exclude.

    Raises UsageError if the scenario specifies that there is no cache, and the ScenarioError of
    the first kind if no kind supports the settings.
    """
    if scenario.cache.kind == "none" and is_specified(scenario, KIND):
        raise UsageError(
            "the scenario has no cache: specify --cache page, or another kind under [cache]"
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
class Purchase(Document):
    """The SSDs bought for a cache: whole drives."""

    drives: int
    drive: str
    drive_bytes: int
    mirrored: bool
    cost: float | None  # of the SSDs; None: the price is unknown
    disks_cost: float | None

    _more = ("total_cost",)

    @property
    def total_cost(self) -> float | None:
        """Cost of the disks and the SSDs; None if unknown."""
        if self.cost is None or self.disks_cost is None:
            return None
        return self.cost + self.disks_cost


def purchase(candidate: Candidate, prices: Pricing) -> Purchase:
    """Return the drives bought for a cache: mirrored if dirty data must survive a failure."""
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
    """The result of one cache of one size, and of the disks alone."""

    candidate: Candidate
    size_bytes: int
    result: Result
    bought: Purchase
    warm: Pair  # since all rows are warm; `alike` sets it
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
    def hit(self) -> float | None:
        """Hit ratio of the reads of the whole run."""
        return self.result.phases["whole"].figures.hit_ratio

    @property
    def keeps_up(self) -> bool:
        """Whether its disks serve the load without a growing backlog."""
        return not self.result.phases["warm"].saturated

    @property
    def sure(self) -> float:
        """What the search ranks by: the cautious forecast; without one, the gain."""
        result = self.judgement
        value = result.cautious if result.cautious is not None else result.gain
        return value or 0.0

    def of(self, pair: Pair) -> float | None:
        """Return the gain on these requests in terms of the goal."""
        return pair.gain(self.judgement.goal, self.judgement.adapts)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        judgement, result = self.judgement, self.result
        judged, whole = judgement.judged, judgement.pairs["whole"]
        dirty = result.both.cached.counters["dirty_bytes"]
        document: dict[str, Any] = {
            **{name: getattr(self.candidate, name) for name in OF_CANDIDATE},
            "size_bytes": self.size_bytes,
            "options": result.scenario["options"],
            "hit": self.hit,
            "answer": self.answer,
            "gain": judgement.gain,
            "measured_gain": judgement.measured,
            "forecast": judgement.expected,
            "low": judgement.low,
            "high": judgement.high,
            "cautious": judgement.cautious,
            "warm_gain": self.of(self.warm),
            "whole_gain": self.of(whole),
            "dirty_grown": judgement.dirty_grown,
            "dirty_is_steady": judgement.dirty_is_steady,
            "load_adapts": judgement.adapts,
            "is_forecast": judgement.forecast is not None,
            "too_short": judgement.too_short,
            "more_ns": judgement.more_ns,
            "means": judgement.means,
            "p99_ns": {
                "none": judged.plain.both.percentile(99),
                "cached": judged.cached.both.percentile(99),
            },
            "judged": judged,
            "warm": self.warm,
            "whole": whole,
            "steady": result.warm_up.steady,
            "why_not_steady": result.warm_up.why,
            "keeps_up": self.keeps_up,
            "ssd_busy": result.phases["whole"].ssd_utilisation,
            "dirty_bytes": int(dirty[-1]) if len(dirty) else 0,
            "dirty": result.dirty,
            "metadata_ram": result.metadata_ram,
            "drive_writes_per_day": result.wear and result.wear.drive_writes_per_day,
            "years": result.wear and result.wear.years,
            "bought": self.bought,
            "loses": self.loses,
        }
        return {name: in_json(each) for name, each in document.items()}


def row(candidate: Candidate, size_bytes: int, result: Result, prices: Pricing) -> Row:
    """Return the row of a replay."""
    warm = result.judgement.pairs.get("warm", result.judgement.judged)
    return Row(candidate, size_bytes, result, purchase(candidate, prices), warm)


def latest_warm(results: Iterable[Result]) -> int:
    """Return the number of the request since which all machines are warm."""
    firsts = [each.judgement.pairs["warm"].first for each in results
              if "warm" in each.judgement.pairs]  # fmt: skip
    return max(firsts, default=0)


def from_request(result: Result, first: int) -> Pair:
    """Return the figures of the requests from number `first` on, on both machines."""
    both = result.both
    last = max((both.groups - 1) // JOINED * JOINED, 0)
    return both.pair(min(both.border(first), last), both.groups)


def alike(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with `warm` set to the requests since all rows are warm."""
    first = latest_warm(each.result for each in rows)
    return [replace(each, warm=from_request(each.result, first)) for each in rows]


def warned(result: Result) -> list[str]:
    """Return the warnings of a replay as notes."""
    return [f"{each.text} ({each.fix})" if each.fix else each.text for each in result.warnings]
