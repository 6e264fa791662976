"""What averages alone say of an SSD cache: the best and the worst that it could do, no more.

Averages do not say which data is read again, so that any share of the reads may hit.  The best
case is that all reads hit, and in write-back that all writes are taken by the SSD: no cache does
better, as long as the load that arrives stays the same.  The worst case is that none does; copying
to the SSD may slow the disks down beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybridsim.answers.forecast import NO, UNSURE, WORTH_IT
from hybridsim.foundation.documents import Document
from hybridsim.foundation.in_notebooks import DataFrame, frame_of
from hybridsim.storage.drives import SolidState
from hybridsim.traces.averages import Interval

DAY_S, YEAR_S = 86_400, 365.25 * 86_400
LARGE_BYTES = 256 * 1024  # mean size of reads that are mostly in sequence: caches let them pass


@dataclass(frozen=True)
class Case(Document):
    """The mean latency of all requests in a mode of caches, in nanoseconds; and the gain."""

    mode: str
    now_ns: float
    best_ns: float
    worst_ns: float

    _more = ("gain_at_least", "gain_at_most")

    @property
    def gain_at_least(self) -> float:
        """Least ratio of today's mean latency to that with the cache."""
        return self.now_ns / self.worst_ns

    @property
    def gain_at_most(self) -> float:
        """Largest ratio of today's mean latency to that with the cache."""
        return self.now_ns / self.best_ns


@dataclass(frozen=True)
class Busiest(Document):
    """The interval with the most requests."""

    at: str  # its end, as printed
    requests_per_s: float
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class Bounds(Document):
    """The answers for one device."""

    source: str  # of the averages
    device: str
    drive: str
    intervals: int
    requests_per_s: float
    read_share: float | None  # of the requests; None: unknown
    mean_read_bytes: float | None
    busy: float | None
    answer: str  # NO: even the best case is no use, so that no cache of these kinds can be
    cases: tuple[Case, ...]
    busiest: Busiest
    ssd_bytes_per_day_at_most: float  # every write and every read goes to the SSD once
    ssd_life_years_at_least: float | None  # by the drive's rated endurance; None: not rated

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per mode of caches, for all intervals and for the busiest.

        Columns: `of` (all or busiest), `mode`, `now_ns`, `best_ns` and `worst_ns` (mean latencies
        of all requests), `gain_at_least`, `gain_at_most`.  Needs pandas (`hybridsim[notebooks]`).
        """
        both = (("all", self.cases), ("busiest", self.busiest.cases))
        return frame_of({"of": name, **each.to_dict()} for name, cases in both for each in cases)

    @property
    def is_streaming(self) -> bool:
        """Whether the reads are so large that most of them pass by a cache."""
        return (self.mean_read_bytes or 0) >= LARGE_BYTES


def bounds(intervals: Sequence[Interval], drive: SolidState, source: str = "") -> Bounds | None:
    """Return the bounds for a cache on `drive`; None: no request in any interval."""
    busy = [one for one in intervals if one.requests_per_s > 0]
    if not busy:
        return None
    count = sum(one.requests_per_s for one in busy)
    is_split = all(one.reads_per_s is not None for one in busy)
    reads = sum(one.reads_per_s or 0 for one in busy)
    read_bytes = sum(one.read_bytes_per_s for one in busy)
    all_bytes = read_bytes + sum(one.write_bytes_per_s for one in busy)
    shares = [one.busy for one in intervals if one.busy is not None]
    busiest = max(busy, key=lambda one: one.requests_per_s)
    cases = _cases(busy, drive)
    per_day = all_bytes / len(intervals) * DAY_S
    endurance = drive.endurance_bytes
    return Bounds(
        source,
        busy[0].device,
        drive.name or drive.like or "SSD",
        len(intervals),
        count / len(intervals),
        reads / count if is_split else None,
        read_bytes / reads if is_split and reads else None,
        sum(shares) / len(shares) if shares else None,
        NO if all(case.gain_at_most < WORTH_IT for case in cases) else UNSURE,
        cases,
        Busiest(busiest.at, busiest.requests_per_s, _cases([busiest], drive)),
        per_day,
        endurance / per_day * DAY_S / YEAR_S if endurance and per_day else None,
    )


def _cases(intervals: Sequence[Interval], drive: SolidState) -> tuple[Case, ...]:
    """Return the cases of write-through and of write-back, over all requests of the intervals."""
    count = sum(one.requests_per_s for one in intervals)
    now, *ends = (sum(each) / count for each in zip(*(_waits(one, drive) for one in intervals)))
    return Case("write-through", now, *ends[:2]), Case("write-back", now, *ends[2:])


def _waits(one: Interval, drive: SolidState) -> tuple[float, float, float, float, float]:
    """Return what requests wait a second: now; best and worst of write-through, of write-back."""
    number = one.requests_per_s
    now = number * one.wait_ns
    if one.reads_per_s is None or one.read_wait_ns is None or one.write_wait_ns is None:
        best = number * min(drive.read_latency_ns, drive.write_latency_ns, one.wait_ns)
        # All of them may be reads.
        return now, best, number * max(one.wait_ns, drive.write_latency_ns), best, now
    reads, writes = one.reads_per_s, one.writes_per_s or 0.0
    hits = reads * min(drive.read_latency_ns, one.read_wait_ns)
    misses = reads * one.read_wait_ns
    through = writes * max(one.write_wait_ns, drive.write_latency_ns)
    back = writes * min(drive.write_latency_ns, one.write_wait_ns)
    return now, hits + through, misses + through, hits + back, misses + writes * one.write_wait_ns
