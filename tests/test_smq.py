"""smq, dm-cache's policy: consequences of its rules, in the engine and in the reference.

The numbers come from an independent model of the rules; the threshold of 13 reads of one block
was also measured on Linux 6.1.192.
"""

from itertools import count
from random import Random

import pytest

from hybridsim.caches.dmcache import smq as work
from hybridsim.caches.dmcache.smq import EPOCH, JIFFY_NS, THRESHOLD, USED, Smq
from hybridsim.foundation.codes import Restart
from hybridsim.reference import smq as plain

GIB = 1 << 30
SECOND, MS = 10**9, 10**6
BLOCK = 64 * 1024


class Compiled:
    """Adapter of the engine's policy."""

    def __init__(self, blocks, origin=100 * GIB, block_bytes=BLOCK):
        self.smq = Smq.new(blocks, block_bytes, origin)
        self.promoting = {}
        self.running = {}
        self.tick = self.smq.tick

    def miss(self, block, write=False, fast=False):
        item = self.smq.miss(block, write, fast, block in self.promoting)
        if item >= 0:
            self.promoting[block] = item
        return int(item)

    def filled(self, block):
        item = self.promoting.pop(block)
        slot = self.smq.work.slot[item]
        self.smq.promoted(slot, block)
        self.smq.work.release(item)
        return int(slot)

    def begin(self, spare=False):
        """Return kind, block and slot of the work to begin now."""
        item = self.smq.next_work(spare)
        if item < 0:
            return None
        items = self.smq.work
        self.running[int(items.block[item])] = item
        return int(items.kind[item]), int(items.block[item]), int(items.slot[item])

    def end(self, block):
        """Complete the work begun for a block if it was not a promotion."""
        item = self.running.pop(block)
        slot = self.smq.work.slot[item]
        if self.smq.work.kind[item] == work.DEMOTE:
            self.smq.demoted(slot)
        else:
            self.smq.written_back(slot)
        self.smq.work.release(item)

    def reload(self, now):
        self.smq = self.smq.loaded(now // JIFFY_NS)
        self.tick = self.smq.tick

    def hit(self, block):
        self.smq.hit(self.smq.table.find(block))

    def dirty(self, block):
        slot = self.smq.table.find(block)
        if not self.smq.is_dirty[slot]:
            self.smq.set_dirty(slot)

    def demotions(self):
        return int(self.smq.work.state[work.DEMOTING])

    def hotspot_levels(self):
        hotspot = self.smq.hotspot
        return hotspot.queue.level[: hotspot.state[USED]].tolist()

    def was_hit(self, block):
        slot = self.smq.table.find(block)
        return bool(self.smq.hit_epoch[slot] == self.smq.state[EPOCH])

    def hotspot_size(self):
        """Return blocks per entry, entries, and entries in the top levels."""
        hotspot = self.smq.hotspot
        return hotspot.blocks_each, hotspot.queue.entries, hotspot.queue.in_top

    def threshold(self):
        return int(self.smq.hotspot.state[THRESHOLD])


class Plain:
    """Adapter of the reference's policy."""

    kinds = {plain.Kind.PROMOTION: 0, plain.Kind.DEMOTION: 1, plain.Kind.WRITE_BACK: 2}

    def __init__(self, blocks, origin=100 * GIB, block_bytes=BLOCK):
        self.smq = plain.Smq(blocks, block_bytes, origin)
        self.running = {}
        self.tick = self.smq.tick

    def miss(self, block, write=False, fast=False):
        is_wanted, promotion = self.smq.miss(block, write, fast)
        return 0 if promotion else -1 if is_wanted else -2

    def filled(self, block):
        work = self.smq.pending.promotions[block]
        self.smq.ended(work)
        return work.slot.number

    def begin(self, spare=False):
        begun = self.smq.next_work(spare)
        if begun is None:
            return None
        self.running[begun.block] = begun
        return self.kinds[begun.kind], begun.block, begun.slot.number

    def end(self, block):
        self.smq.ended(self.running.pop(block))

    def reload(self, now):
        self.smq.restart(now, Restart.CLEAN)

    def hit(self, block):
        self.smq.hit(self.smq.cached[block])

    def dirty(self, block):
        if not self.smq.cached[block].dirty:
            self.smq.dirtied(self.smq.cached[block])

    def demotions(self):
        return self.smq.pending.demotions

    def hotspot_levels(self):
        return [entry.level for entry in self.smq.hotspot.by_number.values()]

    def was_hit(self, block):
        return self.smq.cached[block].hit_in_period

    def hotspot_size(self):
        hotspot = self.smq.hotspot
        return hotspot.each, hotspot.entries_max, hotspot.queue.in_top

    def threshold(self):
        return self.smq.threshold


both = pytest.mark.parametrize("make", [Compiled, Plain])


def promoted_at(policy, reads, latency_ns, background=(), until=10**18):
    """Return the read of block 0 that promotes it; completions and full seconds are ticks."""
    policy.tick(0)
    seconds = count(SECOND, SECOND)
    others = iter([*background, (10**18, 0)])
    second, other = next(seconds), next(others)
    pending = []
    for number, now in enumerate(reads, 1):
        if now >= until:
            return None
        while min(second, other[0], *pending[:1]) < now:
            if pending and pending[0] <= min(second, other[0]):
                policy.tick(pending.pop(0))
            elif second <= other[0]:
                policy.tick(second)
                second = next(seconds)
            else:
                policy.miss(other[1])
                pending.append(other[0] + latency_ns)
                other = next(others)
        if policy.miss(0) >= 0:
            return number
        pending.append(now + latency_ns)
    return None


def every(seconds):
    return (int(i * seconds * SECOND) for i in range(10**6))


@both
def test_a_block_is_promoted_at_its_thirteenth_read(make):
    """Level 48 takes 12 hits, each of which raises it by 4."""
    assert promoted_at(make(16384), range(0, 900 * MS, 12 * MS), 12 * MS - 1) == 13


@both
def test_without_a_tick_a_block_rises_one_step(make):
    policy = make(16384)
    policy.tick(0)
    assert all(policy.miss(0) < 0 for _ in range(2000))
    assert policy.hotspot_levels() == [4]


@both
@pytest.mark.parametrize(
    ("period", "read"), [(0.1, 12), (0.25, 6), (0.5, 4), (1.5, 3), (5, 2), (30, 2)]
)
def test_a_single_block_is_promoted_sooner_after_the_first_second(make, period, read):
    assert promoted_at(make(16384), every(period), 8 * MS) == read


def among_misses(policy, period, seconds):
    """Do the same among 125 misses a second anywhere in a TiB, which fill the hotspot queue."""
    random = Random(1)
    misses = [(i * 8 * MS + 1, random.randrange(1, 1 << 24)) for i in range(125 * (34 + seconds))]
    reads = (34 * SECOND + now for now in every(period))
    return promoted_at(policy, reads, 8 * MS - 2, misses, (34 + seconds) * SECOND)


@both
def test_among_many_misses_a_block_is_promoted_at_its_thirteenth_read(make):
    assert among_misses(make(16384, 1024 * GIB), 0.1, 3) == 13


@both
@pytest.mark.parametrize("period", [1, 5])
def test_among_many_misses_one_read_a_second_does_not_promote(make, period):
    """It leaves the queue before it is read again."""
    assert among_misses(make(16384, 1024 * GIB), period, 16) is None


@both
@pytest.mark.parametrize(
    ("touched", "high"), [(10, 10), (64, 64), (65, 64), (640, 144), (4096, 640)]
)
def test_redistribution_moves_few_hotspot_blocks_to_the_top_levels(make, touched, high):
    policy = make(16384)
    policy.tick(0)
    for number in range(touched):
        policy.miss(16 * number)
    policy.tick(2 * SECOND)
    assert sum(level >= 48 for level in policy.hotspot_levels()) == high


@both
@pytest.mark.parametrize(
    ("blocks", "kib", "origin", "size"),
    [
        (16384, 64, 100 * GIB, (16, 4096, 64)),
        (16384, 64, 8 * GIB, (16, 4096, 64)),
        (16384, 64, 2 * GIB, (8, 4096, 64)),
        (16384, 64, GIB, (4, 4096, 64)),
        (4096, 256, 100 * GIB, (16, 1024, 16)),
        (1024, 64, 100 * GIB, (16, 1024, 16)),
        (163840, 64, 1024 * GIB, (16, 40960, 640)),
    ],
)
def test_the_hotspot_queue_covers_four_cache_sizes_or_the_origin(make, blocks, kib, origin, size):
    assert make(blocks, origin, kib * 1024).hotspot_size() == size


@both
@pytest.mark.parametrize(("spans", "threshold"), [(1, 0), (2, 32), (4, 48)])
def test_a_higher_hit_ratio_of_the_hotspot_queue_lowers_the_threshold(make, spans, threshold):
    """15.6 % of the entries are in the top levels; misses span `spans` times the queue's size."""
    random = Random(1)
    policy = make(4096)
    assert policy.threshold() == 64  # no promotion before the first tick
    policy.tick(0)
    for now in (2 * SECOND, 2 * SECOND + 1):
        for _ in range(6000):
            policy.miss(16 * random.randrange(spans * 1024))
        policy.tick(now)
    assert policy.threshold() == threshold


@both
def test_misses_spread_over_a_large_origin_keep_the_threshold_high(make):
    random = Random(1)
    policy = make(1024)
    policy.tick(0)
    seen = []
    for number in range(8000):
        policy.miss(random.randrange(100 * GIB // BLOCK))
        policy.tick(number * MS)
        seen.append(policy.threshold())
    assert set(seen) <= {48, 32, 0}
    assert seen.count(48) > 0.8 * len(seen)


@both
@pytest.mark.parametrize(
    ("reads_each", "reads_a_tick", "promoted"),
    [(16, 1, 1000), (1, 1, 988), (16, 32, 0), (1, 32, 0)],
)
def test_a_scan_is_promoted_if_every_read_is_a_tick(make, reads_each, reads_a_tick, promoted):
    policy = make(16384, 1024 * GIB)
    policy.tick(0)
    let_in = set()
    for number in range(1000 * reads_each):
        block = number // reads_each
        if block not in let_in and policy.miss(block) >= 0:
            let_in.add(block)
        if number % reads_a_tick == reads_a_tick - 1:
            policy.tick(number * 60_000)
    assert len(let_in) == promoted


@both
def test_whole_block_writes_are_promoted_while_slots_are_free(make):
    policy = make(1024)
    policy.tick(0)
    answers = [policy.miss(block, write=True, fast=True) for block in range(3000)]
    assert [answer >= 0 for answer in answers] == [block < 1024 for block in range(3000)]
    assert policy.demotions() == 0


def full(make, blocks):
    """Return a full cache of clean blocks 0, 1, ... whose policy promotes every miss."""
    policy = make(blocks)
    policy.tick(0)
    for block in range(blocks):
        policy.miss(block, write=True, fast=True)
        policy.filled(block)
    for _ in range(20):  # now the hotspot queue has hits
        policy.miss(10**6)
        policy.tick(1)
    return policy


@both
def test_a_full_cache_demotes_nothing_for_60_seconds_and_then_a_quarter_at_a_time(make):
    policy = full(make, 1024)
    for _ in range(2000):
        assert policy.miss(10**6) == -1
    assert policy.demotions() == 0
    policy.tick(61 * SECOND)
    for _ in range(20):
        policy.miss(10**6)
        policy.tick(61 * SECOND + 1)
    for _ in range(2000):
        assert policy.miss(10**6) == -1
    assert policy.demotions() == 256


@both
def test_half_of_the_cache_is_replaced_in_a_period(make):
    policy = full(make, 64)
    left = 0
    for now in (61 * SECOND, 62 * SECOND):
        for number in range(1, 500):
            policy.miss(10**6 + number % 8)
            policy.tick(now + number)
            begun = policy.begin()
            if begun and begun[0] == work.DEMOTE:
                policy.end(begun[1])
                left += 1
            elif begun:
                policy.filled(begun[1])
    assert left == 32


@both
def test_the_last_queued_work_begins_first(make):
    policy = make(1024)
    policy.tick(0)
    for block in (0, 16, 32):
        policy.miss(block)
    policy.tick(2 * SECOND)
    for block in (0, 16, 32):
        assert policy.miss(block) >= 0
    assert [policy.begin()[1] for _ in range(3)] == [32, 16, 0]


@pytest.mark.parametrize("seed", range(4))
def test_engine_and_reference_make_the_same_decisions(seed):
    """Some thousand random calls, with more blocks than the hotspot queue holds.

    From time to time all queued work is done and the cache is reloaded.
    """
    random = Random(seed)
    blocks = random.choice([8, 64, 200])
    policies = [make(blocks, 1 << 40) for make in (Compiled, Plain)]

    def ask(name, *arguments):
        answers = [getattr(policy, name)(*arguments) for policy in policies]
        answers = [max(one, -3) if isinstance(one, int) else one for one in answers]
        if name == "miss":
            answers = [min(one, 0) for one in answers]
        assert answers[0] == answers[1], (name, arguments)
        return answers[0]

    now, cached, filling = 0, set(), []

    def work_is_done():
        begun = ask("begin", random.random() < 0.2)
        if begun is None:
            return False
        if begun[0] == work.PROMOTE:
            assert ask("filled", begun[1]) == begun[2]
            filling.remove(begun[1])
            cached.add(begun[1])
        else:
            ask("end", begun[1])
            if begun[0] == work.DEMOTE:
                cached.discard(begun[1])
        return True

    ask("tick", 0)
    for step in range(5000):
        if step in (2000, 3500):
            while work_is_done():
                pass
            assert not filling
            ask("reload", now)
            assert policies[0].hotspot_levels() == []
        now += random.choice([1, MS, 10 * MS, 10 * MS, 200 * MS])
        what = random.randrange(100)
        block = random.choice([random.randrange(4 * blocks), random.randrange(1 << 20)])
        if what < 20:
            ask("tick", now)
        elif what < 70:
            if block in cached:
                ask("hit", block)
                if random.randrange(3) == 0:
                    ask("dirty", block)
            elif ask("miss", block, random.random() < 0.5, False) == 0:
                filling.append(block)
        else:
            work_is_done()
    assert ask("demotions") >= 0
    assert sorted(policies[0].hotspot_levels()) == sorted(policies[1].hotspot_levels())


def with_a_full_list(make, blocks=6000):
    """4,096 promotions are pending, of blocks 0, 1, ... into slots 0, 1, ..."""
    policy = make(blocks)
    policy.tick(0)
    for block in range(work.ITEMS_MAX):
        assert policy.miss(block, write=True, fast=True) >= 0
    return policy


@both
def test_a_refused_promotion_puts_its_slot_behind_the_other_free_ones(make):
    policy = with_a_full_list(make)
    for block in (10**6, 10**6 + 1):
        assert policy.miss(block, write=True, fast=True) == -1
    assert policy.miss(5, write=True, fast=True) == -1  # is being promoted: takes no slot
    assert policy.filled(0) == 0
    assert policy.miss(10**6, write=True, fast=True) >= 0
    assert policy.filled(10**6) == work.ITEMS_MAX + 2


@both
@pytest.mark.parametrize("refused", [False, True])
def test_a_refused_write_back_goes_to_the_front_of_its_level(make, refused):
    """Before its sentinels: it counts as old then, so that a miss has it cleaned."""
    policy = make(5 + work.ITEMS_MAX)
    policy.tick(0)
    for block in range(5):
        policy.miss(block, write=True, fast=True)
        policy.filled(block)
        policy.dirty(block)
    for block in range(5, 5 + work.ITEMS_MAX):
        assert policy.miss(block, write=True, fast=True) >= 0
    for _ in range(20):  # now every miss passes
        policy.miss(10**6)
        policy.tick(1)
    if refused:
        assert policy.begin(spare=True) is None
    policy.filled(5)
    assert policy.miss(10**6) == -1
    assert policy.begin() == ((work.WRITE_BACK, 0, 0) if refused else None)


@both
@pytest.mark.parametrize(("jiffies", "is_old"), [(2499, False), (2500, True)])
def test_a_block_is_old_a_jiffy_less_than_ten_seconds_after_the_first_tick(make, jiffies, is_old):
    """The policy exists a jiffy before its first tick, and all its periods begin there."""
    policy = make(4)
    policy.tick(0)
    for block in range(4):
        policy.miss(block, write=True, fast=True)
        policy.filled(block)
        policy.dirty(block)
    for late in (jiffies, jiffies + 2501):  # the second change of sentinels passes the block
        policy.tick(late * JIFFY_NS)
    for _ in range(20):  # now every miss passes
        policy.miss(10**6)
        policy.tick((jiffies + 2501) * JIFFY_NS)
    assert policy.miss(10**6) == -1
    begun = policy.begin()
    assert (begun[0] if begun else None) == (work.WRITE_BACK if is_old else None)


@both
def test_after_a_reload_no_slot_counts_as_hit_not_even_a_free_one(make):
    policy = full(make, 4)
    policy.tick(61 * SECOND)
    for block in range(4):
        policy.hit(block)
    for _ in range(20):
        policy.miss(10**6)
        policy.tick(61 * SECOND + 1)
    _, demoted, free = policy.begin()
    policy.end(demoted)
    policy.reload(62 * SECOND)
    policy.miss(4, write=True, fast=True)
    assert policy.filled(4) == free
    assert not policy.was_hit(4)
    policy.hit(4)
    assert policy.was_hit(4)


@pytest.mark.parametrize("seed", range(3))
def test_engine_and_reference_decide_alike_when_the_list_of_work_is_full(seed):
    """Whole-block writes, hits that make dirty, and work that is begun but seldom ends."""
    random = Random(seed)
    policies = [make(6000, 1 << 40) for make in (Compiled, Plain)]
    now, cached, filling, running = 0, set(), set(), {}
    refused = {"promotion": 0, "write-back": 0}

    def ask(name, *arguments):
        answers = [getattr(policy, name)(*arguments) for policy in policies]
        if name == "miss":
            answers = [min(one, 0) for one in answers]
        assert answers[0] == answers[1], (name, arguments)
        return answers[0]

    def pending():
        return len(policies[1].smq.pending.all)

    def miss(block):
        full = pending() == work.ITEMS_MAX
        if ask("miss", block, True, True) == 0:
            filling.add(block)
        elif full and block not in filling and policies[1].smq.free:
            refused["promotion"] += 1

    def begin(spare):
        dirty = any(policies[1].smq.dirty.counts)
        full = pending() == work.ITEMS_MAX
        begun = ask("begin", spare)
        if begun is not None:
            assert begun[0] != work.PROMOTE  # these begin at once
            running[begun[1]] = begun[0]
        elif spare and full and dirty:
            refused["write-back"] += 1

    def end(count):
        for block in random.sample(sorted(filling), min(count, len(filling))):
            ask("filled", block)
            filling.discard(block)
            cached.add(block)
        for block in random.sample(sorted(running), min(count, len(running))):
            ask("end", block)
            if running.pop(block) == work.DEMOTE:
                cached.discard(block)

    ask("tick", 0)
    for block in range(1400):
        miss(block)
        end(1)
        if block % 4 == 0:
            ask("dirty", block)
    for block in range(1400, 1400 + work.ITEMS_MAX):
        miss(block)
    for _ in range(20):
        for _ in range(150):
            block = random.randrange(9000)
            if block not in cached:
                miss(block)
            elif random.random() < 0.8:
                ask("hit", block)
                if random.random() < 0.7 and block not in running:
                    ask("dirty", block)
        for _ in range(random.choice([0, 5, 200])):
            begin(random.random() < 0.9)
        now += random.choice([MS, SECOND, 11 * SECOND])
        ask("tick", now)
        end(random.choice([0, 1, 60, 60]))
    assert min(refused.values()) > 5, refused
