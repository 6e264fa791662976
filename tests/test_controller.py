"""A RAID controller's DRAM: its consistency guarantees and its performance."""

import os
from collections import defaultdict
from functools import partial
from random import Random

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenarios import controllers

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Level, Op
from hybridsim.jit.events import CONTROLLER, KIND_BITS, KIND_MASK, Events
from hybridsim.reference import Clock, SsdParameters, TierParameters
from hybridsim.reference import Controller as PlainController
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building
from hybridsim.storage.controller import Controller
from hybridsim.storage.controller.memory import OrderedSet, Slots

KIB = 1024
SECTOR = 512
SECOND = 10**9
CAPACITY = 512 * KIB
ARRAY = TierParameters(Level.RAID5, 3, 16 * KIB, SsdParameters(*[1] * 12), CAPACITY)

slowly = settings(
    max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "80")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


# A controller in front of an array with arbitrary latencies.


def delay_ns(number):
    return (number * 7919 % 13 + 1) * 100_000


class Media:
    """An array for the reference that stores sector versions and logs its requests."""

    capacity_bytes = CAPACITY
    devices = ()

    def __init__(self, clock):
        self.clock = clock
        self.asked = []
        self.version = defaultdict(int)

    def submit(self, op, offset, length, done):
        number = len(self.asked)
        self.asked.append((self.clock.now, int(op), offset, length))
        self.clock.at(self.clock.now + delay_ns(number), done)


class Array:
    """The same array for the engine."""

    capacity_bytes = CAPACITY
    members = 3
    device = None

    def __init__(self):
        self.asked = []
        self.tags = []

    def submit(self, now, tag, op, offset, length, events):
        number = len(self.asked)
        self.asked.append((int(now), int(op), int(offset), int(length)))
        self.tags.append(int(tag))
        events.push(now + delay_ns(number), 0, number)

    def complete(self, now, number, events):
        return self.tags[number]


