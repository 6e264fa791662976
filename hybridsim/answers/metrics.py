"""From facts to figures: sums over a run of any length, in bounded memory.

A Collector adds each request to integers of one of at most 512 bins, by the time of its issue.
When the run outgrows the bins, neighbours are merged and each bin is twice as wide.  Sums of
integers do not depend on the order of the facts or on how they are divided into chunks.

The time of issue, not of completion, decides the bin: then a phase holds the same requests of a
trace on every machine it is replayed on, and latencies compare like with like.  Only throughput
counts completions.

A Ledger sorts by number, as the time of a request differs between machines where the load adapts
to them: it adds up groups of equally many neighbours, in the order in which they were recorded.  A
group holds the same requests on every machine, so the sums of two ledgers are pairs.  There are at
most 2,048 groups; when a run outgrows them, neighbours are joined as bins are.  A ledger also keeps
the latency of each request, or of each n-th one of a long run, and whether it is a read that the
disks served or a write, so that the same requests can be followed from one machine to the other.

Counters that the engine samples are interpolated between their samples.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op, Path, Reason
from hybridsim.foundation.histogram import BINS, VALUES, Distribution, bin_of
from hybridsim.foundation.levels import LEVELS
from hybridsim.foundation.wording import counted, latency, percent

if TYPE_CHECKING:
    from hybridsim.requests.inflight import Facts

MAX_BINS = 512
BASE_NS = 10**9 // 64  # one second is a power of two times this
GROUPS = 2048
SAMPLES = 1 << 16
JOINED = 16  # groups that share a histogram
READ, WRITE = 0, 1  # columns: the directions
NEVER = np.iinfo(np.int64).max
_JOINED: tuple[tuple[tuple[str, ...], np.ufunc, int], ...] = (
    (("count", "total_ns", "bytes", "latency", "done_us", "there"), np.add, 0),
    (("max_ns", "done_ns"), np.maximum, 0),
    (("arrival_ns", "issue_ns"), np.minimum, NEVER),
)

_DIRECTION = np.full(len(Op), -1, np.int64)
_DIRECTION[Op.READ] = READ
_DIRECTION[[Op.WRITE, Op.WRITE_ZEROES]] = WRITE


class ConservationError(AssertionError):
    """Figures that do not add up: a bug in hybridsim, never a user's error."""


class Later(NamedTuple):
    """A run of a machine over the capture and the load that goes on after it."""

    ledger: Ledger
    counters: Counters
    captured: int  # requests of the capture


class Kind(IntEnum):
    """How a request counts; each has exactly one kind."""

    HIT = 0
    MISS = 1
    BYPASS = 2  # a read that bypassed the cache
    WRITE = 3
    OTHER = 4  # flushes, discards and requests of length zero


READS = (Kind.HIT, Kind.MISS, Kind.BYPASS)
REASONS = {
    Kind.HIT: {Reason.NONE},
    Kind.MISS: {
        Reason.COLD,
        Reason.NOT_HOT,
        Reason.BUSY,
        Reason.FILLING,
        Reason.EVICTED,
        Reason.OVERWRITTEN,
        Reason.NOT_WRITTEN,
    },
    Kind.BYPASS: {Reason.SEQUENTIAL, Reason.CONGESTED, Reason.BUSY, Reason.NO_CACHE},
    Kind.WRITE: {Reason.WRITE, Reason.NO_CACHE},
    Kind.OTHER: {Reason.FLUSH, Reason.DISCARD, Reason.NO_CACHE},
}

_KIND = np.full((len(Op), len(Path)), Kind.OTHER, np.int64)
_KIND[Op.READ, [Path.HIT, Path.MISS, Path.BYPASS]] = READS
_KIND[[Op.WRITE, Op.WRITE_ZEROES], :] = Kind.WRITE
_ALLOWED = np.array([[reason in REASONS[kind] for reason in Reason] for kind in Kind])


def _per_kind(*more: int) -> Ints:
    return np.zeros((MAX_BINS, len(Kind), *more), np.int64)


