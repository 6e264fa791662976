"""Writeback throttling: the rules of blk-wbt, and the engine against the reference.

The depths, windows and waits are those that were read in Linux 6.1 and seen in its traces.
"""

from random import Random

import agreement
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import Scenario as Small
from scenarios_bcache import bcache_scenarios
from scenarios_dmcache import dmcache_scenarios
from scenarios_opencas import opencas_scenarios
from scenarios_writecache import writecache_scenarios

from hybridsim.foundation.codes import CasMode, Cleaning, Cutoff, Op, Path, Replay
from hybridsim.foundation.errors import ScenarioError
from hybridsim.jit.events import SLOW, Events
from hybridsim.reference import (
    Clock,
    OpenCasParameters,
    Request,
    SourceParameters,
    Ssd,
    Throttle,
    ThrottleParameters,
)
from hybridsim.reference import Tier as PlainTier
from hybridsim.scenario import Scenario, building
from hybridsim.storage import throttle as engine
from hybridsim.storage.devices import SSD
from hybridsim.storage.raid import Tier

MS = 10**6
KIB, MIB = 1 << 10, 1 << 20
TARGET = 75 * MS


@pytest.mark.parametrize(
    ("queue_depth", "step", "depth", "normal", "background", "full"),
    [
        (256, 4, 1, 1, 1, False),
        (256, 3, 2, 2, 1, False),
        (256, 2, 4, 2, 1, False),
        (256, 1, 8, 4, 2, False),
        (256, 0, 16, 8, 4, False),
        (256, -1, 31, 16, 8, False),
        (256, -2, 61, 31, 16, False),
        (256, -3, 121, 61, 31, False),
        (256, -4, 192, 96, 48, True),
        (128, -3, 96, 48, 24, True),
        (32, 0, 16, 8, 4, False),
        (32, -1, 24, 12, 6, True),
        (8, 0, 8, 4, 2, False),
        (8, -1, 6, 3, 2, True),
        (2, 0, 2, 2, 1, False),
        (2, 1, 1, 1, 1, False),
        (1, 0, 2, 2, 1, True),
        (1, 1, 1, 1, 1, False),
    ],
)
def test_depths_and_limits(queue_depth, step, depth, normal, background, full):
    assert tuple(map(int, engine.depth_of(queue_depth, step))) == (depth, full)
    assert engine.limits_of(depth) == (depth, normal, background)
    assert Throttle.depth(queue_depth, step) == (depth, full)


@pytest.mark.parametrize(
    ("step", "window_ns", "ticks"),
    [
        (0, 100_000_000, 26),
        (1, 72_727_272, 19),
        (2, 59_259_259, 15),
        (3, 50_000_000, 13),
        (4, 45_714_285, 12),
    ],
)
def test_a_throttled_window_is_shorter_and_ends_a_jiffy_late(step, window_ns, ticks):
    made = Slow(compiled=True)
    made.part.state[engine.STEP] = step
    made.part.arm(0, made.events)
    assert made.part.state[engine.WINDOW] == window_ns
    assert made.events.heap.time_ns[0] == ticks * 4 * MS


