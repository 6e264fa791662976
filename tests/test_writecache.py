"""dm-writecache: the engine against the reference, and consequences of its rules."""

from random import Random
from types import SimpleNamespace

import agreement
import pytest
from engine import simulate
from hypothesis import given, settings
from scenarios import Scenario
from scenarios_writecache import writecache_scenarios

from hybridsim.caches import DmWritecache
from hybridsim.caches.nothing import NoCache
from hybridsim.caches.writecache.write_back import DONE, SLEEPS, WRITING, Copier, Slots
from hybridsim.foundation.codes import FUA, PREFLUSH, Op, Path, Reason, Replay
from hybridsim.foundation.errors import ScenarioError
from hybridsim.reference import (
    Request,
    SourceParameters,
    WritecacheParameters,
)
from hybridsim.scenario import Scenario as Site
from hybridsim.scenario import building

KIB, MIB = 1 << 10, 1 << 20
MS, SECOND = 10**6, 10**9
BLOCK, CACHE_NS = 4 * KIB, 20_000

usual = agreement.relaxed(4)


@usual
@given(writecache_scenarios())
def test_interpreted_engine_equals_reference(scenario):
    agreement.check(scenario, interpreted=True)


@settings(usual, max_examples=5)
@given(writecache_scenarios())
def test_batch_sizes_and_stops_do_not_change_the_result(scenario):
    agreement.check_cut(scenario)


# A cache of 1000 blocks that takes 20 us per request, before a device that takes 8 ms.


