"""The event loop of a replay, compiled: it runs source, host, cache and tiers in order of time.

machine.py calls `run` repeatedly, and provides what its return value requests.  live.py has a
second, smaller loop for arrays in real time.  A new kind of event is a constant in jit/events.py
and a branch here (and in live.py, if tiers schedule it).  The order of events at equal times is
specified in DESIGN.md, part 2, and the reference follows it too.
"""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel, loop
from hybridsim.jit.events import (
    CONTROLLER,
    FAST,
    FAST_TIMER,
    HOST,
    INTERRUPT,
    KIND_BITS,
    KIND_MASK,
    SLOW,
    SLOW_TIMER,
)
from hybridsim.jit.lists import NOTHING
from hybridsim.requests.source import NEVER, PASS_BYTES, PASS_STREAM, WANTS_BATCH

# Why `run` returned.
REACHED, NEEDS_BATCH, NEEDS_ROOM, FACTS_FULL, FINISHED, HELD = range(6)

# Of a machine's clock; a pass of reads beside the load: the time of the next, the time between two,
# its offset, the end of the pass, its number.
NOW_NS, HOLD_NS, PASS_NS, PASS_EVERY_NS, PASS_AT, PASS_END, PASS_NUMBER = range(7)
SLOW_DEMAND, FAST_DEMAND, EVENTS_DEMAND, PAGES_DEMAND = range(4)  # of the room for a step


@kernel
def next_of_pass(now, clock, requests):
    """Issue the next read of a pass; return its slot."""
    length = min(PASS_BYTES, clock[PASS_END] - clock[PASS_AT])
    number, offset = clock[PASS_NUMBER], clock[PASS_AT]
    slot = requests.take_new(number, Op.READ, offset, length, PASS_STREAM)
    requests.issue_ns[slot] = now
    clock[PASS_NUMBER] += 1
    clock[PASS_AT] += length
    if clock[PASS_AT] == clock[PASS_END]:
        clock[PASS_NS] = NEVER
    return slot


@loop
def run(machine, batch, facts, until_ns):
    """Run events and arrivals in order until control must return to Python.

    Returns REACHED when all events before `until_ns` have run, NEEDS_BATCH when the next request is
    not in the batch, NEEDS_ROOM when the next step could exhaust a pool, FACTS_FULL when `facts` is
    full, FINISHED when no request is to come and source, cache and tiers are idle; background work
    of the tiers, such as a rebuild, is not finished.  HELD when the next request would arrive at
    HOLD_NS or later, and all others are complete.  Called again with what was missing, it continues
    where it stopped.
    """
    source, requests, cache = machine.source, machine.requests, machine.cache
    below, events = machine.below, machine.below.events
    slow, fast, heap = below.slow, below.fast, events.heap
    host = machine.host
    clock = machine.clock
    now = clock[NOW_NS]
    hold_ns = clock[HOLD_NS]
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
        if arrival_ns >= hold_ns:
            if source.is_idle():
                return HELD
            arrival_ns = NEVER
        event_ns = NEVER if heap.is_empty() else heap.time_ns[0]
        pass_ns = clock[PASS_NS] if clock[PASS_NS] < hold_ns else NEVER
        if min(event_ns, arrival_ns, pass_ns) >= until_ns:
            return REACHED
        now = min(event_ns, arrival_ns, pass_ns)
        clock[NOW_NS] = now
        slot = NOTHING
        if now == pass_ns or now < event_ns:
            if now < pass_ns:
                slot = source.issue(now, batch, requests)
            else:
                clock[PASS_NS] += clock[PASS_EVERY_NS]
                if source.begins_other(arrival_ns):
                    slot = next_of_pass(now, clock, requests)
            if slot >= 0 and host.is_on:
                host.submit(now, slot, requests, events)
            elif slot >= 0:
                cache.submit(now, slot, requests, below)
            continue
        kind = heap.what[0] & KIND_MASK
        number = heap.what[0] >> KIND_BITS
        heap.pop()
        tag = NOTHING
        if kind == SLOW:
            tag = slow.complete(now, number, events)
        elif kind == FAST:
            tag = fast.complete(now, number, events)
        elif kind == HOST:
            cache.submit(now, number, requests, below)
        elif kind == SLOW_TIMER:
            tag = slow.wake(now, number, events)
        elif kind == FAST_TIMER:
            tag = fast.wake(now, number, events)
        elif kind == CONTROLLER:
            tag = slow.own_event(now, number, events)
        elif kind == INTERRUPT:
            slot = number
        else:
            slot = cache.wake(now, number, requests, below)
        if tag >= 0:
            slot = cache.complete(now, tag, requests, below)
        if slot >= 0:
            was_held = kind == INTERRUPT
            delivered_ns = now
            if host.hold_ns > 0 and not was_held:
                delivered_ns = host.delivered_ns(now)
            if delivered_ns > now:
                events.push(delivered_ns, INTERRUPT, slot)
            else:
                requests.record(slot, now, facts)
                source.completed(now, slot, requests)
            if not was_held:
                cache.finished(now, slot, requests, below)
            if delivered_ns == now:
                requests.release(slot)


@loop
def settle(below, clock, demand, until_ns):
    """Run the tiers alone until they are idle, or, if `until_ns` > 0, until that time.

    Completions are dropped: the cache that sent the requests no longer exists.  Returns REACHED, or
    NEEDS_ROOM if the next step could exhaust a pool.
    """
    slow, fast, heap = below.slow, below.fast, below.events.heap
    while True:
        if until_ns == 0 and slow.is_idle() and fast.is_idle():
            return REACHED
        if heap.is_empty() or (until_ns > 0 and heap.time_ns[0] >= until_ns):
            return REACHED
        if not below.has_room(demand):
            return NEEDS_ROOM
        now = heap.time_ns[0]
        clock[NOW_NS] = now
        kind = heap.what[0] & KIND_MASK
        number = heap.what[0] >> KIND_BITS
        heap.pop()
        if kind == SLOW:
            slow.complete(now, number, below.events)
        elif kind == FAST:
            fast.complete(now, number, below.events)
        elif kind == SLOW_TIMER:
            slow.wake(now, number, below.events)
        elif kind == FAST_TIMER:
            fast.wake(now, number, below.events)
        else:
            slow.own_event(now, number, below.events)
