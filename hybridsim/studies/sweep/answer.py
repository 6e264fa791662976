"""The result of a sweep: settings with their estimates, the Pareto front, effects of the keys.

Settings are distinguished by means and gains on the same requests, block by block (the second half
of the trace); by other figures with their own intervals; by figures without one with their values.
The intervals are those of answers/intervals.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridsim.answers import intervals
from hybridsim.answers.forecast import NO, UNSURE, YES
from hybridsim.answers.intervals import Blocks, Interval, combined, gains
from hybridsim.answers.requirements import OF_RUNS
from hybridsim.answers.sampling import student_reach
from hybridsim.foundation.documents import headed
from hybridsim.foundation.in_notebooks import frame_of
from hybridsim.foundation.wording import counted, latency
from hybridsim.studies.sweep.figures import (
    ALONE,
    BLOCKS,
    FORECAST,
    GAIN,
    INTERVALS,
    WORK,
    WORK_NS,
    Objective,
)
from hybridsim.studies.sweep.plan import Plan, Range, number_of
from hybridsim.studies.sweep.point import Point
from hybridsim.studies.sweep.seeds import LEVEL, Estimate, estimate

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = "hybridsim.sweep/1"
NAMED_MAX = 8  # traces
NEAR_MAX = 1000  # settings, each of which is compared with those on the front
GROUPS = 4  # number of groups for a key with many numeric values
APART = 1.1  # largest ratio of the disks' own latencies at which settings are comparable
ANSWERS = (YES, NO, UNSURE)
QUANTILES = (10, 25, 50, 75, 90)
TRACE = "trace"  # treated as a key if there are several traces


FRAME = {  # column of a frame: stored figure, and its unit
    "hit_ratio": ("hit.whole", 1.0),
    "read_ms": ("mean.reads.whole", 1e6),
    "read_p99_ms": ("p99.reads.whole", 1e6),
    "write_ms": ("mean.writes.whole", 1e6),
    "write_p99_ms": ("p99.writes.whole", 1e6),
    "read_ms_alone": ("alone.mean.reads.whole", 1e6),
    "read_p99_ms_alone": ("alone.p99.reads.whole", 1e6),
    "write_ms_alone": ("alone.mean.writes.whole", 1e6),
    "warm_after_s": ("warmup", 1e9),
    "ssd_gib": ("ssd_bytes", 2**30),
    "drive_writes_per_day": ("dwpd", 1.0),
    "gain": ("gain", 1.0),
    "forecast": ("forecast", 1.0),
}
SURE = ("hit_ratio", "read_ms", "read_p99_ms", "write_ms", "write_p99_ms")  # with an interval
COLUMNS = [
    name
    for column in FRAME
    for name in ([column, f"{column}_low", f"{column}_high"] if column in SURE else [column])
]
NOMINAL = 0.9  # of the intervals; those over the seeds are of LEVEL


@dataclass(frozen=True)
class Setting:
    """One trace with one value of each key, and the results of its replays (one per seed)."""

    points: tuple[Point, ...]
    figures: tuple[dict[str, Any], ...]  # of each point
    objectives: tuple[Objective, ...]

    @property
    def trace(self) -> str:
        """Name of the trace."""
        return self.points[0].trace.name

    @property
    def values(self) -> dict[str, Any]:
        """The value of each key."""
        return dict(self.points[0].values)

    @property
    def answers(self) -> list[str]:
        """The different answers of its replays."""
        return sorted({str(each["answer"]) for each in self.figures})

    @property
    def gain(self) -> float | None:
        """The judge's gain; with several seeds their mean."""
        gains = [one[GAIN] for one in self.figures if one[GAIN]]
        return sum(gains) / len(gains) if gains else None

    @cached_property
    def estimates(self) -> tuple[Estimate | None, ...]:
        """The mean of each objective over the replays."""
        return tuple(estimate(self._values(each)) for each in self.objectives)

    @property
    def score(self) -> tuple[float | None, ...]:
        """The mean of each objective; None if unknown."""
        return tuple(each.mean if each else None for each in self.estimates)

    def _values(self, objective: Objective) -> list[float | None]:
        return [
            objective.value(one, point.scenario) for one, point in zip(self.figures, self.points)
        ]

    def level(self, key: str) -> Any:
        """Return the value of a key, or the trace for TRACE."""
        return self.trace if key == TRACE else self.values[key]

    def interval(self, number: int) -> Interval | None:
        """Return the interval of an objective, over the seeds too; None if it has none."""
        objective = self.objectives[number]
        return self._interval(objective.name, self._values(objective), self.estimates[number])

    def _interval(
        self, name: str, values: Sequence[float | None], over: Estimate | None
    ) -> Interval | None:
        """Return the interval of a figure from its value for each seed; None if it has none."""
        if over is None or not 0 < over.mean < math.inf:
            return None
        known = [one.get(INTERVALS, {}).get(name) for one in self.figures]
        ends = half = None
        if known and all(known) and all(values):
            shares = [
                (low / value, high / value) for (low, high), value in zip(known, values) if value
            ]
            low, high = (sum(each) / len(shares) for each in zip(*shares))
            ends = over.mean * min(low, 1.0), over.mean * max(high, 1.0)
        if over.half and over.n > 1:
            narrower = student_reach(over.n - 1, NOMINAL) / student_reach(over.n - 1, LEVEL)
            half = over.half * narrower / over.mean
        return combined(over.mean, {intervals.TRACE: ends, intervals.SEEDS: half})

    def to_dict(self) -> dict[str, Any]:
        """Return the setting for JSON."""
        known = {each.text: self.interval(at) for at, each in enumerate(self.objectives)}
        return {
            "trace": self.trace,
            "device": self.points[0].trace.device,
            "values": self.values,
            "objectives": {
                objective.text: each and vars(each)
                for objective, each in zip(self.objectives, self.estimates)
            },
            "intervals": {name: each.to_dict() for name, each in known.items() if each},
            "answers": self.answers,
            "commands": [point.command for point in self.points],
        }

    def row(self) -> dict[str, Any]:
        """Return the columns of a frame; the answer is "unsure" if those of the seeds differ."""
        answers = self.answers
        row: dict[str, Any] = {"answer": answers[0] if len(answers) == 1 else UNSURE}
        for column, (name, unit) in FRAME.items():
            values = [each.get(name) for each in self.figures]
            mean = estimate(values)
            row[column] = mean.mean / unit if mean else math.nan
            if column in SURE:
                found = self._interval(name, values, mean)
                ends = (found.low / unit, found.high / unit) if found else (math.nan, math.nan)
                row[f"{column}_low"], row[f"{column}_high"] = ends
        return row

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a flat row per replay: the ends of intervals have columns, blocks have none."""
        for point, figures in zip(self.points, self.figures):
            row = {"trace": self.trace, "seed": point.scenario.seed, **self.values}
            row |= {
                each.text: each.value(figures, point.scenario)
                for each in self.objectives
                if each.measure is None
            }
            row |= {name: each for name, each in figures.items() if name not in (INTERVALS, BLOCKS)}
            for name, (low, high) in figures.get(INTERVALS, {}).items():
                row |= {f"{name}.low": low, f"{name}.high": high}
            yield row


class FleetRow(NamedTuple):
    """One setting of the keys, over all volumes."""

    values: dict[str, Any]
    volumes: int
    answers: dict[str, int]  # volumes by answer
    requests: int
    ssd_bytes: int
    mean_ns: float | None  # over the second half of the requests of each volume, reads and writes
    alone_ns: float | None  # over the same requests without the caches
    gain: float | None  # ratio of these means
    gains: list[float]  # of the volumes, ascending
    settings: list[Setting]  # one per volume

    @classmethod
    def of(cls, settings: list[Setting]) -> FleetRow:
        """Return the row of a setting of each volume, all with the same values."""
        firsts = [each.figures[0] for each in settings]
        answers = [str(one["answer"]) for one in firsts]
        requests, ssd_bytes, work, *sums_ns = (
            sum(one[name] for one in firsts)
            for name in ("requests", "ssd_bytes", WORK, WORK_NS, ALONE + WORK_NS)
        )
        mean_ns, alone_ns = (each / work if work else None for each in sums_ns)
        return cls(
            settings[0].values, len(settings), {one: answers.count(one) for one in ANSWERS},
            requests, ssd_bytes, mean_ns, alone_ns,
            alone_ns / mean_ns if mean_ns and alone_ns else None,
            sorted(each.gain for each in settings if each.gain is not None), settings,
        )  # fmt: skip

    @property
    def quantiles(self) -> dict[int, float]:
        """The distribution of the volumes' gains: {percent: gain}."""
        if not self.gains:
            return {}
        gains = np.percentile(self.gains, QUANTILES, method="inverted_cdf")
        return dict(zip(QUANTILES, map(float, gains)))

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {name: each for name, each in self._asdict().items() if name != "settings"}