def ran(requests, depth=1, blocks=1000, **settings):
    """Return the counters after these requests, their facts, and the bytes of both tiers."""
    slow, fast = agreement.steady(8 * MS, 64 * MIB), agreement.steady(CACHE_NS, 64 * MIB)
    source = SourceParameters(Replay.CLOSED, depth) if depth else SourceParameters(Replay.OPEN)
    cache = WritecacheParameters(BLOCK, blocks, blocks // 2, blocks * 45 // 100, **settings)
    facts, finished = simulate(Scenario(requests, source, cache, slow, fast), interpreted=True)
    below = finished.below
    written = [tier.device.totals(0)["bytes_written"] for tier in (below.slow, below.fast)]
    return finished.cache.totals(), facts, written


def writes(blocks, at_ns=0):
    return [Request(at_ns, Op.WRITE, block * BLOCK, BLOCK) for block in blocks]


def later(seconds):
    """Return a read that lets the simulation go on until its arrival."""
    return [Request(int(seconds * SECOND), Op.READ, 0, BLOCK)]


def test_of_a_part_that_is_overwritten_one_block_counts_as_a_hit():
    """The kernel counts the others as allocated, though they take no slot."""
    part = Request(0, Op.WRITE, 0, 4 * BLOCK)
    totals, _, _ = ran([part, part])
    assert (totals["writes"], totals["write_hits_uncommitted"]) == (8, 1)
    assert (totals["writes_allocated"], totals["pages_present"]) == (4 + 3, 4)


def random_blocks(number):
    return Random(1).sample(range(16_384), number)


@pytest.mark.parametrize(("number", "left"), [(490, 490), (500, 500), (510, 450 + 9)])
def test_writeback_starts_above_50_percent_and_stops_at_45(number, left):
    """Nine come while the 501st is committed; by then it is decided what is written back."""
    totals, _, written = ran(writes(random_blocks(number)) + later(5), depth=0)
    assert totals["pages_present"] == left
    assert totals["blocks_written_back"] == number - left
    assert written[0] == (number - left) * BLOCK


def test_reads_are_never_cached():
    reads = [Request(0, Op.READ, block * BLOCK, BLOCK) for block in [*range(50), *range(50)]]
    totals, facts, _ = ran(reads)
    assert (totals["reads"], totals["read_hits"]) == (100, 0)
    assert {fact.reason for fact in facts} == {Reason.NOT_WRITTEN}


def test_written_blocks_are_read_from_the_cache_until_written_back():
    blocks = random_blocks(510)
    reads = [Request(5 * SECOND, Op.READ, block * BLOCK, BLOCK) for block in blocks]
    _, facts, _ = ran(writes(blocks) + reads, depth=0)
    hit = {fact.number - 510 for fact in facts if fact.op == Op.READ and fact.path == Path.HIT}
    assert hit == set(range(51, 510))  # the oldest are evicted


def test_writes_bypass_a_full_cache_and_writeback_waits_three_seconds():
    """One pass begins before the cache is full; the writes around it put off the next ones."""
    burst = writes(range(0, 2200, 2)) + writes(range(4000, 4100), SECOND)
    totals, facts, _ = ran(burst + later(3.9), depth=0)
    first_pass = totals["blocks_written_back"]
    assert 0 < first_pass <= 64
    assert totals["writes_allocated"] == 1000 + first_pass
    assert totals["writes_around"] == 200 - first_pass
    slow = [fact for fact in facts if fact.done_ns - fact.issue_ns >= 8 * MS]
    assert sum(fact.op == Op.WRITE for fact in slow) == 200 - first_pass
    totals, *_ = ran(burst + later(4.2), depth=0)
    assert totals["blocks_written_back"] == first_pass + 550
    assert totals["pages_present"] <= 450


def test_without_a_pause_writes_around_a_full_cache_do_not_put_off_write_back():
    burst = writes(range(0, 2200, 2)) + writes(range(4000, 4100), SECOND)
    totals, *_ = ran(burst + later(3.9), depth=0, pause_writeback_ns=0)
    # Down to 450 after the first ones, of those that came a second later 50 more stay.
    assert 450 < totals["pages_present"] <= 500


def test_flushes_put_write_back_off_as_writes_around_do():
    """In a real run with an fsync five times a second nothing was written back: it was full."""
    flushes = [Request(i * SECOND, Op.FLUSH, 0, 0) for i in range(7)]
    burst = writes(random_blocks(510))
    totals, *_ = ran([*flushes[:1], *burst, *flushes[1:], *later(8.9)], depth=0)
    assert totals["blocks_written_back"] == 0
    totals, *_ = ran([*flushes[:1], *burst, *flushes[1:], *later(9.5)], depth=0)
    assert totals["blocks_written_back"] == 60


def test_that_slots_are_free_becomes_durable():
    """Copies end in two lumps here: after the flush of each a region of the metadata is written."""
    blocks = random_blocks(501)
    totals, _, before = ran(writes(blocks[:500]) + later(2), depth=0)
    totals, _, after = ran(writes(blocks) + later(2), depth=0)
    assert totals["blocks_written_back"] == 51
    assert after[1] - before[1] == BLOCK + 2 * 64 * KIB


@pytest.mark.parametrize(("seconds", "passes"), [(0.5, 1), (1.5, 2), (2.5, 3), (3.5, 4), (9, 4)])
def test_a_pass_begins_a_pass_time_after_the_one_before(seconds, passes):
    """Not when its reads are complete, which takes 20 us here: 201 blocks are too many."""
    burst = writes(range(0, 4002, 2))
    totals, *_ = ran(burst + later(seconds), 0, blocks=4000, pass_time_ns=SECOND)
    assert totals["blocks_written_back"] == min(64 * passes, 201)


def test_a_rewritten_block_keeps_its_slot():
    again = Request(2 * SECOND, Op.WRITE, 0, BLOCK)
    totals, *_ = ran([*writes([0, 1, 0]), again, *later(4)], depth=0)
    assert totals["pages_present"] == 2
    assert (totals["write_hits_uncommitted"], totals["write_hits_committed"]) == (1, 1)


def test_contiguous_blocks_are_one_write_and_one_copy():
    big = Request(0, Op.WRITE, 0, 512 * BLOCK)
    totals, facts, _ = ran([big, *later(2)], depth=0)
    assert facts[0].done_ns - CACHE_NS in range(5)  # the link
    assert totals["blocks_written_back"] == 256  # more than the 62 that had to be written back
    assert totals["pages_present"] == 256


def test_writes_are_committed_after_one_second():
    for seconds, commits, metadata in ((0.9, 0, 0), (1.1, 1, 64 * KIB + 4 * KIB)):
        totals, _, written = ran(writes([7]) + later(seconds), depth=0)
        assert totals["commits"] == commits
        assert written[1] == BLOCK + metadata


def test_flush_and_fua_commit():
    """Metadata and superblock; nothing is written if no slot was allocated since."""
    flush = Request(0, Op.FLUSH, 0, 0)
    totals, facts, _ = ran([*writes([7]), flush, flush])
    assert (totals["flushes"], totals["commits"]) == (2, 1)
    assert facts[1].done_ns - facts[1].issue_ns == 2 * CACHE_NS
    fua = Request(0, Op.WRITE, 0, BLOCK, flags=FUA)
    totals, facts, _ = ran([fua, Request(0, Op.WRITE, BLOCK, BLOCK, flags=PREFLUSH | FUA)])
    took = [fact.done_ns - fact.issue_ns for fact in facts]
    assert took == [3 * CACHE_NS, 3 * CACHE_NS]
    assert (totals["flushes"], totals["commits"]) == (3, 2)


def test_requests_wait_during_a_commit():
    requests = [*writes([7]), Request(SECOND, Op.FLUSH, 0, 0), *writes([8], SECOND + 1)]
    _, facts, _ = ran(requests, depth=0)
    assert facts[-1].done_ns == SECOND + 3 * CACHE_NS


def test_discarded_blocks_are_removed():
    discard = Request(0, Op.DISCARD, 0, 10 * BLOCK)
    read = Request(0, Op.READ, 5 * BLOCK, 10 * BLOCK)
    totals, facts, _ = ran([*writes(range(20)), discard, read])
    assert totals["pages_present"] == 10
    assert (facts[-1].pages, facts[-1].pages_hit) == (10, 5)


@pytest.mark.long
def test_compiled_engine_equals_reference():
    @settings(usual, max_examples=20)
    @given(writecache_scenarios("ssd", "ssd", controller=False))
    def compare(scenario):
        agreement.check(scenario)

    compare()


# Scenarios.


def site(text):
    return Site.loads(f'[cache]\nkind = "dm-writecache"\n{text}')


def test_scenario_keys_set_the_parameters_of_the_built_cache():
    loaded = site('size = "1GiB"\nhigh_watermark = "60%"\nlow_watermark = "30%"')
    cache = building.machine(loaded, "open", 1 << 33, loaded.cache.pages(0)).cache
    assert isinstance(cache, DmWritecache)
    marks = (cache.write_back.high_watermark_blocks, cache.write_back.low_watermark_blocks)
    assert marks == (157_286, 78_643)
    assert Site.loads(loaded.to_toml()).cache == loaded.cache
    assert isinstance(building.machine(loaded, "open", 1 << 33, 0).cache, NoCache)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('block = "8KiB"', "power of two from 512 B to 4 KiB"),
        ('low_watermark = "60%"', "above the high watermark"),
        ('size = "2KiB"', "less than one block"),
        ('page = "64KiB"', "'page' is a key of another kind of cache"),
    ],
)
def test_impossible_settings_are_refused(text, complaint):
    with pytest.raises(ScenarioError, match=complaint):
        site(text)


