"""The compiled engine, driven with the parameters and requests of the reference."""

from itertools import pairwise

import numpy as np

from hybridsim.caches import Bcache, DmCache, DmWritecache, OpenCas, PageCache
from hybridsim.caches.dmcache.migrations import COPIER as DM_CACHE_COPIER
from hybridsim.caches.opencas.ways import LET_IN
from hybridsim.caches.page.fills import WarmStart
from hybridsim.caches.policies import ADMISSION, REPLACEMENT, pair
from hybridsim.caches.policies.budget import Bucket, Budgeted
from hybridsim.caches.writecache.write_back import COPIER
from hybridsim.engine import loops
from hybridsim.engine.life import LivedRun
from hybridsim.engine.machine import Machine, Run
from hybridsim.engine.think import Waits
from hybridsim.foundation.arrays import doubled
from hybridsim.foundation.cache_parameters import ADMISSION_PARAMETERS
from hybridsim.foundation.codes import Op, Path, Reason, Replay
from hybridsim.jit.events import FAST, SLOW
from hybridsim.reference import (
    BcacheParameters,
    CacheParameters,
    DmCacheParameters,
    Fact,
    FlashParameters,
    HddParameters,
    OpenCasParameters,
    SsdParameters,
    VolumeParameters,
    WritecacheParameters,
)
from hybridsim.requests.host import Host
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import Source
from hybridsim.storage.controller import Controller
from hybridsim.storage.devices import HDD, SSD, Flash, Volume
from hybridsim.storage.raid import Tier
from hybridsim.storage.throttle import COUNTERS as THROTTLE_COUNTERS
from hybridsim.storage.throttle import NOTHING, Throttle

DEVICE_COUNTERS = [
    ("move_ns", "seek_ns"),
    ("rotation_ns", "rotation_ns"),
    ("transfer_ns", "transfer_ns"),
    ("read_bytes", "bytes_read"),
    ("write_bytes", "bytes_written"),
    ("read_ahead_hits", "read_ahead_hits"),
    ("write_cache_hits", "write_cache_hits"),
    ("destages", "destages"),
    ("queue_ns", "queue_ns"),
]
TIER_COUNTERS = ("rebuilt_bytes", "requests_ns", "in_use_ns")
VOLUME_COUNTERS = [
    ("throttled_ns", "busy_ns"),
    ("iops_limit_ns", "iops_limit_ns"),
    ("bandwidth_limit_ns", "bandwidth_limit_ns"),
    ("latency_ns", "latency_ns"),
]
ALSO = ("fills_started", "fills_done", "fills_doomed", "evictions")  # under other names
IDS = 16  # so small that the pools must grow


def device(parameters, members):
    return BANKS[type(parameters)](parameters, members)


BANKS = {
    HddParameters: lambda parameters, members: HDD.new(members, parameters, capacity=4),
    SsdParameters: lambda parameters, members: SSD.new(members, parameters),
    FlashParameters: lambda parameters, members: Flash.new(members, parameters, capacity=4),
    VolumeParameters: lambda parameters, members: Volume.new(members, parameters),
}


def tier(kind, parameters):
    bank = device(parameters.device, parameters.members)
    return Tier.new(kind, parameters, bank, rotates=isinstance(parameters.device, HddParameters))


def cache_of(scenario):
    cache = scenario.cache
    if isinstance(cache, BcacheParameters):
        return Bcache.new(cache, room=IDS)
    if isinstance(cache, WritecacheParameters):
        return DmWritecache.new(cache)
    if not isinstance(cache, CacheParameters):
        kind = DmCache if isinstance(cache, DmCacheParameters) else OpenCas
        return kind.new(cache, scenario.slow.capacity_bytes, room=IDS)
    name, *values = cache.admission
    kept = np.array(cache.kept, np.uint64).reshape(-1, 2).view(np.int64)
    warm = WarmStart(*kept.T, np.array(cache.preload, np.int64))
    ids = doubled(IDS, IDS, len(kept))
    parameters = {
        "page_bytes": cache.page_bytes,
        **dict(zip(ADMISSION_PARAMETERS.get(name, ()), values)),
    }
    policies = pair(ADMISSION[name], REPLACEMENT[cache.replacement], ids, cache.pages, parameters)
    if cache.budget and cache.pages:
        bucket = Bucket.new(cache.pages, *vars(cache.budget).values())
        policies = (Budgeted.new(*policies, bucket),) * 2
    return PageCache.new(cache, *policies, ids, warm)


