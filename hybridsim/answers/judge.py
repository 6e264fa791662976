"""What a cache would have saved on the recorded work, and how sure that is.  One judge for all.

The machine with the cache and the disks alone served the same requests; their ledgers hold them in
the same groups.  The gain G is what a goal costs the disks alone over what it costs with the cache,
over the second half of the requests, reads and writes alike:

    time        the time that the application would save: all latencies where arrivals are kept,
                the time of the work where the load adapts to the machine
    latency     all latencies
    p99         the 99th percentile of all latencies
    throughput  the time of the work, where the load adapts
    disk-time   the time that the disks are busy

The second half is cut into 20 blocks of equal recorded time, which hold the same requests on both
machines.  The slow waves in their differences give an interval of G from 5 to 95 %; for p99, blocks
that are drawn with replacement do (sampling.py).  It says how sure G is of this capture.  It does
not say what comes later: for the goals that requests add up to, forecast.py
continues G beyond the capture, and that forecast and its interval decide.  For the others the
answer is yes if the interval's lower end is at least WORTH_IT, no if its upper end is below, else
not yet.

What lasts as long as a run, such as what the buffers of its disks happen to hold, is the same in
all blocks and does not show in their scatter; on another day it may be the other machine's luck.
But it shows in reads that the disks served on both machines.  That their latencies differ may be
the cache's merit or fault as far as commands waited for the disks' arms; what is beyond that is
luck and is taken out of the gain (a control variate).  Some of it may last all the same: fills
change what the disks' buffers hold for as long as the cache fills.  No part of a capture tells
which, so the interval reaches over the gain both without the luck and with it.

What is dirty at the end has not been paid for.  The gain counts it as free, as it is for the
application; `charged` is the gain with a write that was put off at what it costs the disks alone,
as far as they have no time left for it.  When the dirty data will reach the level from which on
writes cease to be cheap is part of the forecast.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.answers.dirt import filled
from hybridsim.answers.fidelity import figures
from hybridsim.answers.forecast import (
    HORIZON,
    MOST_GAIN,
    MOST_MEASURED,
    NO,
    UNSURE,
    WORTH_IT,
    YES,
    Course,
    Forecast,
    forecast,
)
from hybridsim.answers.intervals import TRACE, Blocks, Interval, combined, means, percentiles
from hybridsim.answers.metrics import JOINED, READ, WRITE, Counters, Ledger
from hybridsim.answers.sampling import interval, ratio_interval
from hybridsim.foundation.arrays import Floats, Ints
from hybridsim.foundation.documents import in_json
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.histogram import BINS, Distribution

Marks = npt.NDArray[np.bool_]

BLOCKS = 20
FEWEST = 20  # requests of the judged half: one for each block
FULL_BLOCKS = 5  # that hold requests
STEADY_GROWTH = 0.05  # of what is written in the judged half: a dirty level that grows by less
QUEUED = 0.5  # of the latencies: waits for arms, from where on luck is not looked for
REACHED = 0.9  # of the level from which on writes are not cheap: regulated ones stay near it
LUCK_AT_MOST = -0.9
NOT_CHANCE = 1.1  # times: a gain that differs less from the measured one needs no word
PARTS = 12  # of the judged half, in which the hit ratio is looked at
SHORTEST = 1 / 8  # of the capture, for a gain to be measured since writes ceased to be cheap
EIGHTHS = 8  # parts of the capture, in which the load is looked at
NOTABLE = 0.02  # of the latencies: less saved says nothing of the time
UNKNOWN_SHARE = 0.5  # of a saved latency that shortens the work, where that is not measured
PERCENTS = (50, 99, 99.9)
LONGEST = 20  # times the capture, that is asked for at most
KEYS = (  # of a judgement in JSON
    "goal", "adapts", "gain", "low", "high", "sampled", "forecast", "course", "charged",
    "dirty_grown", "by_chance", "measured", "changes_ns", "more_ns", "pairs", "means", "blocks",
)  # fmt: skip
OTHERWISE = {"adapts": "load_adapts", "charged": "charged_gain", "measured": "measured_gain"}


def in_time(goal: str, adapts: bool) -> bool:
    """Whether a goal is the time of the work, and not what its requests wait."""
    return goal == "throughput" or (goal == "time" and adapts)


class Side(NamedTuple):
    """One machine's run."""

    ledger: Ledger
    counters: Counters
    marks: Sequence[int] = ()  # levels of dirty bytes at which it behaves otherwise, ascending
    kind: str = "none"  # of cache, as scenarios name it
    later: float | None = None  # of a cache: see gain_later
    off: float | None = None  # see Course