class Level(NamedTuple):
    """A value of a key, or a group of neighbouring values, and the mean of its settings."""

    words: str
    mean: float
    number: int


class Effect(NamedTuple):
    """The main effect of one key on one objective."""

    key: str
    objective: Objective
    share: float  # explained share of the variance (eta squared), 0 to 1
    levels: list[Level]

    @classmethod
    def of(cls, settings: Sequence[Setting], key: str, number: int) -> Effect | None:
        """Return the main effect of a key; None if the key or the objective does not vary."""
        scored = [each for each in settings if each.score[number] is not None]
        scores = np.array([each.score[number] for each in scored], float)
        if not len(scores) or not np.isfinite(scores).all() or scores.max() == scores.min():
            return None
        groups = _groups([each.level(key) for each in scored])
        if len(groups) < 2:
            return None
        mean = scores.mean()
        between = sum(len(rows) * (scores[rows].mean() - mean) ** 2 for _, rows in groups)
        share = float(between / ((scores - mean) ** 2).sum())
        levels = [Level(words, float(scores[rows].mean()), len(rows)) for words, rows in groups]
        return cls(key, scored[0].objectives[number], min(share, 1.0), levels)

    @property
    def ends(self) -> tuple[Level, Level]:
        """The levels with the worst and with the best mean."""
        worst, best = (
            of(self.levels, key=lambda level: self.objective.sign * level.mean) for of in (max, min)
        )
        return worst, best

    def to_dict(self) -> dict[str, Any]:
        """Return the effect for JSON."""
        levels = [each._asdict() for each in self.levels]
        return self._asdict() | {"objective": self.objective.text, "levels": levels}


