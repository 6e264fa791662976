"""What one machine did with each stretch of the requests, so that two machines compare pairwise.

A Collector sorts by time, and the time of a request differs between machines where the load adapts
to them.  A Ledger sorts by number: it adds up groups of equally many neighbours, in the order in
which they were recorded.  A group holds the same requests on every machine, so the sums of two
ledgers are pairs.  There are at most 2,048 groups; when a run outgrows them, neighbours are joined
and each group holds twice as many requests.

A ledger also keeps the latency of each request, or of each n-th one of a long run, and whether it
is a read that the disks served or a write, so that the same requests can be followed from one
machine to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op, Path
from hybridsim.foundation.histogram import BINS, Distribution, bin_of

if TYPE_CHECKING:
    from hybridsim.requests.inflight import Facts

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
                    one = getattr(self, name)
                    half = len(one) // 2
                    one[:half] = join(one[0::2], one[1::2])
                    one[half:] = blank
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
