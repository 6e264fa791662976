"""Invariants of a machine at every instant, whatever its parts."""

from itertools import pairwise

from engine import batches, facts_of, machine

from hybridsim.caches import PageCache
from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import Op, Path
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import WANTS_BATCH
from hybridsim.storage.controller import Controller

OFTEN = 40  # instants between two checks of the free lists, which are long


def run_checked(scenario, batch_rows=50):
    """Run a scenario, check all invariants between any two instants, and return the facts."""
    count = len(scenario.requests)
    todo = batches(scenario, [batch_rows] * (count // batch_rows))
    if not count:
        empty = Batch.empty()
        empty.state[1] = 1
        todo = iter([empty])
    run = Run(machine(scenario), facts_rows=64, interpreted=True)
    facts, before = [], {}
    instant = 0
    while True:
        instant += 1
        was_ns = run.now_ns
        status, some = run.advance(next_instant(run) + 1)
        assert run.now_ns >= was_ns
        before = check_instant(run, before)
        if instant % OFTEN == 0:
            check_lists(run.machine)
        if some is not None:
            facts += facts_of(some)
        elif status == loops.NEEDS_BATCH:
            run.feed(next(todo))
        elif status == loops.FINISHED:
            facts += facts_of(run.facts.drained())
            check_end(run, scenario, facts)
            return facts


def next_instant(run):
    """Return when the next event or request is due."""
    now, heap = run.now_ns, run.machine.below.events.heap
    arrival_ns = run.machine.source.next_ns(now, run.batch, run.machine.requests)
    event_ns = loops.NEVER if heap.is_empty() else int(heap.time_ns[0])
    return min(now if arrival_ns == WANTS_BATCH else int(arrival_ns), event_ns, loops.NEVER - 1)


def check_instant(run, before):
    """Check a machine between two instants and return its counters; those of tiers only grow."""
    whole = run.machine
    check_heap(whole.below.events.heap, run.now_ns)
    requests = whole.requests
    loaded = int(whole.source.counts[1])  # counts of requests waiting for others, and their own
    assert len(requests.number) - requests.free[1] == max(loaded, whole.source.outstanding)
    assert all(tier.device.room() >= 0 for tier in tiers(whole))
    totals = counters(whole, run.now_ns)
    for name, number in totals.items():
        assert number >= 0, name
        is_of_tier = name.startswith(("slow ", "fast "))  # a cache has levels too, which may fall
        assert not is_of_tier or number >= before.get(name, 0), name
    return totals


def check_lists(whole):
    """Check that nothing is free twice and no cache slot has two pages."""
    links(whole.requests.following, whole.requests.free)
    for tier in tiers(whole):
        links(tier.groups.following, tier.groups.free)
    if isinstance(whole.cache, PageCache):
        check_pages(whole.cache)


def check_heap(heap, now_ns):
    """Check that no event is overdue and the first one is at the root."""
    entries = list(zip(heap.time_ns[: heap.used[0]].tolist(), heap.rank[: heap.used[0]].tolist()))
    for i, entry in enumerate(entries):
        assert entry >= entries[(i - 1) // 2 if i else 0]
    assert not entries or entries[0][0] >= now_ns


def links(next_free, free):
    """Return the length of a free list; check that it matches its count and has no duplicates."""
    at, seen = int(free[0]), set()
    for _ in range(int(free[1])):
        assert at not in seen
        seen.add(at)
        at = int(next_free[at])
    return len(seen)


def check_pages(cache):
    """Check that every slot is free or holds one page, and that no two pages share a slot."""
    table = cache.table
    ids = range(int(table.ids.used[0]))
    slots = [int(table.slot[page]) for page in ids if table.has_slot(page)]
    assert len(set(slots)) == len(slots) <= cache.pages
    assert all(0 <= slot < cache.pages for slot in slots)
    totals = cache.totals()
    assert totals["pages_present"] <= len(slots)
    assert totals.get("dirty_pages", 0) <= totals["pages_present"]
    assert totals["fills_started"] >= totals["fills_done"] + totals.get("fills_doomed", 0)


def tiers(whole):
    slow = whole.below.slow
    return [slow.array if isinstance(slow, Controller) else slow, whole.below.fast]


def counters(whole, now_ns):
    """Return all counters by part and name."""
    totals = dict(whole.cache.totals())
    for side, tier in zip(("slow", "fast"), tiers(whole)):
        for part in (tier, tier.device):
            tier_totals = part.totals(now_ns)
            totals |= {f"{side} {name}": value for name, value in tier_totals.items()}
    return {name: int(number) for name, number in totals.items()}


def check_end(run, scenario, facts):
    """Check that each request completes once, after its issue, and leaves no entry anywhere."""
    assert sorted(fact.number for fact in facts) == list(range(len(scenario.requests)))
    for one, other in pairwise(facts):
        assert one.done_ns <= other.done_ns
    for fact in facts:
        request = scenario.requests[fact.number]
        assert (fact.op, fact.length) == (request.op, request.length)
        assert 0 <= fact.issue_ns <= fact.done_ns
        assert 0 <= fact.pages_hit <= fact.pages
        if isinstance(run.machine.cache, PageCache) and fact.path == Path.HIT:
            assert fact.pages_hit == fact.pages
        assert fact.op in (Op.READ, Op.WRITE) or fact.path == Path.BYPASS
    whole = run.machine
    check_lists(whole)
    assert whole.source.is_idle()
    assert links(whole.requests.following, whole.requests.free) == len(whole.requests.number)