class Slow:
    """Either throttle, on a device that takes the same time for all requests."""

    def __init__(self, compiled, write_cache=True, took_ns=50 * MS, target=TARGET, depth=256):
        self.compiled = compiled
        self.begun = []
        self.took_ns = took_ns
        parameters = ThrottleParameters(target, depth, write_cache)
        self.clock = Clock()
        tier = agreement.steady(took_ns, 16 * MIB)
        if compiled:
            self.events = Events.new(1024)
            bank = SSD.new(1, tier.device)
            array = Tier.new(SLOW, tier, bank)
            self.part = engine.Throttle.new(array, parameters, room=1024)
        else:
            array = PlainTier(tier, [Ssd(self.clock, tier.device)])
            self.part = Throttle(self.clock, parameters, array)
        self.ends = {}

    def run(self, requests):
        """When each request (time, op) ends; "background" is a write that nobody waits for."""
        last = max(at for at, _ in requests) + 300 * 10**9
        if not self.compiled:
            for number, (at, op) in enumerate(requests):
                self.clock.arrive(at, number, lambda number=number, op=op: self.ask(number, op))
            self.clock.run(until=last)
            return [self.ends[number] for number in range(len(requests))]
        todo = list(enumerate(requests))
        heap = self.events.heap
        while todo or not heap.is_empty():
            due = last if heap.is_empty() else int(heap.time_ns[0])
            if todo and todo[0][1][0] < due:
                number, (at, op) = todo.pop(0)
                self.submit(at, number, op)
                continue
            if due >= last:
                break
            what, now = int(heap.what[0]), due
            heap.pop()
            kinds = {SLOW: self.part.complete, engine.CONTROLLER: self.part.own_event}
            tag = kinds.get(what & 7, self.part.wake)(now, what >> 3, self.events)
            if tag >= 0:
                self.ends[int(tag)] = now
        return [self.ends[number] for number in range(len(requests))]

    def submit(self, now, number, op):
        if op == "background":
            args = (int(Op.WRITE), 4096 * number, 4096, self.events)
            self.part.submit_background(now, number, *args)
        else:
            self.part.submit(now, number, int(op), 4096 * number, 4096, self.events)

    def ask(self, number, op):
        def done():
            self.ends[number] = self.clock.now

        if op == "background":
            self.part.submit_background(Op.WRITE, 4096 * number, 4096, done)
        else:
            self.part.submit(op, 4096 * number, 4096, done)

    def totals(self):
        if self.compiled:
            names = [f"slow_{name}" for name in engine.COUNTERS]
            return dict(zip(names, self.part.counts.tolist()))
        return self.part.counters


both = pytest.mark.parametrize("compiled", [True, False])
READS = [(0, Op.READ)]
SIX = [(at * MS, "background") for at in range(6)]


@both
@pytest.mark.parametrize(("write_cache", "last"), [(True, [53, 53]), (False, [50, 51])])
def test_beside_reads_four_writes_go_and_then_as_many_as_places_are_free(
    compiled, write_cache, last
):
    """With a write cache the next go when all are complete.  Each takes 50 ms from then."""
    made = Slow(compiled, write_cache)
    ends = made.run([*READS, *SIX])[1:]
    assert ends == [(at + 50) * MS for at in [0, 1, 2, 3, *last]]
    held = sum(last) - 4 - 5
    assert made.totals()["slow_held_writes"] == 2
    assert made.totals()["slow_held_ns"] == held * MS


@both
def test_without_reads_eight_go_and_reads_and_waited_for_writes_always(compiled):
    made = Slow(compiled)
    ends = made.run([(at * MS, "background") for at in range(9)])
    assert ends == [(at + 50) * MS for at in range(8)] + [107 * MS]
    mixed = [*READS, *SIX, (6 * MS, Op.WRITE), (7 * MS, Op.READ)]
    assert Slow(compiled).run(mixed)[-2:] == [56 * MS, 57 * MS]


@both
def test_discards_do_not_wait_for_writes(compiled):
    """They take this SSD no time, so that none of them waits behind the writes that do."""
    made = Slow(compiled)
    assert made.run([*READS, *SIX, *[(6 * MS, Op.DISCARD)] * 5])[7:] == [6 * MS] * 5
    assert made.totals()["slow_held_writes"] == 2


@both
def test_slow_reads_lower_the_depth_to_one_and_quick_ones_raise_it(compiled):
    """A read older than the window counts by itself: step 4 after the fourth window."""
    slow = Slow(compiled, took_ns=200 * MS)
    reads = [(at * 10 * MS, Op.READ) for at in range(120)]
    writes = [(900 * MS + at, "background") for at in range(4)]
    ends = slow.run(
        sorted(
            [*reads, *[(at * 50 * MS, "background") for at in range(17)], *writes],
            key=lambda one: one[0],
        )
    )
    assert slow.totals()["slow_throttled_windows"] > 5
    assert len(ends) == len(reads) + 17 + 4
    quick = Slow(compiled, took_ns=MS)
    quick.run([*reads, *writes])
    assert quick.totals()["slow_throttled_windows"] == 0


