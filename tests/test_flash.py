"""SSDs, by datasheet and in detail: what one does, and that engine and reference agree on it."""

import os
from random import Random

from engine import device
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import flashes, ssds

from hybridsim.codes import FUA, PREFLUSH, Op
from hybridsim.events import FAST, KIND_BITS, Events
from hybridsim.reference import Clock, Flash, FlashParameters, Ssd

READ, WRITE, DISCARD, FLUSH = (int(op) for op in (Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH))


def on_engine(parameters, requests, members=1):
    """(time, number of the request) of all completions; interpreted."""
    bank = device(parameters, members)
    events, done, todo = Events.new(4), [], list(enumerate(requests))
    while todo or not events.heap.is_empty():
        if events.heap.room() < 200:
            events = events.grown(2 * len(events.heap.time_ns))
        if bank.room() < 4:
            bank = bank.grown(2 * bank.size())
        at = events.heap.time_ns[0] if not events.heap.is_empty() else None
        if todo and (at is None or todo[0][1][0] < at):
            number, (now, op, offset, length) = todo.pop(0)
            bank.submit(now, number % members, number, op, offset, length, FAST, events)
            continue
        what = events.heap.what[0]
        events.heap.pop()
        tag = bank.complete(at, int(what) >> KIND_BITS, FAST, events)
        if tag >= 0:
            done.append((int(at), int(tag)))
    return done, bank


def on_reference(parameters, requests, members=1):
    clock, done = Clock(), []
    kind = Flash if isinstance(parameters, FlashParameters) else Ssd
    drives = [kind(clock, parameters) for _ in range(members)]

    def arrive(number, op, offset, length):
        finish = lambda: done.append((clock.now, number))  # noqa: E731
        drives[number % members].submit(op, offset, length, finish)

    for number, (now, *request) in enumerate(requests):
        clock.arrive(now, number, lambda n=number, r=request: arrive(n, *r))
    clock.run()
    return done, drives


def workload(parameters, count, random):
    """Requests of all kinds within the capacity, many at a time."""
    now, requests = 0, []
    for _ in range(count):
        now += random.choice([0, 0, 0, 1000, 50_000, 300_000])
        op = random.choice([READ, READ, READ, WRITE, WRITE, WRITE, WRITE, FLUSH, DISCARD])
        if op == WRITE:
            op |= random.choice([0, 0, 0, 0, FUA, PREFLUSH, FUA | PREFLUSH])
        offset = random.randrange(parameters.capacity_bytes) // 512 * 512
        length = random.choice([0, 512, 4096, 4096, 4096, 16384, 60_000, 200_000])
        if op & 7 in (FLUSH, DISCARD) and random.random() < 0.3:
            length = 0
        requests.append((now, op, offset, min(length, parameters.capacity_bytes - offset)))
    return requests


@settings(max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "200")), deadline=None)
@given(ssds(4096) | flashes(4096), st.integers(0, 200), st.integers(0, 2**32), st.integers(1, 2))
def test_engine_and_reference_agree(parameters, count, seed, members):
    requests = workload(parameters, count, Random(seed))
    found, bank = on_engine(parameters, requests, members)
    expected, drives = on_reference(parameters, requests, members)
    assert found == expected
    assert sorted(number for _, number in found) == list(range(count))
    totals = bank.totals(0)
    assert totals["bytes_written"] == sum(drive.counters["write_bytes"] for drive in drives)
    if isinstance(parameters, FlashParameters) and parameters.mapped_units:
        moved = sum(drive.mapping.moved for drive in drives)
        assert totals["bytes_moved"] == moved * parameters.unit_bytes