@dataclass(frozen=True)
class Stretch:
    """What one machine did with a stretch of the requests."""

    reads: Distribution
    writes: Distribution
    took_ns: int  # from when all before it was done until all of it was
    disk_ns: int | None  # that its disks were busy meanwhile, all members together

    @property
    def both(self) -> Distribution:
        """Reads and writes."""
        return self.reads + self.writes

    def cost_ns(self, goal: str, adapts: bool) -> int | None:
        """What a goal costs."""
        if goal == "p99":
            return self.both.percentile(99)
        if goal == "disk-time":
            return self.disk_ns
        return self.took_ns if in_time(goal, adapts) else self.both.total_ns

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "read": figures(self.reads, PERCENTS),
            "write": figures(self.writes, PERCENTS),
            "took_ns": self.took_ns,
            "disk_ns": self.disk_ns,
        }


@dataclass(frozen=True)
class Pair:
    """The same requests on both machines."""

    first: int  # request, from 0
    end: int  # the request after the last
    plain: Stretch
    cached: Stretch

    def gain(self, goal: str, adapts: bool = False) -> float | None:
        """How many times less a goal costs; None if unknown."""
        before, after = (each.cost_ns(goal, adapts) for each in (self.plain, self.cached))
        return before / after if before and after else None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "first": self.first,
            "end": self.end,
            "latency_gain": self.gain("latency"),
            "took_gain": self.gain("throughput"),
            "disk_gain": self.gain("disk-time"),
            "p99_gain": self.gain("p99"),
            "none": self.plain.to_dict(),
            "cached": self.cached.to_dict(),
        }


@dataclass(frozen=True)
class Judgement:
    """The gain of a cache, how sure it is, and the same requests by phase."""

    answer: str
    goal: str
    adapts: bool  # the load, to the machine
    gain: float | None  # of the judged half; what is dirty at the end costs nothing
    low: float | None  # of the forecast; without one, of the gain of this capture
    high: float | None
    sampled: tuple[float, float] | None  # the interval of the gain of this capture
    forecast: Forecast | None  # None of goals that no forecast is made of, or if too short
    course: Course | None  # what the forecast rests on
    charged: float | None  # the gain if the disks had to write what is dirty at the end
    dirty_grown: float  # share of what was written in the judged half that stayed dirty
    by_chance: float  # that reads from the disks gained, over all latencies with the cache
    too_short: str  # why nothing can be judged, in words; "" if something can
    more_ns: int | None  # recorded time that may be enough to decide, beyond this capture
    span_ns: int  # recorded, of the capture
    pairs: Mapping[str, Pair]  # filling, warm, whole, judged
    blocks: Mapping[str, Blocks]  # of the judged half: none, cached; empty if it is too short
    # Half the width of the scatter over seeds of each mean, as a share, by machine.
    chance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @functools.cached_property
    def means(self) -> Mapping[str, Mapping[str, Interval]]:
        """The means of the judged half with their intervals: none, cached."""
        known = {side: means(blocks, self.chance.get(side)) for side, blocks in self.blocks.items()}
        return {"none": {}, "cached": {}} | known

    @property
    def judged(self) -> Pair:
        """The requests that are judged."""
        return self.pairs["judged"]

    @property
    def expected(self) -> float | None:
        """The gain that is forecast; without a forecast, that of the judged half."""
        return self.gain if self.forecast is None else self.forecast.gain

    @property
    def measured(self) -> float | None:
        """The gain as measured, with what chance gave; None where that is within NOT_CHANCE."""
        of_latencies = self.goal in ("time", "latency") and not in_time(self.goal, self.adapts)
        value = self.judged.gain("latency") if of_latencies and self.gain else None
        if value is None or 1 / NOT_CHANCE <= value / (self.gain or 1.0) <= NOT_CHANCE:
            return None
        return value

    @property
    def cautious(self) -> float | None:
        """What machines are compared by: nearer to the lower end the more unsure the gain is."""
        return self.low if self.forecast is None else self.forecast.cautious

    @property
    def changes_ns(self) -> int | None:
        """Recorded time after which dirty data will change what the cache does; None: not seen."""
        if self.forecast is None or self.forecast.ahead is None:
            return None
        return round(self.forecast.ahead * self.span_ns)

    @property
    def dirty_is_steady(self) -> bool:
        """Whether as much is cleaned as is written."""
        return self.dirty_grown < STEADY_GROWTH

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {OTHERWISE.get(name, name): in_json(getattr(self, name)) for name in KEYS}


