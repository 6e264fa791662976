"""When is a cache warm?  One definition, used by every command.

x(t) is the interval hit ratio (open loop, think time) or the IOPS (closed loop) in one-second bins,
smoothed by a centred median of 5 bins.  Bins are wider in runs of more than 512 s (at most 512
bins) or where a second holds few requests, narrower in runs of less than 64 s; see `bin_ns`.

It is *steady* when the last fifth of the run shows no trend: its Theil-Sen slope moves x by no more
than the noise (four standard errors, from the scatter of the unsmoothed bins about the line), 2% of
the level or half a percentage point of hit ratio.  The level is the median of that fifth.  t50, t90
and t95 are the first times after which x stays beyond that share of the way from the initial level
to the steady one; where the two are no further apart than the level is unsure, nothing warms up.
A run that is not steady gets no such time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from hybridsim.answers.metrics import Collector

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SECOND = 10**9
FEWEST_BINS = 64  # fewer are split, where the collector kept finer ones
ENOUGH_REQUESTS = 100  # a bin of fewer is joined with its neighbour
MEDIAN_OF = 5
LAST_SHARE = 5  # the last fifth
STANDARD_ERRORS = 4  # a running median is a quarter less sure than the mean
TOLERANCE = 0.02  # of the level; a drift smaller than this is no warm-up to wait for
HIT_RATIO_TOLERANCE = 0.005
SHARES = (50, 90, 95)


class State(StrEnum):
    """What the curve does at its end."""

    STEADY = "steady"
    FLAT = "flat"  # steady at its initial level: no warm-up
    RISING = "rising"
    FALLING = "falling"
    RESTLESS = "restless"  # no trend, but it keeps falling back below its level
    SHORT = "short"


@dataclass(frozen=True)
class WarmUp:
    """The warm-up of one run: its curve, and the figures read off it."""

    measure: str  # "hit ratio" or "IOPS"
    bin_ns: int
    times_ns: Ints  # starts of the bins that hold something
    curve: Floats
    smooth: Floats
    state: State
    why: str  # in words
    initial: float | None
    level: float | None  # of the last fifth; the steady level where the state is steady
    noise: float | None
    reached_ns: dict[int, int]  # per cent of the way -> time
    last_fifth_ns: int
    needed_ns: int | None  # a capture that might show the steady state; None where this one does

    @property
    def steady(self) -> bool:
        """Whether a steady level was reached."""
        return self.state in (State.STEADY, State.FLAT)

    @property
    def warm_ns(self) -> int:
        """Where reports divide cold from warm: at t90, else where the last fifth begins."""
        if self.state == State.FLAT:
            return 0
        return self.reached_ns[90] if self.state == State.STEADY else self.last_fifth_ns


def of_hits(collector: Collector) -> WarmUp:
    """The warm-up of a run whose load does not depend on the cache, from its interval hit ratio."""
    reads = int(collector.series().reads.sum())
    series = collector.series(_width(collector, reads))
    filled = series.reads > 0
    curve: Floats = np.asarray(series.hits[filled] / series.reads[filled], np.float64)
    # An empty cache hits nothing, so the level it starts from is known.
    return judge(
        series.start_ns[filled], curve, series.width_ns, "hit ratio", 0.0, HIT_RATIO_TOLERANCE
    )


def of_iops(collector: Collector, before: float | None = None) -> WarmUp:
    """The warm-up of a closed loop, from its IOPS; `before` is the level of the disks alone."""
    requests = int(collector.series().done.sum())
    series = collector.series(_width(collector, requests))
    whole = collector.last_done_ns // series.width_ns  # the last bin ends with the run: left out
    iops: Floats = np.asarray(series.done[:whole] * (SECOND / series.width_ns), np.float64)
    return judge(series.start_ns[:whole], iops, series.width_ns, "IOPS", before, 0.0)


def judge(
    times_ns: Ints,
    curve: Floats,
    bin_ns: int,
    measure: str = "hit ratio",
    initial: float | None = None,
    tolerance: float = 0.0,
) -> WarmUp:
    """Apply the definition to a curve of bins that begin at `times_ns`."""
    smooth = centred_median(curve)
    end_ns = int(times_ns[-1]) + bin_ns if len(times_ns) else 0
    last_fifth_ns = end_ns - end_ns // LAST_SHARE
    late = times_ns >= last_fifth_ns
    is_known = initial is not None
    if initial is None and len(smooth):
        initial = float(np.median(curve[:MEDIAN_OF]))

    def answer(
        state: State,
        why: str,
        level: float | None = None,
        noise: float | None = None,
        reached: dict[int, int] | None = None,
        needed_ns: int | None = None,
    ) -> WarmUp:
        return WarmUp(
            measure, bin_ns, times_ns, curve, smooth, state, why, initial, level, noise,
            reached or {}, last_fifth_ns, needed_ns,
        )  # fmt: skip

    if initial is None or late.sum() < MEDIAN_OF:
        why = "too few reads to detect a warm-up"
        return answer(State.SHORT, why, needed_ns=max(10 * end_ns, 600 * SECOND))
    level = float(np.median(smooth[late]))
    slope, noise = trend(times_ns[late] / bin_ns, smooth[late], curve[late])
    drift = slope * float((times_ns[late][-1] - times_ns[late][0]) / bin_ns)
    band = max(noise, tolerance, TOLERANCE * abs(level))
    if abs(drift) > band:
        state = State.RISING if (drift > 0) == (level >= initial) else State.FALLING
        why = f"the {measure} was still {state} in the last fifth of the run"
        needed = _needed(times_ns, smooth - initial, end_ns)
        return answer(state, why, level, noise, needed_ns=needed)
    # A level is surer than a drift: what noise feigns from end to end is sqrt(12) times its mean.
    # But where it began, if that is not known, is read off a few bins.
    unsure = noise / np.sqrt(12) if is_known else noise
    if abs(level - initial) <= max(unsure, tolerance, TOLERANCE * abs(level)):
        return answer(State.FLAT, f"the {measure} did not rise", level, noise)
    reached = {share: _reached(times_ns, smooth, bin_ns, initial, level, share) for share in SHARES}
    if reached[90] > last_fifth_ns:
        why = f"the {measure} repeatedly fell below its level until the end"
        return answer(State.RESTLESS, why, level, noise, needed_ns=2 * end_ns)
    return answer(State.STEADY, "", level, noise, reached)


def centred_median(curve: Floats) -> Floats:
    """The median of each value and its two neighbours on either side, as far as there are any."""
    if len(curve) == 0:
        return np.asarray(curve, np.float64)
    half = MEDIAN_OF // 2
    padded = np.pad(np.asarray(curve, np.float64), half, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_OF)
    median: Floats = np.nanmedian(windows, axis=1)
    return median


def trend(times: Floats, smooth: Floats, raw: Floats) -> tuple[float, float]:
    """Theil-Sen slope of the smooth curve, and the drift that noise alone may feign over it.

    The scatter is that of the raw bins, because neighbours of a running median resemble each other
    and would make the noise look smaller than it is.
    """
    first, second = np.triu_indices(len(times), 1)
    slope = float(np.median((smooth[second] - smooth[first]) / (times[second] - times[first])))
    rest = raw - slope * times
    scatter = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    return slope, STANDARD_ERRORS * scatter * float(np.sqrt(12 / len(times)))


def _reached(
    times_ns: Ints, smooth: Floats, bin_ns: int, initial: float, level: float, share: int
) -> int:
    """The end of the last bin that falls short of this share of the way; 0 if none does."""
    way = (smooth - initial) / (level - initial)
    short = np.flatnonzero(way < share / 100)
    return int(times_ns[short[-1]]) + bin_ns if len(short) else 0


def _needed(times_ns: Ints, risen: Floats, end_ns: int) -> int:
    """How long a capture might show the steady state, if the rise dies away exponentially.

    The time constant follows from the rise at half time and at the end.  After four of them 98% is
    reached, and the last fifth of the capture has to lie beyond that.
    """
    half = float(np.interp(end_ns / 2, times_ns, risen))
    left = 1 - half / float(risen[-1]) if risen[-1] else 1.0
    grown = left / (1 - left) if left < 1 else 1.0  # of the first half's rise, seen in the second
    constant = end_ns / (2 * -np.log(grown)) if 0 < grown < 1 else float(end_ns)
    return int(np.clip(5 * constant, 1.5 * end_ns, 10 * end_ns))


def _width(collector: Collector, requests: int) -> int:
    """One second; less in a short run, more in a long one or where requests are few."""
    run, width = collector.end_ns, max(SECOND, collector.width_ns)
    while width > collector.width_ns and run < FEWEST_BINS * width:
        width //= 2
    while requests * width < ENOUGH_REQUESTS * run and run >= 2 * FEWEST_BINS * width:
        width *= 2
    return width