@st.composite
def workloads(draw):
    """Draw requests (time, op with flags, offset, length) that are close enough to collide."""
    random = Random(draw(st.integers(0, 2**32)))
    interval_ns = draw(st.sampled_from([0, 10_000, 100_000, 1_000_000]))
    region = draw(st.sampled_from([32 * KIB, CAPACITY])) // SECTOR
    barriers = draw(st.sampled_from([0, 10, 30]))
    now = end = 0
    requests = []
    for _ in range(draw(st.integers(0, 30) | st.integers(0, 200))):
        now += random.choice([0, 1, 1, 3, 20]) * interval_ns
        op = random.choice([Op.READ] * 5 + [Op.WRITE] * 5 + [Op.DISCARD])
        if random.randrange(100) < barriers:
            op = random.choice([Op.FLUSH, Op.WRITE | FUA, Op.WRITE | PREFLUSH | FUA])
        length = random.choice([1, 1, 2, 8, 8, 16, 64, 200])
        offset = random.choice([end, end, random.randrange(region)]) % region
        length = min(length, CAPACITY // SECTOR - offset)
        end = offset + length
        if op == Op.FLUSH:
            offset = length = 0
        requests.append((now, int(op), offset * SECTOR, length * SECTOR))
    return requests


def run_reference(parameters, requests):
    """Return the completions, the array's requests, and the counters."""
    clock = Clock()
    media = Media(clock)
    controller = PlainController(clock, parameters, media)
    done = []

    def complete(number):
        done.append((clock.now, number))

    for number, (time, *request) in enumerate(requests):
        clock.arrive(time, number, partial(controller.submit, *request, partial(complete, number)))
    clock.run()
    return done, media.asked, dict(controller.counters)


def run_engine(parameters, requests):
    events = Events.new(4096)
    array = Array()
    controller = Controller.new(array, parameters, capacity=4096)
    done = []
    upcoming = 0
    while upcoming < len(requests) or not events.heap.is_empty():
        event_ns = loops.NEVER if events.heap.is_empty() else int(events.heap.time_ns[0])
        if upcoming < len(requests) and requests[upcoming][0] < event_ns:
            time, op, offset, length = requests[upcoming]
            controller.submit(time, upcoming, op, offset, length, events)
            upcoming += 1
            continue
        what = int(events.heap.what[0])
        events.heap.pop()
        handle = controller.own_event if what & KIND_MASK == CONTROLLER else controller.complete
        tag = handle(event_ns, what >> KIND_BITS, events)
        if tag >= 0:
            done.append((event_ns, int(tag)))
    return done, array.asked, controller.dram_totals()


@slowly
@given(controllers(ARRAY), workloads())
def test_engine_equals_reference_with_barriers(parameters, requests):
    done, asked, counters = run_engine(parameters, requests)
    expected = run_reference(parameters, requests)
    assert (done, asked) == expected[:2]
    assert counters == {name: expected[2].get(name, 0) for name in counters}
    assert len(done) == len(requests)


# Consistency.


class Witness(PlainController):
    """A controller that tracks the version of each sector in READs and on the array.

    The k-th WRITE writes version k.  The array's data change, or are read, at submission or at
    completion, chosen at random.
    """

    def __init__(self, clock, parameters, media, random):
        super().__init__(clock, parameters, media)
        self.random = random
        self.media = media
        self.submit_to_media = media.submit
        media.submit = self.witness
        self.writes = self.writes_placed = 0
        self.newest = defaultdict(int)  # version of each sector in DRAM or being written through
        self.known = defaultdict(int)  # acknowledged version
        self.discarded = defaultdict(int)  # versions up to this one may be lost
        self.missing = {}  # versions that a READ gets from the array

    def submit(self, op, offset, length, done):
        sectors = range(offset // SECTOR, (offset + length) // SECTOR)
        known = dict(self.known)
        kind = op & OP_MASK
        self.missing = {}
        sources = {sector: self.source(sector) for sector in sectors}
        self.writes += kind == Op.WRITE
        version = self.writes
        if kind == Op.DISCARD:
            self.discarded |= dict.fromkeys(sectors, version)
        if kind == Op.WRITE and not self.parameters.lines:
            self.newest |= dict.fromkeys(sectors, version)

        def complete():
            if kind == Op.READ:
                versions = {sector: source[sector] for sector, source in sources.items()}
                self.check(versions, {sector: known.get(sector, 0) for sector in sectors})
            if kind == Op.WRITE:
                self.known |= {s: max(self.known[s], version) for s in sectors}
            if not (self.parameters.lines and self.parameters.protected):
                if kind == Op.FLUSH or op & PREFLUSH:
                    self.check(self.media.version, known)
                if op & FUA:
                    self.check(self.media.version, dict.fromkeys(sectors, version))
            done()

        super().submit(op, offset, length, complete)

    def check(self, versions, oldest):
        """Check that no version is older than the minimum, unless it was discarded meanwhile."""
        for sector, version in oldest.items():
            assert versions[sector] >= version or version <= self.discarded[sector]

    def source(self, sector):
        """Return the source of this sector for a READ submitted now."""
        window = self.window_of(sector)
        if self.is_written(sector):
            return {sector: self.newest[sector]}
        return self.missing if window is None else window.found

    def writing(self, op, offset, length, parts):
        self.writes_placed += 1
        version = self.writes_placed
        left = list(range(offset // SECTOR, (offset + length) // SECTOR))
        steps = super().writing(op, offset, length, parts)
        while True:
            before = self.counters["write_back_bytes"]
            waits = next(steps, None)
            placed = (self.counters["write_back_bytes"] - before) // SECTOR
            self.newest |= dict.fromkeys(left[:placed], version)
            del left[:placed]
            if waits is None:
                return
            yield waits

    def witness(self, op, offset, length, done):
        """Replace the array's submit."""
        sectors = range(offset // SECTOR, (offset + length) // SECTOR)
        newest = {sector: self.newest[sector] for sector in sectors}
        end = self.missing
        if isinstance(done, partial) and done.func == self.arrived:  # a window that is read ahead
            end = done.args[0].found = {}

        def act():
            if op & OP_MASK == Op.WRITE:
                for sector, version in newest.items():
                    if self.parameters.lines or version > self.media.version[sector]:
                        self.media.version[sector] = (
                            version  # else: concurrent writes, any of them may win
                        )
            elif op & OP_MASK == Op.READ:
                end.update({sector: self.media.version[sector] for sector in sectors})

        def complete():
            if late:
                act()
            done()

        late = self.random.random() < 0.5
        if not late:
            act()
        self.submit_to_media(op, offset, length, complete)


@slowly
@given(controllers(ARRAY), workloads(), st.integers(0, 2**32))
def test_reads_return_acknowledged_writes_and_flushed_writes_are_on_the_array(
    parameters, requests, seed
):
    """READs return acknowledged data; flushed data are on the array."""
    clock = Clock()
    media = Media(clock)
    controller = Witness(clock, parameters, media, Random(seed))
    done = []
    for number, (time, *request) in enumerate(requests):
        submit = partial(controller.submit, *request, partial(done.append, number))
        clock.arrive(time, number, submit)
    clock.run()
    assert sorted(done) == list(range(len(requests)))
    if not controller.lines:
        controller.check(media.version, controller.known)


@slowly
@given(controllers(ARRAY), workloads())
def test_every_dirty_byte_is_destaged_overwritten_or_discarded_once(parameters, requests):
    """All dirty data are destaged after enough idle time."""
    clock = Clock()
    media = Media(clock)
    controller = PlainController(clock, parameters, media)
    for number, (time, *request) in enumerate(requests):
        clock.arrive(time, number, partial(controller.submit, *request, lambda: None))
    clock.run()
    count = controller.counters
    left = sum(len(line.dirty) for line in controller.lines.values()) * SECTOR
    ends = count["destaged_bytes"] + count["overwritten_bytes"] + count["discarded_bytes"]
    assert count["write_back_bytes"] == ends + left
    if parameters.idle_ns < loops.NEVER:
        assert left == 0


# Performance: RAID-5 of three disks, in bytes and times that follow from the scenario.

SITE = """
[backing]
members = 3
[backing.controller]
write_memory = "{write}"
idle = "1h"
max_destages = 16
"""
LATENCY_NS = 50_000


def wire_ns(length):
    return length * SECOND // 1_500_000_000


def closed_loop(offsets, length, op, depth=1, write="4MiB"):
    """Return latencies by request, and the machine after all requests completed."""
    site = Scenario.loads(SITE.format(write=write)).with_options(depth=depth)
    n = len(offsets)
    none, zero = np.full(n, -1), np.zeros(n, np.int64)
    ops, lengths = np.full(n, op, np.uint8), np.full(n, length)
    run = Run(building.machine(site, "closed", 1 << 33, 0), n + 1, interpreted=True)
    run.feed(Batch(zero, ops, np.asarray(offsets), lengths, none, zero, np.array([0, 1, 0])))
    until_ns = 0
    while run.facts.used[0] < n:  # one hour later all would be destaged
        until_ns += SECOND // 10
        run.advance(until_ns)
    facts = run.facts.drained()
    return (facts.done_ns - facts.issue_ns)[np.argsort(facts.number)], run.machine


def test_sequential_reads_are_served_from_dram():
    latency, machine = closed_loop(np.arange(400) * 64 * KIB, 64 * KIB, Op.READ)
    assert np.median(latency) == LATENCY_NS + wire_ns(64 * KIB)
    counts = machine.below.slow.dram_totals()
    assert counts["dram_read_bytes"] + counts["waited_bytes"] >= 396 * 64 * KIB


def test_random_reads_are_not_prefetched():
    offsets = np.random.default_rng(1).permutation(1 << 16)[:200] * 64 * KIB
    _, machine = closed_loop(offsets, 4 * KIB, Op.READ)
    counts = machine.below.slow.dram_totals()
    assert counts["ahead_bytes"] == counts["dram_read_bytes"] == 0


def test_small_writes_complete_in_dram_until_it_is_full():
    offsets = np.random.default_rng(1).permutation(1 << 20)[:1600] * 4096
    latency, machine = closed_loop(offsets, 4096, Op.WRITE)
    quick = LATENCY_NS + wire_ns(4096)
    assert (latency[:1024] == quick).all()
    assert np.median(latency[1200:]) > 20 * quick
    controller = machine.below.slow
    assert controller.lines.slots.used() <= controller.lines.slots.capacity == 1024


def test_sequential_small_writes_need_no_reads_for_parity():
    """Writes of 4 KiB merge into full stripes: two data chunks and their parity."""
    _, machine = closed_loop(np.arange(3000) * 4096, 4096, Op.WRITE)
    counts, disks = machine.below.slow.dram_totals(), machine.below.slow.device.totals(0)
    assert counts["destages"] == counts["full_stripes"] > 10
    assert disks["bytes_read"] == 0
    started = counts["full_stripes"] * 3 * 64 * KIB
    assert started - 16 * 3 * 64 * KIB <= disks["bytes_written"] <= started


def test_repeated_writes_of_one_block_are_destaged_once():
    _, machine = closed_loop(np.zeros(500, np.int64), 4096, Op.WRITE)
    counts = machine.below.slow.dram_totals()
    assert counts["overwritten_bytes"] == 499 * 4096
    assert counts["destaged_bytes"] <= 4096


# Its containers.


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5000)), max_size=100))
def test_an_ordered_set_equals_its_model(steps):
    numbers, plain = OrderedSet.below(5001), set()
    for what, number in steps:
        if what == 0:
            numbers.add(number)
            plain.add(number)
        elif what == 1:
            numbers.discard(number)
            plain.discard(number)
        else:
            later = [each for each in plain if each >= number]
            assert numbers.at_least(number) == (min(later) if later else -1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=100))
def test_a_slot_index_equals_its_model(numbers):
    slots, where = Slots.new(8), {}
    for number in numbers:
        assert slots.table.find(number) == where.get(number, -1)
        if number in where:
            slots.release(where.pop(number))
        elif slots.free[1] > 0:
            where[number] = slots.take(number)
        assert slots.used() == len(where)
    assert len(set(where.values())) == len(where)
