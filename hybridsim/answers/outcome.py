"""What one machine did with a trace: its figures by phase, and whether it kept up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.answers.counters import Counters
from hybridsim.answers.metrics import READS, Collector, Figures, Kind
from hybridsim.foundation.codes import Reason

SECOND = 10**9
DAY = 86400 * SECOND
BUSY = 0.97  # of the time: disks that always have something to do are hardly busier
QUEUE_NS = SECOND  # work for longer than this waiting at busy disks is a backlog, not a burst
DISK_TIME = ("seek", "rotation", "transfer")
VOLUME_TIME = ("iops_limit", "bandwidth_limit", "latency")
# How exact a series is: counters are read now and then, and taken to grow evenly in between.
DIGITS = 6  # of shares
MICROSECOND = 1000


@dataclass(frozen=True)
class Phase:
    """What one machine did in a stretch of time.  What the engine did not count is None."""

    figures: Figures
    utilisation: float | None  # of the disks of the slow tier
    disk_time_ns: dict[str, int]  # what the disks' busy time was spent on; or volumes' requests'
    disk_queue_ns: int | None  # what commands waited for the disks' arms, all of them together
    ssd_utilisation: float | None  # share of the time in which an SSD had something to do
    ssd_time_ns: int | None  # what requests took at the SSDs, all of them together
    overloaded: float  # share of the time in which a backlog waited at busy disks
    counters: dict[str, int]  # counts of the phase alone; levels at its end

    @property
    def span_ns(self) -> int:
        """How long the phase took."""
        return self.figures.end_ns - self.figures.start_ns

    @property
    def saturated(self) -> bool:
        """Whether latencies are those of a backlog rather than of service, most of the time."""
        return self.overloaded >= 0.5

    def per_day(self, counter: str) -> float | None:
        """What this count grows by in a day of the same kind."""
        grown = self.counters.get(counter)
        return None if grown is None or not self.span_ns else grown * DAY / self.span_ns

    def share_of_reads(self, number: int) -> float:
        """A number of reads as a share of all reads of the phase."""
        return number / self.figures.reads.count if self.figures.reads.count else 0.0

    @property
    def iops(self) -> float | None:
        """Requests completed a second."""
        return sum(self.figures.done.values()) * SECOND / self.span_ns if self.span_ns else None


@dataclass(frozen=True)
class RebuildProgress:
    """How far the rebuild of a replaced member had come when the requests were done."""

    share: float
    whole_ns: int | None  # how long all of it takes, or would at this pace


@dataclass(frozen=True)
class Series:
    """Figures over time; None where a bin holds no read or the engine gave no counter."""

    start_ns: list[int]
    reads: list[int]
    hit: list[float | None]
    page_hit: list[float | None]
    p50_ns: list[int | None]
    p99_ns: list[int | None]
    iops: list[float]
    outstanding: list[int]
    disk_utilisation: list[float | None]
    occupancy_pages: list[int | None]
    ssd_write_bytes_per_s: list[int | None]
    mean_ns: list[int | None]  # of reads, rounded
    reasons: dict[str, list[int]]  # reads that were no hits
    disk_time_ns: dict[str, list[int]]  # of all members; empty where not counted
    ssd_utilisation: list[float | None]


class Outcome:
    """One machine's run: `whole`, any `phase` of it, and its `series`."""

    def __init__(self, collector: Collector, counters: Counters, open_loop: bool) -> None:
        collector.check()
        self.collector = collector
        self.counters = counters
        self.members = {tier: counters.constant(f"{tier}_members", 1) for tier in ("slow", "fast")}
        # The end of the load: what is still to be completed then is backlog.
        width = collector.width_ns
        self.end_ns = min(collector.last_issue_ns // width + 1, collector.used) * width
        self._overloaded = self._overload() if open_loop else np.zeros(collector.used, np.bool_)
        self.whole = self.phase(0, self.end_ns)

    @property
    def drain_ns(self) -> int:
        """How long the machine still worked after the last request was issued."""
        return self.collector.last_done_ns - self.collector.last_issue_ns

    @property
    def last_done_ns(self) -> int:
        """When the last request was complete."""
        return self.collector.last_done_ns

    @property
    def saturated(self) -> bool:
        """Whether the machine fell behind and was behind at the end of the load."""
        last_fifth = self.phase(self.end_ns - self.end_ns // 5, self.end_ns)
        return last_fifth.saturated or self.whole.saturated

    @property
    def rebuild(self) -> RebuildProgress | None:
        """How far the rebuild is; None where nothing is rebuilt."""
        total = self.counters.constant("slow_rebuild_bytes", 0)
        if not total:
            return None
        times_ns, rebuilt = (
            self.counters.column("time_ns"),
            self.counters.column("slow_rebuilt_bytes"),
        )
        when = int(np.searchsorted(rebuilt, rebuilt[-1]))  # the first time that it was so far
        share = int(rebuilt[-1]) / total
        return RebuildProgress(share, round(int(times_ns[when]) / share) if share else None)

    def phase(self, start_ns: int, end_ns: int) -> Phase:
        """What happened between these times, rounded up to whole time bins."""
        figures = self.collector.phase(start_ns, min(end_ns, self.end_ns))
        start, end = figures.start_ns, figures.end_ns
        width = self.collector.width_ns
        overloaded = self._overloaded[start // width : end // width]
        return Phase(
            figures,
            self._utilisation("slow", "busy", start, end),
            self._disk_time(start, end),
            self.counters.between("slow_queue_ns", start, end),
            self._utilisation("fast", "in_use", start, end),
            self.counters.between("fast_requests_ns", start, end),
            float(overloaded.mean()) if len(overloaded) else 0.0,
            self._counted(start, end),
        )

    def issued_before(self, time_ns: int) -> int:
        """How many requests were issued before a border between two bins."""
        return int(self.collector.bins.count[: time_ns // self.collector.width_ns].sum())

    def time_of(self, request: int) -> int:
        """The border between two bins that comes nearest before the issue of a request."""
        issued = np.cumsum(self.collector.bins.count[: self.collector.used].sum(axis=1))
        bins = int(np.searchsorted(issued, request, side="right"))
        return min(bins * self.collector.width_ns, self.end_ns)

    def _counted(self, start: int, end: int) -> dict[str, int]:
        of_tiers = (
            "fast_bytes_read", "fast_bytes_written", "fast_bytes_placed", "fast_bytes_moved",
            "slow_bytes_read", "slow_bytes_written",
        )  # fmt: skip
        others = [
            name for name in self.counters if not name.startswith(("slow_", "fast_", "time_"))
        ]
        names = (*of_tiers, *others)
        grown = {name: self.counters.between(name, start, end) for name in names}
        return {name: number for name, number in grown.items() if number is not None}

    def _utilisation(self, tier: str, how: str, start: int, end: int) -> float | None:
        spent = self.counters.between(f"{tier}_{how}_ns", start, end)
        whole = self.members[tier] * (end - start)
        return None if spent is None or whole <= 0 else spent / whole

    def _disk_time(self, start: int, end: int) -> dict[str, int]:
        names = (*DISK_TIME, *VOLUME_TIME)
        parts = {name: self.counters.between(f"slow_{name}_ns", start, end) for name in names}
        known = {name: part for name, part in parts.items() if part is not None}
        busy = self.counters.between("slow_busy_ns", start, end)
        if busy is not None and known.keys() & set(DISK_TIME):
            known["other"] = max(busy - sum(known.values()), 0)
        return known

    def _edges(self) -> npt.NDArray[np.int64]:
        return np.arange(self.collector.used + 1, dtype=np.int64) * self.collector.width_ns

    def _covered_ns(self) -> npt.NDArray[np.int64]:
        """How much of each bin passed before all was done: the last one is seldom whole.

        The last bin counts as at least an eighth, so that one request is no peak.
        """
        width = self.collector.width_ns
        left = self.collector.last_done_ns - self._edges()[:-1]
        return np.clip(left, max(width // 8, 1), width)

    def _utilisations(self, tier: str, how: str) -> npt.NDArray[np.float64] | None:
        spent = self.counters.at(f"{tier}_{how}_ns", self._edges())
        whole = self.members[tier] * self._covered_ns()
        return None if spent is None else np.diff(spent) / whole

    def _outstanding(self) -> npt.NDArray[np.int64]:
        """Requests issued and not yet completed at the end of each bin."""
        bins, used = self.collector.bins, self.collector.used
        waiting: npt.NDArray[np.int64] = np.cumsum(
            (bins.count[:used] - bins.done[:used]).sum(axis=1)
        )
        return waiting

    def _overload(self) -> npt.NDArray[np.bool_]:
        """Bins in which the disks are busy and more waits for them than they do in QUEUE_NS."""
        utilisations = self._utilisations("slow", "busy")
        if utilisations is None or not self.collector.last_done_ns:
            return np.zeros(self.collector.used, np.bool_)
        busy = self.counters.between("slow_busy_ns", 0, self.collector.last_done_ns) or 0
        each_ns = busy / (self.members["slow"] * int(self.collector.bins.done.sum()))
        backlog_ns = self._outstanding() * each_ns
        late: npt.NDArray[np.bool_] = (utilisations >= BUSY) & (backlog_ns > QUEUE_NS)
        return late

    def series(self) -> Series:
        """Figures in time bins, until the end of the load."""
        bins = self.collector.bins
        used = self.end_ns // self.collector.width_ns
        per_second = SECOND / self._covered_ns()[:used]
        edges = self._edges()[: used + 1]
        reads = bins.count[:used, list(READS)].sum(axis=1)
        pages = bins.pages[:used, list(READS)].sum(axis=1)
        pages_hit = bins.pages_hit[:used, list(READS)].sum(axis=1)
        present = self.counters.at("pages_present", edges[1:])
        written = self.counters.at("fast_bytes_written", edges)
        disks = self._utilisations("slow", "busy")
        ssds = self._utilisations("fast", "in_use")
        return Series(
            edges[:-1].tolist(),
            reads.tolist(),
            _ratios(bins.count[:used, Kind.HIT], reads),
            _ratios(pages_hit, pages),
            self.collector.read_percentiles(50)[:used],
            self.collector.read_percentiles(99)[:used],
            (bins.done[:used].sum(axis=1) * per_second).tolist(),
            self._outstanding()[:used].tolist(),
            [None] * used if disks is None else disks[:used].round(DIGITS).tolist(),
            [None] * used if present is None else [round(one) for one in present.tolist()],
            [None] * used if written is None else _whole(np.diff(written) * per_second, 1),
            _means(bins.total_ns[:used, list(READS)].sum(axis=1), reads),
            self._reasons(used),
            self._disk_times(edges),
            [None] * used if ssds is None else ssds[:used].round(DIGITS).tolist(),
        )

    def _reasons(self, used: int) -> dict[str, list[int]]:
        """Reads that were no hits by their reason, in each bin."""
        counts = self.collector.bins.reason[:used, list(READS)].sum(axis=1)
        some = [each for each in Reason if each != Reason.NONE and counts[:, each].any()]
        return {each.name.lower(): counts[:, each].tolist() for each in some}

    def _disk_times(self, edges: npt.NDArray[np.int64]) -> dict[str, list[int]]:
        """What the disks' busy time was spent on, in each bin.

        A disk counts a command's parts when it begins: those that reach beyond a bin are cut, all
        alike, to the time that the disks were busy in it.
        """
        names = ("busy", *DISK_TIME)
        shown = {name: self.counters.at(f"slow_{name}_ns", edges) for name in names}
        grown = {name: np.diff(one) for name, one in shown.items() if one is not None}
        busy = grown.pop("busy", None)
        if busy is None or not grown:
            return {}
        total = np.maximum(sum(grown.values()), 1)
        grown = {name: one * np.minimum(busy / total, 1) for name, one in grown.items()}
        grown["other"] = np.maximum(busy - total, 0)
        return {name: _whole(one, MICROSECOND) for name, one in grown.items()}


def _ratios(part: npt.NDArray[np.int64], whole: npt.NDArray[np.int64]) -> list[float | None]:
    return [round(a / b, DIGITS) if b else None for a, b in zip(part.tolist(), whole.tolist())]


def _whole(values: npt.NDArray[np.float64], step: int) -> list[Any]:
    """Return values as whole multiples of a step."""
    return list((np.rint(values / step).astype(np.int64) * step).tolist())


def _means(sums: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> list[int | None]:
    return [round(a / b) if b else None for a, b in zip(sums.tolist(), numbers.tolist())]