@dataclass(frozen=True)
class Failed:
    """A point that failed, with the reason and the command that reproduces it."""

    words: str
    why: str
    command: str


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep."""

    plan: Plan
    settings: list[Setting]
    failed: list[Failed] = field(default_factory=list)
    computed: int = 0  # number of points computed by this run
    known: int = 0  # number of points that were on disk already
    seconds: float = 0.0
    missing: int = 0  # number of points not done at an interrupt
    interrupted: bool = False

    @property
    def is_fleet(self) -> bool:
        """Whether its traces are the volumes of a fleet."""
        return self.plan.fleet is not None

    @property
    def keys(self) -> list[str]:
        """The keys that were varied."""
        several = not self.is_fleet and len({setting.trace for setting in self.settings}) > 1
        return [TRACE] * several + [axis.key for axis in self.plan.axes]

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per setting, all judged on the same requests.

        Columns: the keys that were varied, `answer`, and COLUMNS: `_low` and `_high` are the ends
        of the interval of 90 % of the column before them.  NaN where a value is unknown, a mean
        over the seeds where there are several.  Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of(
            [{key: each.level(key) for key in self.keys} | each.row() for each in self.settings],
            None if self.settings else [*self.keys, "answer", *COLUMNS],
        )

    @property
    def front(self) -> list[Setting]:
        """The Pareto front: settings that no other setting dominates.

        Sorted by the first objective, the best first.
        """
        scored = [each for each in self.settings if None not in each.score]
        signs = np.array([each.sign for each in self.plan.objectives])
        losses = np.array([each.score for each in scored], float).reshape(len(scored), len(signs))
        best = [scored[index] for index in undominated(losses * signs)]
        return sorted(best, key=lambda each: signs[0] * (each.score[0] or 0.0))

    @property
    def alike(self) -> list[Setting]:
        """The settings that cannot be distinguished from the best, by the first objective."""
        ranked = [] if self.is_fleet else self.ranked()
        return [each for each in ranked[1:] if is_alike(each, ranked[0], 0)]

    @property
    def near_front(self) -> list[Setting]:
        """Settings off the Pareto front that no setting on it is surely better than.

        That is: one on the front is better, but by no objective so that they can be distinguished.
        """
        front = self.front
        if len(self.settings) > NEAR_MAX or self.is_fleet:
            return []
        return [
            each
            for each in self.settings
            if each not in front
            and any(
                all(is_no_worse(each, one, at) for at in range(len(self.plan.objectives)))
                for one in front
            )
        ]

    @property
    def fleet(self) -> list[FleetRow]:
        """One row per setting of the keys, over all volumes; empty without a fleet."""
        by_values: dict[str, list[Setting]] = {}
        for each in self.settings if self.is_fleet else []:
            by_values.setdefault(repr(each.values), []).append(each)
        return sorted(map(FleetRow.of, by_values.values()), key=lambda row: -(row.gain or 0.0))

    @property
    def notes(self) -> list[str]:
        """Warnings about settings that are judged by too different parts of the load."""
        judged_warm = [
            each.text
            for each in self.plan.objectives
            if each.measure and each.measure.phase == "warm" and each.measure.measure not in OF_RUNS
        ]
        of_disks: dict[tuple[str, float], list[float]] = {}  # by trace and the disks' mean
        for setting in self.settings:
            for one in setting.figures:
                whole, judged = one.get("alone.mean.reads.whole"), one.get("alone.mean.reads.warm")
                if whole and judged:
                    of_disks.setdefault((setting.trace, whole), []).append(judged)
        ends = [(min(each), max(each)) for each in of_disks.values()]
        lowest, highest = max(ends, key=lambda each: each[1] / each[0], default=(1.0, 1.0))
        if self.is_fleet or not judged_warm or highest <= APART * lowest:
            return []
        return [
            f"{', '.join(judged_warm)}: settings are compared over different requests. A setting "
            "is judged from when it is warm, or by its last fifth if it is not steady, and the "
            f"load changes: over those requests the disks alone take {latency(lowest)} to "
            f"{latency(highest)} per read. For all requests use --objective mean.whole; relative "
            "to the disks alone, --objective gain"
        ]

    def ranked(self) -> list[Setting]:
        """All settings, the best for the first objective first, unknown values last."""
        sign = self.plan.objectives[0].sign

        def place(setting: Setting) -> float:
            value = setting.score[0]
            return math.inf if value is None else sign * value

        return sorted(self.settings, key=place)

    @property
    def effects(self) -> list[Effect]:
        """Effects of all keys, by objective, the strongest key first."""
        effects = []
        for number in range(len(self.plan.objectives)):
            of_one = [Effect.of(self.settings, key, number) for key in self.keys]
            effects += sorted((one for one in of_one if one), key=lambda one: -one.share)
        return effects

    @property
    def records(self) -> list[dict[str, Any]]:
        """One flat row per replay: trace, seed, values of keys, figures."""
        return [row for setting in self.settings for row in setting.records()]

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        plan = self.plan
        is_grid = plan.kind == "grid"
        return {
            **headed(SCHEMA),
            "inputs": {
                "trace": {
                    "name": _named(plan),
                    "arguments": plan.traces[0].arguments if len(plan.traces) == 1 else None,
                },
                "scenario": {
                    "file": plan.scenario.origin.name or None,
                    "options": plan.scenario.options,
                    "toml": plan.scenario.to_toml(),
                },
                "vary": {
                    axis.key: str(axis.choices)
                    if isinstance(axis.choices, Range) and not is_grid
                    else axis.values
                    for axis in plan.axes
                },
                "kind": plan.kind,
                "seeds": plan.seeds,
                "objectives": [each.text for each in plan.objectives],
            },
            "replays": {
                "computed": self.computed,
                "known": self.known,
                "failed": len(self.failed),
                "missing": self.missing,
            },
            "keys": self.keys,
            "fleet": [row.to_dict() for row in self.fleet],
            "settings": [each.to_dict() for each in self.settings],
            "best": self.settings.index(self.ranked()[0]) if self.settings else None,
            "alike": [self.settings.index(each) for each in self.alike],
            "front": [self.settings.index(each) for each in self.front],
            "near_front": [self.settings.index(each) for each in self.near_front],
            "effects": [each.to_dict() for each in self.effects],
            "failed": [vars(each) for each in self.failed],
            "notes": self.notes,
        }

    def to_pandas(self) -> DataFrame:
        """Return the records as a pandas frame: a row per replay."""
        return frame_of(self.records)


def _named(plan: Plan) -> str:
    """Return the names of the traces; a fleet's volumes are counted by their trace."""
    names = [trace.name for trace in plan.traces]
    if plan.fleet is not None:
        of = [trace._replace(device=None).name for trace in plan.traces]
        names = [f"{name}: {counted(of.count(name), 'volume')}" for name in dict.fromkeys(of)]
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more:,} more" if more > 0 else "")


