"""Each policy against an obvious model, over accesses and evictions by chance."""

from collections import OrderedDict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.policies import (
    ADMISSION,
    LRU,
    REPLACEMENT,
    Learned,
    Touches,
    learned,
)
from hybridsim.policies.always import Always
from hybridsim.policies.arc import ARC
from hybridsim.policies.clock import CLOCK
from hybridsim.policies.fifo import FIFO
from hybridsim.policies.larc import LARC
from hybridsim.policies.lfu import LFU
from hybridsim.policies.lhd import LHD
from hybridsim.policies.lirs import LIRS
from hybridsim.policies.probabilistic import Probabilistic
from hybridsim.policies.reject_first import RejectFirst
from hybridsim.policies.request_size import RequestSize
from hybridsim.policies.s3_fifo import S3FIFO
from hybridsim.policies.sieve import SIEVE
from hybridsim.policies.sievestore import SieveStore
from hybridsim.policies.slru import SLRU
from hybridsim.policies.tinylfu import TinyLFU
from hybridsim.policies.two_q import TwoQ
from hybridsim.policies.w_tinylfu import WTinyLFU
from hybridsim.reference import admission, replacement
from hybridsim.reference import policies as reference
from hybridsim.reference import replacement_by_density as by_density
from hybridsim.reference import replacement_by_stack as by_stack

IDS = 8  # room at first
PAGES = 60  # so that it has to grow


ADMISSION_MODELS = {
    "always": lambda pages: (Always.new(IDS, pages), reference.Touches(1)),
    "touches": lambda pages: (Touches.new(IDS, pages, 3), reference.Touches(3)),
    "learned": lambda pages: (Learned.new(IDS, pages), reference.Learned(pages)),
    "reject-first": lambda pages: (RejectFirst.new(IDS, pages), admission.RejectFirst(pages)),
    "larc": lambda pages: (LARC.new(IDS, pages), admission.Larc(pages)),
    "tinylfu": lambda pages: (TinyLFU.new(IDS, pages), admission.TinyLfu(pages)),
    "sievestore": lambda pages: (SieveStore.new(IDS, pages), admission.SieveStore(pages)),
    "probabilistic": lambda pages: (
        Probabilistic.new(IDS, pages, 400_000, 5),
        admission.Probabilistic(400_000, 5),
    ),
    "request-size": lambda pages: (RequestSize.new(IDS, pages, 8192), admission.RequestSize(8192)),
}
REPLACEMENT_MODELS = {
    "fifo": lambda pages: (FIFO.new(IDS, pages), replacement.Fifo()),
    "clock": lambda pages: (CLOCK.new(IDS, pages), replacement.SecondChance()),
    "lru": lambda pages: (LRU.new(IDS, pages), reference.Lru()),
    "slru": lambda pages: (SLRU.new(IDS, pages), replacement.Slru(pages)),
    "2q": lambda pages: (TwoQ.new(IDS, pages), replacement.TwoQ(pages)),
    "lfu": lambda pages: (LFU.new(IDS, pages), replacement.Lfu()),
    "arc": lambda pages: (ARC.new(IDS, pages), replacement.Arc(pages)),
    "lhd": lambda pages: (LHD.new(IDS, pages), by_density.Lhd(pages)),
    "lirs": lambda pages: (LIRS.new(IDS, pages), by_stack.Lirs(pages)),
    "s3-fifo": lambda pages: (S3FIFO.new(IDS, pages), replacement.S3Fifo(pages)),
    "sieve": lambda pages: (SIEVE.new(IDS, pages), replacement.Sieve()),
    "w-tinylfu": lambda pages: (WTinyLFU.new(IDS, pages), by_stack.WTinyLfu(pages)),
}


def test_every_policy_has_a_model():
    assert ADMISSION_MODELS.keys() == ADMISSION.keys()
    assert REPLACEMENT_MODELS.keys() == REPLACEMENT.keys()


class Growing:
    """A policy that is made to grow whenever a page is met for which it has no room."""

    def __init__(self, policy):
        self.policy = policy
        self.ids = IDS

    def make_room(self, page):
        while page >= self.ids:
            self.ids *= 2
            self.policy = self.policy.grown(self.ids)


@pytest.mark.parametrize("name", REPLACEMENT)
@given(
    capacity=st.integers(1, 20),
    steps=st.lists(st.tuples(st.integers(0, PAGES - 1), st.integers(0, 9)), max_size=300),
)
def test_replacement_equals_its_model(name, capacity, steps):
    replace_with_both(name, capacity, steps)


LONG = {"lhd": 18_000}  # so that it learns


