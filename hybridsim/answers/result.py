"""The result of one replay: both machines, the warm-up and the verdict, as objects and as JSON."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from hybridsim.answers.dirt import Dirt, dirt, dirty
from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.forecast import UNSURE
from hybridsim.answers.intervals import Interval
from hybridsim.answers.judge import Both, Judgement, Side, gain_later
from hybridsim.answers.judge import judge as weigh
from hybridsim.answers.life import Beginning, EventCost
from hybridsim.answers.metrics import READS, Collector, Counters, Kind, Ledger
from hybridsim.answers.model_error import ModelError, model_error
from hybridsim.answers.outcome import Outcome, Phase, Series, Wear, wear
from hybridsim.answers.requirements import (
    Checked,
    Requirement,
    Seen,
    of_measure,
    of_warm_up,
    of_wear,
)
from hybridsim.answers.verdict import Other, Verdict, judge
from hybridsim.answers.warmup import SHARES, WarmUp, of_hits, of_iops
from hybridsim.foundation.documents import in_json
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.in_notebooks import table_html
from hybridsim.foundation.version import __version__
from hybridsim.foundation.wording import latency, percent

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = "hybridsim.result/1"
OF_VERDICT = ("answer", "is_certain", "headline", "reasons", "advice", "confidence")
WAYS = {"hits": Kind.HIT, "misses": Kind.MISS, "bypasses": Kind.BYPASS}
OF_PHASE = ("disk_time_ns", "disk_queue_ns", "ssd_utilisation", "ssd_time_ns", "counters")
COLUMNS = {  # of a frame, each with its name among the series
    "time_ns": "start_ns", "hit_ratio": "hit", "page_hit_ratio": "page_hit", "mean_ns": "mean_ns",
    "p50_ns": "p50_ns", "p99_ns": "p99_ns", "iops": "iops", "outstanding": "outstanding",
    "disk_utilisation_ratio": "disk_utilisation", "ssd_utilisation_ratio": "ssd_utilisation",
    "occupancy_pages": "occupancy_pages", "ssd_write_bytes_per_s": "ssd_write_bytes_per_s",
}  # fmt: skip
ALONE = ("start_ns", "mean_ns", "p50_ns", "p99_ns", "iops", "outstanding", "disk_utilisation")
PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)


@dataclass(frozen=True)
class Warning:
    """A reason to doubt the figures, and its fix."""

    code: str
    text: str
    fix: str = ""


@dataclass(frozen=True)
class Result:
    """The result of a replay.  Names of phases without the cache begin with `none`."""

    trace: Mapping[str, Any]
    scenario: Mapping[str, Any]
    cached: Outcome
    plain: Outcome
    warm_up: WarmUp
    phases: dict[str, Phase]
    verdict: Verdict
    judgement: Judgement
    wear: Wear | None
    fidelity: Fidelity
    warnings: list[Warning] = field(default_factory=list)
    seed: int = 0
    engine: str = "numba"
    beginning: Beginning | None = None  # None: the cache started empty
    required: list[Checked] = field(default_factory=list)
    curve: dict[str, Any] | None = None  # miss-ratio curve, if requested
    cost: dict[str, Any] | None = None  # None: the prices of the drives are unknown
    dirty: Dirt | None = None  # None: nothing was dirty
    metadata_ram: dict[str, Any] | None = None  # of a cache that can be installed
    events: list[EventCost] = field(default_factory=list)  # reboots, removals, failures
    others: list[Other] = field(default_factory=list)  # caches that were tried after a no or unsure

    def __repr__(self) -> str:
        gain = self.judgement.gain
        words = "gain unknown" if gain is None else f"gain {gain:.2f}"
        return f"<Result of {self.trace.get('name', 'a trace')}: {self.verdict.answer}, {words}>"

    def _repr_html_(self) -> str:
        cached, alone = self.cached.whole.figures, self.plain.whole.figures
        rows = [
            ("verdict", f"{self.verdict.answer}: {self.verdict.headline}"),
            ("trace", str(self.trace.get("name", ""))),
            ("machine", str(self.scenario.get("summary", ""))),
            ("reads from the SSD", percent(cached.hit_ratio)),
        ]
        for name, with_cache, without in (
            ("mean read", cached.reads.mean_ns, alone.reads.mean_ns),
            ("p99 of reads", cached.reads.percentile(99), alone.reads.percentile(99)),
            ("mean write", cached.writes.mean_ns, alone.writes.mean_ns),
        ):
            rows.append((name, f"{latency(with_cache)}; disks alone: {latency(without)}"))
        return table_html("Result", rows)

    def frame(self) -> DataFrame:
        """Return the figures over time as a pandas frame: a row per time bin.

        Columns: `time_ns` (start of the bin), `hit_ratio`, `page_hit_ratio`, `mean_ns`, `p50_ns`
        and `p99_ns` of reads, `iops`, `outstanding`, `disk_utilisation_ratio`,
        `ssd_utilisation_ratio`, `occupancy_pages`, `ssd_write_bytes_per_s`; each but the time also
        with the suffix `_alone`, of the disks alone, where it exists.  NaN where unknown.  Needs
        pandas (`hybridsim[notebooks]`).
        """
        from pandas import DataFrame

        with_cache, alone = (
            DataFrame({name: getattr(series, key) for name, key in COLUMNS.items() if key in kept})
            for series, kept in (
                (self.cached.series(), COLUMNS.values()),
                (self.plain.series(), ALONE),
            )
        )
        result = with_cache.merge(alone, on="time_ns", how="outer", suffixes=("", "_alone"))
        return result.astype(float, errors="ignore")

    @functools.cached_property
    def both(self) -> Both:
        """The same requests on the disks alone and on the machine with the cache."""
        runs = (self.plain, self.cached)
        return Both(*(_side(each.collector.ledger, each.counters, self.scenario) for each in runs))

    @property
    def model_error(self) -> ModelError | None:
        """The intervals of the figures with the cache, from the errors of real runs on file."""
        return model_error(self)

    @functools.cached_property
    def warm_interval(self) -> Interval | None:
        """The interval of the time until the cache is warm, in nanoseconds; None if unknown."""
        return of_warm_up(self.warm_up, self._kind, self.cached.whole.writes)

    @functools.cached_property
    def wear_interval(self) -> Interval | None:
        """The interval of the bytes written to the SSDs per day; None if unknown."""
        return of_wear(self.cached, self._kind, self.cached.whole.writes)

    @property
    def _has_cache(self) -> bool:
        """Whether there is a cache at all."""
        return self.scenario.get("cache_pages") != 0

    @property
    def _kind(self) -> str:
        """The kind of the cache, by its name in scenarios."""
        return str(self.scenario.get("cache_kind", "none"))

    def with_requirements(self, require: Sequence[Requirement]) -> Result:
        """Return the result with these requirements, checked for the machine with the cache."""
        seen = Seen.cached(self)
        return replace(self, required=self.sure_of([each.check(seen) for each in require]))

    def sure_of(self, checked: Sequence[Checked], first: int | None = None) -> list[Checked]:
        """Return checked requirements with their intervals.

        `first` is the request since which the cache is warm; None: as its warm-up has it.
        """
        if not checked:
            return []
        if first is None:
            warm = self.judgement.pairs.get("warm")
            first = self.both.requests if warm is None else warm.first
        border = self.both.border(first)
        return [
            replace(each, interval=of_measure(each.requirement, each.value, self.both, border))
            for each in checked
        ]

    def to_json(self, indent: int | None = 2) -> str:
        """Return the result as JSON: times are integers in ns, sizes in bytes, unknowns null."""
        return json.dumps(plain(self.to_dict()), indent=indent, allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON, always in the same order."""
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "tool": {"version": __version__, "seed": self.seed, "engine": self.engine},
            "inputs": {"trace": dict(self.trace), "scenario": dict(self.scenario)},
            "verdict": {name: getattr(self.verdict, name) for name in OF_VERDICT},
            "judgement": self.judgement,
            "warm_up": _warm_up(self.warm_up) | {"t90": self.warm_interval},
            "phases": {name: _phase(phase) for name, phase in self.phases.items()},
            "series": {**vars(self.cached.series()), "none": self.plain.series()},
            "bypass": _reasons(self.cached.whole),
            "wear": self.wear and vars(self.wear) | {"per_day": self.wear_interval},
            "rebuild": {"cached": self.cached.rebuild, "none": self.plain.rebuild},
            "fidelity": self.fidelity,
            "warm_start": self.beginning,
            "model_error": self.model_error,
            "cost": self.cost,
            "dirty": self.dirty,
            "metadata_ram": self.metadata_ram,
            "events": self.events,
            "others": self.others,
            "require": self.required,
            "miss_ratio_curve": self.curve,
            "warnings": self.warnings,
        }
        return {name: in_json(each) for name, each in document.items()}


