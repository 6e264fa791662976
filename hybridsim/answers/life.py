"""The cost of each event of a machine's life: a reboot, a crash, the removal of its cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from hybridsim.answers.dirt import dirty
from hybridsim.answers.metrics import READS, Collector, Figures, Kind
from hybridsim.answers.outcome import Outcome
from hybridsim.foundation.histogram import Distribution

WARM_SHARE = 0.95  # of the hit ratio before an event: from there on the cache counts as warm again
WARM_READS = 200  # a hit ratio is that of at least this number of reads
WINDOW = 10  # the window before an event is as long as that after it, at most this share of the run
UNITS = (4096, 512)


@dataclass(frozen=True)
class Period:
    """The reads and writes of a time; None where there are none."""

    start_ns: int
    end_ns: int
    reads: int
    hit: float | None
    read_mean_ns: float | None
    read_p99_ns: int | None
    writes: int
    write_mean_ns: float | None
    write_p99_ns: int | None


@dataclass(frozen=True)
class Lost:
    """What was only on an SSD that died."""

    bytes: int
    age_p50_ns: int | None  # time since the last write to it; None: written in another load
    age_p99_ns: int | None
    read_errors: int  # reads of the rest of the load that touch lost data
    reads_after: int


@dataclass(frozen=True)
class Backup:
    """The reads of a pass through the volume beside the load."""

    read_bytes: int
    of_bytes: int
    last_done_ns: int  # time of the load
    latency: Distribution

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "read_bytes": self.read_bytes,
            "of_bytes": self.of_bytes,
            "mean_ns": self.latency.mean_ns,
            "p99_ns": self.latency.percentile(99),
        }


@dataclass(frozen=True)
class _Event:
    what: str  # reboot, detach, ssd, disk, rebuild
    how: str  # the event as `--event` specifies it
    at_ns: int
    held_ns: int  # until the requests under way were complete; no request was issued
    down_ns: int
    cached_bytes: int  # before
    dirty_bytes: int  # before
    cached_after_bytes: int  # when the load went on
    dirty_after_bytes: int


@dataclass(frozen=True)
class EventCost(_Event):
    """One event: what happened, how long it took, and what it cost.  Times are of the load."""

    # until no more was dirty than before (reboot), the cache was out (detach) or the member was
    # rebuilt; None: not before the next event or the end of the load
    flush_ns: int | None
    flush_left_bytes: int  # still to be written then
    flush_forecast_ns: int | None  # for these at the rate so far; None: at no measurable rate
    warm_again_ns: int | None  # None: not within the load, or there is no cache any more
    before: Period
    during: Period
    after: Period | None  # from the end of the flush on
    lost: Lost | None = None
    backup: Backup | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        own = asdict(replace(self, backup=None))
        return own | {"backup": self.backup and self.backup.to_dict()}


@dataclass(frozen=True)
class Taken(_Event):
    """The facts of an event, from the run."""

    removed_ns: int | None = None  # time of the load at which a detached cache was out
    lost: Lost | None = None
    backup: Backup | None = None


def costs(outcome: Outcome, kind: str, page_bytes: int, events: Sequence[Taken]) -> list[EventCost]:
    """Return the cost of each event, in order."""
    result = []
    for number, event in enumerate(events):
        begin = events[number - 1].at_ns if number else 0
        end = events[number + 1].at_ns if number + 1 < len(events) else outcome.end_ns
        result.append(_cost(outcome, kind, page_bytes, event, begin, max(end, event.at_ns)))
    return result


def _cost(
    outcome: Outcome, kind: str, page_bytes: int, event: Taken, begin_ns: int, end_ns: int
) -> EventCost:
    collector = outcome.collector
    columns = {name: outcome.counters.column(name) for name in outcome.counters}
    times, levels = columns["time_ns"], dirty(kind, page_bytes, columns)
    dirty_after = event.dirty_after_bytes
    if event.what == "rebuild":
        end_ns, total = outcome.end_ns, int(columns["slow_rebuild_bytes"][-1])
        levels, dirty_after = total - columns["slow_rebuilt_bytes"], total
    later = (times > event.at_ns) & (times <= end_ns)
    wanted = 0 if event.what in ("detach", "rebuild") else event.dirty_bytes
    flush_ns: int | None = None
    left, forecast = 0, None
    if event.what == "detach":
        flush_ns = None if event.removed_ns is None else event.removed_ns - event.at_ns
    elif event.backup is not None:
        reads = event.backup
        end_ns = outcome.end_ns
        is_complete = reads.read_bytes == reads.of_bytes
        flush_ns = reads.last_done_ns - event.at_ns if is_complete else None
        left, passed_ns = reads.of_bytes - reads.read_bytes, end_ns - event.at_ns
        forecast = round(left * passed_ns / reads.read_bytes) if reads.read_bytes else None
    elif event.what == "reboot" and dirty_after <= wanted:
        flush_ns = 0
    elif event.what in ("reboot", "rebuild"):
        done = np.flatnonzero(later & (levels <= wanted))
        flush_ns = int(times[done[0]]) - event.at_ns if len(done) else None
    else:
        flush_ns = 0
    if flush_ns is None and event.backup is None:
        last = int(levels[later][-1]) if later.any() else dirty_after
        left = max(last - wanted, 0)
        written, passed = dirty_after - last, end_ns - event.at_ns
        forecast = round(left * passed / written) if written > 0 else None
    until = end_ns if flush_ns is None else min(event.at_ns + flush_ns, end_ns)
    width = collector.width_ns
    first = event.at_ns // width * width
    until = min(max(until, first + width), end_ns)
    length = max(until - first, outcome.end_ns // WINDOW // width * width, width)
    stop = until if flush_ns is None or until > first + width else min(first + length, end_ns)
    after = _period(collector, stop, min(stop + length, end_ns)) if stop < end_ns else None
    before = _period(collector, max(first - length, begin_ns), first)
    warm = None if event.what != "reboot" else _warm_again(collector, event, before, end_ns)
    return EventCost(
        event.what, event.how, event.at_ns, event.held_ns, event.down_ns, event.cached_bytes,
        event.dirty_bytes, event.cached_after_bytes, event.dirty_after_bytes, flush_ns, left,
        forecast, warm, before,
        _period(collector, first, stop), after, event.lost, event.backup,
    )  # fmt: skip


def _period(collector: Collector, start_ns: int, end_ns: int) -> Period:
    figures: Figures = collector.phase(start_ns, end_ns)
    reads, writes = figures.reads, figures.writes
    return Period(
        figures.start_ns, figures.end_ns, reads.count, figures.hit_ratio, reads.mean_ns,
        reads.percentile(99), writes.count, writes.mean_ns, writes.percentile(99),
    )  # fmt: skip


def _warm_again(collector: Collector, event: Taken, before: Period, end_ns: int) -> int | None:
    """Return the time after which the hit ratio is about that before the event."""
    if before.hit is None:
        return None
    width = collector.width_ns
    first, last = event.at_ns // width + 1, min(end_ns // width, collector.used)
    count = collector.bins.count
    reads = np.concatenate([[0], np.cumsum(count[first:last, list(READS)].sum(axis=1))])
    hits = np.concatenate([[0], np.cumsum(count[first:last, Kind.HIT])])
    for start in range(max(last - first, 0)):
        stop = int(np.searchsorted(reads, reads[start] + WARM_READS))
        if stop == len(reads):
            return None
        ratio = (hits[stop] - hits[start]) / (reads[stop] - reads[start])
        if ratio >= WARM_SHARE * before.hit:
            return max((first + start) * width - event.at_ns, 0) if start else 0
    return None