@pytest.mark.parametrize("seed", range(8))
def test_both_throttles_agree(seed):
    random = Random(seed)
    what = ["background"] * 6 + [Op.READ] * random.choice([1, 6]) + [Op.WRITE, Op.DISCARD, Op.FLUSH]
    gap = random.choice([MS, 10 * MS, 40 * MS])
    at, requests = 0, []
    for _ in range(400):
        at += random.randrange(gap)
        requests.append((at, random.choice(what)))
        if random.random() < 0.01:
            at += random.choice([300 * MS, 2000 * MS])
    how = {
        "write_cache": random.random() < 0.5,
        "took_ns": random.choice([MS, 30 * MS, 90 * MS]),
        "target": random.choice([2 * MS, TARGET]),
        "depth": random.choice([1, 2, 8, 32, 256]),
    }
    made = [Slow(compiled, **how) for compiled in (True, False)]
    assert made[0].run(requests) == made[1].run(requests)
    assert made[0].totals() == made[1].totals()


@st.composite
def throttled_scenarios(draw):
    """A cache that cleans to one device behind a throttle."""
    kinds = (bcache_scenarios, dmcache_scenarios, writecache_scenarios, opencas_scenarios)
    scenario = draw(draw(st.sampled_from(kinds))(controller=False, slow_members=1))
    scenario.throttle = ThrottleParameters(
        draw(st.sampled_from([100_000, 2 * MS, TARGET])),
        draw(st.sampled_from([1, 2, 8, 256])),
        draw(st.booleans()),
    )
    return scenario


usual = agreement.relaxed(5)  # examples


@usual
@given(throttled_scenarios())
def test_interpreted_engine_equals_reference(scenario):
    agreement.check(scenario, interpreted=True)


@settings(usual, max_examples=5)
@given(throttled_scenarios())
def test_result_does_not_depend_on_how_it_is_cut(scenario):
    agreement.check_cut(scenario)


# In a scenario.

BCACHE = '[cache]\nkind = "bcache"\nsize = "300MiB"\n'
SINGLE = '[backing]\nkind = "single"\nmembers = 1\n'


def built(text, pages=76_800):
    site = Scenario.loads(text)
    return building.machine(site, "closed", 1 << 30, pages).below.slow


@pytest.mark.parametrize(
    ("backing", "target_ns", "write_cache"),
    [
        ('drive = {like = "hgst-ultrastar-7k8"}\nwriteback_throttle = "auto"', 75 * MS, 1),
        (
            'drive = {like = "hgst-ultrastar-7k8"}\nwriteback_throttle = "auto"\n'
            'write_cache = "off"',
            75 * MS,
            0,
        ),
        ('drive = {like = "hgst-ultrastar-7k8"}\nwriteback_throttle = "20ms"', 20 * MS, 1),
    ],
)
def test_below_bcache_a_single_disk_is_throttled_as_the_kernel_does(
    backing, target_ns, write_cache
):
    made = built(f"{SINGLE}{backing}\n{BCACHE}")
    assert (made.target_ns, made.queue_depth, made.has_write_cache) == (target_ns, 256, write_cache)


@pytest.mark.parametrize("kind", ["dm-writecache", "dm-cache", "open-cas"])
def test_it_wakes_the_thread_of_a_cache_that_sleeps_before_a_throttled_disk(kind):
    text = f'{SINGLE}drive = {{like = "hgst-ultrastar-7k8"}}\nwriteback_throttle = "auto"\n'
    slow = built(f'{text}[cache]\nkind = "{kind}"\nsize = "300MiB"\n', 4800)
    assert (slow.target_ns, slow.calls) == (75 * MS, building.SLEEPERS[kind])


