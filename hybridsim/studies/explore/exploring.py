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
from dataclasses import dataclass, field, replace
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
from hybridsim.answers.result import Result, plain
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.in_notebooks import frame_of
from hybridsim.foundation.printable import shell_line
from hybridsim.foundation.version import __version__
from hybridsim.scenario import Scenario
from hybridsim.studies.explore import planning
from hybridsim.studies.explore.axes import (
    MEMBERS,
    SIZE,
    SSD,
    Axis,
    Place,
    axes,
    values_at,
    with_served,
)
from hybridsim.studies.explore.figures import DETAIL, HIT_PART, PARTS, WEAR, explored, figures_of
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
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.point import Compute, Point, point
from hybridsim.studies.sweep.running import Progress, Running, Settled
from hybridsim.studies.sweep.store import FOLDER, Store
from hybridsim.studies.sweep.sweep import check_crew, crew

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = "hybridsim.explore/1"
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
    settled: Settled | None = None
    band: float | None = None  # half of that of BAND, of the figure, in the median; None: unknown
    in_time: int | None = None  # replays that the time suffices for; None: all, or unknown
    stage: str = ""  # what is done in place of replays


Report = Callable[[Status], None]


def _silent(status: Status) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Exploration:
    """Replays over several axes, and a surface of each figure between them."""

    trace: NamedTrace
    about: Mapping[str, Any]  # the trace
    site: Scenario  # with the mode that all replays have
    axes: list[Axis]
    replays: list[Replay]
    failed: list[tuple[str, str]]  # command, why
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
        return {
            name: usual_band(self.surfaces[name], self.axes)
            for name in KEY
            if name in self.surfaces
        }

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
    def mode(self) -> str:
        """The mode of all replays: open, think or closed."""
        return str(self.site.replay.mode)

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
            value = self.by_place[place].figures.get(name)
            number = None if value is None else float(value)
            return Estimate(number, number, number, True)
        surface = self.surfaces.get(name)
        if surface is None:
            return Estimate(None, None, None, False)
        known = self._known_share(name, place)
        in_doubt = DOUBT < known < 1 - DOUBT
        if known < 0.5:
            return Estimate(None, None, None, False, in_doubt)
        middle, low, high = (float(each[0]) for each in surface.at([place]))
        if surface.scale == LINEAR:
            middle, low, high = (min(max(each, 0.0), 1.0) for each in (middle, low, high))
        return Estimate(middle, low, high, False, in_doubt)

    def _known_share(self, name: str, place: Place) -> float:
        """Return the share of the replays around a place that know a quantity, by nearness."""
        known = np.array(
            [each.figures.get(name) is not None for each in self.by_place.values()], float
        )
        return 1.0 if known.all() else float(self._nearness(place) @ known)

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
                | {q.name: _number(each.figures.get(q.name)) for q in QUANTITIES}
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
        base = self.own
        result = {
            "schema": SCHEMA,
            "tool": {"version": __version__},
            "inputs": {
                "trace": dict(self.about),
                "scenario": {
                    "file": self.site.origin.name or None,
                    "options": self.site.options,
                    "summary": self._summary(),
                    "toml": self.site.to_toml(),
                },
                "mode": self.mode,
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
            "command": self._command_parts(),
            "price": {**prices.price.model_dump(), "source": prices.source},
            "rule": RULE,
            "near": {
                "power": NEAR_POWER,
                "doubt": DOUBT,
                "sharper": SHARPER,
                "nearby": NEARBY,
                "error_most": ERROR_MOST,
            },
            "axes": [self._axis(number, base) for number in range(len(self.axes))],
            "base": list(base),
            "quantities": [
                {
                    "name": each.name,
                    "title": each.title,
                    "unit": each.unit,
                    "wants_less": each.wants_less,
                    "surface": self.surfaces[each.name].to_dict()
                    if each.name in self.surfaces
                    else None,
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
                    "values": [_short(each.figures.get(name)) for name in names],
                }
                for each in self.replays
            ],
            "failed": [{"command": command, "why": why} for command, why in self.failed],
            "checked": [self._check(name) for name in dict.fromkeys(e.name for e in self.checked)],
            "notes": self.notes,
        }
        document: dict[str, Any] = plain(result)
        return document

    def _summary(self) -> str:
        backing = self.site.backing
        return f"{backing.members} x {backing.drive.name}, {backing.kind}"

    def _command_parts(self) -> dict[str, Any]:
        """Return the command of a replay: what all have in common, then one text per choice."""
        words = ["hybridsim", "replay", *self.trace.arguments]
        if self.site.origin.name:
            words += ["--scenario", self.site.origin.name]
        keys = {
            key for axis in self.axes for choice in axis.choices for key in _keys(choice.values)
        }
        for option in self.site.options:
            path = _key_of(self.site, option)
            if path not in keys:
                words += option.split(" ", 1)
        return {"base": shell_line(words)}

    def _axis(self, number: int, base: Place) -> dict[str, Any]:
        axis = self.axes[number]
        choices = []
        for n, each in enumerate(axis.choices):
            place = (*base[:number], n, *base[number + 1 :])
            about: dict[str, Any] = {
                "name": each.name,
                "at": each.at,
                "words": list(each.words),
                "options": _options(self.site, each.values),
            }
            if axis.served:
                about["served"] = axis.served[n]
            site = _first_able(self.site, self.axes, place, number)
            if axis.name == SSD and site is not None:
                drive, tier = site.cache.drive, site.cache
                about |= {
                    "drives": tier.members,
                    "gb": tier.members * drive.capacity_bytes / GB,
                    "kind": drive.kind,
                    "capacity_bytes": tier.members * drive.capacity_bytes,
                    "endurance_bytes": tier.endurance_bytes,
                }
            if axis.name == MEMBERS and site is not None:
                disks = site.backing
                about |= {
                    "gb": disks.members * disks.drive.capacity_bytes / GB,
                    "kind": disks.drive.kind,
                }
            if axis.name == "cache" and site is not None:
                about |= {"copies": copies(site)}
            choices.append(about)
        return {
            "name": axis.name,
            "title": axis.title,
            "is_ordered": axis.is_ordered,
            "choices": choices,
        }

    def _check(self, name: str) -> dict[str, Any]:
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
        values = [_figure(one.figures.get(each.name)) for one in replays]
        made = Surface.of(each.name, each.scale, where, places, values, result.get(each.like))
        if made is not None:
            result[each.name] = made
    return result


@dataclass
class _Time:
    """The time that an exploration may take, with all that follows the replays."""

    limit_s: float | None
    checks: int  # replays that there is to be time for at the end
    begun_s: float = field(default_factory=lambda: time.monotonic())
    each_s: float = 0.0  # of a replay, all workers together; 0: unknown
    fit_s: float = 0.0  # of the KEY surfaces of `fitted` replays, when they were last fitted
    fitted: int = 1
    has_workers: bool = False  # other processes

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

    def is_over(self, replays: int, under_way: int) -> bool:
        """Return whether a replay would end too late, beside those done and under way."""
        if self.limit_s is None:
            return False
        checks_s = min(self.checks * self.each_s, CHECK_SHARE * self.limit_s)
        if replays < STEP:  # first something to check
            checks_s = 0.0
        end_s = under_way * self.each_s + checks_s + self.ending_s(replays)
        return self.passed_s + end_s >= self.limit_s

    def is_up(self, replays: int) -> bool:
        """Return whether there is no more time for any replay."""
        if self.limit_s is None:
            return False
        return self.passed_s + self.ending_s(replays) >= self.limit_s

    @contextlib.contextmanager
    def fitting(self, replays: int) -> Iterator[None]:
        """Note how long the KEY surfaces of so many replays take."""
        begun_s = time.monotonic()
        yield
        self.fit_s, self.fitted = time.monotonic() - begun_s, max(replays, 1)


class _Planned:
    """The replays of an exploration in progress."""

    def __init__(
        self, trace: NamedTrace, site: Scenario, of: list[Axis], running: Running, time: _Time
    ) -> None:
        self.trace, self.site, self.axes, self.running, self.time = trace, site, of, running, time
        self.digest = trace.digest()
        self.replays: list[Replay] = []
        self.given: dict[Place, Mapping[str, Any]] = {}  # figures of replays that are known
        self.failed: dict[Place, tuple[str, str]] = {}
        self.band: float | None = None  # the usual one of BAND, of the replays so far
        self.ended = ""  # OVER or INTERRUPTED: nothing more begins
        self._able: dict[Place, bool] = {}

    @property
    def taken(self) -> list[Place]:
        """The places that are replayed or failed."""
        return [*(each.place for each in self.replays), *self.failed]

    def may_begin(self, under_way: int) -> bool:
        """Return whether there is time for a replay beside those under way; the first one has."""
        is_first = not (under_way or self.taken or self.given)
        if not is_first and self.time.is_over(len(self.taken), under_way):
            self.ended = OVER
        return not self.ended

    def is_up(self) -> bool:
        """Return whether the time is up for replays under way; it never is for the first one."""
        if (self.taken or self.given) and self.time.is_up(len(self.taken)):
            self.ended = OVER
            return True
        return False

    def surfaces(self, where: Coordinates) -> dict[str, Surface]:
        """Return the KEY surfaces of the replays so far."""
        with self.time.fitting(len(self.replays)):
            return surfaces_of(where, self.replays, KEY)

    def able(self, place: Place) -> bool:
        """Return whether the machine at a place can be built, as far as two axes decide it.

        Building thousands of scenarios takes longer than replays; what contradicts is the size with
        the cache or with the SSD.
        """
        base = planning.own_place(self.axes)
        size = [axis.name for axis in self.axes].index(SIZE)
        for other in range(len(self.axes)):
            pair = {size: place[size], other: place[other]}
            near = tuple(pair.get(axis, number) for axis, number in enumerate(base))
            if near not in self._able:
                try:
                    self.point(near)
                    self._able[near] = True
                except ScenarioError:
                    self._able[near] = False
            if not self._able[near]:
                return False
        return True

    def point(self, place: Place) -> Point:
        """Return the replay of a place; raise ScenarioError if it cannot be built."""
        made = point(self.trace, self.digest, self.site, values_at(self.axes, place), None)
        return replace(made, detail=DETAIL)

    def run(self, places: Sequence[Place]) -> list[Replay]:
        """Replay these places; return the replays that succeeded.

        If the time is over, or the user interrupts, these are the ones that are done; those under
        way are dropped.
        """
        points: dict[str, tuple[Place, Point]] = {}
        for each in places:
            try:
                one = self.point(each)
            except ScenarioError as error:
                self.failed[each] = ("", str(error))
                continue
            points[one.key] = each, one
        wanted = [one for place, one in points.values() if place not in self.given]
        try:
            rows = self.running.finish(wanted, self)
            figures = {key: row["figures"] for key, row in rows.items()}
        except KeyboardInterrupt:
            self.ended = INTERRUPTED
            figures = self.running.on_disk(wanted)
        done = []
        for key, (place, one) in points.items():
            if place in self.given:
                done.append(Replay(place, self.given[place], one.command))
            elif key in figures:
                done.append(Replay(place, figures[key], one.command))
            elif key in self.running.failures:
                self.failed[place] = (one.command, self.running.failures[key].why)
        return done


def explore(
    trace: NamedTrace,
    site: Scenario | None = None,
    *,
    points: int = POINTS,
    seconds: float | None = None,
    check: int = 0,
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = None,
    report: Report = _silent,
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
    clock = _Time(seconds, check)
    site = site or Scenario.default()
    summary = trace.open().summary()
    of, notes = axes(site, summary.footprint_bytes, **choices)
    page_bytes = site.cache.page_bytes
    of = [
        with_served(axis, trace.open(), page_bytes, summary.requests) if axis.name == SIZE else axis
        for axis in of
    ]
    points = min(points, planning.all_places(of))
    ended = ""
    checked: list[Checked] = []

    def on_point(progress: Progress, settled: Settled | None, stage: str = "") -> None:
        to_do = max(points + check - progress.done, 0)
        if progress.took_s:
            # The median: the first replay of each kind of cache compiles.
            clock.each_s = float(np.median(progress.took_s)) / progress.lanes
        clock.has_workers = progress.lanes > 1
        left = clock.each_s * to_do + clock.ending_s(progress.done + to_do)
        in_time = None
        if seconds is not None:
            rest = max(seconds - clock.passed_s, 0.0)
            if left > rest and clock.each_s:
                more = max(rest - clock.ending_s(progress.done), 0.0) / clock.each_s
                in_time = progress.done + min(int(more), to_do)
            left = min(left, rest) if clock.each_s else rest
        known = progress.known
        report(Status(progress.done, points + check, known, left or None, settled, plan.band,
                      in_time,
                      stage))  # fmt: skip

    def on_stage(words: str) -> None:
        on_point(running.progress, None, words)

    with contextlib.ExitStack() as opened:
        shared = opened.enter_context(tempfile.TemporaryDirectory(prefix="hybridsim-"))
        store = opened.enter_context(Store(folder))
        compute = compute or functools.partial(explored, shared_folder=shared)
        hire = functools.partial(crew, workers, None, compute)
        running = opened.enter_context(Running(hire, store, on_point))
        plan = _Planned(trace, site, of, running, clock)
        try:
            plan = _with_mode(plan)
            _replay(plan, points)
            ended = plan.ended
            if ended != INTERRUPTED:
                checked = _check(plan, check, on_stage)
        except KeyboardInterrupt:
            ended = INTERRUPTED
        progress = running.progress
        on_stage(FITTING)
    if not plan.replays:
        raise UsageError(next(iter(plan.failed.values()))[1] if plan.failed else "interrupted")
    of_summary = ("requests", "reads", "writes", "span_ns", "footprint_bytes")
    about = {"name": trace.name} | {key: getattr(summary, key) for key in of_summary}
    found = Exploration(
        trace, about, plan.site, of, plan.replays, list(plan.failed.values()), checked, notes,
        progress.computed, progress.known, 0.0, points, ended, seconds,
    )  # fmt: skip
    surfaces = found.surfaces  # now: it is part of the time
    whole = replace(found, seconds=clock.passed_s)
    whole.__dict__["surfaces"] = surfaces
    return whole


def _with_mode(plan: _Planned) -> _Planned:
    """Return the plan with the mode that `replay` chooses for the scenario itself."""
    if plan.site.replay.mode != "auto":
        return plan
    base = planning.own_place(plan.axes)
    done = plan.run([base])
    if not done:
        raise UsageError(plan.failed[base][1])
    site = plan.site.with_options(mode=str(done[0].figures["mode"]))
    decided = _Planned(plan.trace, site, plan.axes, plan.running, plan.time)
    decided.given[base] = done[0].figures  # the same replay, though with another command
    return decided


def _replay(plan: _Planned, points: int) -> None:
    """Replay places step by step; what a step does not depend on how many follow.

    So an exploration with more points repeats one with fewer, and reuses its results.  Places along
    the axes and places between them take turns at first, so that the surfaces know all axes however
    early the time is over.
    """
    planner = planning.Planner(plan.axes, plan.able)

    def look() -> dict[str, Surface]:
        surfaces = plan.surfaces(planner.where)
        if BAND in surfaces:
            plan.band = usual_band(surfaces[BAND], plan.axes)
        return surfaces

    unsure: dict[str, Surface] = {}
    along = [each for each in planner.lines() if plan.able(each)]
    between = planner.spread(SPREAD_FIRST, along, SEED)
    pairs = itertools.zip_longest(along, between)
    queue = [each for pair in pairs for each in pair if each is not None]
    for part in (queue[:1], *_parts(queue[1:points], STEP)):  # one alone: there is time for it
        if plan.ended:
            return
        plan.replays += plan.run(part)
        unsure = unsure if plan.ended else look()
    while (left := points - len(plan.taken)) > 0 and not plan.ended:
        taken = plan.taken
        seed = SEED + len(taken)
        times_more = 2 if len(taken) >= TWICE else 1
        hits, *times = (_known(plan.replays, name) for name in (HIT, READ_P99, WRITE, WRITE_P99))
        more = planner.jumps([hits], times_more * JUMPS, taken, seed)
        # The limits of dirty data are cliffs of times, which no hit ratio shows.
        more += planner.jumps(times, times_more * CLIFFS, [*taken, *more], seed)
        for own in (True, False):
            number = times_more * DOUBTFUL // 2
            more += planner.doubtful(unsure.values(), number, [*taken, *more], seed, own)
        more += planner.spread(times_more * STEP - len(more), [*taken, *more], seed)
        if not more:
            return
        plan.replays += plan.run(more[:left])
        unsure = unsure if plan.ended else look()


def _known(replays: Sequence[Replay], name: str) -> dict[Place, float]:
    """Return a quantity of the replays that know it, in the scale of its interpolation."""
    is_linear = next(each.scale for each in QUANTITIES if each.name == name) == LINEAR
    values = {each.place: _figure(each.figures.get(name)) for each in replays}
    return {
        place: value if is_linear else _log(value)
        for place, value in values.items() if value is not None
    }  # fmt: skip


def usual_band(surface: Surface, of: Sequence[Axis]) -> float:
    """Return half of the band, relative to the figure: in the median of LOOKED_AT places."""
    draw = np.random.default_rng(SEED)
    places = np.column_stack([draw.integers(0, len(axis.choices), LOOKED_AT) for axis in of])
    middle, low, high = surface.at(places)
    return float(np.median((high - low) / 2 / np.maximum(np.abs(middle), 1e-12)))


def _check(plan: _Planned, number: int, on_stage: Callable[[str], None]) -> list[Checked]:
    """Compare the surfaces with replays that they do not hold; then add these to the replays."""
    if not number:
        return []
    plan.ended, plan.time.checks = "", 0
    if not plan.may_begin(0):
        return []
    on_stage(FITTING)
    found = Exploration(plan.trace, {}, plan.site, plan.axes, list(plan.replays), [])
    if not found.surfaces:
        return []
    free = planning.Planner(plan.axes, plan.able).drawn(set(plan.taken), SEED + 10**6)
    places = [tuple(int(one) for one in each) for each in free[:number]]
    result = []
    done = plan.run(places)
    for each in done:
        for quantity in QUANTITIES:
            if quantity.is_checked:
                value = _figure(each.figures.get(quantity.name))
                estimate = found.estimate(quantity.name, each.place)
                if value is not None or estimate.value is not None:
                    result.append(Checked(quantity.name, each.place, value, estimate))
    plan.replays += done
    return result


def _parts(places: Sequence[Place], size: int) -> Iterator[Sequence[Place]]:
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _figure(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _short(value: Any) -> float | None:
    """Return a value with the digits that a screen can show, and a few more."""
    number = _figure(value)
    return None if number is None else float(f"{number:.7g}")


def _keys(values: Mapping[str, Any]) -> set[str]:
    policy = {"cache.admission", "cache.replacement"} if "cache.policy" in values else set()
    return (set(values) - {"cache.policy"}) | policy


def _key_of(site: Scenario, option: str) -> str:
    """Return the key that an option of a scenario sets."""
    for path, name in site.origin.options.items():
        if option == name or option.startswith((f"{name} ", f"{name}=")):
            return ".".join(map(str, path))
    return ""


def _options(site: Scenario, values: Mapping[str, Any]) -> str:
    """Return the options that set these values, for a shell."""
    from hybridsim.scenario.overrides import over

    keys = _keys(values)
    origin = over(site.origin, values)
    made = replace(site, origin=origin)
    words: list[str] = []
    for option in made.options:
        if _key_of(made, option) in keys:
            words += option.split(" ", 1)
    return shell_line(words)


def _first_able(site: Scenario, of: Sequence[Axis], place: Place, keep: int) -> Scenario | None:
    """Return the machine at a place, or one that differs in its size if it cannot be built."""
    size = [axis.name for axis in of].index(SIZE)
    numbers = [place[size], *range(len(of[size].choices))] if keep != size else [place[size]]
    for number in numbers:
        at = (*place[:size], number, *place[size + 1 :])
        try:
            return site.with_values(values_at(of, at))
        except ScenarioError:
            continue
    return None