def undominated(losses: np.ndarray[Any, np.dtype[np.float64]]) -> list[int]:
    """Return the indices of the rows that no other row dominates; smaller is better."""
    return [
        index
        for index, row in enumerate(losses)
        if not ((losses <= row).all(axis=1) & (losses < row).any(axis=1)).any()
    ]


def _groups(values: Sequence[Any]) -> list[tuple[str, list[int]]]:
    """Return values, or quarters of many numeric values, with the rows that have them."""
    rows: dict[str, list[int]] = {}
    for row, value in enumerate(values):
        rows.setdefault(str(value), []).append(row)
    numbers = [number_of(value) for value in values]
    if len(rows) <= 2 * GROUPS or None in numbers:
        return list(rows.items())
    order = np.argsort(np.array(numbers, float), kind="stable")
    parts = [part.tolist() for part in np.array_split(order, GROUPS)]
    return [(f"{values[part[0]]} to {values[part[-1]]}", part) for part in parts]


def is_alike(one: Setting, best: Setting, number: int) -> bool:
    """Whether a setting cannot be distinguished from a better one by an objective."""
    values = one.score[number], best.score[number]
    if one.trace != best.trace or None in values:
        return False
    if values[0] == values[1]:
        return True
    ratio = _paired(one, best, one.objectives[number])
    if ratio is not None:
        return ratio.low <= 1 <= ratio.high
    mine, its = (each.interval(number) for each in (one, best))
    if mine is None or its is None:
        return False
    apart = abs(math.log(mine.value / its.value))
    below, above = (mine, its) if mine.value < its.value else (its, mine)
    reach = math.hypot(math.log(below.high / below.value), math.log(above.value / above.low))
    return apart <= reach


def is_no_worse(one: Setting, best: Setting, number: int) -> bool:
    """Whether a setting is better than another by an objective, or cannot be distinguished."""
    mine, its = one.score[number], best.score[number]
    if mine is None or its is None or one.trace != best.trace:
        return False
    sign = one.objectives[number].sign
    return sign * mine <= sign * its or is_alike(one, best, number)


def _paired(one: Setting, best: Setting, objective: Objective) -> Interval | None:
    """Return how many times less the same requests cost the better of two settings."""
    if len(one.figures) > 1 or len(best.figures) > 1:
        return None
    name = ""
    if objective.text in (GAIN, FORECAST):
        name = "all"
    elif objective.measure is not None and objective.measure.measure == "mean":
        name = {"reads": "read", "writes": "write"}[objective.measure.direction]
    blocks = [each.figures[0].get(BLOCKS) for each in (one, best)]
    if not name or None in blocks:
        return None
    mine, its = (Blocks.from_dict(each) for each in blocks if each is not None)
    found = gains(mine, its)
    if objective.text in (GAIN, FORECAST) and "took" in found:
        name = "took"
    return found.get(name)
