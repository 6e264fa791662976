"""The comparison of a simulated run with a real one: aligned curves, and one row per figure.

Its input is two Measurements (`answers/measurements/`), not files.  Errors are shares of the real
value.  Counters are compared every ten seconds, or at their samples if these are rarer; the row has
the largest error, as a share of the last real value.  The hit ratio of each ten seconds is compared
too; its row has the largest difference.

Two curves are compared on the same bins.  Warm-up is that of `answers/warmup.py`: times and levels
are compared if both curves are steady.  The distance of two curves is their mean absolute
difference over the common time, each smoothed by a median of five bins and divided by its own level
if both are steady, else by its own mean.

All intervals of simulated figures, and paired gains, are those of answers/intervals.py and
answers/model_error.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hybridsim.answers.fidelity import demerit, distance
from hybridsim.answers.intervals import NO_CACHE, Interval, gains
from hybridsim.answers.measurements import HITS, RATES, together
from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    CACHE,
    COMPLETION,
    DIRECTIONS,
    HIT_RATIO,
    IOPS,
    LATENCY,
    REQUESTS,
    SECOND,
    Curve,
    Measurement,
    Name,
    Samples,
)
from hybridsim.answers.model_error import FEW_WRITES, LEVEL, Half, based_on, half_of, interval
from hybridsim.answers.warmup import FEWEST_BINS, State, WarmUp, judge
from hybridsim.foundation.arrays import Floats, Ints
from hybridsim.foundation.documents import in_json
from hybridsim.foundation.errors import MeasurementError, UsageError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of
from hybridsim.foundation.levels import LEVELS
from hybridsim.foundation.suggest import nearest

# Shares of the real value, except for DISTANCES.  Those of curves and counters are the project's
# own targets for the comparison with real kernels; those of latencies were chosen, not measured.
DEFAULTS: Mapping[str, float | None] = MappingProxyType({
    "slat mean": None,  # a simulated host submits requests in no time
    "IOPS": 0.10, "bandwidth": 0.10, "mean": 0.10,
    "p50": 0.15, "p90": 0.15, "p95": 0.15, "p99": 0.15, "p99.9": 0.25,
    "KS": 0.10, "demerit": 0.10,
    "level": 0.10, "t50": 0.15, "t90": 0.15, "curve": 0.05,
    "hit ratio": 0.05, "counters": 0.05,
})  # fmt: skip
DISTANCES = {"KS", "demerit", "curve", "hit ratio"}  # absolute, not shares of a real value
SCHEMA = "hybridsim.comparison/1"
FIGURES = ("real", "simulated", "error", "tolerance", "slack")  # of a row, in this order
NOT_JUDGED = "none"
MOST_BINS = 512
FEWEST_OF_CURVE = 5  # bins
WARMING = (IOPS, HIT_RATIO)  # curves that show the warm-up of a cache
FEW = 6  # names listed in the error if there is nothing to compare
LONGER = 1.05  # ratio of the lengths of both runs above which it is noted
FEWEST = 100  # minimum reads in ten seconds for a hit ratio
STEP_NS = 10 * SECOND  # between comparisons of counters
COUNTERS = "counters"
ALL = "all"  # directions together
T = TypeVar("T")
MEANS = tuple(f"{kind} mean" for kind in (LATENCY, COMPLETION))


@dataclass(frozen=True)
class Tolerances:
    """User tolerances override the defaults; None: reported, not checked."""

    specified: Mapping[str, float | None] = field(default_factory=dict)
    all_shares: float | None = None  # replaces all defaults that are shares

    def of(self, measure: str, kind: str = "") -> float | None:
        """Return the tolerance of a measure: by its name, by its last word, or by its kind."""
        names = (measure, measure.rpartition(" ")[2], kind)
        for name in names:
            if name in self.specified:
                return self.specified[name]
        name = next((name for name in names if name in DEFAULTS), "")
        default = DEFAULTS.get(name)
        is_share = default is not None and name not in DISTANCES
        return self.all_shares if is_share and self.all_shares else default


def parse(texts: Sequence[str]) -> Tolerances:
    """Parse `10%` or `iops=5%,p99=20%,curve=0.05,p90=none`; raise UsageError if invalid."""
    specified: dict[str, float | None] = {}
    all_shares = None
    known = {name.casefold(): name for name in DEFAULTS}
    for part in (each.strip() for text in texts for each in text.split(",")):
        name, equals, value = part.rpartition("=")
        if not equals:
            all_shares = _share(part)
            continue
        folded = " ".join(name.replace("_", " ").casefold().split())
        is_percentile = folded.rpartition(" ")[2].startswith("p") and folded[-1:].isdigit()
        if folded not in known and not is_percentile:
            near = nearest(folded, sorted(known))
            hint = f"did you mean {near!r}?" if near else f"known are {', '.join(DEFAULTS)}, p1 ..."
            raise UsageError(f"--tolerance {part}: unknown figure {name!r}: {hint}")
        measure = known.get(folded, folded)
        specified[measure] = None if value == NOT_JUDGED else _share(value, measure)
    return Tolerances(specified, all_shares)


def _share(text: str, measure: str = "") -> float:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"--tolerance: {text!r} is not a share: write for example 10% or 0.1")
    if number > 1 and "%" not in text and measure not in DISTANCES:
        raise UsageError(f"--tolerance: {text} is {100 * number:g}%: did you mean {text}%?")
    return number


@dataclass(frozen=True)
class Row:
    """One figure of both runs.  `error` is a share of the real value, or a distance."""

    name: Name
    real: float | None
    simulated: float | None
    error: float | None
    tolerance: float | None  # None: reported, not checked
    slack: float = 0.0  # error allowed for the resolution of the curves
    ends: tuple[float, float] | None = None  # of the interval of the simulated value

    @property
    def is_inside(self) -> bool | None:
        """Whether the real value is in the interval of the simulated one; None if it has none."""
        if self.ends is None or self.real is None:
            return None
        return self.ends[0] <= self.real <= self.ends[1]

    @property
    def is_met(self) -> bool | None:
        """Whether the error is within its tolerance; None if it has no tolerance."""
        if self.tolerance is None:
            return None
        return self.error is not None and abs(self.error) <= max(self.tolerance, self.slack)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            **self.name._asdict(),
            **{figure: getattr(self, figure) for figure in FIGURES},
            "pass": self.is_met,
            "interval": self.ends and list(self.ends),
            "inside": self.is_inside,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Row:
        """Return the row of such a document."""
        name = Name(*(document[part] for part in Name._fields))
        ends = document.get("interval")
        figures = {figure: document[figure] for figure in FIGURES}
        return cls(name, **figures, ends=(ends[0], ends[1]) if ends else None)


class Aligned(NamedTuple):
    """One curve of both runs on the same bins."""

    name: Name
    real: WarmUp
    simulated: WarmUp

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        sides = {"real": self.real, "simulated": self.simulated}
        return {
            "name": str(self.name),
            "width_ns": self.real.bin_ns,
            "time_ns": self.real.times_ns.tolist(),
            **{
                side: {
                    "state": each.state.value,
                    "level": each.level,
                    **{f"t{share}_ns": time_ns for share, time_ns in each.reached_ns.items()},
                    "x": each.curve.tolist(),
                }
                for side, each in sides.items()
            },
        }


@dataclass
class Comparison:
    """All rows and curves, and the figures that could not be compared."""

    real: Measurement
    simulated: Measurement
    rows: list[Row] = field(default_factory=list)
    curves: list[Aligned] = field(default_factory=list)
    only_real: list[tuple[Name, str]] = field(default_factory=list)  # name and description
    only_simulated: list[tuple[Name, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    basis: str = ""  # what the intervals of the simulated figures rest on
    # How many times less the same requests cost in `simulated`, if both runs are replays of them.
    gains: Mapping[str, Interval] = field(default_factory=dict)
    paired: int = 0  # requests that are paired

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per figure that both runs have.

        Columns: `job`, `what`, `measure`, `real` and `simulated` (latencies in ns, rates in bytes
        or requests per second), `error` (a share of the real value, or a distance), `tolerance`,
        `within` (None: not judged).  NaN where unknown.  Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                **each.name._asdict(), "real": each.real, "simulated": each.simulated,
                "error": each.error, "tolerance": each.tolerance, "within": each.is_met,
            }
            for each in self.rows
        )  # fmt: skip

    def over_time(self) -> DataFrame:
        """Return a pandas frame: a row per time bin of each curve that both runs have.

        Columns: `job`, `what`, `measure`, `time_ns` (start of the bin), `real`, `simulated`.
        """
        return frame_of(
            [
                {**each.name._asdict(), "time_ns": int(at), "real": real, "simulated": simulated}
                for each in self.curves
                for at, real, simulated in zip(
                    each.real.times_ns, each.real.curve, each.simulated.curve
                )
            ],
            [*Name._fields, "time_ns", "real", "simulated"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {
            "schema": SCHEMA,
            "pass": not self.failed,
            "real": self.real.sources,
            "simulated": self.simulated.sources,
            "rows": in_json(self.rows),
            "curves": [each.to_dict() for each in self.curves],
            **{
                side: [f"{name.job} {name.what} {measure}".strip() for name, measure in alone]
                for side, alone in (
                    ("only_real", self.only_real),
                    ("only_simulated", self.only_simulated),
                )
            },
            "notes": self.notes,
            "interval_basis": self.basis or None,
            "paired_requests": self.paired,
            "gains": in_json(self.gains),
        }

    def __repr__(self) -> str:
        beyond = f"{len(self.failed)} of {len(self.judged)} beyond their tolerance"
        return f"<Comparison of {len(self.rows)} figures: {beyond}>"

    @property
    def in_both(self) -> list[Name]:
        """The names of the curves that both runs have, in the order of the real one."""
        return [name for name in self.real.curves if name in self.simulated.curves]

    @property
    def judged(self) -> list[Row]:
        """The rows that have a tolerance."""
        return [row for row in self.rows if row.is_met is not None]

    @property
    def failed(self) -> list[Row]:
        """The rows that exceed their tolerance."""
        return [row for row in self.rows if row.is_met is False]


def row_of(
    name: Name, real: float, simulated: float, tolerance: float | None, slack: float = 0.0
) -> Row:
    """Return the row of a figure; its error is a share of the real value, or a difference."""
    if name.measure.rpartition(" ")[2] in DISTANCES or name.measure in DISTANCES:
        return Row(name, real, simulated, simulated - real, tolerance)
    if real == simulated:
        return Row(name, real, simulated, 0.0, tolerance)
    error = simulated / real - 1 if real else None
    return Row(name, real, simulated, error, tolerance, slack / real if real else 0.0)


def edges_of(real: Curve, simulated: Curve) -> Ints:
    """Return the edges in ns of bins over the common time of two curves.

    Bins are a second wide; wider if a curve is coarser or there would be too many bins, narrower
    if there would be too few.
    """
    width = max(real.width_ns, simulated.width_ns, 1)
    until = min(real.until_ns, simulated.until_ns)
    if width < SECOND and until >= FEWEST_BINS * SECOND:
        width = SECOND
    width *= max(1, -(-until // (width * MOST_BINS)))
    return np.arange(0, until + 1, width)


def curve_rows(comparison: Comparison, name: Name, tolerances: Tolerances) -> Iterator[Row]:
    """Align a curve of both runs, and yield its rows."""
    curves = comparison.real.curves[name], comparison.simulated.curves[name]
    edges = edges_of(*curves)
    if len(edges) < 2:
        comparison.notes.append(f"{name} over time: the curves do not overlap in time")
        return
    values = [each.binned(edges, name.measure in RATES) for each in curves]
    present = ~np.isnan(values[0]) & ~np.isnan(values[1])
    width = int(edges[1])
    start = edges[:-1][present]
    real, simulated = (judge(start, each[present], width, name.measure) for each in values)
    aligned = Aligned(name, real, simulated)
    comparison.curves.append(aligned)
    is_warming = name.measure in WARMING or _stands_for_iops(comparison, name)
    if is_warming:
        yield from _warm_up(comparison, aligned, tolerances)
    apart = _apart(real, simulated)
    if apart is not None:
        tolerance = tolerances.of("curve") if is_warming else None
        yield Row(_label(name, "curve"), None, None, apart, tolerance)
    elif is_warming:
        comparison.notes.append(
            f"{name} over time: not comparable over the {len(start)} common bins"
        )


def _stands_for_iops(comparison: Comparison, name: Name) -> bool:
    """Return whether this is a curve of bandwidth, and not both runs have one of IOPS."""
    iops = name._replace(measure=IOPS)
    runs = (comparison.real, comparison.simulated)
    return name.measure == BANDWIDTH and not all(iops in run.curves for run in runs)


def _apart(real: WarmUp, simulated: WarmUp) -> float | None:
    """Return the distance of two curves, as in the module's docstring; None if too short."""
    both = (real, simulated)
    if len(real.smooth) < FEWEST_OF_CURVE:
        return None
    wholes = [float(each.smooth.mean()) for each in both]
    if real.steady and simulated.steady:
        wholes = [each.level or 0.0 for each in both]
    if not all(wholes):
        return None
    shapes: list[Floats] = [each.smooth / whole for each, whole in zip(both, wholes)]
    return float(np.abs(shapes[0] - shapes[1]).mean())


