"""What a trace shows of its load: outstanding requests, processes, and hot spots.

A request is outstanding from its arrival to its completion; while none is, the application computes
or is idle.

Hot spots: how uneven accesses are, how many pages take most of them, and whether these change.  The
accesses of each quarter of the trace are counted by page in two halves, which alternate every 64
requests.  The hottest pages are selected by one half.  Their share of the other half's accesses
shows how hot the hot spot is; their share in later quarters shows whether it stays.  Selecting and
measuring on different halves excludes pages that are the hottest by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.documents import Document
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.pages import Chunked, Ids, accesses_of, check_real
from hybridsim.requests.rows import UNKNOWN, Requests

PROCESSES_MAX = 5  # processes reported
READS, WRITES, BYTES_READ, BYTES_WRITTEN, SEQUENTIAL_READS, SEQUENTIAL_WRITES = range(6)
QUARTERS, HALVES = 4, 2
RUN = 64  # consecutive requests in one half
HOTTEST = (0.01, 0.1, 0.2)  # shares of the pages
MOST = (0.5, 0.8)  # shares of the accesses
PLAIN, SLIGHT = 2.0, 1.3  # minimum skew of a hot spot, and of a slight one
FEWEST = 50  # pages; with fewer the answer is "unsure"
MOVES = 0.75  # it moves if its share after three quarters is less than this part of its first


class Covered:
    """The time covered by the union of intervals, which are added in order of their starts."""

    def __init__(self) -> None:
        self.busy_ns = 0
        self.gaps = Distribution()  # times not covered between intervals
        self._until_ns: int | None = None

    def add(self, begin_ns: Ints, end_ns: Ints) -> None:
        """Add intervals that do not start before those already added."""
        if not len(begin_ns):
            return
        first = int(begin_ns[0]) if self._until_ns is None else self._until_ns
        until = np.maximum.accumulate(np.concatenate(([first], end_ns)))
        gaps = begin_ns - until[:-1]
        gaps = gaps[gaps > 0]
        self.busy_ns += int(until[-1]) - first - int(gaps.sum())
        self.gaps += Distribution.of(gaps)
        self._until_ns = int(until[-1])


@dataclass(frozen=True)
class Process:
    """The requests of one process."""

    stream: int  # process id
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    sequential_reads: int  # that begin where the previous read of the process ended
    sequential_writes: int

    @property
    def random_reads(self) -> float | None:
        """Share of its reads that do not continue the previous read; None without reads."""
        return 1 - self.sequential_reads / self.reads if self.reads else None

    @property
    def read_share(self) -> float:
        """Share of reads among its reads and writes."""
        return self.reads / max(self.reads + self.writes, 1)


@dataclass
class Activity:
    """The figures of one pass over a trace."""

    span_ns: int
    all_of_them: Covered = field(default_factory=Covered)
    reads: Covered = field(default_factory=Covered)
    latency: Distribution = field(default_factory=Distribution)
    _counts: dict[int, Ints] = field(default_factory=dict)  # by process
    _ends: dict[tuple[int, int], int] = field(default_factory=dict)  # by process and direction

    def add(self, chunk: Requests) -> None:
        """Add the next requests."""
        known = (chunk.complete_ns != UNKNOWN) & (chunk.op != Op.DISCARD)
        arrival_ns, complete_ns = chunk.arrival_ns[known], chunk.complete_ns[known]
        complete_ns = np.maximum(complete_ns, arrival_ns)
        is_read = chunk.op[known] == Op.READ
        self.all_of_them.add(arrival_ns, complete_ns)
        self.reads.add(arrival_ns[is_read], complete_ns[is_read])
        self.latency += Distribution.of(complete_ns - arrival_ns)
        is_write = (chunk.op == Op.WRITE) | (chunk.op == Op.WRITE_ZEROES)
        directions = (
            (chunk.op == Op.READ, READS, BYTES_READ, SEQUENTIAL_READS),
            (is_write, WRITES, BYTES_WRITTEN, SEQUENTIAL_WRITES),
        )
        for chosen, number, moved, sequential in directions:
            stream, offset = chunk.stream[chosen], chunk.offset_bytes[chosen]
            length = chunk.length_bytes[chosen]
            for process in np.unique(stream).tolist():
                mine = stream == process
                begin, size = offset[mine], length[mine]
                before = self._ends.get((process, number), -1)
                ends = np.concatenate(([before], begin + size))
                counts = self._counts.setdefault(process, np.zeros(6, np.int64))
                counts[number] += len(begin)
                counts[moved] += int(size.sum())
                counts[sequential] += int((begin == ends[:-1]).sum())
                self._ends[process, number] = int(ends[-1])

    @property
    def outstanding(self) -> float | None:
        """Mean number of outstanding requests while there is at least one; None if unknown."""
        busy = self.all_of_them.busy_ns
        return self.latency.total_ns / busy if busy else None

    @property
    def whole(self) -> Process:
        """All processes together; requests are sequential within one process only."""
        return Process(UNKNOWN, *sum(self._counts.values(), np.zeros(6, np.int64)).tolist())

    @property
    def processes(self) -> list[Process]:
        """The processes with the most requests, busiest first; empty if the trace records none."""
        known = [(stream, counts) for stream, counts in self._counts.items() if stream != UNKNOWN]
        known.sort(key=lambda each: (-int(each[1][READS] + each[1][WRITES]), each[0]))
        return [Process(stream, *counts.tolist()) for stream, counts in known[:PROCESSES_MAX]]

    @property
    def busy_share(self) -> float | None:
        """Share of the time in which a request was outstanding; None if unknown."""
        known = self.latency.count and self.span_ns
        return self.all_of_them.busy_ns / self.span_ns if known else None

    @property
    def most_gain(self) -> float | None:
        """The upper bound of the application's speedup, that of storage with zero latency.

        G. M. Amdahl, AFIPS 1967: the time without outstanding requests remains.  An application
        that computes while its requests are outstanding gains less.
        """
        busy = self.busy_share
        return None if busy is None else 1 / max(1 - busy, 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {
            "busy_share": self.busy_share,
            "reads_busy_share": self.reads.busy_ns / self.span_ns if self.span_ns else None,
            "outstanding": self.outstanding,
            "mean_ns": self.latency.mean_ns,
            "think_ns": self.all_of_them.gaps.percentile(50),
            "most_gain": self.most_gain,
            "processes": self.processes,
            "random_reads": self.whole.random_reads,
            "read_share": self.whole.read_share,
        }


@dataclass(frozen=True)
class HotSpot(Document):
    """The hot spot of a trace; shares are those of page accesses unless specified otherwise."""

    of: str  # "reads", or "requests" if there are no reads
    page_bytes: int
    accesses: int
    distinct: int  # pages
    touched_once: float  # share of the pages
    taken: dict[float, float]  # share that the hottest pages take, by share of the pages
    even: dict[float, float]  # the same under uniform access
    needed: dict[float, int]  # minimum number of pages that take this share
    kept: list[float]  # share of the hottest pages of a quarter 0, 1, 2 and 3 quarters later

    _more = ("skew", "answer", "moves")

    @property
    def skew(self) -> float:
        """Share that the hottest tenth of the pages takes, over its share under uniform access."""
        return self.taken[0.1] / self.even[0.1] if self.even[0.1] else 1.0

    @property
    def answer(self) -> str:
        """Whether there is a hot spot: yes, slight, no, or unsure."""
        if self.distinct < FEWEST:
            return "unsure"
        return "yes" if self.skew >= PLAIN else "slight" if self.skew >= SLIGHT else "no"

    @property
    def moves(self) -> bool | None:
        """Whether it moves; None if unknown."""
        return self.kept[-1] < MOVES * self.kept[0] if self.kept[0] else None


def hot_spot(trace: Chunked, requests: int, reads: int, page_bytes: int) -> HotSpot:
    """Return the hot spot of a trace of `requests` requests, by its reads if it has any."""
    ids = Ids()
    counts = np.zeros((QUARTERS * HALVES, ids.capacity), np.int32)
    first = 0
    for chunk in trace.chunks():
        row = first + np.arange(chunk.rows)
        first += chunk.rows
        column = row * QUARTERS // max(requests, 1) * HALVES + row // RUN % HALVES
        wanted = chunk.op == Op.READ if reads else np.ones(chunk.rows, np.bool_)
        for each in np.unique(column[wanted]).tolist():
            mine = chunk.where(wanted & (column == each))
            check_real(mine, "the trace")
            for part in accesses_of(mine, page_bytes):
                page_ids = ids.of(part.numbers)
                if counts.shape[1] < ids.capacity:
                    more = ids.capacity - counts.shape[1]
                    counts = np.pad(counts, ((0, 0), (0, more)))
                counts[each] += np.bincount(page_ids, minlength=ids.capacity).astype(np.int32)
    return judged(counts[:, : ids.count], page_bytes, "reads" if reads else "requests")


def judged(counts: NDArray[np.int32], page_bytes: int, of: str = "reads") -> HotSpot:
    """Return the hot spot of access counts (halves of quarters, pages)."""
    total = counts.sum(axis=0, dtype=np.int64)
    total = total[total > 0]
    distinct, number = len(total), int(total.sum())
    hottest = np.cumsum(np.sort(total)[::-1])
    shares = {share: _first(distinct, share) for share in HOTTEST}
    return HotSpot(
        of,
        page_bytes,
        number,
        distinct,
        float((total == 1).mean()) if distinct else 0.0,
        {share: float(hottest[pages - 1] / number) if distinct else 0.0
         for share, pages in shares.items()},
        {share: even_share(number, distinct, share) for share in HOTTEST},
        {share: int(np.searchsorted(hottest, share * number) + 1) if distinct else 0
         for share in MOST},
        [_kept(counts, lag) for lag in range(QUARTERS)],
    )  # fmt: skip


def _first(distinct: int, share: float) -> int:
    return max(1, round(share * distinct))


def even_share(number: int, distinct: int, share: float) -> float:
    """Return the share of the accesses that the hottest pages take under uniform access.

    `number` accesses to `distinct` touched pages; `share` is that of the hottest pages.  Counts per
    page then follow a Poisson distribution, of which only counts above zero are observed.
    """
    if not distinct:
        return 0.0
    mean = _mean_of_all(number / distinct)
    left, taken = share * (1 - math.exp(-mean)), 0.0
    limit = int(mean + 12 * math.sqrt(mean) + 24)
    for count in range(limit, 0, -1):
        chance = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
        part = min(chance, left)
        taken += part * count
        left -= part
    return min(taken / mean, 1.0)


def _mean_of_all(mean_of_touched: float) -> float:
    """Return the mean count of all pages from the mean count of those touched at least once."""
    low, high = 1e-9, max(mean_of_touched, 1e-9)
    for _ in range(80):
        middle = (low + high) / 2
        if middle / -math.expm1(-middle) < mean_of_touched:
            low = middle
        else:
            high = middle
    return high


def _kept(counts: NDArray[np.int32], lag: int) -> float:
    """Return the mean share that the hottest pages of a quarter take `lag` quarters later."""
    shares = []
    for quarter in range(QUARTERS - lag):
        first, later = counts[quarter * HALVES], counts[(quarter + lag) * HALVES + 1]
        if first.any() and later.any():
            # The ids of the hottest tenth of the touched pages.
            pages = _first(int((first > 0).sum()), 0.1)
            hot = np.argsort(-first, kind="stable")[:pages]
            shares.append(float(later[hot].sum() / later.sum()))
    return sum(shares) / len(shares) if shares else 0.0
