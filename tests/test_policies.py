"""Each policy against an obvious model, over accesses and evictions by chance."""

from collections import OrderedDict
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.policies import ADMISSION, LRU, REPLACEMENT, Learned, Touches, learned
from hybridsim.reference import policies as reference

IDS = 8  # room at first
PAGES = 60  # so that it has to grow


class TouchesModel:
    """Counts on a list of all accesses."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.accesses = []

    def consider(self, now, page, write, full):
        self.accesses.append(page)
        return min(self.accesses.count(page), 255) >= self.wanted

    def evicted(self, page):
        pass


class LruModel:
    """A dict in order of use."""

    def __init__(self):
        self.pages = OrderedDict()

    def admit(self, page):
        self.pages[page] = True

    def touch(self, page):
        self.pages.move_to_end(page)

    def remove(self, page):
        del self.pages[page]

    def evict(self):
        return self.pages.popitem(last=False)[0] if self.pages else -1


ADMISSION_MODELS = {
    "touches": lambda capacity: (Touches.new(IDS, capacity, 3), TouchesModel(3)),
    "learned": lambda capacity: (Learned.new(IDS, capacity), reference.Learned(capacity)),
}
REPLACEMENT_MODELS = {"lru": lambda: (LRU.new(IDS), LruModel())}


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
    """A cache of that many pages: a page comes, is used again, or is dropped (9)."""
    policy, model = REPLACEMENT_MODELS[name]()
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
        if len(resident) == capacity:
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