def conclude(
    trace: Mapping[str, Any],
    scenario: Mapping[str, Any],
    cached: Collector,
    cached_counters: Mapping[str, npt.ArrayLike],
    plain: Collector,
    plain_counters: Mapping[str, npt.ArrayLike],
    *,
    warnings: list[Warning] | None = None,
    seed: int = 0,
    engine: str = "numba",
    recorded: Distribution | None = None,
    goal: str = "time",
) -> Result:
    """Return the result of two runs of one trace: with the cache and without it.

    Keys of `trace`: name, span_ns, active_ns, footprint_bytes, has_completions.
    Keys of `scenario`: summary, file, mode (open, closed, think), speed, cache_mode, cache_bytes,
    cache_pages, endurance_bytes and capacity_bytes (of all SSDs), dirty_marks (see dirt.marks).
    All keys are optional; both mappings are copied into the JSON unchanged.  `recorded` are the
    latencies recorded in the trace, with which the model without its cache is compared.  `goal`
    is one of goals.GOALS.
    """
    is_open = scenario.get("mode", "open") == "open"
    with_cache = Outcome(cached, Counters(cached_counters), is_open)
    without = Outcome(plain, Counters(plain_counters), is_open)
    warm_up = warm_up_of(cached, plain, scenario.get("mode", "open"))
    end = with_cache.end_ns
    # A border of bins of both machines, before the end.
    step = max(cached.width_ns, plain.width_ns)
    border = max(min(-(-warm_up.warm_ns // step) * step, (end - 1) // step * step), 0)
    # Where the load adapts to the machine, the same requests are issued at other times.
    plain_border = border if is_open else without.time_of(with_cache.issued_before(border))
    phases = {
        "none": without.phase(plain_border, without.end_ns),
        "cold": with_cache.phase(0, border),
        "warm": with_cache.phase(border, end),
        "whole": with_cache.whole,
        "none_cold": without.phase(0, plain_border),
        "none_whole": without.whole,
    }
    fidelity = _fidelity(recorded or Distribution(), without, scenario)
    runs = (plain, without.counters), (cached, with_cache.counters)
    judgement = weigh(
        *sides(*runs, scenario, goal, not is_open), not is_open, goal,
        with_cache.issued_before(border),
    )  # fmt: skip
    result = Result(
        trace, scenario, with_cache, without, warm_up, phases, Verdict(UNSURE, ""), judgement,
        wear(phases["whole"], scenario.get("endurance_bytes"), scenario.get("capacity_bytes")),
        fidelity, list(warnings or []), seed, engine,
    )  # fmt: skip
    return replace(result, verdict=judge(result))


def dirt_of(result: Result) -> Dirt | None:
    """Return what was dirty on the machine with the cache, without the time of a flush.

    Until the end of the load: a backlog that is worked off later is not counted.
    """
    scenario, trace = result.scenario, result.trace
    mean = int(trace["bytes_written"]) // max(int(trace["writes"]), 1)
    counters = result.cached.counters
    rows = int((counters["time_ns"] <= result.cached.end_ns).sum())
    columns = {name: column[: max(rows, 1)] for name, column in counters.items()}
    return dirt(result._kind, _page_bytes(scenario), mean, columns)


def _page_bytes(scenario: Mapping[str, Any]) -> int:
    pages = scenario.get("cache_pages") or 0
    return int(scenario.get("cache_bytes", 0)) // pages if pages else 0


def sides(
    plain: tuple[Collector, Counters],
    cached: tuple[Collector, Counters],
    scenario: Mapping[str, Any],
    goal: str,
    adapts: bool,
) -> tuple[Side, Side]:
    """Return the input of the judge, with what the cache gains as the load goes on."""
    first, second = (_side(each.ledger, known, scenario) for each, known in (plain, cached))
    before, after = plain[0].later, cached[0].later
    if before is None or after is None:
        return first, second
    on = [_side(each.ledger, each.counters, scenario) for each in (before, after)]
    gain = gain_later(on[0], on[1], before.captured, goal, adapts)
    return first, second._replace(later=gain, off=plain[0].off)


def _side(ledger: Ledger, counters: Counters, scenario: Mapping[str, Any]) -> Side:
    """Return the input of the judge for one machine."""
    kind = str(scenario.get("cache_kind", "none"))
    levels = dirty(kind, _page_bytes(scenario), counters)
    known = Counters({**counters, "dirty_bytes": levels})
    return Side(ledger, known, scenario.get("dirty_marks", ()), kind)


def _fidelity(recorded: Distribution, plain: Outcome, scenario: Mapping[str, Any]) -> Fidelity:
    """Compare the machine without a cache with the recorded latencies, if that is meaningful."""
    why_not = ""
    if scenario.get("mode", "open") == "closed":
        why_not = "the replay kept a fixed queue depth, not the recorded load"
    elif scenario.get("speed", 1.0) != 1.0:
        why_not = "the load was replayed at another speed"
    elif plain.whole.saturated:
        why_not = "the modelled disks cannot serve the recorded arrivals"
    figures = plain.whole.figures
    return Fidelity(recorded, figures.reads + figures.writes, why_not)


def warm_up_of(cached: Collector, plain: Collector, mode: str) -> WarmUp:
    """Return the warm-up of a run in that mode; `plain` is the run without a cache."""
    if mode != "closed":
        return of_hits(cached)
    # The initial level is that of the disks alone.
    return of_iops(cached, of_iops(plain).level)


def _warm_up(warm_up: WarmUp) -> dict[str, Any]:
    return {
        "measure": warm_up.measure,
        "bin_ns": warm_up.bin_ns,
        "state": warm_up.state.value,
        "why": warm_up.why or None,
        "initial": warm_up.initial,
        "level": warm_up.level if warm_up.steady else None,
        "last_fifth_level": warm_up.level,
        "noise": warm_up.noise,
        **{f"t{share}_ns": warm_up.reached_ns.get(share) for share in SHARES},
        "needed_ns": warm_up.needed_ns,
        "curve": {"t_ns": warm_up.times_ns.tolist(), "x": warm_up.smooth.tolist()},
    }


def _phase(phase: Phase) -> dict[str, Any]:
    figures = phase.figures
    return {
        "start_ns": figures.start_ns,
        "end_ns": figures.end_ns,
        "saturated": phase.saturated,
        "overloaded": phase.overloaded,
        "iops": phase.iops,
        "read": {
            **_latency(figures.reads),
            "hit": figures.hit_ratio,
            "page_hit": figures.page_hit_ratio,
            **{name: _latency(figures.latency[kind]) for name, kind in WAYS.items()},
            "bytes": sum(figures.bytes[kind] for kind in READS),
        },
        "write": {**_latency(figures.writes), "bytes": figures.bytes[Kind.WRITE]},
        "other": _latency(figures.latency[Kind.OTHER]),
        "bypass": _reasons(phase),
        "disk_utilisation": phase.utilisation,
        **{name: getattr(phase, name) for name in OF_PHASE},
    }


def _latency(latency: Distribution) -> dict[str, Any]:
    return {
        "n": latency.count,
        "mean_ns": latency.mean_ns,
        "max_ns": latency.max_ns if latency.count else None,
        "p": {f"{percent:g}": latency.percentile(percent) for percent in PERCENTILES},
        "bins": latency.by_value(),
    }


def _reasons(phase: Phase) -> dict[str, int]:
    """Return the reads that were not hits, by reason."""
    return {reason.name.lower(): n for reason, n in phase.figures.read_reasons.items()}


def plain(thing: Any) -> Any:
    """Return a value in JSON's own types; NaN and infinities become null."""
    if isinstance(thing, dict):
        return {str(key): plain(one) for key, one in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(one) for one in thing]
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    return thing.item() if hasattr(thing, "item") else thing


__all__ = ["Outcome", "Phase", "Result", "Series", "Warning", "conclude", "warm_up_of"]