def _warm_up(comparison: Comparison, aligned: Aligned, tolerances: Tolerances) -> Iterator[Row]:
    name, real, simulated = aligned
    if name not in comparison.real.figures or name not in comparison.simulated.figures:
        before, after = (float(each.curve.mean()) for each in (real, simulated))
        yield row_of(_label(name, "mean"), before, after, tolerances.of("mean"))
    if real.level is not None and simulated.level is not None:
        is_ratio = name.measure == HIT_RATIO
        tolerance = tolerances.of("hit ratio" if is_ratio else "level")
        tolerance = tolerance if real.steady and simulated.steady else None
        row = row_of(_label(name, "level"), real.level, simulated.level, tolerance)
        yield replace(row, error=simulated.level - real.level) if is_ratio else row
    warm = [each.state == State.STEADY for each in (real, simulated)]
    for share in (50, 90) if any(warm) else ():
        label = _label(name, f"t{share}")
        tolerance = tolerances.of(f"t{share}")
        first, second = (each.reached_ns.get(share) for each in (real, simulated))
        if first is not None and second is not None:
            yield row_of(label, first, second, tolerance, real.bin_ns)
        else:
            yield Row(label, first, second, None, tolerance)
    if not all(warm):
        comparison.notes.append(
            f"{name} over time: {_state('real', real)}; {_state('simulated', simulated)}"
        )


