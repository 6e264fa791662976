"""What the events of a machine's life cost: a reboot, a crash, the removal of its cache.

And what a warm start gains: a run with it compared with one of the same cache starting empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hybridsim.answers.dirt import dirty
from hybridsim.answers.metrics import READS, Collector, Kind
from hybridsim.answers.outcome import SECOND, Outcome
from hybridsim.answers.warmup import SHARES, WarmUp
from hybridsim.foundation.documents import Document

WARM_SHARE = 0.95  # of the hit ratio before an event: from there on the cache counts as warm again
WARM_READS = 200  # a hit ratio is that of at least this number of reads
WINDOW = 10  # the window before an event is as long as that after it, at most this share of the run
UNITS = (4096, 512)
FIRST_NS = 60 * SECOND  # of a warm start, that are compared
FIRST_SHARE = 10  # in a run shorter than ten minutes, its first tenth


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
    mean_ns: float | None
    p99_ns: int | None
    _last_done_ns: int  # time of the load


@dataclass(frozen=True)
class _Event(Document):
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


@dataclass(frozen=True)
class Taken(_Event):
    """The facts of an event, from the run."""

    removed_ns: int | None = None  # time of the load at which a detached cache was out
    lost: Lost | None = None
    backup: Backup | None = None


def costs(outcome: Outcome, kind: str, page_bytes: int, events: Sequence[Taken]) -> list[EventCost]:
    """Return the cost of each event, in order."""
    at_ns = [each.at_ns for each in events]
    borders = zip([0, *at_ns], events, [*at_ns[1:], outcome.end_ns])
    return [
        _cost(outcome, kind, page_bytes, event, begin, max(end, event.at_ns))
        for begin, event, end in borders
    ]


def _cost(
    outcome: Outcome, kind: str, page_bytes: int, event: Taken, begin_ns: int, end_ns: int
) -> EventCost:
    collector = outcome.collector
    counters = outcome.counters
    times, levels = counters["time_ns"], dirty(kind, page_bytes, counters)
    dirty_after = event.dirty_after_bytes
    if event.what == "rebuild":
        end_ns, total = outcome.end_ns, int(counters["slow_rebuild_bytes"][-1])
        levels, dirty_after = total - counters["slow_rebuilt_bytes"], total
    later = (times > event.at_ns) & (times <= end_ns)
    wanted = 0 if event.what in ("detach", "rebuild") else event.dirty_bytes
    flush_ns: int | None = 0
    left, forecast = 0, None
    if event.what == "detach":
        flush_ns = None if event.removed_ns is None else event.removed_ns - event.at_ns
    elif event.backup is not None:
        reads = event.backup
        end_ns = outcome.end_ns
        is_complete = reads.read_bytes == reads.of_bytes
        flush_ns = reads._last_done_ns - event.at_ns if is_complete else None
        left, passed_ns = reads.of_bytes - reads.read_bytes, end_ns - event.at_ns
        forecast = round(left * passed_ns / reads.read_bytes) if reads.read_bytes else None
    elif event.what == "rebuild" or (event.what == "reboot" and dirty_after > wanted):
        done = np.flatnonzero(later & (levels <= wanted))
        flush_ns = int(times[done[0]]) - event.at_ns if len(done) else None
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
    facts = {each.name: getattr(event, each.name) for each in fields(_Event)}
    return EventCost(
        **facts, flush_ns=flush_ns, flush_left_bytes=left, flush_forecast_ns=forecast,
        warm_again_ns=warm, before=before, during=_period(collector, first, stop), after=after,
        lost=event.lost, backup=event.backup,
    )  # fmt: skip


def _period(collector: Collector, start_ns: int, end_ns: int) -> Period:
    figures = collector.phase(start_ns, end_ns)
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


@dataclass(frozen=True)
class Beginning:
    """The pages that a cache started with, and the first minute with and without them."""

    source: str
    is_kept: bool  # on the SSD from the start; else loaded from the disks
    listed: int  # pages in the source
    chosen: int  # pages of the source that fit into the cache
    remembers: bool  # the state of the learned policy was restored too
    counters: dict[str, int]  # at the end of the load
    loaded_ns: int | None  # when the last page had been loaded
    warm_up: WarmUp
    cold_warm_up: WarmUp
    first_ns: int
    first_hit_ratio: float | None
    cold_first_hit_ratio: float | None
    disk_ns: int | None  # busy time of all disks in the whole run
    cold_disk_ns: int | None
    ssd_bytes: int | None  # bytes written to the SSD in the whole run
    cold_ssd_bytes: int | None

    @property
    def there(self) -> int:
        """Number of pages that were kept or loaded."""
        return self.counters["pages_kept"] + self.counters["pages_preloaded"]

    @property
    def used_share(self) -> float | None:
        """Share of these pages that were used later; None if there are none."""
        return self.counters["warm_pages_used"] / self.there if self.there else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        fields = {name: value for name, value in vars(self).items() if not name.endswith("warm_up")}
        reached, cold = (
            {str(share): each.reached_ns.get(share) for share in SHARES}
            for each in (self.warm_up, self.cold_warm_up)
        )
        return fields | {"reached_ns": reached, "cold_reached_ns": cold}


def compared(
    source: str,
    is_kept: bool,
    listed: int,
    chosen: int,
    remembers: bool,
    begun: Outcome,
    cold: Outcome,
    warm_ups: tuple[WarmUp, WarmUp],
) -> Beginning:
    """Compare a run with the same one from an empty cache; `warm_ups` are those of both runs."""
    first_ns = min(FIRST_NS, begun.end_ns // FIRST_SHARE)
    counters = {
        name: number
        for name, number in begun.whole.counters.items()
        if name.startswith(("pages_kept", "preload", "pages_preloaded", "warm_pages"))
    }
    loaded, times_ns = (begun.counters[name] for name in ("pages_preloaded", "time_ns"))
    loaded_ns = int(times_ns[np.searchsorted(loaded, loaded[-1])]) if loaded[-1] else None
    runs = (begun, cold)
    hit, cold_hit = (run.phase(0, first_ns).figures.hit_ratio for run in runs)
    totals = [
        run.counters.between(name, 0, run.end_ns)
        for name in ("slow_busy_ns", "fast_bytes_written")
        for run in runs
    ]
    return Beginning(
        source,
        is_kept,
        listed,
        chosen,
        remembers,
        counters,
        loaded_ns,
        *warm_ups,
        first_ns,
        hit,
        cold_hit,
        *totals,
    )
