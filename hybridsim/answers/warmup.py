"""The warm-up of a cache: one definition, used by every command.

x(t) is the interval hit ratio (open loop, think time) or the IOPS (closed loop) in one-second bins,
smoothed by a centred median of 5 bins.  Bins are wider in runs of more than 512 s (at most 512
bins) or where a second holds few requests, narrower in runs of less than 64 s; see `bin_ns`.

It is *steady* when the last fifth of the run shows no trend: its Theil-Sen slope moves x by no more
than the noise (four standard errors, from the scatter of the unsmoothed bins about the line), 2% of
the level or half a percentage point of hit ratio.  The level is the median of that fifth.  t50, t90
and t95 are the first times after which x stays beyond that share of the way from the initial level
to the steady one.  Where the two differ by no more than the uncertainty of the level, nothing warms
up.  A run that is not steady has no such times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

import numpy as np

from hybridsim.answers.metrics import Collector
from hybridsim.foundation.arrays import Floats, Ints

SECOND = 10**9
FEWEST_BINS = 64  # bins narrower than a second are used for fewer, if the collector has them
ENOUGH_REQUESTS = 100  # mean requests per bin; below it, bins are joined with their neighbours
MEDIAN_OF = 5
LAST_SHARE = 5  # the last fifth
STANDARD_ERRORS = 4  # of a mean; the standard error of a running median is a quarter larger
TOLERANCE = 0.02  # of the level; a smaller drift does not count as a trend
HIT_RATIO_TOLERANCE = 0.005
SHARES = (50, 90, 95)
Z = 1.645  # standard errors of an interval of 90 %
MEDIAN_ERROR = 1.253  # standard error of a median of many normal values, over that of their mean


class State(StrEnum):
    """The state of the curve at its end."""

    STEADY = "steady"
    FLAT = "flat"  # steady at its initial level: no warm-up
    RISING = "rising"
    FALLING = "falling"
    RESTLESS = "restless"  # no trend, but it keeps falling back below its level
    SHORT = "short"  # too few bins


@dataclass(frozen=True)
class WarmUp:
    """The warm-up of one run: its curve, and the figures derived from it."""

    measure: str  # "hit ratio" or "IOPS"
    bin_ns: int
    times_ns: Ints  # starts of the bins that have reads (IOPS: of all whole bins)
    curve: Floats
    smooth: Floats
    initial: float | None
    last_fifth_ns: int
    state: State
    why: str  # the state in words; "" if steady
    level: float | None = None  # of the last fifth; the steady level if the state is steady
    noise: float | None = None
    reached_ns: dict[int, int] = field(default_factory=dict)  # per cent of the way -> time
    needed_ns: int | None = None  # length of a capture that may show the steady state, if not this

    @property
    def steady(self) -> bool:
        """Whether a steady level was reached."""
        return self.state in (State.STEADY, State.FLAT)

    def between_ns(self, share: int) -> tuple[int, int] | None:
        """Return how early and how late a share of the way may have been reached, at 90 %.

        The scatter of the bins makes the level unsure, and the smoothed curve cross it early or
        late: by a bin in either direction if they do not scatter.  None if the run has no such
        times.
        """
        if self.state != State.STEADY or self.level is None or self.initial is None:
            return None
        late = int((self.times_ns >= self.last_fifth_ns).sum())
        scatter = (self.noise or 0.0) / (STANDARD_ERRORS * math.sqrt(12 / late))
        # Standard errors of medians of normal values: a quarter above those of means.
        reach = Z * MEDIAN_ERROR * scatter * math.hypot(1 / math.sqrt(late), MEDIAN_OF**-0.5)
        rise = self.level - self.initial
        ends = [
            _reached(self.times_ns, self.smooth, self.bin_ns, self.initial, self.level + off, share)
            for off in (-math.copysign(min(reach, abs(rise) / 2), rise), math.copysign(reach, rise))
        ]
        low, high = min(ends), max(*ends, self.reached_ns[share])
        return max(low - self.bin_ns, self.bin_ns // 2), high + self.bin_ns

    @property
    def warm_ns(self) -> int:
        """The border of cold and warm: 0 if flat, t90 if steady, else the last fifth's start."""
        if self.state == State.FLAT:
            return 0
        return self.reached_ns[90] if self.state == State.STEADY else self.last_fifth_ns