def _label(name: Name, word: str) -> Name:
    return name._replace(measure=f"{name.measure} {word}")


def _state(run: str, warm_up: WarmUp) -> str:
    if warm_up.state == State.STEADY:
        return f"{run} warms up and is steady"
    return f"{run}: {warm_up.why or warm_up.state}"


def compare(real: Measurement, simulated: Measurement, tolerances: Tolerances) -> Comparison:
    """Compare a simulated run with a real one; MeasurementError if they share no figures."""
    result = Comparison(real, simulated)
    match_jobs(result)
    for each, other in ((real, simulated), (simulated, real)):
        add_up(each, other)
        if each.is_instant:
            each.figures = with_completions(each.figures, other.figures)
            each.latencies = with_completions(each.latencies, other.latencies)
    _until_the_same_time(result)
    result.rows += _figures(result, tolerances)
    result.rows += _distributions(result, tolerances)
    for name in result.in_both:
        result.rows += curve_rows(result, name, tolerances)
    result.rows += _counters(result, tolerances)
    result.rows += _hit_ratios(result, tolerances)
    # Rows of the same job and kind stand together, in the order of their first row; CACHE last.
    places = {row.name[:2]: at for at, row in reversed(list(enumerate(result.rows)))}
    result.rows.sort(key=lambda row: (row.name.what == CACHE, places[row.name[:2]]))
    _note_lengths(result)
    if not result.judged:
        raise MeasurementError(
            f"nothing to compare: {', '.join(real.sources)} has {_holdings(real)}; "
            f"{', '.join(simulated.sources)} has {_holdings(simulated)}"
            + "".join(f"; {note}" for note in result.notes)
        )
    result.only_real += _alone(real, simulated)
    result.only_simulated += _alone(simulated, real)
    result.notes += [*real.notes, *simulated.notes]
    return result