@dataclass
class Bins:
    """All sums of a run: integers by time bin and kind."""

    count: Ints = field(default_factory=_per_kind)
    total_ns: Ints = field(default_factory=_per_kind)
    max_ns: Ints = field(default_factory=_per_kind)
    bytes: Ints = field(default_factory=_per_kind)
    pages: Ints = field(default_factory=_per_kind)
    pages_hit: Ints = field(default_factory=_per_kind)
    done: Ints = field(default_factory=_per_kind)  # by time of completion; the others by issue
    reason: Ints = field(default_factory=lambda: _per_kind(len(Reason)))
    # Half the memory of int64; no real run overflows it, and `check` would detect an overflow.
    latency: npt.NDArray[np.uint32] = field(
        default_factory=lambda: np.zeros((MAX_BINS, len(Kind), BINS), np.uint32)
    )


@dataclass(frozen=True)
class Figures:
    """Figures of the requests issued in [start_ns, end_ns)."""

    start_ns: int
    end_ns: int
    latency: dict[Kind, Distribution]
    bytes: dict[Kind, int]
    pages: dict[Kind, int]
    pages_hit: dict[Kind, int]
    reasons: dict[Kind, dict[Reason, int]]
    done: dict[Kind, int]

    def __repr__(self) -> str:
        return (
            f"<Figures: {counted(self.reads.count, 'read')}, {percent(self.hit_ratio)} from the "
            f"SSD, mean {latency(self.reads.mean_ns)}; {counted(self.writes.count, 'write')}, "
            f"mean {latency(self.writes.mean_ns)}>"
        )

    @property
    def reads(self) -> Distribution:
        """Latencies of all reads: hits, misses and bypasses."""
        return self.latency[Kind.HIT] + self.latency[Kind.MISS] + self.latency[Kind.BYPASS]

    @property
    def writes(self) -> Distribution:
        """Latencies of all writes."""
        return self.latency[Kind.WRITE]

    @property
    def requests(self) -> int:
        """Number of requests of all kinds."""
        return sum(one.count for one in self.latency.values())

    @property
    def hit_ratio(self) -> float | None:
        """Share of the reads that were hits; None without reads."""
        reads = self.reads.count
        return self.latency[Kind.HIT].count / reads if reads else None

    @property
    def page_hit_ratio(self) -> float | None:
        """Share of the pages touched by reads that were in the cache; None without reads."""
        pages = sum(self.pages[kind] for kind in READS)
        return sum(self.pages_hit[kind] for kind in READS) / pages if pages else None

    @property
    def read_reasons(self) -> dict[Reason, int]:
        """Number of reads that were not hits, by reason."""
        sums = {reason: sum(self.reasons[kind][reason] for kind in READS) for reason in Reason}
        return {reason: n for reason, n in sums.items() if n and reason != Reason.NONE}


@dataclass(frozen=True)
class BinCounts:
    """Counts in time bins of equal width, from time 0."""

    width_ns: int
    reads: Ints  # issued
    hits: Ints
    done: Ints  # completed, of all kinds

    @property
    def start_ns(self) -> Ints:
        """Start of each bin in ns."""
        return np.arange(len(self.reads), dtype=np.int64) * self.width_ns


def halve(table: npt.NDArray[Any], join: np.ufunc, blank: int = 0) -> None:
    """Join neighbouring rows into the first half of a table, in place; the rest is blank."""
    half = len(table) // 2
    # 16 rows at a time in ascending order: only rows that were read already are replaced.
    for row in range(0, half, 16):
        pairs = table[2 * row : 2 * row + 32]
        table[row : row + 16] = join(pairs[0::2], pairs[1::2])
    table[half:] = blank