def of_hits(collector: Collector) -> WarmUp:
    """Return the warm-up by interval hit ratio, for a load that does not depend on the cache."""
    reads = int(collector.series().reads.sum())
    series = collector.series(_width(collector, reads))
    filled = series.reads > 0
    curve: Floats = np.asarray(series.hits[filled] / series.reads[filled], np.float64)
    # The initial level is known: an empty cache has no hits.
    return judge(
        series.start_ns[filled], curve, series.width_ns, "hit ratio", 0.0, HIT_RATIO_TOLERANCE
    )


def of_iops(collector: Collector, before: float | None = None) -> WarmUp:
    """Return the warm-up of a closed loop by IOPS; `before` is the level of the disks alone."""
    requests = int(collector.series().done.sum())
    series = collector.series(_width(collector, requests))
    whole = collector.last_done_ns // series.width_ns  # without the last bin, which is not whole
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
    """Return the warm-up of a curve with bins of `bin_ns` that begin at `times_ns`.

    `initial` is the level before the warm-up; None: the median of the first bins.  `tolerance` is
    the smallest difference that counts, in units of the curve.
    """
    smooth = centred_median(curve)
    end_ns = int(times_ns[-1]) + bin_ns if len(times_ns) else 0
    last_fifth_ns = end_ns - end_ns // LAST_SHARE
    late = times_ns >= last_fifth_ns
    is_known = initial is not None
    if initial is None and len(smooth):
        initial = float(np.median(curve[:MEDIAN_OF]))
    answer = partial(WarmUp, measure, bin_ns, times_ns, curve, smooth, initial, last_fifth_ns)
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
    """Return the median of each value and its two neighbours on either side; fewer at the ends."""
    if len(curve) == 0:
        return np.asarray(curve, np.float64)
    half = MEDIAN_OF // 2
    padded = np.pad(np.asarray(curve, np.float64), half, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_OF)
    return np.asarray(np.nanmedian(windows, axis=1))


def trend(times: Floats, smooth: Floats, raw: Floats) -> tuple[float, float]:
    """Return the Theil-Sen slope of the smooth curve, and the drift that noise alone may cause.

    The noise is estimated from the raw bins: neighbouring values of a running median are
    correlated, so their scatter is too small.
    """
    first, second = np.triu_indices(len(times), 1)
    slope = float(np.median((smooth[second] - smooth[first]) / (times[second] - times[first])))
    rest = raw - slope * times
    scatter = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    return slope, STANDARD_ERRORS * scatter * float(np.sqrt(12 / len(times)))


def _reached(
    times_ns: Ints, smooth: Floats, bin_ns: int, initial: float, level: float, share: int
) -> int:
    """Return the end of the last bin below this share of the way; 0 if none is."""
    way = (smooth - initial) / (level - initial)
    short = np.flatnonzero(way < share / 100)
    return int(times_ns[short[-1]]) + bin_ns if len(short) else 0


def _needed(times_ns: Ints, risen: Floats, end_ns: int) -> int:
    """Return the capture length that may show the steady state, if the rise decays exponentially.

    The time constant follows from the rise at half time and at the end.  98% is reached after four
    time constants, and the last fifth of the capture has to begin after that.
    """
    half = float(np.interp(end_ns / 2, times_ns, risen))
    second = 1 - half / float(risen[-1]) if risen[-1] else 1.0  # share of the rise in that half
    grown = second / (1 - second) if second < 1 else 1.0  # rise of the second half / the first's
    constant = end_ns / (2 * -np.log(grown)) if 0 < grown < 1 else float(end_ns)
    return int(np.clip(5 * constant, 1.5 * end_ns, 10 * end_ns))


def _width(collector: Collector, requests: int) -> int:
    """Return the bin width in ns: one second; less in short runs, more in long or sparse ones."""
    run, width = collector.end_ns, max(SECOND, collector.width_ns)
    while width > collector.width_ns and run < FEWEST_BINS * width:
        width //= 2
    while requests * width < ENOUGH_REQUESTS * run and run >= 2 * FEWEST_BINS * width:
        width *= 2
    return width