def _holdings(one: Measurement) -> str:
    names = list(dict.fromkeys(str(name) for name in [*one.figures, *one.curves, *one.counters]))
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


# Jobs, curves and latencies of both runs that are compared.


def match_jobs(comparison: Comparison) -> None:
    """Give the only job of each run the same name."""
    real, simulated = comparison.real, comparison.simulated
    if len(real.jobs) == len(simulated.jobs) == 1 and real.jobs != simulated.jobs:
        title = real.jobs[0] or simulated.jobs[0]
        if real.jobs[0] and simulated.jobs[0]:
            comparison.notes.append(
                f"job {simulated.jobs[0]!r} is compared with {real.jobs[0]!r}: each run has one job"
            )
        for run in (real, simulated):
            run.rename(run.jobs[0], title)


def add_up(one: Measurement, other: Measurement) -> None:
    """Add a curve of all directions together if the other run has one."""
    for name in [each for each in other.curves if each.what == ALL]:
        parts = [name._replace(what=what) for what in DIRECTIONS]
        curves = [one.curves[part] for part in parts if part in one.curves]
        if name in one.curves or not curves:
            continue
        one.curves[name] = together([(curve, None) for curve in curves], True)


def with_completions(mine: dict[Name, T], others: dict[Name, T]) -> dict[Name, T]:
    """Return latencies with completion latencies added, for a run without submission latency."""
    result = dict(mine)
    for name in others:
        kind, _, rest = name.measure.partition(" ")
        whole = name._replace(measure=f"{LATENCY} {rest}".strip())
        if kind == COMPLETION and whole in mine:
            result[name] = mine[whole]
            if whole not in others:
                result.pop(whole, None)
    return result


