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

The second half is cut into 20 blocks of equal recorded time, and those are drawn with replacement
(paired: a block brings both machines' figures), which gives an interval of G from 5 to 95 %.  The
answer is yes if its lower end is at least WORTH_IT, no if its upper end is below, else not yet.

What lasts as long as a run, such as what the buffers of its disks happen to hold, is the same in
all blocks and does not show in their scatter; on another day it may be the other machine's luck.
But it shows in reads that the disks served on both machines.  That their latencies differ may be
the cache's merit or fault as far as commands waited for the disks' arms; what is beyond that is
luck and is taken out of the gain (a control variate).

What is dirty at the end has not been paid for.  While the dirty data grow, a write that was put off
costs what it costs the disks alone, as far as they have no time left for it.  If they will reach a
mark at which the cache behaves otherwise (it begins to clean, or is full) within HORIZON times the
capture, what comes then has not been seen: the lower end counts each of those writes at that cost,
and the answer is never yes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.answers.bootstrap import interval
from hybridsim.answers.counters import Counters
from hybridsim.answers.ledger import JOINED, READ, WRITE, Ledger
from hybridsim.foundation.histogram import BINS, VALUES, Distribution

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

YES, NO, UNSURE = "yes", "no", "unsure"
BLOCKS = 20
WORTH_IT = 1.15
FEWEST = 200  # requests of the judged half: fewer say nothing
FULL_BLOCKS = 5  # that hold requests
STEADY_GROWTH = 0.05  # of what is written in the judged half: a dirty level that grows by less
QUEUED = 0.5  # of the latencies: waits for arms, from where on luck is not looked for
REACHED = 0.9  # of a mark: regulated levels stay near it
HORIZON = 7 / 3  # times the capture, for which an answer is to hold
LUCK_AT_MOST = -0.9
LONGEST = 20  # times the capture, that is asked for at most


class Side(NamedTuple):
    """One machine's run."""

    ledger: Ledger
    counters: Counters
    marks: Sequence[int] = ()  # levels of dirty bytes at which it behaves otherwise, ascending


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

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "read": _figures(self.reads),
            "write": _figures(self.writes),
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

    @property
    def latency_gain(self) -> float | None:
        """How many times less all requests wait."""
        return _ratio(self.plain.both.total_ns, self.cached.both.total_ns)

    @property
    def took_gain(self) -> float | None:
        """How many times sooner the work is done."""
        return _ratio(self.plain.took_ns, self.cached.took_ns)

    @property
    def disk_gain(self) -> float | None:
        """How many times less the disks are busy."""
        return _ratio(self.plain.disk_ns, self.cached.disk_ns)

    def percentile_gain(self, percent: float) -> float | None:
        """How many times lower a percentile of all latencies is."""
        return _ratio(self.plain.both.percentile(percent), self.cached.both.percentile(percent))

    def gain(self, goal: str, adapts: bool) -> float | None:
        """How many times less a goal costs."""
        if goal == "p99":
            return self.percentile_gain(99)
        if goal == "disk-time":
            return self.disk_gain
        in_time = goal == "throughput" or (goal == "time" and adapts)
        return self.took_gain if in_time else self.latency_gain

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "first": self.first,
            "end": self.end,
            "latency_gain": self.latency_gain,
            "took_gain": self.took_gain,
            "disk_gain": self.disk_gain,
            "p99_gain": self.percentile_gain(99),
            "none": self.plain.to_dict(),
            "cached": self.cached.to_dict(),
        }


