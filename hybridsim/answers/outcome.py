"""The figures of one machine's run by phase, whether it kept up with the load, and SSD wear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.answers.metrics import READS, Collector, Counters, Figures, Kind
from hybridsim.foundation.arrays import Floats, Ints
from hybridsim.foundation.codes import Reason

SECOND = 10**9
DAY = 86400 * SECOND
DAYS_PER_YEAR = 365.25
WRITTEN = "fast_bytes_written"  # counter
BUSY = 0.97  # utilisation of disks that always have commands waiting
QUEUE_NS = SECOND  # more queued work than this at busy disks is a backlog, not a burst
DISK_TIME = ("seek", "rotation", "transfer")
VOLUME_TIME = ("iops_limit", "bandwidth_limit", "latency")
# Resolution of a series: counters are sampled, and interpolated linearly between samples.
DIGITS = 6  # decimals of shares
MICROSECOND = 1000


@dataclass(frozen=True)
class Phase:
    """The figures of one machine in a period; None for what the engine did not count."""

    figures: Figures
    utilisation: float | None  # of the disks of the slow tier
    disk_time_ns: dict[str, int]  # parts of the disks' busy time, or of the requests to volumes
    disk_queue_ns: int | None  # sum of the times that commands waited for the disks' arms
    ssd_utilisation: float | None  # mean share of the time in which an SSD was serving requests
    ssd_time_ns: int | None  # sum of the service times of requests at the SSDs
    overloaded: float  # share of the time in which a backlog waited at busy disks
    counters: dict[str, int]  # counts: growth in the phase; levels: value at its end

    def __repr__(self) -> str:
        return repr(self.figures).replace("Figures", "Phase", 1)

    @property
    def span_ns(self) -> int:
        """Duration of the phase in ns."""
        return self.figures.end_ns - self.figures.start_ns

    @property
    def saturated(self) -> bool:
        """Whether a backlog waited for at least half of the time: latencies mean little then."""
        return self.overloaded >= 0.5

    def per_day(self, counter: str) -> float | None:
        """Return the growth of a count per day at the rate of this phase; None if unknown."""
        grown = self.counters.get(counter)
        return None if grown is None or not self.span_ns else grown * DAY / self.span_ns

    def share_of_reads(self, number: int) -> float:
        """Return a number of reads as a share of all reads of the phase."""
        reads = self.figures.reads.count
        return number / reads if reads else 0.0

    @property
    def writes(self) -> float:
        """Share of writes among the reads and writes."""
        both = self.figures.reads.count + self.figures.writes.count
        return self.figures.writes.count / both if both else 0.0

    @property
    def iops(self) -> float | None:
        """Requests completed per second."""
        return sum(self.figures.done.values()) * SECOND / self.span_ns if self.span_ns else None


@dataclass(frozen=True)
class RebuildProgress:
    """Progress of the rebuild of a replaced member when the last request completed."""

    share: float
    whole_ns: int | None  # duration of the whole rebuild, extrapolated if it is not complete


@dataclass(frozen=True)
class Series:
    """Figures over time; None where a bin has no requests or the engine has no such counter."""

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
    reasons: dict[str, list[int]]  # reads that were not hits
    disk_time_ns: dict[str, list[int]]  # of all members; empty where not counted
    ssd_utilisation: list[float | None]
    writes: list[int]
    write_mean_ns: list[int | None]  # rounded
    write_p50_ns: list[int | None]
    write_p99_ns: list[int | None]


class Outcome:
    """One machine's run: `whole`, any `phase` of it, and its `series`."""

    def __init__(self, collector: Collector, counters: Counters, open_loop: bool) -> None:
        collector.check()
        self.collector = collector
        self.counters = counters
        self.members = {tier: counters.constant(f"{tier}_members", 1) for tier in ("slow", "fast")}
        # The end of the load.  If it adapts to the machine, that is when all of it is done;
        # otherwise requests outstanding then are backlog.
        width = collector.width_ns
        issued = collector.last_issue_ns // width + 1
        self.end_ns = min(issued, collector.used) * width if open_loop else collector.end_ns
        # Until when counters count: a load that adapts is over before its last bin is.
        self._counted_ns = self.end_ns if open_loop else collector.last_done_ns
        self._overloaded = self._overload() if open_loop else np.zeros(collector.used, np.bool_)
        self.whole = self.phase(0, self.end_ns)

    @property
    def drain_ns(self) -> int:
        """Time from the issue of the last request to the last completion."""
        return self.collector.last_done_ns - self.collector.last_issue_ns

    @property
    def last_done_ns(self) -> int:
        """Time of the last completion."""
        return self.collector.last_done_ns

    @property
    def saturated(self) -> bool:
        """Whether the machine did not keep up: over the whole run, or in its last fifth."""
        last_fifth = self.phase(self.end_ns - self.end_ns // 5, self.end_ns)
        return last_fifth.saturated or self.whole.saturated

    @property
    def rebuild(self) -> RebuildProgress | None:
        """Progress of the rebuild; None if there is none."""
        total = self.counters.constant("slow_rebuild_bytes", 0)
        if not total:
            return None
        times_ns = self.counters["time_ns"]
        rebuilt = self.counters["slow_rebuilt_bytes"]
        when = int(np.searchsorted(rebuilt, rebuilt[-1]))  # the first sample with this progress
        share = int(rebuilt[-1]) / total
        # One that began with an event has no counters before.
        first = int((self.counters["slow_rebuild_bytes"] > 0).argmax())
        passed_ns = int(times_ns[when]) - (int(times_ns[first - 1]) if first else 0)
        return RebuildProgress(share, round(passed_ns / share) if share else None)

    def phase(self, start_ns: int, end_ns: int) -> Phase:
        """Return the figures between these times, which are rounded up to whole bins."""
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
        """Return how many requests were issued before a border between two bins."""
        return int(self.collector.bins.count[: time_ns // self.collector.width_ns].sum())

    def time_of(self, request: int) -> int:
        """Return the last border between two bins before the issue of a request."""
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
        end = min(end, self._counted_ns)
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

    def _edges(self) -> Ints:
        return np.arange(self.collector.used + 1, dtype=np.int64) * self.collector.width_ns

    def _covered_ns(self) -> Ints:
        """Return the part of each bin before the last completion, in ns.

        The last bin counts as at least an eighth of its width, so that one request is not a peak.
        """
        width = self.collector.width_ns
        covered = self.collector.last_done_ns - self._edges()[:-1]
        return np.clip(covered, max(width // 8, 1), width)

    def _utilisations(self, tier: str, how: str) -> Floats | None:
        spent = self.counters.at(f"{tier}_{how}_ns", self._edges())
        whole = self.members[tier] * self._covered_ns()
        return None if spent is None else np.diff(spent) / whole

    def _outstanding(self) -> Ints:
        """Return the requests issued and not yet completed at the end of each bin."""
        bins, used = self.collector.bins, self.collector.used
        return np.asarray(np.cumsum((bins.count[:used] - bins.done[:used]).sum(axis=1)))

    def _overload(self) -> npt.NDArray[np.bool_]:
        """Return for each bin whether the disks are busy and more work than QUEUE_NS waits."""
        utilisations = self._utilisations("slow", "busy")
        if utilisations is None or not self.collector.last_done_ns:
            return np.zeros(self.collector.used, np.bool_)
        busy = self.counters.between("slow_busy_ns", 0, self.collector.last_done_ns) or 0
        each_ns = busy / (self.members["slow"] * int(self.collector.bins.done.sum()))
        backlog_ns = self._outstanding() * each_ns
        return np.asarray((utilisations >= BUSY) & (backlog_ns > QUEUE_NS))

    def series(self) -> Series:
        """Return the figures by time bin, until the end of the load."""
        bins = self.collector.bins
        used = self.end_ns // self.collector.width_ns
        per_second = SECOND / self._covered_ns()[:used]
        edges = self._edges()[: used + 1]
        reads = bins.count[:used, list(READS)].sum(axis=1)
        pages = bins.pages[:used, list(READS)].sum(axis=1)
        pages_hit = bins.pages_hit[:used, list(READS)].sum(axis=1)
        present = self.counters.at("pages_present", edges[1:])
        written = self.counters.at("fast_bytes_written", edges)
        writes = bins.count[:used, Kind.WRITE]
        disks = self._utilisations("slow", "busy")
        ssds = self._utilisations("fast", "in_use")
        return Series(
            edges[:-1].tolist(),
            reads.tolist(),
            _ratios(bins.count[:used, Kind.HIT], reads),
            _ratios(pages_hit, pages),
            self.collector.percentiles(50)[:used],
            self.collector.percentiles(99)[:used],
            (bins.done[:used].sum(axis=1) * per_second).tolist(),
            self._outstanding()[:used].tolist(),
            [None] * used if disks is None else disks[:used].round(DIGITS).tolist(),
            [None] * used if present is None else [round(one) for one in present.tolist()],
            [None] * used if written is None else _whole(np.diff(written) * per_second, 1),
            _means(bins.total_ns[:used, list(READS)].sum(axis=1), reads),
            self._reasons(used),
            self._disk_times(edges),
            [None] * used if ssds is None else ssds[:used].round(DIGITS).tolist(),
            writes.tolist(),
            _means(bins.total_ns[:used, Kind.WRITE], writes),
            *(self.collector.percentiles(each, (Kind.WRITE,))[:used] for each in (50, 99)),
        )

    def _reasons(self, used: int) -> dict[str, list[int]]:
        """Return the reads of each bin that were not hits, by reason."""
        counts = self.collector.bins.reason[:used, list(READS)].sum(axis=1)
        present = [each for each in Reason if each != Reason.NONE and counts[:, each].any()]
        return {each.name.lower(): counts[:, each].tolist() for each in present}

    def _disk_times(self, edges: Ints) -> dict[str, list[int]]:
        """Return the parts of the disks' busy time in each bin.

        A disk counts the parts of a command when the command begins.  If they add up to more than
        the busy time of the bin, all are scaled down to it.
        """
        names = ("busy", *DISK_TIME)
        values = {name: self.counters.at(f"slow_{name}_ns", edges) for name in names}
        grown = {name: np.diff(one) for name, one in values.items() if one is not None}
        busy = grown.pop("busy", None)
        if busy is None or not grown:
            return {}
        total = np.maximum(sum(grown.values()), 1)
        grown = {name: one * np.minimum(busy / total, 1) for name, one in grown.items()}
        grown["other"] = np.maximum(busy - total, 0)
        return {name: _whole(one, MICROSECOND) for name, one in grown.items()}


def _ratios(part: Ints, whole: Ints) -> list[float | None]:
    return [round(a / b, DIGITS) if b else None for a, b in zip(part.tolist(), whole.tolist())]


def _whole(values: Floats, step: int) -> list[Any]:
    """Return values rounded to whole multiples of a step."""
    return list((np.rint(values / step).astype(np.int64) * step).tolist())


def _means(sums: Ints, numbers: Ints) -> list[int | None]:
    return [round(a / b) if b else None for a, b in zip(sums.tolist(), numbers.tolist())]


@dataclass(frozen=True)
class Wear:
    """Writes to the SSDs in one phase, and the life of the SSDs at that rate."""

    bytes_written: int
    bytes_per_day: float
    per_host_write: float | None  # bytes written to the SSDs per byte that the host wrote
    read_per_written: float | None  # bytes read from the SSDs per byte written to them
    endurance_bytes: int | None  # rated endurance of all SSDs together
    years: float | None
    drive_writes_per_day: float | None  # of the whole capacity of the drives
    in_flash: float | None  # bytes written to the flash per byte written to the SSD, if simulated
    cycles_per_year: float | None  # erase cycles of each block, by the bytes written to the flash


def wear(
    phase: Phase, endurance_bytes: int | None, capacity_bytes: int | None = None
) -> Wear | None:
    """Return the wear at the rate of this phase; None if writes to the SSD were not counted.

    A rating in bytes written counts host writes and already allows for rewrites inside the SSD, so
    the years do not depend on the write amplification of the flash.
    """
    written = phase.counters.get(WRITTEN)
    per_day = phase.per_day(WRITTEN)
    if written is None or per_day is None:
        return None
    host = phase.figures.bytes[Kind.WRITE]
    read = phase.counters.get("fast_bytes_read")
    placed = phase.counters.get("fast_bytes_placed", 0)
    moved = phase.counters.get("fast_bytes_moved", 0)
    in_flash = (placed + moved) / placed if placed else None  # the write amplification
    return Wear(
        written,
        per_day,
        written / host if host else None,
        None if read is None or not written else read / written,
        endurance_bytes,
        endurance_bytes / per_day / DAYS_PER_YEAR if endurance_bytes and per_day else None,
        per_day / capacity_bytes if capacity_bytes else None,
        in_flash,
        per_day * in_flash * DAYS_PER_YEAR / capacity_bytes
        if in_flash and capacity_bytes
        else None,
    )
