"""Explore: replay a planned set of machines, and answer for all machines between them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridsim.answers.advice.alternatives import GB, Pricing, copies, pricing
from hybridsim.answers.forecast import (
    LOSS,
    MUCH,
    NO,
    NOTHING,
    SURE,
    UNSURE,
    WORTH_IT,
    YES,
    answer_of,
    is_certain,
)
from hybridsim.answers.metrics import READS, Kind
from hybridsim.answers.outcome import Outcome, wear
from hybridsim.answers.result import Result, plain
from hybridsim.foundation.documents import headed, in_json
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.in_notebooks import frame_of
from hybridsim.foundation.printable import shell_line
from hybridsim.scenario import Scenario
from hybridsim.scenario.origin import spelled_out
from hybridsim.studies.explore import planning
from hybridsim.studies.explore.axes import (
    AT_SIZE,
    CACHE,
    MEMBERS,
    SSD,
    Axis,
    Place,
    axes,
    moved,
    values_at,
    with_served,
)
from hybridsim.studies.explore.surface import (
    ERROR_MOST,
    FIRST,
    LINEAR,
    LOG,
    NEARBY,
    SHARPER,
    Coordinates,
    Surface,
)
from hybridsim.studies.sweep.figures import figures
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.point import Compute, Point, command_of, options_of, point, result_of
from hybridsim.studies.sweep.running import Progress, Running, Settled
from hybridsim.studies.sweep.store import FOLDER, Store
from hybridsim.studies.sweep.sweep import check_crew, crew

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = "hybridsim.explore/1"
DETAIL = "replay explore/1"  # a replay with these figures; part of the key of a stored one
PARTS = 20  # of the requests, for the curve of the hit ratio
WEAR, YEARS = "dwpd.whole", "years.whole"  # over the whole trace, as of `advise`
HIT_PART = "hit.part."  # and the number of the part, from 0
POINTS = 480  # replays, by default
SPREAD_FIRST = 48  # replays that are spread before the surfaces are looked at
STEP = 24  # replays between two looks at the surfaces, which take longer the more there are:
TWICE = 192  # twice as many from so many replays on
JUMPS = 8  # of STEP go where the hit ratio jumps from size to size,
CLIFFS = 4  # some where times do,
DOUBTFUL = 8  # as many where the surfaces are unsure, half of them with the scenario's own SSD,
# disks and load, which are looked at most; the others are spread
NEAR_POWER = 4  # of what machines have in common: weights of the replays around a place
DOUBT = 0.05  # of that weight: a smaller share of the replays around a place does not count
CLOSE = 0.03  # relative error that counts as right
CHECK_SHARE = 0.2  # of a limited time, at most for the replays that check
CLOSING_S = 10.0  # until workers that compute are stopped,
CLOSING_SHARE = 0.05  # of a limited time, at most for that
ALL_FITS = 4  # the surfaces of all figures and the page, in fits of the KEY ones: 3.1 are measured
LOOKED_AT = 500  # machines drawn for the usual width of a band
SEED = 1

SHARE, TIME, FACTOR, NUMBER = "share", "ns", "factor", "number"


@dataclass(frozen=True)
class Quantity:
    """A figure of a replay that has a surface."""

    name: str  # among the figures of a replay
    title: str
    unit: str
    wants_less: bool | None = None  # None: neither is better
    like: str = ""  # the quantity whose parameters it takes
    is_checked: bool = False  # on replays that the surfaces do not hold

    @property
    def scale(self) -> str:
        """The scale of the interpolation."""
        return LINEAR if self.unit == SHARE else LOG


READ, WRITE = "mean.reads.whole", "mean.writes.whole"
READ_P99, WRITE_P99 = "p99.reads.whole", "p99.writes.whole"
HIT, GAIN, FORECAST = "hit.whole", "gain", "forecast"
LOW, HIGH = "forecast.low", "forecast.high"
WARM = "warmup"
PERCENTILES = ("p50", "p90", "p95", "p99.9")
SATURATED, ALONE_SATURATED = "saturated", "alone.saturated"
QUANTITIES = (
    Quantity(HIT, "reads served by the SSD", SHARE, False, is_checked=True),
    Quantity(READ, "mean time of a read", TIME, True, is_checked=True),
    Quantity(READ_P99, "p99 of reads", TIME, True, is_checked=True),
    Quantity(WRITE, "mean time of a write", TIME, True, is_checked=True),
    Quantity(WRITE_P99, "p99 of writes", TIME, True, is_checked=True),
    Quantity(GAIN, "gain", FACTOR, False, is_checked=True),
    Quantity(FORECAST, "forecast gain", FACTOR, False, GAIN),
    Quantity(LOW, "lower end of the forecast", FACTOR, False, GAIN),
    Quantity(HIGH, "upper end of the forecast", FACTOR, False, GAIN),
    Quantity(WEAR, "drive writes per day", NUMBER, True, is_checked=True),
    Quantity(WARM, "time until it is warm", TIME, True, is_checked=True),
    *(Quantity(f"{each}.reads.whole", f"{each} of reads", TIME, True, READ_P99)
      for each in PERCENTILES),
    Quantity("alone." + READ, "mean time of a read, disks alone", TIME),
    Quantity("alone." + WRITE, "mean time of a write, disks alone", TIME),
    Quantity("alone." + READ_P99, "p99 of reads, disks alone", TIME),
    Quantity("alone." + WRITE_P99, "p99 of writes, disks alone", TIME),
    *(Quantity(f"alone.{each}.reads.whole", f"{each} of reads, disks alone", TIME, None,
               "alone." + READ_P99) for each in PERCENTILES),
    *(Quantity(f"{HIT_PART}{n}", f"reads served by the SSD, part {n + 1} of {PARTS}", SHARE,
               False, HIT) for n in range(PARTS)),
)  # fmt: skip
KEY = (HIT, READ, READ_P99, GAIN, WRITE)  # whose bands decide where to replay next
BAND = GAIN  # whose band the progress shows
OVER, INTERRUPTED = "time", "interrupt"
FITTING = "interpolating between the replays"
RULE = {"worth_it": WORTH_IT, "nothing": NOTHING, "much": MUCH, "sure": SURE, "loss": LOSS}


@dataclass(frozen=True)
class Replay:
    """One replay of an exploration."""

    place: Place
    figures: Mapping[str, Any]
    command: str

    def figure(self, name: str) -> float | None:
        """Return a figure; None where it is unknown or has no end."""
        value = self.figures.get(name)
        return None if value is None or not math.isfinite(value) else float(value)


@dataclass(frozen=True)
class Estimate:
    """A figure at a place: of a replay, or interpolated with its band; None where unknown."""

    value: float | None
    low: float | None
    high: float | None
    is_replayed: bool
    in_doubt: bool = False  # replays nearby differ in whether the figure is known


@dataclass(frozen=True)
class Checked:
    """A figure of a replay that the surfaces did not hold, beside their estimate."""

    name: str
    place: Place
    replayed: float | None
    estimate: Estimate

    @property
    def off(self) -> float | None:
        """The relative error; None if either is unknown."""
        value = self.estimate.value
        if self.replayed is None or value is None:
            return None
        return abs(value - self.replayed) / abs(self.replayed) if self.replayed else abs(value)

    @property
    def is_inside(self) -> bool:
        """Whether the band holds the replayed value; or both are unknown, or that was in doubt."""
        low, high = self.estimate.low, self.estimate.high
        if self.replayed is None or low is None or high is None:
            return (self.replayed is None and low is None) or self.estimate.in_doubt
        return low <= self.replayed <= high

    @property
    def holds(self) -> bool:
        """Whether the estimate is within CLOSE of the replayed value, or this inside the band."""
        return self.is_inside or (self.off is not None and self.off <= CLOSE)


@dataclass(frozen=True)
class Status:
    """Progress of an exploration."""

    done: int
    of: int
    known: int  # of these, on disk before
    left_s: float | None  # None: unknown
    band: float | None = None  # half of that of BAND, of the figure, in the median; None: unknown
    in_time: int | None = None  # replays that the time suffices for; None: all, or unknown
    stage: str = ""  # what is done in place of replays


Report = Callable[[Status, Settled | None], None]


@dataclass
class Exploration:
    """Replays over several axes, and a surface of each figure between them."""

    trace: NamedTrace
    about: Mapping[str, Any]  # the trace
    site: Scenario  # with the mode that all replays have
    axes: list[Axis]
    replays: list[Replay] = field(default_factory=list)
    failed: dict[Place, tuple[str, str]] = field(default_factory=dict)  # command, why
    checked: list[Checked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    computed: int = 0
    known: int = 0
    seconds: float = 0.0
    planned: int = 0  # replays, without those that check
    ended: str = ""  # why not all planned ones were done: OVER or INTERRUPTED
    limit_s: float | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the user interrupted it."""
        return self.ended == INTERRUPTED

    @functools.cached_property
    def bands(self) -> dict[str, float]:
        """Half of the bands of the KEY quantities, relative to them: the median of all machines."""
        known = {name: self.surfaces[name] for name in KEY if name in self.surfaces}
        return {name: usual_band(surface, self.axes) for name, surface in known.items()}

    @functools.cached_property
    def where(self) -> Coordinates:
        """The axes as numbers."""
        return Coordinates(self.axes)

    @functools.cached_property
    def surfaces(self) -> dict[str, Surface]:
        """The surface of each quantity that enough replays know, by name."""
        return surfaces_of(self.where, self.replays)

    @functools.cached_property
    def by_place(self) -> dict[Place, Replay]:
        """The replays by place."""
        return {each.place: each for each in self.replays}

    @property
    def own(self) -> Place:
        """The place of the scenario itself, or of the nearest choices."""
        return planning.own_place(self.axes)

    @property
    def prices(self) -> Pricing:
        """The prices of the scenario, or of the catalog."""
        return pricing(self.site)

    def place(self, **names: str) -> Place:
        """Return the place with these choices, by axis and name; the scenario's for the others.

        Raises UsageError for an unknown axis or choice.
        """
        result = list(self.own)
        for name, choice in names.items():
            number = next((n for n, axis in enumerate(self.axes) if axis.name == name), None)
            if number is None:
                raise UsageError(f"no axis {name!r}: {', '.join(a.name for a in self.axes)}")
            known = [each.name for each in self.axes[number].choices]
            if str(choice) not in known:
                raise UsageError(f"{name}: no choice {choice!r}: {', '.join(known)}")
            result[number] = known.index(str(choice))
        return tuple(result)

    def estimate(self, name: str, place: Place) -> Estimate:
        """Return a quantity at a place: as replayed, or interpolated with its band.

        Times are in ns, shares and factors are plain numbers.
        """
        if place in self.by_place:
            number = self.by_place[place].figure(name)
            return Estimate(number, number, number, True)
        surface = self.surfaces.get(name)
        if surface is None:
            return Estimate(None, None, None, False)
        knows = np.array([each.figures.get(name) is not None for each in self.by_place.values()])
        # The share of the replays around the place that know it, by nearness.
        known = 1.0 if knows.all() else float(self._nearness(place) @ knows.astype(float))
        in_doubt = DOUBT < known < 1 - DOUBT
        if known < 0.5:
            return Estimate(None, None, None, False, in_doubt)
        middle, low, high = (float(each[0]) for each in surface.at([place]))
        if surface.scale == LINEAR:
            middle, low, high = (min(max(each, 0.0), 1.0) for each in (middle, low, high))
        return Estimate(middle, low, high, False, in_doubt)

    def _nearness(self, place: Place) -> Any:
        """Return the weights of the replays around a place."""
        where = self.where
        unfitted = np.array([FIRST[each] for each in where.kinds])  # of too few replays
        parameters = next((each.parameters for each in self.surfaces.values()), unfitted)
        apart = where.apart([place], list(self.by_place))
        alike = where.alike(apart, parameters)[0] ** NEAR_POWER
        return alike / max(float(alike.sum()), 1e-300)

    def answer(self, place: Place) -> tuple[str, bool]:
        """Return yes, no or unsure, and whether another answer is within the band.

        At a replay the answer is that of its judge.
        """
        if place in self.by_place:
            return str(self.by_place[place].figures["answer"]), False
        parts = [self.estimate(name, place) for name in (FORECAST, LOW)]
        if parts[0].value is None or parts[1].value is None:
            nearness = self._nearness(place)
            answers = [str(each.figures["answer"]) for each in self.by_place.values()]
            shares = {one: float(sum(w for w, a in zip(nearness, answers) if a == one))
                      for one in (YES, NO, UNSURE)}  # fmt: skip
            best = max(shares, key=lambda one: shares[one])
            return best, shares[best] < 1 - DOUBT
        later, low = (
            [_log(end or each.value) for end in (each.value, each.low, each.high)] for each in parts
        )
        answer = answer_of(later[0], later[0] - low[0])
        others = {answer_of(end, later[0] - low[0]) for end in later}
        others |= {answer_of(later[0], max(later[0] - end, 0.0)) for end in low}
        seen = self.estimate(GAIN, place).low
        is_shown = seen is None or seen >= WORTH_IT  # the judge's yes needs a capture that shows it
        return answer, others != {answer} or (answer == YES and not is_shown)

    def is_certain(self, place: Place) -> bool:
        """Return whether the answer is right at either end of the forecast, as replay words it.

        It is where a machine does not keep up with the load, which a replay shows.
        """
        known = self.by_place.get(place)
        if known and (known.figures[SATURATED] or known.figures[ALONE_SATURATED]):
            return True
        low, high = (self.estimate(name, place).value for name in (LOW, HIGH))
        return is_certain(self.answer(place)[0], low, high)

    def scenario(self, place: Place) -> Scenario:
        """Return the machine at a place; raise ScenarioError if it cannot be built."""
        return self.site.with_values(values_at(self.axes, place))

    def with_replay(self, place: Place, result: Result) -> Exploration:
        """Return the exploration with the result of one more replay."""
        others = [each for each in self.replays if each.place != place]
        more = Replay(place, figures_of(result), self.command(place))
        return replace(self, replays=[*others, more])

    def command(self, place: Place) -> str:
        """Return the command that replays the machine at a place."""
        return point(self.trace, "", self.site, values_at(self.axes, place), None).command

    def frame(self) -> DataFrame:
        """Return a pandas frame with a row per replay: its choices, and its quantities.

        Times are in ns as in the stored figures; NaN where unknown.  Needs pandas.
        """
        return frame_of(
            [
                {axis.name: axis.choices[n].name for axis, n in zip(self.axes, each.place)}
                | {"answer": each.figures["answer"]}
                | {
                    q.name: math.nan if (figure := each.figure(q.name)) is None else figure
                    for q in QUANTITIES
                }
                for each in self.replays
            ]
        )

    def __repr__(self) -> str:
        caches = len(self.axes[0].choices)
        return (
            f"<Exploration of {self.trace.name}: {len(self.replays)} replays, "
            f"{planning.all_places(self.axes):,} machines, {caches} caches>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON, which the HTML page contains too."""
        names = [each.name for each in QUANTITIES]
        prices = self.prices
        backing = self.site.backing
        result = {
            **headed(SCHEMA),
            "inputs": {
                "trace": dict(self.about),
                "scenario": {
                    "file": self.site.origin.name or None,
                    "options": self.site.options,
                    "summary": f"{backing.members} x {backing.drive.name}, {backing.kind}",
                    "toml": self.site.to_toml(),
                },
                "mode": self.site.replay.mode,
            },
            "replays_run": {
                "computed": self.computed,
                "known": self.known,
                "failed": len(self.failed),
                "planned": self.planned,
                "ended": self.ended or None,
                "seconds": round(self.seconds, 1),
                "limit_s": self.limit_s,
            },
            "bands": self.bands,
            "command": {"base": self._command()},
            "price": {**prices.price.model_dump(), "source": prices.source},
            "rule": RULE,
            "near": {
                "power": NEAR_POWER,
                "doubt": DOUBT,
                "sharper": SHARPER,
                "nearby": NEARBY,
                "error_most": ERROR_MOST,
            },
            "axes": [
                {
                    "name": axis.name,
                    "title": axis.title,
                    "is_ordered": axis.is_ordered,
                    "choices": [self._choice(number, n) for n in range(len(axis.choices))],
                }
                for number, axis in enumerate(self.axes)
            ],
            "base": list(self.own),
            "quantities": [
                {
                    "name": each.name,
                    "title": each.title,
                    "unit": each.unit,
                    "wants_less": each.wants_less,
                    "surface": in_json(self.surfaces.get(each.name)),
                }
                for each in QUANTITIES
            ],
            "replays": [
                {
                    "place": list(each.place),
                    "answer": each.figures["answer"],
                    "headline": each.figures["headline"],
                    "saturated": bool(each.figures[SATURATED]),
                    "alone_saturated": bool(each.figures[ALONE_SATURATED]),
                    "values": [_short(each.figure(name)) for name in names],
                }
                for each in self.replays
            ],
            "failed": [{"command": command, "why": why} for command, why in self.failed.values()],
            "checked": [self._met(name) for name in dict.fromkeys(e.name for e in self.checked)],
            "notes": self.notes,
        }
        document: dict[str, Any] = plain(result)
        return document

    def _command(self) -> str:
        """Return what the commands of all replays have in common; the choices' options follow."""
        paths = {
            path for axis in self.axes for each in axis.choices for path in spelled_out(each.values)
        }
        words = options_of(self.site, lambda path: path not in paths)
        return command_of("replay", self.trace, self.site, words)

    def _choice(self, number: int, n: int) -> dict[str, Any]:
        """Return choice `n` of an axis, and what the page computes costs and wear of."""
        axis, choice = self.axes[number], self.axes[number].choices[n]
        changed = replace(self.site, origin=self.site.origin.with_keys(choice.values))
        about: dict[str, Any] = {
            "name": choice.name,
            "at": choice.at,
            "words": list(choice.words),
            "options": shell_line(options_of(changed, spelled_out(choice.values).__contains__)),
        }
        if axis.served:
            about["served"] = axis.served[n]
        site = self._built(moved(self.own, {number: n}), number)
        if site is None:
            return about
        if axis.name == SSD:
            tier = site.cache
            held_bytes = tier.members * tier.drive.capacity_bytes
            about |= {
                "drives": tier.members,
                "gb": held_bytes / GB,
                "kind": tier.drive.kind,
                "capacity_bytes": held_bytes,
                "endurance_bytes": tier.endurance_bytes,
            }
        if axis.name == MEMBERS:
            disks = site.backing
            held_bytes = disks.members * disks.drive.capacity_bytes
            about |= {"gb": held_bytes / GB, "kind": disks.drive.kind}
        if axis.name == CACHE:
            about |= {"copies": copies(site)}
        return about

    def _built(self, place: Place, keep: int) -> Scenario | None:
        """Return the machine at a place, or, unless `keep` is its axis, of another size."""
        sizes = range(len(self.axes[AT_SIZE].choices)) if keep != AT_SIZE else ()
        for each in (place, *(moved(place, {AT_SIZE: size}) for size in sizes)):
            with contextlib.suppress(ScenarioError):
                return self.scenario(each)
        return None

    def _met(self, name: str) -> dict[str, Any]:
        of_one = [each for each in self.checked if each.name == name]
        offs = [each.off for each in of_one if each.off is not None]
        return {
            "name": name,
            "number": len(of_one),
            "hold": sum(each.holds for each in of_one),
            "close": sum(each.off is not None and each.off <= CLOSE for each in of_one),
            "inside": sum(each.is_inside for each in of_one),
            "median_off": float(np.median(offs)) if offs else None,
        }


def _log(value: float | None) -> float:
    return math.log(max(value or 0.0, 1e-9))


def surfaces_of(
    where: Coordinates, replays: Sequence[Replay], only: Sequence[str] = ()
) -> dict[str, Surface]:
    """Return the surfaces of all quantities, or of some."""
    places = [each.place for each in replays]
    result: dict[str, Surface] = {}
    for each in QUANTITIES:
        if only and each.name not in only:
            continue
        values = [one.figure(each.name) for one in replays]
        made = Surface.of(each.name, each.scale, where, places, values, result.get(each.like))
        if made is not None:
            result[each.name] = made
    return result


@dataclass(kw_only=True)
class _Run(Exploration):
    """An exploration in progress, and the time that it may take with all that ends it."""

    checks: int  # replays that there is to be time for at the end
    begun_s: float
    report: Report
    given: dict[Place, Mapping[str, Any]] = field(default_factory=dict)  # figures that are known
    unsure: dict[str, Surface] = field(default_factory=dict)  # the KEY surfaces of the replays
    band: float | None = None  # the usual one of BAND
    each_s: float = 0.0  # of a replay, all workers together; 0: unknown
    fit_s: float = 0.0  # of the KEY surfaces of `fitted` replays, when they were last fitted
    fitted: int = 1
    has_workers: bool = False  # other processes

    def __post_init__(self) -> None:
        self.running: Running
        self.digest = self.trace.digest()
        self.in_all = self.planned + self.checks
        self._able: dict[Place, bool] = {}

    def so_far(self) -> Exploration:
        """Return what is explored so far."""
        known = {each.name: getattr(self, each.name) for each in fields(Exploration)}
        return Exploration(**known | {"replays": list(self.replays)})

    @property
    def taken(self) -> list[Place]:
        """The places that are replayed or failed."""
        return [*(each.place for each in self.replays), *self.failed]

    @property
    def passed_s(self) -> float:
        """Seconds since the begin."""
        return time.monotonic() - self.begun_s

    def ending_s(self, replays: int) -> float:
        """Return how long all that follows so many replays takes: surfaces, the page, an end."""
        fits = 2 if self.checks else 1  # what is checked is added afterwards
        fitting_s = fits * ALL_FITS * self.fit_s * max(replays / self.fitted, 1.0) ** 2
        if not self.has_workers or self.limit_s is None:
            return fitting_s
        return fitting_s + min(CLOSING_S, CLOSING_SHARE * self.limit_s)

    def _is_over(self, more_s: float) -> bool:
        """Return whether what takes so long ends too late; for the first replay there is time."""
        done = len(self.taken)
        end_s = more_s + self.ending_s(done)
        if self.limit_s is not None and self.passed_s + end_s >= self.limit_s:
            self.ended = OVER
            return True
        return False

    def may_begin(self, under_way: int) -> bool:
        """Return whether there is time for a replay beside those done and under way."""
        checks_s = 0.0
        if self.limit_s is not None and len(self.taken) >= STEP:  # first something to check
            checks_s = min(self.checks * self.each_s, CHECK_SHARE * self.limit_s)
        if under_way or self.taken or self.given:
            self._is_over(under_way * self.each_s + checks_s)
        return not self.ended

    def is_up(self) -> bool:
        """Return whether the time is up for replays under way."""
        return bool(self.taken or self.given) and self._is_over(0.0)

    def on_point(self, progress: Progress, settled: Settled | None, stage: str = "") -> None:
        """Report the progress, and estimate the time that is left."""
        done = progress.done
        to_do = max(self.in_all - done, 0)
        lanes = progress.crew.lanes if progress.crew else 1
        if progress.took_s:
            # The median: the first replay of each kind of cache compiles.
            self.each_s = float(np.median(progress.took_s)) / lanes
        self.has_workers = lanes > 1
        left = self.each_s * to_do + self.ending_s(done + to_do)
        in_time = None
        if self.limit_s is not None:
            rest = max(self.limit_s - self.passed_s, 0.0)
            if left > rest and self.each_s:
                more = max(rest - self.ending_s(done), 0.0) / self.each_s
                in_time = done + min(int(more), to_do)
            left = min(left, rest) if self.each_s else rest
        now = Status(done, self.in_all, progress.known, left or None, self.band, in_time, stage)
        self.report(now, settled)

    def fitting(self) -> None:
        """Report that surfaces are fitted."""
        self.on_point(self.running.progress, None, FITTING)

    def able(self, place: Place) -> bool:
        """Return whether the machine at a place can be built, as far as two axes decide it.

        Building thousands of scenarios takes longer than replays; what contradicts is the size with
        the cache or with the SSD.
        """
        return all(
            self._is_able(moved(self.own,
                                {AT_SIZE: place[AT_SIZE], other: number}))
            for other, number in enumerate(place)
        )  # fmt: skip

    def _is_able(self, place: Place) -> bool:
        if place not in self._able:
            try:
                self.point(place)
                self._able[place] = True
            except ScenarioError:
                self._able[place] = False
        return self._able[place]

    def point(self, place: Place) -> Point:
        """Return the replay of a place; raise ScenarioError if it cannot be built."""
        made = point(self.trace, self.digest, self.site, values_at(self.axes, place), None)
        return replace(made, detail=DETAIL)

    def run(self, places: Sequence[Place]) -> list[Replay]:
        """Replay these places; return the replays that succeeded.

        If the time is over, or the user interrupts, these are the ones that are done; those under
        way are dropped.
        """
        points: dict[Place, Point] = {}
        for each in places:
            try:
                points[each] = self.point(each)
            except ScenarioError as error:
                self.failed[each] = ("", str(error))
        wanted = [one for place, one in points.items() if place not in self.given]
        try:
            self.running.finish(wanted, self)
        except KeyboardInterrupt:
            self.ended = INTERRUPTED
        known = self.running.on_disk(wanted)
        done = []
        for place, one in points.items():
            found = self.given.get(place) or known.get(one.key)
            if found is not None:
                done.append(Replay(place, found, one.command))
            elif one.key in self.running.failures:
                self.failed[place] = (one.command, self.running.failures[one.key].why)
        return done

    def choose_mode(self) -> None:
        """Take the mode that `replay` chooses for the scenario itself."""
        if self.site.replay.mode != "auto":
            return
        done = self.run([self.own])
        if self.own in self.failed:
            raise UsageError(self.failed[self.own][1])
        if self.ended:
            raise KeyboardInterrupt
        self.site = self.site.with_options(mode=str(done[0].figures["mode"]))
        self.given[self.own] = done[0].figures  # the same replay, though with another command

    def replay(self) -> None:
        """Replay places step by step; what a step does not depend on how many follow.

        So an exploration with more points repeats one with fewer, and reuses its results.  Places
        along the axes and places between them take turns at first, so that the surfaces know all
        axes however early the time is over.
        """
        planner = planning.Planner(self.axes, self.able)
        along = [each for each in planner.lines() if self.able(each)]
        between = planner.spread(SPREAD_FIRST, along, SEED)
        pairs = itertools.zip_longest(along, between)
        queue = [each for pair in pairs for each in pair if each is not None][: self.planned]
        steps = [queue[:1], *(queue[at : at + STEP] for at in range(1, len(queue), STEP))]
        for step in itertools.chain(steps, self._steps(planner)):
            self.replays += self.run(step)  # the first one alone: there is time for it
            if self.ended:
                return
            begun_s = time.monotonic()
            self.unsure = surfaces_of(planner.where, self.replays, KEY)
            self.fit_s, self.fitted = time.monotonic() - begun_s, max(len(self.replays), 1)
            if BAND in self.unsure:
                self.band = usual_band(self.unsure[BAND], self.axes)

    def _steps(self, planner: planning.Planner) -> Iterator[list[Place]]:
        """Yield places where figures jump, where the surfaces are unsure, and spread ones."""
        while (left := self.planned - len(self.taken)) > 0:
            taken = self.taken
            seed = SEED + len(taken)
            times_more = 2 if len(taken) >= TWICE else 1
            hits, *times = (self._known(name) for name in (HIT, READ_P99, WRITE, WRITE_P99))
            more = planner.jumps([hits], times_more * JUMPS, taken, seed)
            # The limits of dirty data are cliffs of times, which no hit ratio shows.
            more += planner.jumps(times, times_more * CLIFFS, [*taken, *more], seed)
            for own in (True, False):
                number = times_more * DOUBTFUL // 2
                unsure = self.unsure.values()
                more += planner.doubtful(unsure, number, [*taken, *more], seed, own)
            more += planner.spread(times_more * STEP - len(more), [*taken, *more], seed)
            if not more:
                return
            yield more[:left]

    def _known(self, name: str) -> dict[Place, float]:
        """Return a quantity of the replays that know it, in the scale of its interpolation."""
        is_linear = next(each.scale for each in QUANTITIES if each.name == name) == LINEAR
        values = {each.place: each.figure(name) for each in self.replays}
        return {
            place: value if is_linear else _log(value)
            for place, value in values.items()
            if value is not None
        }

    def check(self, number: int) -> None:
        """Compare the surfaces with replays that they do not hold; then add these to the replays.

        That it was over, or interrupted, concerns the planned replays only.
        """
        ended = self.ended
        self.ended = ""
        self.checks = 0
        try:
            if number and ended != INTERRUPTED and self.may_begin(0):
                self._check(number)
        finally:
            self.ended = ended

    def _check(self, number: int) -> None:
        self.fitting()
        found = self.so_far()
        if not found.surfaces:
            return
        free = planning.Planner(self.axes, self.able).drawn(set(self.taken), SEED + 10**6)
        done = self.run([tuple(each) for each in free[:number].tolist()])
        for each, quantity in itertools.product(done, QUANTITIES):
            value = each.figure(quantity.name)
            estimate = found.estimate(quantity.name, each.place)
            if quantity.is_checked and (value is not None or estimate.value is not None):
                self.checked.append(Checked(quantity.name, each.place, value, estimate))
        self.replays += done


def explore(
    trace: NamedTrace,
    site: Scenario | None = None,
    *,
    points: int = POINTS,
    seconds: float | None = None,
    check: int = 0,
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = None,
    report: Report = lambda status, settled: None,
    compute: Compute | None = None,
    **choices: Any,
) -> Exploration:
    """Replay `points` machines (fewer if `seconds` are over); return what lies between them.

    All that belongs to it takes part of the time: compiling, the checks, the surfaces.  When it is
    up, replays under way are dropped, but the first one is waited for.  Of one process the result
    depends on the number of the replays only; of several, which of a step are done too.

    `check` further replays, at places drawn at random, are compared with the surfaces, and added to
    them afterwards; of limited time they take CHECK_SHARE at most.  `choices` are those of
    `axes.axes`: caches, policies, sizes, ssds, members, loads.  Results are kept in `folder`;
    `workers` is a number of processes (None: one per core).

    All replays have one mode: the scenario's, or what `replay` chooses for the scenario itself.

    Raises UsageError for contradicting choices, a package that is missing, or a trace from which
    too few machines can be replayed; TraceError and ScenarioError as `replay` does.
    """
    check_crew(workers, None)
    if points < 1 or check < 0 or (seconds is not None and seconds <= 0):
        raise UsageError("the numbers of replays and seconds must be positive")
    begun_s = time.monotonic()
    site = site or Scenario.default()
    summary = trace.open().summary()
    of, notes = axes(site, summary.footprint_bytes, **choices)
    page_bytes = site.cache.page_bytes
    of[AT_SIZE] = with_served(of[AT_SIZE], trace.open(), page_bytes, summary.requests)
    points = min(points, planning.all_places(of))
    of_summary = ("requests", "reads", "writes", "span_ns", "footprint_bytes")
    about = {"name": trace.name} | {key: getattr(summary, key) for key in of_summary}
    run = _Run(
        trace, about, site, of, notes=notes, planned=points, limit_s=seconds, checks=check,
        begun_s=begun_s, report=report,
    )  # fmt: skip
    with contextlib.ExitStack() as opened:
        shared = opened.enter_context(tempfile.TemporaryDirectory(prefix="hybridsim-"))
        store = opened.enter_context(Store(folder))
        compute = compute or functools.partial(explored, shared_folder=shared)
        hire = functools.partial(crew, workers, None, compute)
        run.running = opened.enter_context(Running(hire, store, run.on_point))
        try:
            run.choose_mode()
            run.replay()
            run.check(check)
        except KeyboardInterrupt:
            run.ended = INTERRUPTED
        run.fitting()
    if not run.replays:
        raise UsageError(next(iter(run.failed.values()))[1] if run.failed else "interrupted")
    run.computed = run.running.progress.computed
    run.known = run.running.progress.known
    found = run.so_far()
    _ = found.surfaces  # which take a part of the time
    found.seconds = run.passed_s
    return found


def usual_band(surface: Surface, of: Sequence[Axis]) -> float:
    """Return half of the band, relative to the figure: in the median of LOOKED_AT places."""
    draw = np.random.default_rng(SEED)
    places = np.column_stack([draw.integers(0, len(axis.choices), LOOKED_AT) for axis in of])
    middle, low, high = surface.at(places)
    return float(np.median((high - low) / 2 / np.maximum(np.abs(middle), 1e-12)))


def _short(value: float | None) -> float | None:
    """Return a value with the digits that a screen can show, and a few more."""
    return None if value is None else float(f"{value:.7g}")


def explored(point: Point, shared_folder: str | None = None) -> dict[str, Any]:
    """Replay a point; return the figures of a sweep, saturation, and the warm-up curve.

    In `shared_folder` the processes share the results of the disks alone.
    """
    return figures_of(result_of(point, shared_folder))


def figures_of(result: Result) -> dict[str, Any]:
    """Return what an exploration keeps of a result."""
    whole, about = result.phases["whole"], result.scenario
    worn = wear(whole, about.get("endurance_bytes"), about.get("capacity_bytes"))
    return figures(result, has_intervals=False) | {
        SATURATED: whole.saturated,
        ALONE_SATURATED: result.phases["none_whole"].saturated,
        WEAR: None if worn is None else worn.drive_writes_per_day,
        YEARS: None if worn is None else worn.years,
        **{f"{HIT_PART}{n}": each for n, each in enumerate(hits_by_part(result.cached))},
    }


def hits_by_part(outcome: Outcome) -> list[float | None]:
    """Return the hit ratio of the reads in each of PARTS equal parts of the requests.

    None for a part without reads.  Counts are of time bins, interpolated within a bin.
    """
    bins, used = outcome.collector.bins, outcome.collector.used
    issued = np.concatenate([[0], np.cumsum(bins.count[:used].sum(axis=1))])
    reads = np.concatenate([[0], np.cumsum(bins.count[:used, list(READS)].sum(axis=1))])
    hits = np.concatenate([[0], np.cumsum(bins.count[:used, Kind.HIT])])
    edges = np.linspace(0, issued[-1], PARTS + 1)
    of_reads = np.diff(np.interp(edges, issued, reads))
    of_hits = np.diff(np.interp(edges, issued, hits))
    return [float(h / r) if r > 0 else None for h, r in zip(of_hits, of_reads)]