# The worker that copies.


class Tier:
    """A tier that records what it is sent: (offset in blocks, length in blocks)."""

    capacity_bytes = 1 << 30

    def __init__(self):
        self.sent = []
        self.is_closed = False  # whether it holds background writes back

    def submit(self, now, tag, op, offset, length, events):
        self.sent.append((offset // BLOCK, length // BLOCK))

    def submit_background(self, now, tag, op, offset, length, events):
        self.submit(now, tag, op, offset, length, events)

    def holds_back(self):
        return self.is_closed


@pytest.fixture
def copier():
    """A worker, and slots 0 to 7 with the blocks 0, 2, 4 ... 14."""
    slots = Slots.new(100)
    for block in range(0, 16, 2):
        slots.take(block, 0)
    return Copier.new(BLOCK, slots)


def test_copies_in_adjacent_slots_are_one_read_and_a_write_each(copier):
    below = SimpleNamespace(slow=Tier(), fast=Tier(), events=None)
    for slot in (0, 1, 2, 5, 6):
        copier.add(slot, 1)
    copier.work(0, below)
    assert below.fast.sent == [(0, 3), (5, 2)]
    copier.on_read(0)
    copier.work(0, below)
    assert below.slow.sent == [(0, 1), (2, 1), (4, 1)]


def test_the_worker_sleeps_while_the_disk_holds_a_write_back(copier):
    """Meanwhile it starts nothing, and reports no copy that is complete."""
    below = SimpleNamespace(slow=Tier(), fast=Tier(), events=None)
    for slot in (0, 1, 2):
        copier.add(slot, 1)
    copier.work(0, below)
    below.slow.is_closed = True
    copier.on_read(0)
    copier.work(0, below)
    copier.add(5, 1)
    copier.work(0, below)
    assert (below.slow.sent, below.fast.sent) == ([(0, 1)], [(0, 3)])
    copier.on_written(0)
    assert copier.is_busy()
    below.slow.is_closed = False
    copier.state[SLEEPS] = 0
    copier.work(0, below)
    assert (below.slow.sent, below.fast.sent) == ([(0, 1), (2, 1), (4, 1)], [(0, 3), (5, 1)])
    assert not copier.is_busy()
    assert copier.queues.pop(DONE, copier.next) == 0


def test_the_queue_of_a_disk_takes_256_writes(copier):
    below = SimpleNamespace(slow=Tier(), fast=Tier(), events=None)
    copier.state[WRITING] = 255
    for slot in (0, 1):
        copier.add(slot, 1)
    copier.work(0, below)
    copier.on_read(0)
    copier.work(0, below)
    assert below.slow.sent == [(0, 1)]
    copier.on_written(0)
    copier.work(0, below)
    assert below.slow.sent == [(0, 1), (2, 1)]