def gain_later(plain: Side, cached: Side, captured: int, goal: str, adapts: bool) -> float | None:
    """Return the logarithm of the gain after the `captured` requests of runs that went on.

    As in a capture, what reads from the disks gained by luck is no gain.
    """
    both = Both(plain, cached)
    start = both.after(captured)
    blocks = both.even_blocks(start)
    if not len(blocks):
        return None
    return _limited(both.ratio(goal, adapts, blocks, both.luck(start, blocks), 0.0).gain)


def gain_after(plain: Side, cached: Side, captured: int, adapts: bool) -> float | None:
    """Return the logarithm of the gain in time after the `captured` requests, luck included."""
    both = Both(plain, cached)
    gain = both.pair(both.after(captured), both.groups).gain("time", adapts)
    return None if gain is None else _limited(gain)


def judge(
    plain: Side,
    cached: Side,
    adapts: bool,
    goal: str = "time",
    warm: int | None = None,
) -> Judgement:
    """Hold a machine with a cache against the disks alone.

    `warm` is the request from which the cache is warm; None: not known.  The counters may have
    "dirty_bytes" and "slow_busy_ns".
    """
    both = Both(plain, cached)
    half = both.half
    pairs = {"whole": both.pair(0, both.groups), "judged": both.pair(half, both.groups)}
    if warm is not None:
        border = both.border(warm)
        pairs |= {"filling": both.pair(0, border), "warm": both.pair(border, both.groups)}
    grown = both.dirty_grown(half)
    too_short = both.too_short(half)
    if too_short:
        return Judgement(
            UNSURE, goal, adapts, pairs["judged"].gain(goal, adapts), None, None, None, None, None,
            None, grown, 0.0, too_short, _more(both.span_ns, 0.0, 1.0), both.span_ns, pairs, {},
        )  # fmt: skip
    blocks = both.blocks(half)
    charge = both.put_off(half, grown) if grown >= STEADY_GROWTH else 0.0
    luck = both.luck(half, blocks)
    free, paid = (both.ratio(goal, adapts, blocks, luck, each) for each in (0.0, charge))
    measured = both.ratio(goal, adapts, blocks, np.zeros(BLOCKS), 0.0)
    value, charged = free.gain, paid.gain
    held = len(np.unique(blocks))
    ratios = (free, measured) if luck.any() else (free,)
    lows, highs = zip(*(each.interval(held) for each in ratios))
    sampled = min(lows), max(highs)
    if in_time(goal, adapts):  # to the last completion, as the times of the work are printed
        value, charged = (each * (pairs["judged"].gain("throughput") or value) / value
                          for each in (value, charged))  # fmt: skip
    if sampled[0] > 0 and math.isfinite(sampled[1]):
        known = combined(value, {TRACE: sampled})
        sampled = sampled if known is None else (known.low, known.high)
    later, course, (low, high) = None, None, sampled
    answer = YES if low >= WORTH_IT else NO if high < WORTH_IT else UNSURE
    if goal in ("time", "latency") or (goal == "throughput" and adapts):
        course = both.course(goal, adapts)
        later = forecast(course)
        low, high, answer = later.low, later.high, later.answer
    more_ns = None
    if answer == UNSURE:
        width = float(np.log(max(high, 1e-9) / max(low, 1e-9))) / 2
        away = abs(float(np.log(max(later.gain if later else value, 1e-9) / WORTH_IT)))
        more_ns = _more(both.span_ns, width, away)
        if later is not None and later.ahead is not None:
            more_ns = max(more_ns, round(2 * later.ahead * both.span_ns))
    return Judgement(
        answer, goal, adapts, value, low, high, sampled, later, course, charged, grown,
        float(luck.sum()), "", more_ns, both.span_ns, pairs, both.sides(half, blocks, adapts),
    )  # fmt: skip


