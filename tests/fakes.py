"""Synthetic facts and counters of machines, for tests of reports and verdicts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.answers.metrics import Collector
from hybridsim.foundation.codes import Op, Path, Reason

SECOND = 10**9
MEMBERS = 8


class Facts(NamedTuple):
    number: np.ndarray
    issue_ns: np.ndarray
    done_ns: np.ndarray
    op: np.ndarray
    length: np.ndarray
    path: np.ndarray
    reason: np.ndarray
    pages: np.ndarray
    pages_hit: np.ndarray

    def cut(self, start, end):
        return Facts(*(column[start:end] for column in self))


def facts(issue, latency, op, path, reason, length=4096):
    done = issue + latency
    order = np.argsort(done, kind="stable")
    n = len(issue)
    full = np.broadcast_to(np.asarray(length, np.int64), n)
    hits = (path == Path.HIT).astype(np.int32)
    return Facts(
        np.arange(n)[order],
        issue[order],
        done[order],
        op[order].astype(np.uint8),
        full[order],
        path[order].astype(np.uint8),
        reason[order].astype(np.uint8),
        np.ones(n, np.int32),
        hits[order],
    )


class Load(NamedTuple):
    """A synthetic trace, and the results of a synthetic cache on it."""

    seconds: int = 3600
    iops: int = 100
    writes: float = 0.3
    hit_ratio: object = lambda share: 0.93 * (1 - np.exp(-share * 12))
    misses: dict = {Reason.COLD: 3, Reason.NOT_HOT: 2, Reason.EVICTED: 0.5}
    bypass: float = 0.01
    disk_ns: int = 9_000_000
    cached_disk_ns: int = 5_000_000
    utilisation: float = 0.8
    backlog_ns_per_s: int = 0  # growth of the queue of the plain machine
    cached_backlog_ns_per_s: int = 0
    seed: int = 1


def machines(load: Load):
    """Return facts and counters of the machine with the cache, and of the one without."""
    rng = np.random.default_rng(load.seed)
    n = load.seconds * load.iops
    issue = np.sort(rng.integers(0, load.seconds * SECOND, n))
    write = rng.random(n) < load.writes
    op = np.where(write, Op.WRITE, Op.READ)
    share = issue / (load.seconds * SECOND)
    hit = ~write & (rng.random(n) < load.hit_ratio(share))
    passed = ~write & ~hit & (rng.random(n) < load.bypass)
    kinds, weights = zip(*load.misses.items())
    why = rng.choice(kinds, n, p=np.array(weights) / sum(weights))
    path = np.select([hit, write | passed], [Path.HIT, Path.BYPASS], Path.MISS)
    reason = np.select([hit, write, passed], [Reason.NONE, Reason.WRITE, Reason.SEQUENTIAL], why)

    def disk(mean):
        return (rng.gamma(3.0, mean / 3, n)).astype(np.int64) + 100_000

    queue = issue // SECOND * load.backlog_ns_per_s
    cached_queue = issue // SECOND * load.cached_backlog_ns_per_s
    flash = rng.integers(80_000, 140_000, n)
    cached = np.where(hit, flash, disk(load.cached_disk_ns) + cached_queue)
    plain = facts(
        issue, disk(load.disk_ns) + queue, op, np.full(n, Path.BYPASS), np.full(n, Reason.NO_CACHE)
    )
    with_cache = facts(issue, cached, op, path, reason)
    end = int(max(plain.done_ns[-1], with_cache.done_ns[-1]))
    busy = 1.0 if load.cached_backlog_ns_per_s else None
    return (
        (
            with_cache,
            counters(with_cache, load, end, load.utilisation * 0.4 if busy is None else 1),
        ),
        (plain, counters(plain, load, end, 1 if load.backlog_ns_per_s else load.utilisation)),
    )


def counters(rows, load, end, utilisation):
    times = np.linspace(0, end, 513).astype(np.int64)[1:]
    missed = np.searchsorted(rows.done_ns[rows.path == Path.MISS], times)
    hits = np.searchsorted(rows.done_ns[rows.path == Path.HIT], times)
    from_disks = np.where(rows.path == Path.HIT, 0, rows.done_ns - rows.issue_ns)
    waited = np.concatenate([[0], np.cumsum(from_disks)])  # nothing but waits
    busy = (times * (utilisation * MEMBERS)).astype(np.int64)
    return {
        "time_ns": times,
        "slow_members": np.full(len(times), MEMBERS),
        "slow_busy_ns": busy,
        "slow_seek_ns": busy * 5 // 10,
        "slow_rotation_ns": busy * 3 // 10,
        "slow_transfer_ns": busy // 10,
        "slow_queue_ns": waited[np.searchsorted(rows.done_ns, times, side="right")],
        "fast_members": np.ones(len(times), np.int64),
        "fast_requests_ns": hits * 100_000,
        "fast_in_use_ns": np.minimum(hits * 90_000, times),
        "slow_bytes_read": missed * 4096,
        "slow_bytes_written": missed * 4096,
        "fast_bytes_read": hits * 4096,
        "fast_bytes_written": missed * 65536,
        "pages_present": np.minimum(missed, 16384),
        "fills_started": missed,
        "fills_done": missed,
        "fills_doomed": missed * 0,
        "evictions": missed // 10,
    }


TRACE = {
    "name": "db01.blk",
    "span_ns": 3600 * SECOND,
    "footprint_bytes": 812 << 30,
    "has_completions": True,
}
SCENARIO = {
    "summary": "8 x 7200 rpm disks, RAID-5 + 64 GiB SSD (read-only, 64 KiB pages, learned)",
    "mode": "open",
    "cache_mode": "read-only",
    "cache_pages": 16384,
    "endurance_bytes": 100 * 10**12,
}


def result(load=None, trace=TRACE, scenario=SCENARIO, **more):
    from hybridsim.answers.result import conclude

    (cached, cached_counters), (plain, plain_counters) = machines(load or Load())
    return conclude(
        trace,
        scenario,
        collected(cached),
        cached_counters,
        collected(plain),
        plain_counters,
        **more,
    )


def collected(rows, chunk=10_000):
    collector = Collector()
    for start in range(0, len(rows.number), chunk):
        collector.add(rows.cut(start, start + chunk))
    return collector