# Figures.


def _figures(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for name, real in comparison.real.figures.items():
        simulated = comparison.simulated.figures.get(name)
        if simulated is not None:
            yield row_of(name, real, simulated, tolerances.of(name.measure))


def _distributions(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for name, real in comparison.real.latencies.items():
        simulated = comparison.simulated.latencies.get(name)
        if simulated is None or not (real.count and simulated.count):
            continue
        for word, measure in (("KS", distance), ("demerit", demerit)):
            error = measure(real, simulated)
            yield Row(_label(name, word), None, None, error, tolerances.of(word))


def _counters(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for counter, real in comparison.real.counters.items():
        simulated = comparison.simulated.counters.get(counter)
        if simulated is None:
            continue
        times = _times(real, simulated)
        values = [each.at(times) for each in (real, simulated)]
        whole = np.abs(values[0]).max() if counter in LEVELS else values[0][-1]
        differences = values[1] - values[0]
        worst = float(differences[np.abs(differences).argmax()])
        error = worst / float(whole) if whole else (None if worst else 0.0)
        mine, other = (float(each[-1]) for each in values)
        yield Row(Name("", CACHE, counter), mine, other, error, tolerances.of(counter, COUNTERS))


def _times(real: Samples, simulated: Samples) -> Ints:
    """Return the times to compare at: every ten seconds and the end, or the samples if rarer."""
    until = min(int(real.time_ns[-1]), int(simulated.time_ns[-1]))
    steps = np.diff(real.time_ns)
    if len(steps) and float(np.median(steps)) > STEP_NS:
        return real.time_ns[real.time_ns <= until]
    return np.append(np.arange(STEP_NS, until, STEP_NS), until)


def _hit_ratios(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    """Yield the hit ratio of the ten seconds with the largest difference."""
    both = (comparison.real, comparison.simulated)
    for hits, misses in _counted(both):
        times = np.append(0, _times(*(run.counters[misses] for run in both)))
        ratios = [
            _interval_ratio(*(run.counters[name].at(times) for name in (hits, misses)))
            for run in both
        ]
        present = ~np.isnan(ratios[0]) & ~np.isnan(ratios[1])
        if not present.any():
            continue
        worst = int(np.abs(np.where(present, ratios[1] - ratios[0], 0)).argmax())
        real, simulated = (float(each[worst]) for each in ratios)
        name = Name("", CACHE, f"{HIT_RATIO} each 10 s")
        yield Row(name, real, simulated, simulated - real, tolerances.of(name.measure, HIT_RATIO))
        return


def _until_the_same_time(comparison: Comparison) -> None:
    """Recompute hit ratios of whole runs up to the last sample of the shorter run."""
    name = Name("", CACHE, HIT_RATIO)
    both = (comparison.real, comparison.simulated)
    for hits, misses in _counted(both) if all(name in run.figures for run in both) else ():
        until = np.array([min(int(run.counters[misses].time_ns[-1]) for run in both)])
        for run in both:
            hit, missed = (float(run.counters[each].at(until)[0]) for each in (hits, misses))
            if hit + missed > 0:
                run.figures[name] = hit / (hit + missed)
        return


def _counted(runs: Iterable[Measurement]) -> list[tuple[str, str]]:
    """Return the counters of hits and misses that all runs have."""
    return [pair for pair in HITS.items() if all({*pair} <= run.counters.keys() for run in runs)]


def _interval_ratio(hits: Floats, misses: Floats) -> Floats:
    """Return the share of hits in each interval; NaN where fewer than FEWEST were counted."""
    hit, missed = np.diff(hits), np.diff(misses)
    counted = hit + missed
    return np.asarray(np.where(counted >= FEWEST, hit / np.maximum(counted, 1), np.nan))


# Differences that are no rows.


def _note_lengths(comparison: Comparison) -> None:
    ends = [
        max((run.curves[name].until_ns for name in comparison.in_both), default=0)
        for run in (comparison.real, comparison.simulated)
    ]
    if max(ends) > LONGER * min(ends):
        lasts = [f"{each / SECOND:.0f} s" for each in ends]
        comparison.notes.append(
            f"real lasts {lasts[0]}, simulated {lasts[1]}: curves and counters are compared over "
            "the common time, figures of whole runs unchanged"
        )


def _alone(one: Measurement, other: Measurement) -> Iterator[tuple[Name, str]]:
    """Yield the figures that `one` reports and `other` does not."""
    for mine, others, words in (
        (one.figures, other.figures, "{}"),
        (one.curves, other.curves, "{} over time"),
        (one.latencies, other.latencies, "distribution of {}"),
    ):
        yield from ((name, words.format(name.measure)) for name in mine if name not in others)
    for counter in one.counters:
        if counter not in other.counters:
            yield Name("", CACHE, counter), f"{counter} over time"


def with_intervals(comparison: Comparison) -> None:
    """Add the intervals of the simulated figures, and the gain where both runs were simulated.

    A simulated figure has the error of the model on the same load; the real run is a sample of
    nothing.  Two replays of the same requests are paired.
    """
    real, simulated = comparison.real, comparison.simulated
    if real.kind and real.blocks is not None and simulated.blocks is not None:
        if real.requests_of == simulated.requests_of:
            comparison.gains = gains(real.blocks, simulated.blocks)
            comparison.paired = int(real.blocks.counts.sum())
        return
    if real.kind or simulated.kind in ("", NO_CACHE):
        return
    number = {"read": 0.0, "write": 0.0} | {  # of the last job of several
        name.what: value
        for name, value in simulated.figures.items()
        if name.measure == REQUESTS and name.what in ("read", "write")
    }
    has_writes = number["write"] > FEW_WRITES * sum(number.values())
    halves: list[Half] = []
    for at, row in enumerate(comparison.rows):
        figure = _figure(row.name)
        half = half_of(simulated.kind, has_writes, figure) if figure else None
        if half is not None and row.simulated is not None:
            halves.append(half)
            ends = interval(figure, row.simulated, half.width)
            comparison.rows[at] = replace(row, ends=ends)
    if halves:
        comparison.basis = f"{LEVEL:.0%} interval from {based_on(halves)}"


def _figure(name: Name) -> str:
    """Return the figure of real runs that a row is of; empty: of none."""
    if name.measure == IOPS:
        return "iops"
    if name.measure in MEANS and name.what in ("read", "write"):
        return f"{name.what}_mean"
    return "hit_ratio" if (name.what, name.measure) == (CACHE, HIT_RATIO) else ""