@pytest.mark.parametrize("name", REPLACEMENT)
@pytest.mark.parametrize("capacity", [120, 250])
def test_replacement_over_a_long_time(name, capacity):
    """Long enough for counters to be halved, and for queues to clear away what has left them."""
    random = Random(capacity)
    steps = [
        (int(random.paretovariate(0.5)) % 600, random.randrange(200) // 20 if i % 9 == 0 else 0)
        for i in range(LONG.get(name, 6_000))
    ]
    replace_with_both(name, capacity, steps)


@pytest.mark.parametrize("name", REPLACEMENT)
def test_replacement_when_many_pages_come_in_vain(name):
    """They are missed again, some after they had returned from the ghosts."""
    random = Random(1)
    steps = [
        (int(random.paretovariate(0.7)) % 60, random.choice([0, 0, 7, 8])) for _ in range(3000)
    ]
    replace_with_both(name, 12, steps)


def replace_with_both(name, capacity, steps):
    """A cache of that many pages: a page comes, is used again, or is dropped (9).

    At 8 it does not come after all; at 7 the page that is to go for it cannot, as if it were dirty.
    """
    policy, model = REPLACEMENT_MODELS[name](capacity)
    growing = Growing(policy)
    resident = set()
    for page, what in steps:
        growing.make_room(page)
        policy = growing.policy
        if page in resident:
            for each in (policy, model):
                each.remove(page) if what == 9 else each.touch(page)
            if what == 9:
                resident.remove(page)
            continue
        for each in (policy, model):
            each.missed(page)
        if what == 8:  # as when a page is overwritten while it is being filled: it never comes
            continue
        if len(resident) == capacity:
            victim = policy.evict()
            assert victim == model.evict()
            if what == 7:
                for each in (policy, model):
                    each.missed(victim)
                    each.admit(victim)
                victim = policy.evict()
                assert victim == model.evict()
            resident.remove(victim)  # no other than a resident page is given up
        for each in (policy, model):
            each.admit(page)
        resident.add(page)
        assert len(resident) <= capacity
    for _ in range(len(resident) + 1):
        assert growing.policy.evict() == model.evict()
    assert growing.policy.evict() == -1


@pytest.mark.parametrize("name", ADMISSION)
@given(
    capacity=st.integers(1, 20),
    steps=st.lists(st.tuples(st.integers(0, PAGES - 1), st.booleans()), max_size=300),
)
def test_admission_equals_its_model(name, capacity, steps):
    drive_both(name, capacity, steps)


def drive_both(name, capacity, steps):
    """Let a policy and its model admit to a cache that gives up its oldest pages."""
    policy, model = ADMISSION_MODELS[name](capacity)
    growing = Growing(policy)
    cached = OrderedDict()
    for now, (page, write) in enumerate(steps):
        growing.make_room(page)
        full = len(cached) == capacity
        length = (page % 5 + 1) * 4096
        growing.policy.request(page * 4096, length, write)
        model.request(page * 4096, length, write)
        wanted = growing.policy.consider(now, page, write, full)
        assert bool(wanted) == model.consider(now, page, write, full)
        if page in cached or not wanted:
            continue
        if full:
            victim = cached.popitem(last=False)[0]
            growing.policy.evicted(victim)
            model.evicted(victim)
        cached[page] = True
    return growing.policy, model


@pytest.mark.parametrize("seed", range(3))
def test_learned_admission_over_a_long_time(seed):
    """Long enough for classes to be halved, and for the ring of samples to wrap and to fill."""
    random = Random(seed)
    scan = iter(range(10_000, 10**9))
    steps = [
        (int(random.paretovariate(0.7)) % 3000 if random.random() < 0.7 else next(scan),
         random.random() < 0.2)
        for _ in range(30_000)
    ]  # fmt: skip
    policy, model = drive_both("learned", [20, 300, 5000][seed], steps)
    assert policy.good.tolist() == model.good
    assert policy.total.tolist() == model.total
    clock, horizon, head, used = policy.state.tolist()
    assert (clock, horizon, used) == (model.clock, model.horizon, len(model.samples))
    samples = [(head + i) % learned.SAMPLES for i in range(used)]
    assert policy.sample_clock[samples].tolist() == [each.clock for each in model.samples]


def test_samples_wrap_around_the_ring_and_classes_forget():
    """What the long test relies on."""
    policy = Learned.new(8, 4)
    for now in range(3 * learned.SAMPLES):
        policy.consider(now, now % 8, False, True)
    assert policy.state[learned.CLOCK] == 3 * learned.SAMPLES
    assert policy.total.max() < learned.FORGET
    assert policy.total.max() >= learned.FORGET // 2


def test_touches_saturate():
    policy = Touches.new(4, 1, 255)
    answers = [policy.consider(now, 2, False, True) for now in range(600)]
    assert answers == [False] * 254 + [True] * 346
