"""Is an SSD cache what this application needs?  The guide's five questions, answered from a trace.

1 would lower latency help at all, 2 what would hold it back then, 3 how random and how read-heavy
is it, 4 is there a hot spot, 5 how much SSD; then what else could be bought for the money.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hybridsim.answers.advice.activity import Activity
from hybridsim.answers.advice.alternatives import (
    GB,
    NAMES,
    Alternative,
    Pricing,
    alternatives,
    chosen,
    pricing,
)
from hybridsim.answers.advice.hot_spot import HotSpot, hot_spot
from hybridsim.answers.metrics import Kind
from hybridsim.answers.outcome import SECOND, Outcome, Phase
from hybridsim.answers.result import Result
from hybridsim.foundation.units import human_size
from hybridsim.foundation.version import __version__
from hybridsim.scenario import Scenario
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.replay import Report
from hybridsim.studies.side_by_side import Several
from hybridsim.studies.size import Say, possible, sized, sizes_of, with_some_cache
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.advice/1"
TARGET = 0.9  # of what the curve falls by in all; of what the largest cache saves
WORTH_IT = 0.1  # of the mean latency without a cache: saving less pays for nothing


@dataclass(frozen=True)
class SizeOfSsd:
    """What a cache of one size saves, in its warm phase, and what that costs."""

    what: str  # knee, target, all
    size_bytes: int
    hit: float | None
    before_ns: float | None  # mean read (of a trace without reads: write) from the disks alone
    mean_ns: float | None
    cost: float | None
    steady: bool
    why: str  # it is not steady

    @property
    def saved_ns(self) -> float | None:
        """What it saves of a request, on average."""
        if self.before_ns is None or self.mean_ns is None:
            return None
        return self.before_ns - self.mean_ns

    @property
    def per_saved_ms(self) -> float | None:
        """What a saved millisecond costs."""
        saved = self.saved_ns
        return self.cost / (saved / 10**6) if self.cost and saved and saved > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "saved_ns": self.saved_ns, "per_saved_ms": self.per_saved_ms}


@dataclass(frozen=True)
class Compared:
    """What one alternative does with the second half of the requests, and the most it can."""

    name: str
    words: str
    cost: float | None
    mean_ns: float | None  # of reads, or of writes where there are no reads
    p99_ns: int | None
    all_ns: int  # until all the work is done
    half_ns: int  # of it the second half
    utilisation: float | None
    not_from_ssd: float | None  # share of the reading time that misses and bypasses take
    most_iops: float | None  # of the second half, at the scenario's depth

    @classmethod
    def of(
        cls, one: Alternative, outcome: Outcome, summary: Summary, most_iops: float | None
    ) -> Compared:
        """Look at the second half of a run."""
        border, phase = second_half(outcome, summary)
        figures = phase.figures
        requests = figures.reads if summary.reads else figures.writes
        reading = figures.reads.total_ns
        others = sum(figures.latency[kind].total_ns for kind in (Kind.MISS, Kind.BYPASS))
        known = not phase.saturated
        return cls(
            one.name, one.words, one.cost,
            requests.mean_ns if known else None, requests.percentile(99) if known else None,
            outcome.last_done_ns, outcome.last_done_ns - border, phase.utilisation,
            others / reading if reading else None, most_iops,
        )  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """The answers, and all that they rest on."""

    trace: dict[str, Any]
    scenario: dict[str, Any]
    mode: str  # of the replays of sizes
    compared_mode: str  # of the comparison; think: the application's own time stays
    activity: Activity
    hot: HotSpot
    curve: Curve
    sizes: list[SizeOfSsd]
    pick: SizeOfSsd  # the smallest that saves most of what can be saved
    compared: list[Compared]
    data_bytes: int
    pricing: Pricing
    depth: int  # at which there are the most IOPS
    notes: list[str] = field(default_factory=list)

    @property
    def span_ns(self) -> int:
        """How long the trace is."""
        return int(self.trace["span_ns"])

    @property
    def pays(self) -> bool:
        """Whether the SSD saves enough to be felt."""
        saved, before = self.pick.saved_ns, self.pick.before_ns
        return bool(saved and before and saved >= WORTH_IT * before)

    def of(self, name: str) -> Compared | None:
        """Return an alternative by its name."""
        return next((one for one in self.compared if one.name == name), None)

    def waiting(self, one: Compared | None) -> float | None:
        """Return the share of its time for which the application would wait for storage.

        Its own time is taken to stay what it was when captured.
        """
        busy = self.activity.busy_share(self.span_ns)
        if one is None or busy is None or self.compared_mode != "think":
            return None
        return max(0.0, 1 - (1 - busy) * self.span_ns / max(one.all_ns, 1))

    def faster(self, one: Compared | None) -> float | None:
        """Return how many times sooner the second half of the work is done than by the disks."""
        disks = self.of("disks")
        if one is None or disks is None or self.compared_mode != "think" or not one.half_ns:
            return None
        return disks.half_ns / one.half_ns

    def _per_gb(self, one: Compared) -> float | None:
        return one.cost / (self.data_bytes / GB) if one.cost is not None else None

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "schema": SCHEMA,
            "tool": {"version": __version__},
            "inputs": {"trace": self.trace, "scenario": self.scenario},
            "mode": self.mode,
            "compared_mode": self.compared_mode,
            "activity": self.activity.to_dict(self.span_ns),
            "hot_spot": self.hot.to_dict(),
            "knee_bytes": int(self.curve.pages[self.curve.knee]) * self.curve.page_bytes,
            "sizes": [each.to_dict() for each in self.sizes],
            "pick": self.pick.to_dict(),
            "pays": self.pays,
            "data_bytes": self.data_bytes,
            "compared": [
                {
                    **asdict(one),
                    "cost_per_gb": self._per_gb(one),
                    "waiting": self.waiting(one),
                    "faster": self.faster(one),
                }
                for one in self.compared
            ],
            "price": {**self.pricing.price.model_dump(), "source": self.pricing.source},
            "notes": self.notes,
        }


def advise(
    trace: Trace,
    scenario: Scenario | None = None,
    compare: Sequence[str] = NAMES,
    data_bytes: int | None = None,
    report: Report | None = None,
    say: Say = lambda text: None,
) -> Advice:
    """Answer the five questions for an application whose trace this is, on a scenario's disks.

    `compare` names the alternatives that are replayed too; each holds `data_bytes`, by default what
    the scenario's drives hold.  Raises what `replay` raises, UsageError for a scenario
    that says no cache or an unknown alternative.
    """
    scenario = scenario or Scenario.default()
    names = chosen(compare)
    scenario, assumed = with_some_cache(scenario)
    several = Several(trace, scenario, report)
    summary = several.summary
    say("the application's own time, its processes and its hot spot")
    activity = Activity()
    for chunk in trace.from_first():
        activity.add(chunk)
    page_bytes = scenario.cache.page_bytes
    hot = hot_spot(trace, summary.requests, summary.reads, page_bytes)
    say("the miss-ratio curve")
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    prices = pricing(scenario)
    wanted = sizes_to_try(curve, possible(scenario, sizes_of(curve))[0])
    say(f"replays with {', '.join(map(human_size, wanted))} of SSD, and without")
    largest_first = sorted(wanted, reverse=True)
    results = several.results([sized(scenario, each) for each in largest_first])
    sizes = [
        _of_size(wanted[each], each, result, summary, prices)
        for each, result in zip(largest_first, results)
    ][::-1]
    pick = picked(sizes)
    data_bytes = data_bytes or scenario.backing.held_bytes
    options = alternatives(
        scenario, names, data_bytes, pick.size_bytes, prices.price, summary.max_end_bytes
    )
    compared_mode = "think" if summary.incomplete < summary.requests else several.mode
    compared = _compared(several, options, compared_mode, say)
    about = results[0]
    told = [f"{each.text} ({each.fix})" if each.fix else each.text for each in about.warnings]
    return Advice(
        dict(about.trace), dict(about.scenario), several.mode, compared_mode, activity, hot, curve,
        sizes, pick, compared, data_bytes, prices, scenario.replay.depth,
        [*assumed, *told],
    )  # fmt: skip


def _compared(
    several: Several, options: Sequence[Alternative], mode: str, say: Callable[[str], None]
) -> list[Compared]:
    """Replay the alternatives: as the application would use them, and as fast as they can."""
    names = ", ".join(one.name for one in options)
    machines = [(one.scenario, one.has_cache) for one in options]
    say(f"replays of {names}")
    outcomes = several.outcomes(machines, mode)
    say(f"the most IOPS of {names}")
    most = [_iops(each, several.summary) for each in several.outcomes(machines, "closed")]
    return [
        Compared.of(one, outcome, several.summary, iops)
        for one, outcome, iops in zip(options, outcomes, most)
    ]


def second_half(outcome: Outcome, summary: Summary) -> tuple[int, Phase]:
    """Return the second half of the requests, which every machine has in the same order."""
    border = outcome.time_of(summary.requests // 2)
    border = min(border, outcome.end_ns - outcome.collector.width_ns)
    return border, outcome.phase(border, outcome.end_ns)


def _iops(outcome: Outcome, summary: Summary) -> float | None:
    """Return how many requests of the second half are done a second."""
    border, phase = second_half(outcome, summary)
    took_ns = outcome.last_done_ns - border
    return phase.figures.requests * SECOND / took_ns if took_ns > 0 else None


def sizes_to_try(curve: Curve, grid: Sequence[int]) -> dict[int, str]:
    """Return sizes worth a replay, and what they are: the knee, the target, all that is touched."""
    top, bottom = curve.miss_ratio[0], curve.miss_ratio[-1]
    target = int((curve.miss_ratio <= top - TARGET * (top - bottom)).argmax())
    found: dict[int, str] = {}
    for index, what in ((curve.knee, "knee"), (target, "target"), (len(curve.pages) - 1, "all")):
        needed = int(curve.pages[index]) * curve.page_bytes
        found.setdefault(next((each for each in grid if each >= needed), grid[-1]), what)
    return found


def _of_size(
    what: str, size_bytes: int, result: Result, summary: Summary, prices: Pricing
) -> SizeOfSsd:
    warm, none = result.phases["warm"], result.phases["none"]
    return SizeOfSsd(
        what,
        size_bytes,
        warm.figures.hit_ratio,
        _mean_ns(none, summary),
        _mean_ns(warm, summary),
        size_bytes / GB * prices.price.ssd_per_gb,
        result.warm_up.steady,
        result.warm_up.why,
    )


def _mean_ns(phase: Phase, summary: Summary) -> float | None:
    """Return the mean latency of reads, or of writes where there are no reads."""
    requests = phase.figures.reads if summary.reads else phase.figures.writes
    return None if phase.saturated else requests.mean_ns


def picked(sizes: Sequence[SizeOfSsd]) -> SizeOfSsd:
    """Return the smallest size that saves most of what can be saved; the target if none saves."""
    most = max(((each.saved_ns or 0.0) for each in sizes), default=0.0)
    enough = [each for each in sizes if most > 0 and (each.saved_ns or 0.0) >= TARGET * most]
    return enough[0] if enough else sizes[min(1, len(sizes) - 1)]