def machine(scenario):
    source = Source.new(int(scenario.source.mode), scenario.source.depth)
    host = Host.new(scenario.host) if scenario.host else None
    slow = tier(SLOW, scenario.slow)
    if scenario.controller is not None:
        slow = Controller.new(slow, scenario.controller, capacity=4)
    if scenario.throttle is not None:
        calls = NOTHING
        if isinstance(scenario.cache, WritecacheParameters):
            calls = COPIER
        elif isinstance(scenario.cache, DmCacheParameters):
            calls = DM_CACHE_COPIER
        elif isinstance(scenario.cache, OpenCasParameters):
            calls = LET_IN
        slow = Throttle.new(slow, scenario.throttle, room=4, calls=calls)
    return Machine.new(source, cache_of(scenario), slow, tier(FAST, scenario.fast), host)


def batches(scenario, sizes):
    """Split the requests into batches of these sizes; the last batch takes the rest."""
    requests = scenario.requests
    speed = scenario.source.speed
    cuts = [0, *np.cumsum(sizes).tolist()]
    cuts = [cut for cut in cuts if cut < len(requests)] + [len(requests)]
    waits = Waits()
    for start, stop in pairwise(cuts or [0, 0]):
        rows = requests[start:stop]
        arrival = np.array([r.arrival_ns for r in rows], np.int64)
        complete = np.array([r.complete_ns for r in rows], np.int64)
        stream = np.array([r.stream for r in rows], np.int64)
        parent, gap = np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int64)
        if scenario.source.mode == Replay.THINK:
            parent, gap = waits.parents(arrival, complete, stream)
        yield Batch(
            np.rint(arrival / speed).astype(np.int64),
            np.array([r.op | (r.flags if r.op == Op.WRITE else 0) for r in rows], np.uint8),
            np.array([r.offset for r in rows], np.int64),
            np.array([r.length for r in rows], np.int64),
            parent,
            np.rint(gap / speed).astype(np.int64),
            np.array([0, stop == len(requests), start]),
            stream,
        )


def facts_of(columns):
    rows = zip(*(column.tolist() for column in columns[:-1]), strict=True)
    return [
        Fact(n, issue, done, Op(op), length, Path(path), Reason(reason), pages, hit)
        for n, issue, done, op, length, path, reason, pages, hit in rows
    ]


def simulate(
    scenario, interpreted=False, sizes=(), facts_rows=1 << 16, step_ns=loops.NEVER, built=None
):
    """Run a scenario on the engine, or on a machine built elsewhere; return its facts and that."""
    run = begun(built or machine(scenario), scenario, facts_rows, interpreted)
    todo = batches(scenario, sizes)
    if not scenario.requests:
        empty = Batch.empty()
        empty.state[1] = 1
        todo = iter([empty])
    facts, until = [], step_ns
    while True:
        status, some = run.advance(until)
        if some is not None:
            facts += facts_of(some)
        elif status == loops.NEEDS_BATCH:
            run.feed(next(todo))
        elif status == loops.REACHED:
            until += step_ns
        else:
            return facts + facts_of(run.drained()), run.machine


def begun(machine, scenario, facts_rows, interpreted):
    """Return a run of the machine, with the events of the scenario if it has any."""
    if not scenario.events:
        return Run(machine, facts_rows, interpreted)
    return LivedRun(machine, scenario.events, facts_rows, interpreted)


def counters(finished):
    """Return the counters that the reference has too."""
    cache, below = finished.cache, finished.below
    totals = cache.totals()
    if isinstance(cache, PageCache):
        totals["fills_completed"] = totals.pop("fills_done")
        for name in ("pages_present", "dirty_pages"):  # levels, not counts
            totals.pop(name, None)
    elif isinstance(cache, Bcache | DmCache):
        totals = {name: number for name, number in totals.items() if name not in ALSO}
    for name, part in (("slow", below.slow), ("fast", below.fast)):
        sums = part.device.totals(finished.clock[0])
        names = DEVICE_COUNTERS + VOLUME_COUNTERS * isinstance(part.device, Volume)
        totals |= {f"{name}_{ours}": sums.get(theirs, 0) for ours, theirs in names}
        tier_totals = part.totals(finished.clock[0])
        totals |= {f"{name}_{key}": tier_totals.get(key, 0) for key in TIER_COUNTERS}
    if isinstance(below.slow, Controller):
        totals |= below.slow.dram_totals()
    if isinstance(below.slow, Throttle):
        throttle_totals = below.slow.totals(finished.clock[0])
        totals |= {f"slow_{key}": throttle_totals[key] for key in THROTTLE_COUNTERS}
    return totals