@dataclass(frozen=True)
class Judgement:
    """The gain of a cache, how sure it is, and the same requests by phase."""

    answer: str
    goal: str
    adapts: bool  # the load, to the machine
    gain: float | None  # of the judged half; what is dirty at the end is charged
    low: float | None
    high: float | None
    uncharged: float | None  # the gain as if what is dirty cost nothing
    dirty_grown: float  # share of what was written in the judged half that stayed dirty
    by_chance: float  # that reads from the disks gained, over all latencies with the cache
    too_short: str  # why nothing can be judged, in words; "" if something can
    changes_ns: int | None  # recorded time after which dirty data will change what the cache does
    more_ns: int | None  # recorded time that may be enough to decide, beyond this capture
    pairs: Mapping[str, Pair]  # filling, warm, whole, judged

    @property
    def judged(self) -> Pair:
        """The requests that are judged."""
        return self.pairs["judged"]

    @property
    def dirty_is_steady(self) -> bool:
        """Whether as much is cleaned as is written."""
        return self.dirty_grown < STEADY_GROWTH

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "goal": self.goal,
            "load_adapts": self.adapts,
            "gain": self.gain,
            "low": self.low,
            "high": self.high,
            "uncharged_gain": self.uncharged,
            "dirty_grown": self.dirty_grown,
            "by_chance": self.by_chance,
            "changes_ns": self.changes_ns,
            "more_ns": self.more_ns,
            "pairs": {name: each.to_dict() for name, each in self.pairs.items()},
        }


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
            UNSURE, goal, adapts, pairs["judged"].gain(goal, adapts), None, None, None, grown,
            0.0, too_short, None, _more(both.span_ns, 0.0, 1.0), pairs,
        )  # fmt: skip
    blocks = both.blocks(half)
    changes = both.changes_ns(half)
    charge = both.put_off(half, grown) if grown >= STEADY_GROWTH else 0.0
    charge = grown if changes is not None else charge
    luck = both.luck(half, blocks)
    free, paid = (both.ratio(goal, adapts, blocks, luck, each) for each in (0.0, charge))
    ones = np.ones((1, BLOCKS))
    low, high = interval(BLOCKS, paid)[0], interval(BLOCKS, free)[1]
    chance = float(luck.sum())
    value, uncharged = float(paid(ones)[0]), float(free(ones)[0])
    answer = YES if low >= WORTH_IT else NO if high < WORTH_IT else UNSURE
    if answer == YES and changes is not None:
        answer = UNSURE
    width = float(np.log(max(high, 1e-9) / max(low, 1e-9))) / 2
    away = abs(float(np.log(max(value, 1e-9) / WORTH_IT)))
    more = max(_more(both.span_ns, width, away), 2 * (changes or 0))
    more_ns = more if answer == UNSURE else None
    return Judgement(
        answer,
        goal,
        adapts,
        value,
        low,
        high,
        uncharged,
        grown,
        chance,
        "",
        changes,
        more_ns,
        pairs,
    )


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

    @property
    def half(self) -> int:
        """The group at which the second half of the requests begins, or the next border."""
        half = self.requests / 2 / self.each
        return min(math.ceil(half / JOINED) * JOINED, self.groups)

    @property
    def span_ns(self) -> int:
        """How long the requests took to arrive, as recorded."""
        return int(self.times_ns[-1] - self.times_ns[0]) if self.groups else 0

    def border(self, request: int) -> int:
        """The border of histograms that is nearest to a request."""
        return min(round(request / self.each / JOINED) * JOINED, self.groups)

    def pair(self, start: int, stop: int) -> Pair:
        """The groups [start, stop) on both machines."""
        sides = [self._stretch(side, done, start, stop) for side, done in self._sides]
        end = min(stop * self.each, self.requests)
        return Pair(min(start * self.each, end), end, *sides)

    @property
    def _sides(self) -> list[tuple[Side, Ints]]:
        return list(zip((self.plain, self.cached), self.progress_ns))

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
        column = self.cached.ledger.bytes[start : self.groups, WRITE]
        written = int(column.sum())
        done = self.progress_ns[1]
        ends = self.cached.counters.at(
            "dirty_bytes", np.array([done[start], done[self.groups]], np.int64)
        )
        if ends is None or not written:
            return 0.0
        return min(max(float(ends[1] - ends[0]) / written, 0.0), 1.0)

    def changes_ns(self, start: int) -> int | None:
        """When, in recorded time after the capture, the dirty data will reach the next mark.

        As fast as they grew since `start`; None if not within HORIZON times the capture.
        """
        done, shown = self.progress_ns[1], self.cached.counters
        ends = shown.at("dirty_bytes", np.array([done[start], done[self.groups]], np.int64))
        if ends is None or not self.cached.marks:
            return None
        level, grown = float(ends[1]), float(ends[1] - ends[0])
        above = [mark for mark in self.cached.marks if mark * REACHED > level]
        if not above or grown <= 0:
            return None
        written = int(self.cached.ledger.bytes[start : self.groups, WRITE].sum())
        if grown < STEADY_GROWTH * written:
            return None
        seen_ns = int(self.times_ns[-1] - self.times_ns[start])
        needed = (above[0] - level) / grown
        return round(needed * seen_ns) if needed <= 2 * HORIZON else None

    def put_off(self, start: int, grown: float) -> float:
        """Share of the writes that cost what they cost the disks alone, though put off.

        None, as far as the disks have time for them.
        """
        counters = self.cached.counters
        done = self.progress_ns[1]
        begin, end = int(done[start]), int(done[self.groups])
        members = counters.constant("slow_members", 1)
        spent = counters.between("slow_busy_ns", begin, end)
        before = self._stretch(self.plain, self.progress_ns[0], start, self.groups)
        if spent is None or before.disk_ns is None:
            return grown
        needed = grown * before.disk_ns * before.writes.count / max(before.both.count, 1)
        idle = max(members * (end - begin) - spent, 0)
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
        first, end = (-(-group * self.each // plain.stride) for group in (start, self.groups))
        before, after = plain.sample_ns[first:end], cached.sample_ns[first:end]
        known = (before >= 0) & (after >= 0)
        from_disks = known & cached.from_disks[first:end]
        if waits[0] is None or waits[1] is None or not from_disks.any():
            return np.zeros(BLOCKS)
        if waits[0] > QUEUED * float(plain.total_ns[start : self.groups].sum()):
            return np.zeros(BLOCKS)  # queues decide, and what the cache does about them
        group = (np.arange(first, end) * plain.stride) // self.each - start
        gained = np.where(from_disks, before - after, 0)
        by_block: Floats = np.bincount(blocks[group], gained, BLOCKS).astype(np.float64)
        low, high = self._merit(start, waits[0], waits[1], int(from_disks.sum()) * plain.stride)
        total = float(by_block.sum())
        luck = total - min(max(total, low / plain.stride), high / plain.stride)
        result: Floats = by_block * (luck / total if luck else 0.0) / float(after[known].sum())
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

    def blocks(self, start: int) -> Ints:
        """The block of each group from `start` on: equal parts of the recorded time."""
        times = self.times_ns[start:]
        edges = np.linspace(int(times[0]), int(times[-1]) + 1, BLOCKS + 1)[1:-1]
        result: Ints = np.searchsorted(edges, times, side="right").astype(np.int64)
        return result

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

    def _writes(self, start: int) -> float:
        """Share of the latencies of the disks alone that is of writes."""
        totals = self.plain.ledger.total_ns[start : self.groups].sum(axis=0)
        return float(totals[WRITE] / max(totals.sum(), 1))

    def _cost(
        self, goal: str, adapts: bool, side: Side, done_ns: Ints, start: int, blocks: Ints
    ) -> Floats:
        """What a goal costs one machine by block; of p99 its histograms (BLOCKS, BINS)."""
        if goal == "p99":
            result = np.zeros((BLOCKS, BINS))
            for joint in range(start // JOINED, -(-self.groups // JOINED)):
                group = min(max(joint * JOINED - start, 0), len(blocks) - 1)
                result[blocks[group]] += side.ledger.latency[joint].sum(axis=0)
            return result
        if goal == "disk-time":
            shown = side.counters.at("slow_busy_ns", done_ns[start:])
            cost = np.diff(shown) if shown is not None else np.zeros(len(blocks))
        elif goal == "throughput" or (goal == "time" and adapts):
            return self._times(side, done_ns, start, blocks)
        else:
            cost = side.ledger.total_ns[start : self.groups].sum(axis=1)
        return np.bincount(blocks, weights=cost, minlength=BLOCKS).astype(np.float64)

    def _times(self, side: Side, done_ns: Ints, start: int, blocks: Ints) -> Floats:
        """How long the work of each block took; together as long as all of it."""
        edges = start + np.searchsorted(blocks, np.arange(BLOCKS + 1))
        half = max(len(blocks) // (2 * BLOCKS), 1)
        took = np.maximum(np.diff(side.ledger.means_ns(edges, half)), 0.0)
        whole = float(done_ns[-1] - done_ns[start])
        result: Floats = took * (whole / max(float(took.sum()), 1.0))
        return result


class _Ratio:
    """A gain, for blocks that count as often as they are drawn."""

    def __init__(self, plain: Floats, cached: Floats, is_percentile: bool) -> None:
        self._plain, self._cached = plain, cached
        self._is_percentile = is_percentile

    def __call__(self, often: Floats) -> Floats:
        if not self._is_percentile:
            result: Floats = (often @ self._plain) / (often @ self._cached)
            return result
        return _p99(often @ self._plain) / _p99(often @ self._cached)


def _p99(histograms: Floats) -> Floats:
    reached = np.cumsum(histograms, axis=1)
    place = (reached >= 0.99 * reached[:, -1:]).argmax(axis=1)
    result: Floats = VALUES[place].astype(np.float64)
    return result


def _figures(of: Distribution) -> dict[str, Any]:
    return {
        "n": of.count,
        "mean_ns": of.mean_ns,
        "p50_ns": of.percentile(50),
        "p99_ns": of.percentile(99),
        "p99.9_ns": of.percentile(99.9),
    }


def _ratio(before: float | None, after: float | None) -> float | None:
    return before / after if before and after else None