class Ledger:
    """Sums of integers by group of requests and direction; in any order and portions the same."""

    def __init__(self) -> None:
        self.each = 1  # requests of a group
        self.requests = 0  # highest number there was + 1
        self.count: Ints = np.zeros((GROUPS, 2), np.int64)
        self.total_ns: Ints = np.zeros((GROUPS, 2), np.int64)
        self.bytes: Ints = np.zeros((GROUPS, 2), np.int64)
        self.arrival_ns: Ints = np.full(GROUPS, NEVER, np.int64)  # recorded, of the first
        self.issue_ns: Ints = np.full(GROUPS, NEVER, np.int64)  # of the first
        self.done_ns: Ints = np.zeros(GROUPS, np.int64)  # of the last, requests of any kind
        self.done_us: Ints = np.zeros(GROUPS, np.int64)  # of all, added up
        self.there: Ints = np.zeros(GROUPS, np.int64)  # requests of any kind
        self.max_ns: Ints = np.zeros((GROUPS // JOINED, 2), np.int64)
        self.latency = np.zeros((GROUPS // JOINED, 2, BINS), np.uint32)
        self.stride = 1  # of the requests that are kept one by one: the multiples of it
        self.sample_ns: Ints = np.full(SAMPLES, -1, np.int64)  # latency; -1: no read or write
        self.from_disks = np.zeros(SAMPLES, np.bool_)  # reads that missed or went past the cache
        self.is_write = np.zeros(SAMPLES, np.bool_)

    def arrive(self, first: int, arrival_ns: Ints) -> None:
        """Take in when requests `first`, `first` + 1 ... arrived as recorded, in nanoseconds."""
        if len(arrival_ns):
            self._make_room(first + len(arrival_ns))
            group = (first + np.arange(len(arrival_ns))) // self.each
            np.minimum.at(self.arrival_ns, group, arrival_ns)

    def add(self, facts: Facts) -> None:
        """Take in a chunk of facts; their `number` counts requests as recorded, from 0."""
        if len(facts.number) == 0:
            return
        self._make_room(int(facts.number.max()) + 1)
        group = facts.number // self.each
        np.minimum.at(self.issue_ns, group, facts.issue_ns)
        np.maximum.at(self.done_ns, group, facts.done_ns)
        np.add.at(self.done_us, group, facts.done_ns // 1000)
        np.add.at(self.there, group, 1)
        direction = _DIRECTION[facts.op]
        direction[facts.length == 0] = -1
        counts = direction >= 0
        latency = facts.done_ns - facts.issue_ns
        self._sample(facts, latency, direction)
        direction, group, latency = direction[counts], group[counts], latency[counts]
        cell = group * 2 + direction
        np.add.at(self.count.reshape(-1), cell, 1)
        np.add.at(self.total_ns.reshape(-1), cell, latency)
        np.add.at(self.bytes.reshape(-1), cell, facts.length[counts])
        cell = group // JOINED * 2 + direction
        np.maximum.at(self.max_ns.reshape(-1), cell, latency)
        np.add.at(self.latency.reshape(-1), cell * BINS + bin_of(latency), np.uint32(1))

    def _sample(self, facts: Facts, latency: Ints, direction: Ints) -> None:
        while self.requests > SAMPLES * self.stride:
            kept = ((self.sample_ns, -1), (self.from_disks, False), (self.is_write, False))
            for one, blank in kept:
                one[: SAMPLES // 2] = one[::2].copy()
                one[SAMPLES // 2 :] = blank
            self.stride *= 2
        mine = (facts.number % self.stride == 0) & (direction >= 0)
        place = facts.number[mine] // self.stride
        self.sample_ns[place] = latency[mine]
        self.from_disks[place] = (direction[mine] == READ) & (facts.path[mine] != Path.HIT)
        self.is_write[place] = direction[mine] == WRITE

    def _make_room(self, requests: int) -> None:
        self.requests = max(self.requests, requests)
        while self.requests > GROUPS * self.each:
            for names, join, blank in _JOINED:
                for name in names:
                    halve(getattr(self, name), join, blank)
            self.each *= 2

    @property
    def used(self) -> int:
        """Groups that hold a request."""
        return -(-self.requests // self.each)

    def times_ns(self) -> Ints:
        """Return when each group in use began as recorded; where that is unknown, as issued.

        It is unknown of a trace without times, whose requests all arrive at one.
        """
        issued, arrived = self.issue_ns[: self.used], self.arrival_ns[: self.used]
        is_untimed = self.used > 1 and arrived.min() == arrived.max()
        times = np.where((arrived == NEVER) | is_untimed, issued, arrived)
        times[times == NEVER] = 0
        return np.asarray(np.maximum.accumulate(times))

    def progress_ns(self) -> Ints:
        """Return when all the work up to the end of each group in use was done."""
        return np.asarray(np.maximum.accumulate(self.done_ns[: self.used]))

    def means_ns(self, edges: Ints, half: int) -> npt.NDArray[np.float64]:
        """Return when the work up to each edge (a group) was done, by the requests around it.

        That is the mean of the completions of `half` groups on either side: the last completion
        would be that of a straggler, which says when its own work was done and not that around it.
        """
        done, there = (
            np.concatenate([[0], np.cumsum(column[: self.used])])
            for column in (self.done_us, self.there)
        )
        low, high = np.maximum(edges - half, 0), np.minimum(edges + half, self.used)
        result: npt.NDArray[np.float64] = (
            1000.0 * (done[high] - done[low]) / np.maximum(there[high] - there[low], 1)
        )
        return result

    def distribution(self, start: int, stop: int, direction: int) -> Distribution:
        """Return latencies of groups [start, stop); borders are multiples of JOINED, or the end."""
        first, last = start // JOINED, -(-stop // JOINED)
        return Distribution(
            int(self.count[start:stop, direction].sum()),
            int(self.total_ns[start:stop, direction].sum()),
            int(self.max_ns[first:last, direction].max(initial=0)),
            self.latency[first:last, direction].sum(axis=0, dtype=np.int64),
        )


class Collector:
    """Adds up facts in at most 512 time bins; `width_ns` doubles as the run grows."""

    def __init__(self, bin_ns: int = BASE_NS) -> None:
        self.width_ns = bin_ns
        self.ledger = Ledger()  # the same facts by request number
        self.later: Later | None = None  # None: the load was not continued
        self.off: float | None = None  # of the disks alone: see forecast.Course
        self.used = 0  # bins up to the last in which a request was issued or completed
        self.last_issue_ns = 0
        self.last_done_ns = 0

    @functools.cached_property
    def bins(self) -> Bins:
        """The sums by time; they take room only where they are used."""
        return Bins()

    def add(self, facts: Facts) -> None:
        """Add a chunk of facts; raise ConservationError for a completion before its issue."""
        if len(facts.issue_ns) == 0:
            return
        issue, done = facts.issue_ns, facts.done_ns
        self.last_issue_ns = max(self.last_issue_ns, int(issue.max()))
        self.last_done_ns = max(self.last_done_ns, int(done.max()))
        if int(issue.min()) < 0 or int((done - issue).min()) < 0:
            raise ConservationError("a request completed before it was issued")
        while self.last_done_ns >= MAX_BINS * self.width_ns:
            self._double()
        self.used = max(self.used, self.last_done_ns // self.width_ns + 1)
        self._count(facts, done - issue)
        self.ledger.add(facts)

    def _count(self, facts: Facts, latency: Ints) -> None:
        kind = _KIND[facts.op, facts.path]
        kind[facts.length == 0] = Kind.OTHER
        cell = facts.issue_ns // self.width_ns * len(Kind) + kind
        done = facts.done_ns // self.width_ns * len(Kind) + kind
        bins = self.bins
        _add(bins.count, cell, 1)
        _add(bins.total_ns, cell, latency)
        _add(bins.bytes, cell, facts.length)
        _add(bins.pages, cell, facts.pages.astype(np.int64))
        _add(bins.pages_hit, cell, facts.pages_hit.astype(np.int64))
        _add(bins.done, done, 1)
        _add(bins.reason, cell * len(Reason) + facts.reason, 1)
        np.add.at(bins.latency.reshape(-1), cell * BINS + bin_of(latency), np.uint32(1))
        np.maximum.at(bins.max_ns.reshape(-1), cell, latency)

    def _double(self) -> None:
        for name, one in vars(self.bins).items():
            halve(one, np.maximum if name == "max_ns" else np.add)
        self.width_ns *= 2
        self.used = (self.used + 1) // 2

    @property
    def end_ns(self) -> int:
        """End of the last bin in use."""
        return self.used * self.width_ns

    def phase(self, start_ns: int, end_ns: int) -> Figures:
        """Return the figures of the requests issued in bins that begin in [start_ns, end_ns)."""
        first = min(max(-(-start_ns // self.width_ns), 0), MAX_BINS)
        last = min(max(-(-end_ns // self.width_ns), first), MAX_BINS)
        bins = self.bins

        def sums(one: Ints) -> dict[Kind, int]:
            return {kind: sum(one[first:last, kind].tolist()) for kind in Kind}

        counts, totals = sums(bins.count), sums(bins.total_ns)
        latency = {
            kind: Distribution(
                counts[kind],
                totals[kind],
                int(bins.max_ns[first:last, kind].max(initial=0)),
                bins.latency[first:last, kind].sum(axis=0, dtype=np.int64),
            )
            for kind in Kind
        }
        reasons = {
            kind: {reason: int(bins.reason[first:last, kind, reason].sum()) for reason in Reason}
            for kind in Kind
        }
        return Figures(
            first * self.width_ns,
            last * self.width_ns,
            latency,
            sums(bins.bytes),
            sums(bins.pages),
            sums(bins.pages_hit),
            reasons,
            sums(bins.done),
        )

    def whole(self) -> Figures:
        """Return the figures of the whole run."""
        return self.phase(0, self.end_ns)

    def series(self, width_ns: int | None = None) -> BinCounts:
        """Return counts in bins of `width_ns`, a power of two times the collector's own."""
        factor = 1 if width_ns is None else max(width_ns // self.width_ns, 1)
        starts = np.arange(0, max(self.used, 1), factor)

        def merged(one: Ints) -> Ints:
            return np.asarray(np.add.reduceat(one[: max(self.used, 1)], starts))

        count = self.bins.count
        return BinCounts(
            self.width_ns * factor,
            merged(count[:, list(READS)].sum(axis=1)),
            merged(count[:, Kind.HIT]),
            merged(self.bins.done.sum(axis=1)),
        )

    def percentiles(self, percent: float, kinds: Sequence[Kind] = READS) -> list[int | None]:
        """Return this percentile of the latencies in each bin; None for bins without requests."""
        which = list(kinds)
        bins = self.bins.latency[: self.used, which].sum(axis=1, dtype=np.int64)
        needed = np.maximum(bins.sum(axis=1) * (percent / 100), 1)
        place = (np.cumsum(bins, axis=1) >= needed[:, None]).argmax(axis=1)
        value = np.minimum(VALUES[place], self.bins.max_ns[: self.used, which].max(axis=1))
        return [one if n else None for one, n in zip(value.tolist(), bins.any(axis=1).tolist())]

    def check(self) -> None:
        """Raise ConservationError unless every request has one kind, one reason and one latency."""
        bins = self.bins
        for what, counts in (("reasons", bins.reason), ("latencies", bins.latency)):
            if not np.array_equal(counts.sum(axis=2, dtype=np.int64), bins.count):
                raise ConservationError(f"{what} do not add up to the requests")
        if bins.done.sum() != bins.count.sum():
            raise ConservationError("not every request that was issued completed")
        wrong = bins.reason.sum(axis=0) * ~_ALLOWED
        if wrong.any():
            kind, reason = (int(i) for i in np.argwhere(wrong)[0])
            raise ConservationError(f"a {Kind(kind).name} has the reason {Reason(reason).name}")
        if (bins.pages_hit > bins.pages).any():
            raise ConservationError("more pages were hit than touched")


def _add(table: Ints, cell: Ints, amount: Ints | int) -> None:
    np.add.at(table.reshape(-1), cell, amount)


class Counters(Mapping[str, Ints]):
    """Counters by name: their values by sample, between which each is interpolated linearly."""

    def __init__(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        self._columns = {name: np.atleast_1d(np.asarray(one)) for name, one in columns.items()}
        self._times = self._columns.get("time_ns", np.zeros(1, np.int64))

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, name: str) -> Ints:
        return self._columns[name]

    def at(self, name: str, times_ns: Ints) -> npt.NDArray[np.float64] | None:
        """Return the counter's values at these times in ns, or None if there is no such counter."""
        times, column = self._times, self._columns.get(name)
        if column is None or len(column) != len(times):
            return None
        if times[0] > 0 and name not in LEVELS:  # all counts are 0 at time 0
            times, column = np.concatenate([[0], times]), np.concatenate([[0], column])
        return np.asarray(np.interp(times_ns, times, column))

    def between(self, name: str, start_ns: int, end_ns: int) -> int | None:
        """Return the growth of a count in [start_ns, end_ns), or the level at `end_ns`."""
        ends = self.at(name, np.array([start_ns, end_ns], np.int64))
        if ends is None:
            return None
        return round(float(ends[1] if name in LEVELS else ends[1] - ends[0]))

    def constant(self, name: str, otherwise: int) -> int:
        """Return a constant such as the number of members; `otherwise` if it is absent."""
        column = self.get(name)
        return otherwise if column is None or not len(column) else int(column[-1])