def _more(span_ns: int, width: float, away: float) -> int:
    """How much longer to record: an interval narrows with the root of the time."""
    times = (width / away) ** 2 - 1 if away > 0 else LONGEST
    return round(span_ns * min(max(times, 1.0), LONGEST))


class Both:
    """Two runs of the same requests."""

    def __init__(self, plain: Side, cached: Side) -> None:
        self.plain, self.cached = plain, cached
        self.each = plain.ledger.each
        if cached.ledger.each != self.each:
            raise ValueError("the ledgers hold different requests")
        self.requests = plain.ledger.requests
        self.groups = -(-self.requests // self.each)
        self.times_ns = plain.ledger.times_ns()[: self.groups]
        self.progress_ns = [
            np.concatenate([[0], side.ledger.progress_ns()[: self.groups]])
            for side in (plain, cached)
        ]
        self._sides = list(zip((plain, cached), self.progress_ns))

    @property
    def half(self) -> int:
        """The group at which the second half of the requests begins, or the next border."""
        half = self.requests / 2 / self.each
        return min(math.ceil(half / JOINED) * JOINED, self.groups)

    @property
    def span_ns(self) -> int:
        """How long the requests took to arrive, as recorded."""
        return int(self.times_ns[-1] - self.times_ns[0]) if self.groups else 0

    def after(self, requests: int) -> int:
        """The first group without any of the first requests."""
        return min(-(-requests // self.each), self.groups)

    def border(self, request: int) -> int:
        """The border of histograms that is nearest to a request."""
        return min(round(request / self.each / JOINED) * JOINED, self.groups)

    def pair(self, start: int, stop: int) -> Pair:
        """The groups [start, stop) on both machines."""
        sides = [self._stretch(side, done, start, stop) for side, done in self._sides]
        end = min(stop * self.each, self.requests)
        return Pair(min(start * self.each, end), end, *sides)

    def _stretch(self, side: Side, done_ns: Ints, start: int, stop: int) -> Stretch:
        begin, end = int(done_ns[start]), int(done_ns[stop])
        return Stretch(
            side.ledger.distribution(start, stop, READ),
            side.ledger.distribution(start, stop, WRITE),
            end - begin,
            side.counters.between("slow_busy_ns", begin, end),
        )

    def dirty_grown(self, start: int) -> float:
        """Share of what was written since `start` that was not cleaned, of that or of before."""
        written = int(self.cached.ledger.bytes[start : self.groups, WRITE].sum())
        level = self._level("dirty_bytes")
        grown = float(level[self.groups] - level[start])
        return min(max(grown / written, 0.0), 1.0) if written else 0.0

    def put_off(self, start: int, grown: float) -> float:
        """Share of the writes that cost what they cost the disks alone, though put off.

        None, as far as the disks have time for them.
        """
        pair = self.pair(start, self.groups)
        before, spent = pair.plain, pair.cached.disk_ns
        if spent is None or before.disk_ns is None:
            return grown
        needed = grown * before.disk_ns * before.writes.count / max(before.both.count, 1)
        members = self.cached.counters.constant("slow_members", 1)
        idle = max(members * pair.cached.took_ns - spent, 0)
        return grown * max(0.0, 1 - idle / max(needed, 1.0))

    def luck(self, start: int, blocks: Ints) -> Floats:
        """Latency that reads from the disks gained by luck, over all with the cache, by block.

        Negative where the cached machine was unlucky; 0 where waits for arms are not known.
        """
        plain, cached = self.plain.ledger, self.cached.ledger
        waits = [
            side.counters.between("slow_queue_ns", int(done[start]), int(done[self.groups]))
            for side, done in self._sides
        ]
        mine, known = self._samples(start)
        before, after = plain.sample_ns[mine], cached.sample_ns[mine]
        from_disks = known & cached.from_disks[mine]
        if waits[0] is None or waits[1] is None or not from_disks.any():
            return np.zeros(BLOCKS)
        if waits[0] > QUEUED * float(plain.total_ns[start : self.groups].sum()):
            return np.zeros(BLOCKS)  # queues decide, and what the cache does about them
        group = np.arange(mine.start, mine.stop) * plain.stride // self.each - start
        gained = by_block(blocks[group], np.where(from_disks, before - after, 0))
        low, high = self._merit(start, waits[0], waits[1], int(from_disks.sum()) * plain.stride)
        total = float(gained.sum())
        luck = total - min(max(total, low / plain.stride), high / plain.stride)
        result = gained * (luck / total if luck else 0.0) / float(after[known].sum())
        return np.maximum(result, LUCK_AT_MOST / BLOCKS)

    def _merit(self, start: int, before_ns: int, after_ns: int, reads: int) -> tuple[float, float]:
        """How much latency `reads` from the disks may have lost and gained by the cache.

        Without it a command waited for an arm for so long on average; with it for as long as its
        own commands did, which are these reads, the writes and the fills.  Where writes are put off
        they may be few: then reads may have waited for nothing.
        """
        writes = int(self.plain.ledger.count[start : self.groups, WRITE].sum())
        requests = int(self.plain.ledger.count[start : self.groups].sum())
        done, counters = self.progress_ns[1], self.cached.counters
        begin, end = int(done[start]), int(done[self.groups])
        fills = counters.between("fills_done", begin, end) or 0
        puts_off = bool(
            counters.between("dirty_bytes", 0, end) or counters.between("write_backs", 0, end)
        )
        waits = after_ns / (reads + writes + fills)
        saved = before_ns / requests - (0.0 if puts_off else waits)
        return -reads * waits, reads * max(saved, 0.0)

    def too_short(self, start: int) -> str:
        """Say why the groups from `start` on are too few to judge; "" if they are not."""
        count = int(self.plain.ledger.count[start : self.groups].sum())
        if count < FEWEST:
            return f"{count:,} reads and writes in its second half"
        held = np.unique(self.blocks(start))
        if len(held) < FULL_BLOCKS:
            return "nearly all requests of its second half come at once"
        return ""

    def blocks(self, start: int, stop: int | None = None) -> Ints:
        """The block of each group [start, stop): equal parts of the recorded time."""
        times = self.times_ns[start:stop]
        edges = np.linspace(int(times[0]), int(times[-1]) + 1, BLOCKS + 1)[1:-1]
        return np.asarray(np.searchsorted(edges, times, side="right").astype(np.int64))

    def course(self, goal: str, adapts: bool) -> Course:
        """Return how the gain develops, for a forecast."""
        half = self.half
        changed, ahead = self.change(half)
        start = half if changed is None else max(half, changed)
        if start > half and not self._is_enough(start, half):  # it changed just now
            start, ahead = half, 0.0
        blocks = self.even_blocks(start)
        ratio = self.ratio(goal, adapts, blocks, self.luck(start, blocks), 0.0)
        low, high = interval(BLOCKS, ratio, held=len(np.unique(blocks)))
        hits, rising = self.hit_ratio(half)
        per_hit, without_cheap = self.savings(start, adapts)
        return Course(
            _limited(ratio.gain), (_log(high) - _log(low)) / 2,
            hits, rising, per_hit, self.filling(half), self.cached.kind,
            bool(np.any(self._level("dirty_bytes"))), changed is not None, ahead, without_cheap,
            self._writes(half), adapts, self.unrest(adapts),
            int(self.plain.ledger.count[half : self.groups].sum()), self.cached.later,
            self.cached.off,
        )  # fmt: skip

    def unrest(self, adapts: bool) -> float:
        """How much the load varies: what the disks alone take for a request.

        The standard deviation of its logarithm over EIGHTHS parts of the capture with equally many
        requests.
        """
        edges = np.linspace(0, self.groups, EIGHTHS + 1).astype(np.int64)
        ledger = self.plain.ledger
        counts = np.add.reduceat(ledger.count[: self.groups].sum(axis=1), edges[:-1])
        if adapts:
            cost = np.diff(ledger.means_ns(edges, max(self.groups // (2 * BLOCKS), 1)))
        else:
            cost = np.add.reduceat(ledger.total_ns[: self.groups].sum(axis=1), edges[:-1])
        there = (counts > 0) & (cost > 0)
        return float(np.log(cost[there] / counts[there]).std()) if there.any() else 0.0

    def _is_enough(self, start: int, half: int) -> bool:
        """Whether the groups from `start` on show what the cache gains there."""
        cost = self.plain.ledger.total_ns[: self.groups].sum(axis=1)
        return (
            self.groups - start >= SHORTEST * self.groups
            and not self.too_short(start)
            and float(cost[start:].sum()) >= SHORTEST * float(cost[half:].sum())
        )

    def _level(self, name: str) -> Floats:
        """A level of the cached machine when each group was done, and at the beginning."""
        level = self.cached.counters.at(name, self.progress_ns[1])
        return np.zeros(self.groups + 1) if level is None else level

    def change(self, start: int) -> tuple[int | None, float | None]:
        """The group at which writes ceased to be cheap, and how far ahead that is.

        The first is None if they are cheap to the end.  The second, in lengths of the capture, is
        None if they have ceased to be, or will not within the HORIZON.
        """
        names = ("dirty_bytes", "cache_available_percent")
        rows = {name: self._level(name) for name in names if name in self.cached.counters}
        level = filled(self.cached.kind, self.cached.marks, rows)
        if level is None:
            return None, None
        if level[start:].max() >= REACHED:
            return int(np.argmax(level >= REACHED)), None
        ahead = _until(float(level[start]), float(level[-1]), self.groups / start)
        return None, ahead if ahead < HORIZON else None

    def filling(self, start: int) -> float:
        """How fast the cache fills since `start`, over how fast it did on average; 0 to 1."""
        level = self._level("pages_present")
        whole = float(level[-1])
        pace = float(level[-1] - level[start]) / (1 - start / self.groups)
        return min(max(pace / whole, 0.0), 1.0) if whole > 0 else 0.0

    def hit_ratio(self, start: int) -> tuple[float, float]:
        """The hit ratio since `start`, and how it grows with the logarithm of the requests."""
        reads, hits = (each.astype(float) for each in self._reads(start))
        if not reads.any():
            return 0.0, 0.0
        parts = np.arange(len(reads)) * PARTS // len(reads)
        known = np.bincount(parts, weights=reads, minlength=PARTS)
        by_part = np.bincount(parts, weights=hits, minlength=PARTS) / np.maximum(known, 1)
        share = start / self.groups
        place = np.log(share + (1 - share) * (np.arange(PARTS) + 0.5) / PARTS)
        weight = known / known.sum()
        ratio, middle = float(weight @ by_part), float(weight @ place)
        spread = float(weight @ (place - middle) ** 2)
        slope = float(weight @ ((place - middle) * (by_part - ratio))) / spread if spread else 0.0
        return ratio, slope

    def _samples(self, start: int) -> tuple[slice, Marks]:
        """The samples from a group on, and which of them are known on both machines."""
        plain, cached = self.plain.ledger, self.cached.ledger
        mine = slice(-(-start * self.each // plain.stride), -(-self.requests // plain.stride))
        return mine, (plain.sample_ns[mine] >= 0) & (cached.sample_ns[mine] >= 0)

    def _reads(self, start: int) -> tuple[Marks, Marks]:
        """By sample, whether it is a read, and whether it is a hit."""
        mine, known = self._samples(start)
        reads = known & ~self.cached.ledger.is_write[mine]
        return reads, reads & ~self.cached.ledger.from_disks[mine]

    def savings(self, start: int, adapts: bool) -> tuple[float, float]:
        """Shares of the cost of the disks alone that would be saved.

        If all reads were hits and nothing else was saved; and by the hits that there are, if writes
        and missed reads took as long as on the disks alone.
        """
        mine, known = self._samples(start)
        reads, hits = self._reads(start)
        before, after = (
            side.ledger.sample_ns[mine].astype(np.float64) for side in (self.plain, self.cached)
        )
        whole = float(before[known].sum())
        if whole <= 0:
            return 0.0, 0.0
        of_hit = float(after[hits].mean()) if hits.any() else 0.0
        per_hit = float(np.maximum(before[reads] - of_hit, 0).sum()) / whole
        saved = float((before[hits] - after[hits]).sum()) / whole
        share = self._in_time(start, float(after[known].sum()) / whole) if adapts else 1.0
        return per_hit * share, saved * share

    def _in_time(self, start: int, left: float) -> float:
        """How much of the work's time is saved, over how much of the latencies; `left` of these."""
        plain, cached = (float(done[-1] - done[start]) for done in self.progress_ns)
        saved, of_latency = 1 - cached / max(plain, 1.0), 1 - left
        if of_latency < NOTABLE or saved <= 0:
            return UNKNOWN_SHARE
        return min(saved / of_latency, 1.0)

    def even_blocks(self, start: int) -> Ints:
        """The block of each group from `start` on: equally many requests.

        Bursts, which blocks of equal time miss or hold whole, would make a forecast less sure than
        forecasts turn out to be.
        """
        count = self.groups - start
        return np.asarray(np.arange(count, dtype=np.int64) * BLOCKS // max(count, 1))

    def ratio(self, goal: str, adapts: bool, blocks: Ints, luck: Floats, charge: float) -> _Ratio:
        """Return the gain as a function of how often each block is counted."""
        start = self.groups - len(blocks)
        plain, cached = (
            self._cost(goal, adapts, side, done, start, blocks) for side, done in self._sides
        )
        if goal in ("time", "latency", "throughput"):
            cached = cached + luck * cached.sum()
        if charge:
            cached = cached + charge * self._writes(start) * plain
        return _Ratio(plain, cached, goal == "p99")

    def sides(self, start: int, blocks: Ints, adapts: bool) -> dict[str, Blocks]:
        """What both machines did from a group on, by block; see intervals.py."""
        result = {}
        first = min(start * self.each, self.requests)
        for name, (side, done) in zip(("none", "cached"), self._sides):
            took = self._times(side, start, blocks) if adapts else np.zeros(BLOCKS)
            whole = int(done[-1] - done[start]) if adapts else 0
            counts, totals = (
                np.stack([by_block(blocks, each) for each in column[start : self.groups].T], axis=1)
                for column in (self.plain.ledger.count, side.ledger.total_ns)
            )
            kind = "none" if name == "none" else side.kind
            result[name] = Blocks(kind, first, self.requests, counts, totals, took, whole)
        return result

    def _writes(self, start: int) -> float:
        """Share of the latencies of the disks alone that is of writes."""
        totals = self.plain.ledger.total_ns[start : self.groups].sum(axis=0)
        return float(totals[WRITE] / max(totals.sum(), 1))

    def _cost(
        self, goal: str, adapts: bool, side: Side, done_ns: Ints, start: int, blocks: Ints
    ) -> Floats:
        """What a goal costs one machine by block; of p99 its histograms (BLOCKS, BINS)."""
        if goal == "p99":
            return histograms(side.ledger, start, blocks, [READ, WRITE])
        if goal == "disk-time":
            shown = side.counters.at("slow_busy_ns", done_ns[start:])
            if shown is None:
                raise UsageError(
                    "--goal disk-time: the drives behind the cache have no busy time in their "
                    "model, as SSDs have none; choose another goal"
                )
            cost = np.diff(shown)
        elif in_time(goal, adapts):
            return self._times(side, start, blocks)
        else:
            cost = side.ledger.total_ns[start : self.groups].sum(axis=1)
        return by_block(blocks, cost)

    def _times(self, side: Side, start: int, blocks: Ints) -> Floats:
        """How long the work of each block took.

        A block ends at the mean completion of the requests around its end.  Around the end of the
        run there are only those before it: they were complete half of their number earlier.
        """
        edges = start + np.searchsorted(blocks, np.arange(BLOCKS + 1))
        half = max(len(blocks) // (2 * BLOCKS), 1)
        took = np.maximum(np.diff(side.ledger.means_ns(edges, half)), 0.0)
        return np.asarray(took * (len(blocks) / max(len(blocks) - half / 2, 0.5)))


def by_block(blocks: Ints, values: npt.NDArray[Any]) -> Floats:
    """Return the sums of values by their blocks."""
    return np.asarray(np.bincount(blocks, values, BLOCKS), np.float64)


def histograms(ledger: Ledger, start: int, blocks: Ints, directions: list[int]) -> Floats:
    """Return the latencies of the groups from `start` on by block (BLOCKS, BINS)."""
    result = np.zeros((BLOCKS, BINS))
    for joint in range(start // JOINED, -(-(start + len(blocks)) // JOINED)):
        group = min(max(joint * JOINED - start, 0), len(blocks) - 1)
        result[blocks[group]] += ledger.latency[joint, directions].sum(axis=0)
    return result


class _Ratio:
    """A gain, for blocks that count as often as they are drawn."""

    def __init__(self, plain: Floats, cached: Floats, is_percentile: bool) -> None:
        self._plain, self._cached = plain, cached
        self._is_percentile = is_percentile

    @property
    def gain(self) -> float:
        """The gain over all blocks."""
        return float(self(np.ones((1, BLOCKS)))[0])

    def interval(self, held: int) -> tuple[float, float]:
        """Return the interval of this capture's gain; `held` is the number of blocks in use."""
        if self._is_percentile:
            return interval(BLOCKS, self, held=held)
        return ratio_interval(self._plain, self._cached)

    def __call__(self, often: Floats) -> Floats:
        if not self._is_percentile:
            return np.asarray((often @ self._plain) / (often @ self._cached))
        return percentiles(often @ self._plain, 99) / percentiles(often @ self._cached, 99)


def _until(earlier: float, now: float, times: float) -> float:
    """Return in how many lengths of the capture a level reaches 1.

    It was `earlier` when the capture was 1 / `times` as long.  A level of dirty data grows with a
    power of the number of requests, as the number of different pages that they write does; that
    power is at most 1.  A level that grew faster began late, and grows on as it did since.
    """
    if now <= earlier or times <= 1:
        return math.inf
    if now >= earlier * times:
        return (1 - now) / (now - earlier) * (1 - 1 / times)
    power = math.log(now / earlier) / math.log(times)
    exponent = -math.log(now) / power
    return math.exp(exponent) - 1 if exponent < LONGEST else math.inf


def _log(gain: float) -> float:
    gain = min(max(gain, 1 / MOST_MEASURED), MOST_MEASURED) if gain == gain else 1.0
    return math.log(gain)


def _limited(gain: float) -> float:
    """Return the logarithm of a gain, of which MOST_GAIN is the most."""
    return min(max(_log(gain), -MOST_GAIN), MOST_GAIN)
