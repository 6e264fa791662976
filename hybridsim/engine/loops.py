"""The event loop of a replay, compiled: it runs source, host, cache and tiers in order of time.

machine.py calls `run` repeatedly, and provides what its return value requests.  live.py has a
second, smaller loop for arrays in real time.  A new kind of event is a constant in jit/events.py
and a branch here (and in live.py, if tiers schedule it).  The order of events at equal times is
specified in DESIGN.md, part 2, and the reference follows it too.
"""

from __future__ import annotations

from hybridsim.jit import loop
from hybridsim.jit.events import (
    CONTROLLER,
    FAST,
    FAST_TIMER,
    HOST,
    KIND_BITS,
    KIND_MASK,
    SLOW,
    SLOW_TIMER,
)
from hybridsim.requests.source import NEVER, WANTS_BATCH

# Why `run` returned.
REACHED, NEEDS_BATCH, NEEDS_ROOM, FACTS_FULL, FINISHED = range(5)


@loop
def run(machine, batch, facts, until_ns):
    """Run events and arrivals in order until control must return to Python.

    Returns REACHED when all events before `until_ns` have run, NEEDS_BATCH when the next request is
    not in the batch, NEEDS_ROOM when the next step could exhaust a pool, FACTS_FULL when `facts` is
    full, FINISHED when no request is to come and source, cache and tiers are idle; background work
    of the tiers, such as a rebuild, is not finished.  Called again with what was missing, it
    continues where it stopped.
    """
    source, requests, cache = machine.source, machine.requests, machine.cache
    below, events = machine.below, machine.below.events
    slow, fast, heap = below.slow, below.fast, events.heap
    host = machine.host
    now = machine.clock[0]
    while True:
        if facts.used[0] == len(facts.number):
            return FACTS_FULL
        if not machine.has_room():
            return NEEDS_ROOM
        arrival_ns = source.next_ns(now, batch, requests)
        if arrival_ns == WANTS_BATCH:
            return NEEDS_BATCH
        if arrival_ns == NEVER and source.is_idle() and slow.is_idle() and fast.is_idle():
            return FINISHED
        event_ns = NEVER if heap.is_empty() else heap.time_ns[0]
        if min(event_ns, arrival_ns) >= until_ns:
            return REACHED
        if arrival_ns < event_ns:
            now = arrival_ns
            machine.clock[0] = now
            slot = source.issue(now, batch, requests)
            if host.is_on:
                host.submit(now, slot, requests, events)
            else:
                cache.submit(now, slot, requests, below)
            continue
        now = event_ns
        machine.clock[0] = now
        what = heap.what[0]
        number = what >> KIND_BITS
        heap.pop()
        slot = -1
        if what & KIND_MASK == SLOW:
            tag = slow.complete(now, number, events)
        elif what & KIND_MASK == FAST:
            tag = fast.complete(now, number, events)
        elif what & KIND_MASK == HOST:
            cache.submit(now, number, requests, below)
            continue
        elif what & KIND_MASK == SLOW_TIMER:
            tag = slow.wake(now, number, events)
        elif what & KIND_MASK == FAST_TIMER:
            tag = fast.wake(now, number, events)
        elif what & KIND_MASK == CONTROLLER:
            tag = slow.own_event(now, number, events)
        else:
            tag = -1
            slot = cache.wake(now, number, requests, below)
        if tag >= 0:
            slot = cache.complete(now, tag, requests, below)
        if slot >= 0:
            requests.record(slot, now, facts)
            source.completed(now, slot, requests)
            cache.finished(now, slot, requests, below)
            requests.release(slot)
