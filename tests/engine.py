"""The compiled engine, driven with the parameters and requests of the reference."""

from itertools import pairwise

import numpy as np

from hybridsim import loops
from hybridsim.caches import PageCache
from hybridsim.codes import Op, Path, Reason, Replay
from hybridsim.devices import HDD, SSD
from hybridsim.events import FAST, SLOW
from hybridsim.inflight import Batch
from hybridsim.machine import Machine, Run
from hybridsim.policies import LRU, Learned, Touches
from hybridsim.raid import Tier
from hybridsim.reference import Fact, HddParameters
from hybridsim.source import Source
from hybridsim.think import Waits

IDS = 16  # so small that it has to grow


def device(parameters, members):
    if isinstance(parameters, HddParameters):
        values = {
            name: np.array(value) if isinstance(value, list) else value
            for name, value in vars(parameters).items()
        }
        return HDD.new(members, values, capacity=4)
    return SSD.new(members, vars(parameters))


def tier(kind, parameters):
    bank = device(parameters.device, parameters.members)
    return Tier.new(
        kind,
        int(parameters.level),
        parameters.members,
        parameters.chunk_bytes,
        bank,
        spread=int(parameters.spread),
        rmw_level=parameters.rmw_level,
        rotates=isinstance(parameters.device, HddParameters),
        failed=parameters.failed,
        rebuild=tuple(vars(parameters.rebuild).values()) if parameters.rebuild else None,
        queue_depth=parameters.queue_depth,
    )


def machine(scenario):
    cache = scenario.cache
    admission = (
        Learned.new(IDS, cache.pages)
        if cache.admission[0] == "learned"
        else Touches.new(IDS, cache.pages, cache.admission[1])
    )
    pages = PageCache.new(
        cache.page_bytes,
        cache.pages,
        int(cache.mode),
        cache.cutoff_bytes,
        cache.fills_max,
        admission,
        LRU.new(IDS),
        IDS,
    )
    source = Source.new(int(scenario.source.mode), scenario.source.depth)
    return Machine.new(source, pages, tier(SLOW, scenario.slow), tier(FAST, scenario.fast))


def batches(scenario, sizes):
    """Cut the requests into batches of the given sizes, the last one taking the rest."""
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
        )


def facts_of(columns):
    rows = zip(*(column.tolist() for column in columns[:-1]), strict=True)
    return [
        Fact(n, issue, done, Op(op), length, Path(path), Reason(reason), pages, hit)
        for n, issue, done, op, length, path, reason, pages, hit in rows
    ]


def simulate(scenario, interpreted=False, sizes=(), facts_rows=1 << 16, step_ns=loops.NEVER):
    """Run a scenario on the engine; return its facts and the finished machine."""
    run = Run(machine(scenario), facts_rows, interpreted)
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
            return facts + facts_of(run.facts.drained()), run.machine


def counters(finished):
    """Return what the reference counts too."""
    cache, below = finished.cache, finished.below
    counts = cache.counts.tolist()
    found = {
        "fills_started": counts[1],
        "fills_completed": counts[2],
        "fills_doomed": counts[3],
        "evictions": counts[4],
    }
    for name, part in (("slow", below.slow), ("fast", below.fast)):
        sums = part.device.counts.sum(axis=0).tolist()
        moves = sums[1:4] if len(sums) == 6 else [0, 0, 0]
        names = ("move_ns", "rotation_ns", "transfer_ns", "read_bytes", "write_bytes")
        found |= {f"{name}_{key}": value for key, value in zip(names, moves + sums[-2:])}
        found[f"{name}_rebuilt_bytes"] = part.totals().get("rebuilt_bytes", 0)
    return found