def test_cleaning_in_open_cas_is_held_back_but_not_what_passes_it_by():
    """Its own writes have none of the flags of direct I/O, those that it passes on keep them."""
    text = f'{SINGLE}drive = {{like = "hgst-ultrastar-7k8"}}\nwriteback_throttle = "auto"\n'
    slow = built(f'{text}[cache]\nkind = "open-cas"\nsize = "300MiB"\n')
    assert slow.target_ns == 75 * MS
    held = []
    requests = [
        Request(i * MS, op, i % 64 * 65_536, 4096)
        for i in range(1500)
        for op in (Op.WRITE, Op.READ)
    ]
    for mode, cleaning in ((CasMode.WT, Cleaning.NOP), (CasMode.WB, Cleaning.ACP)):
        cache = OpenCasParameters(4096, 256, mode, cleaning=cleaning)
        tiers = agreement.steady(12 * MS, 64 << 20), agreement.steady(20_000, 64 << 20)
        source = SourceParameters(Replay.OPEN)
        scenario = Small(requests, source, cache, *tiers)
        scenario.throttle = ThrottleParameters(TARGET, 256, True)
        held.append(agreement.check(scenario, interpreted=True).counters["slow_held_writes"])
    assert held[0] == 0 < held[1]


def test_a_thread_of_open_cas_that_sleeps_keeps_only_requests_of_its_queue_waiting():
    """alru cleans 40 lines at 20.48 s, one at a time: queue 0 waits for half a second, 1 does not.

    So do not what begins without a thread: reads of valid sectors, also in queue 0.
    """
    took_ns = 12 * MS
    hot, cold = 8 << 20, 16 << 20
    dirty = [Request(i * MS, Op.WRITE, i * 4096, 4096) for i in range(40)]
    dirty += [Request(60 * MS + i * MS, Op.READ, hot + i * 4096, 4096) for i in range(2)]
    # One read each 5 ms, so that only one write at a time may be under way: n = 42, 43 ...
    later = [Request(20_000 * MS + i * 5 * MS, Op.READ, cold + i * 4096, 4096) for i in range(300)]
    hits = [Request(20_700 * MS + i * MS + 1, Op.READ, hot + i * 4096, 4096) for i in range(2)]
    cache = OpenCasParameters(
        4096, 4096, CasMode.WB, cleaning=Cleaning.ALRU, staleness_time_ns=1, queues=2,
        activity_threshold_ns=0, sequential_cutoff_policy=Cutoff.NEVER,
    )  # fmt: skip
    tiers = agreement.steady(took_ns, 64 << 20), agreement.steady(20_000, 64 << 20)
    requests = sorted([*dirty, *later, *hits], key=lambda each: each.arrival_ns)
    scenario = Small(requests, SourceParameters(Replay.OPEN), cache, *tiers)
    scenario.throttle = ThrottleParameters(TARGET, 1, True)
    facts = agreement.check(scenario, interpreted=True).facts
    while_asleep = [each for each in facts if 20_520 * MS < each.issue_ns < 20_900 * MS]
    took = {
        (queue, each.path): [
            one.done_ns - one.issue_ns
            for one in while_asleep
            if one.number % 2 == queue and one.path == each.path
        ]
        for queue in (0, 1)
        for each in while_asleep
    }
    assert min(took[0, Path.MISS]) > 50 * MS
    assert set(took[1, Path.MISS]) == {took_ns}
    assert max(took[0, Path.HIT] + took[1, Path.HIT]) == 20_000


@pytest.mark.parametrize(
    "text",
    [
        f"{SINGLE}{BCACHE}",
        f'{SINGLE}writeback_throttle = "off"\n{BCACHE}',
        f'[backing]\nkind = "stripe"\nmembers = 2\nwriteback_throttle = "auto"\n{BCACHE}',
        f'{SINGLE}writeback_throttle = "auto"\n[cache]\nkind = "page"\nsize = "300MiB"\n',
    ],
)
def test_what_is_off_is_not_there(text):
    assert isinstance(built(text, 4800), Tier)


def test_arrays_cannot_be_throttled():
    text = '[backing]\nkind = "stripe"\nmembers = 2\nwriteback_throttle = "75ms"\n'
    with pytest.raises(ScenarioError, match="for a single drive without a controller only"):
        Scenario.loads(text)
