"""Each policy against a naive model, over random accesses and evictions."""

from collections import OrderedDict
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.caches.policies import ADMISSION, REPLACEMENT, Learned, Touches, make, pair
from hybridsim.caches.policies.learned import policy as learned_policy
from hybridsim.caches.policies.learned import reuse
from hybridsim.caches.policies.learned.habits import AGES, CLASS_MAX, CLOCK_AT, PACE, REST, Regions
from hybridsim.caches.policies.learned.reuse import chance_of
from hybridsim.caches.policies.probabilistic import Probabilistic
from hybridsim.caches.policies.request_size import RequestSize
from hybridsim.engine.residency import Nowhere, Residency
from hybridsim.reference import learned as twin
from hybridsim.reference import models
from hybridsim.reference import policies as reference

IDS = 8  # initial size
PAGE = 1 << 16  # bytes
PAGES = 60  # so that it must grow


def replacement_with_model(name):
    """Return a function of the pages of a cache: the policy, and its model of the same name."""
    return lambda pages: (
        make(REPLACEMENT[name], IDS, pages, {"admits": False}),
        models.REPLACEMENT[name](pages),
    )


def admission_with_model(name):
    return lambda pages: (ADMISSION[name].new(IDS, pages), models.ADMISSION[name](pages))


ADMISSION_MODELS = {
    **{name: admission_with_model(name) for name in models.ADMISSION},
    # Those with parameters of their own:
    "touches": lambda pages: (Touches.new(IDS, pages, 3), reference.Touches(3)),
    "learned": lambda pages: (
        Learned.new(IDS, pages, 50, replaces=False),
        twin.Learned(pages, 50, replaces=False),
    ),
    "probabilistic": lambda pages: (
        Probabilistic.new(IDS, pages, 400_000, 5),
        reference.Probabilistic(400_000, 5),
    ),
    "request-size": lambda pages: (RequestSize.new(IDS, pages, 8192), reference.RequestSize(8192)),
}
REPLACEMENT_MODELS = {
    **{name: replacement_with_model(name) for name in models.REPLACEMENT},
    "learned": lambda pages: (
        Learned.new(IDS, pages, admits=False),
        twin.Learned(pages, admits=False),
    ),
}


def test_every_policy_has_a_model():
    """What is missing here is a model in plain Python: a line in reference/models.py."""
    assert ADMISSION_MODELS.keys() == ADMISSION.keys()
    assert REPLACEMENT_MODELS.keys() == REPLACEMENT.keys()


class Growing:
    """Wraps a policy and grows it whenever a page number exceeds its size."""

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


LONG = {"lhd": 18_000, "learned": 1_500}  # it learns; it is slow, and has its own test


@pytest.mark.parametrize("name", REPLACEMENT)
@pytest.mark.parametrize("capacity", [120, 250])
def test_replacement_equals_its_model_in_a_long_run(name, capacity):
    """Long enough for counters to be halved, and for queues to remove stale entries."""
    random = Random(capacity)
    steps = [
        (int(random.paretovariate(0.5)) % 600, random.randrange(200) // 20 if i % 9 == 0 else 0)
        for i in range(LONG.get(name, 6_000))
    ]
    replace_with_both(name, capacity, steps)


@pytest.mark.parametrize("name", REPLACEMENT)
def test_replacement_equals_its_model_with_many_cancelled_admissions(name):
    """They are missed again, some after a hit in the ghost list."""
    random = Random(1)
    steps = [
        (int(random.paretovariate(0.7)) % 60, random.choice([0, 0, 7, 8])) for _ in range(3000)
    ]
    replace_with_both(name, 12, steps)


def replace_with_both(name, capacity, steps):
    """Run a cache of this capacity: a page is admitted, touched again, or dropped (9).

    At 8 the admission is cancelled; at 7 the eviction is refused, as if the victim were dirty.
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
        if what == 8:  # as for a page overwritten during its fill: the fill is cancelled
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
            resident.remove(victim)  # the victim is always a resident page
        for each in (policy, model):
            each.admit(page)
        resident.add(page)
        assert len(resident) <= capacity
    for _ in range(len(resident) + 1):
        assert growing.policy.evict() == model.evict()
    assert growing.policy.evict() == -1


@pytest.mark.parametrize("name", REPLACEMENT)
@pytest.mark.parametrize("capacity", [1, 12, 100])
def test_a_victim_is_a_cached_page_and_each_is_evicted_once(name, capacity):
    """Whatever is admitted, touched, removed, or missed and not admitted."""
    random = Random(capacity)
    growing = Growing(make(REPLACEMENT[name], IDS, capacity, {"admits": False}))
    resident = set()
    for _ in range(3000):
        page = int(random.paretovariate(0.7)) % (4 * capacity + 9)
        growing.make_room(page)
        policy, what = growing.policy, random.randrange(10)
        if page in resident:
            if what == 9:
                policy.remove(page)
                resident.remove(page)
            else:
                policy.touch(page)
            continue
        policy.missed(page)
        if what == 8:
            continue
        if len(resident) == capacity:
            resident.remove(policy.evict())
        policy.admit(page)
        resident.add(page)
    while resident:
        resident.remove(growing.policy.evict())
    assert growing.policy.evict() == -1


@pytest.mark.parametrize("name", ADMISSION)
@given(
    capacity=st.integers(1, 20),
    steps=st.lists(st.tuples(st.integers(0, PAGES - 1), st.booleans()), max_size=300),
)
def test_admission_equals_its_model(name, capacity, steps):
    drive_both(name, capacity, steps)


def drive_both(name, capacity, steps):
    """Let a policy and its model admit pages to a cache with FIFO eviction."""
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


@pytest.fixture
def forgetful(monkeypatch):
    """Learned policies with so little memory that forgetting matters."""
    for kernels, name, model, its_name, few in [
        (reuse, "RING", twin, "RING", 512),
        (reuse, "LOOKED", twin, "LOOKED", 1000),
        (reuse, "FORGET", twin, "FORGET", 40 * reuse.WEIGHT),
    ]:
        monkeypatch.setattr(kernels, name, few)
        monkeypatch.setattr(model, its_name, few)


@pytest.mark.parametrize(
    ("role", "price", "capacity", "pages", "early"),
    [
        ("both", 0, 20, 60, 3000),
        ("both", 100, 60, 400, 2500),
        ("both", 300, 9, 400, 2500),
        ("both", 1000, 30, 4000, 2500),
        ("both", 200, 9, 40_000, 0),
        ("both", 100, 60, 400, -(1 << 20)),
        ("admission", 100, 50, 300, 2500),
        ("replacement", 0, 100, 400, 2500),
        ("replacement", 30_000, 20, 60, 2500),
    ],
)
def test_the_learned_policy_equals_its_model_in_each_role(
    role, price, capacity, pages, early, forgetful
):
    """Over a phase in which every access is sampled, and a later one; some requests are long."""
    policy = Learned.new(IDS, capacity, price, role != "replacement", role != "admission")
    model = twin.Learned(capacity, price, role != "replacement", role != "admission")
    policy.state[learned_policy.CLOCK] = model.clock = reuse.EARLY - early
    policy, evictions = learn_with_both(role, capacity, policy, model, requests(pages, 3_000))
    known, worth = policy.reuse, policy.reuse.worth
    ours = model.rows[: known.classes]
    assert known.reward.tolist() == [row.reward for row in model.rows]
    assert known.heard.tolist() == [row.heard for row in model.rows]
    assert known.touched.tolist() == [row.touched for row in ours]
    assert known.reached.tolist() == [row.reached for row in ours]
    assert known.chance.tolist() == [row.chance for row in model.rows[known.classes :]]
    assert worth.value.tolist() == [row.value for row in ours]
    assert worth.sure.tolist() == [row.sure for row in ours]
    assert worth.density.tolist() == [row.density.tolist() for row in ours]
    assert worth.state[0] == model.rent
    assert known.state[reuse.HEAD] == len(model.samples) > 2 * 512
    assert known.state[reuse.HORIZON] == model.horizon
    assert known.reached[:, 0].max() < 40 * reuse.WEIGHT
    if early != 0:  # long enough for all parts to learn
        assert known.chance.any()
        assert worth.density.any()
        assert worth.sure.any()
    assert evictions > 0 or price == 1000


def learn_with_both(role, capacity, policy, model, stream):
    """Run both on these requests in a cache whose other policy is FIFO or admits everything."""
    growing = Growing(policy)
    ids, cached, evictions = {}, OrderedDict(), 0
    for first, count, write in stream:
        both = (growing.policy, model)
        if role != "replacement":
            for each in both:
                each.request(first * 4096, count * 4096, write)
        for number in range(first, first + count):
            page = ids.setdefault(number, len(ids))
            growing.make_room(page)
            both = (growing.policy, model)
            full, is_held, wanted = len(cached) == capacity, page in cached, True
            if role != "replacement":
                wanted, expected = (each.consider(0, page, write, full) for each in both)
                assert wanted == expected
            if is_held and role != "admission":
                for each in both:
                    each.touch(page)
            if is_held or not wanted:
                continue
            evictions += full
            take_in(role, both, cached, page, full)
    return growing.policy, evictions


def take_in(role, both, cached, page, full):
    """Cache a page; evict another if the cache is full."""
    if role != "admission":
        for each in both:
            each.missed(page)
    if full:
        victim = next(iter(cached))
        if role != "admission":
            victim, expected = (each.evict() for each in both)
            assert victim == expected
        if role != "replacement":
            for each in both:
                each.evicted(victim)
        del cached[victim]
    if role != "admission":
        for each in both:
            each.admit(page)
    cached[page] = True


def requests(pages, count):
    """Return heavy-tailed requests, scans, runs, some of many pages: (first page, pages, write)."""
    random = Random(pages)
    scan = pages
    while count > 0:
        length = 1
        if random.random() < 0.1:
            scan += 1 if random.random() < 0.95 else random.randrange(1000)
            first, length, write = scan, random.choice([1, 1, 4]), 0
        elif random.random() < 0.04:
            first, length, write = 0, random.choice([3, 10, 90]), 0
        else:
            first = int(random.paretovariate(0.6)) % pages
            write = int(random.random() < 0.3)
        yield first, length, write
        count -= length


def test_pages_of_one_request_share_the_saved_read():
    """Each of two missing pages saves half a read; a single missing page saves a whole one."""
    for pages, saved in ((1, 1.0), (2, 0.5), (100, 0.01)):
        policy = Learned.new(200, 300, 0)
        for _ in range(2):
            policy.request(0, pages * 4096, 0)
            for page in range(pages):
                policy.consider(0, page, 0, True)
        policy.request(0, 4096, 0)
        rewards = policy.reuse.reward[policy.reuse.heard > 0]
        assert rewards.min() == pytest.approx(saved, rel=1e-9) or pages > reuse.PENDING_MAX


def test_touch_counters_saturate():
    policy = Touches.new(4, 1, 255)
    answers = [policy.consider(now, 2, False, True) for now in range(600)]
    assert answers == [False] * 254 + [True] * 346


def test_a_page_of_a_large_request_is_worth_less_than_one_that_comes_alone():
    """Of pages with the same history: single ones save a read each, of 64 together each a part."""
    policy = Learned.new(200, 300, 0)
    single, together = range(64), range(64, 128)
    for _ in range(60):
        for page in single:
            policy.request(page * PAGE, PAGE, 0)
            policy.consider(0, page, 0, True)
        policy.request(64 * PAGE, 64 * PAGE, 0)
        for page in together:
            policy.consider(0, page, 0, True)
    alone, of_many = (policy.reuse.worth.part[size] for size in (0, 6))
    assert alone > 1.5 * of_many
    for pages, part in ((single, alone), (together, of_many)):
        stamp = policy.pages.stamp[pages[0]]
        age = learned_policy.age_of(policy.state[learned_policy.CLOCK] - (stamp >> CLOCK_AT))
        density = policy.reuse.worth.density[stamp & CLASS_MAX, age]
        assert policy.promise(stamp) == density * part


def test_a_region_has_a_pace_that_one_long_gap_does_not_change_much():
    """Busy, idle once, busy again, then slower; equal to the model's over 20 regions too."""
    ours, model, clock, paces = Regions.new(), twin.Regions(), 0, []
    for gap in [10] * 40 + [5_000] + [10] * 40 + [5_000] * 40:
        clock += gap
        for each in (ours, model):
            each.request(7 << 20, 4096, clock)
        assert ours.state[PACE] == model.pace
        paces.append(model.pace)
    assert paces[0] == 255
    assert max(paces[1:40]) <= 27
    assert paces[39] < paces[40] <= 27 + 72 // 8
    assert paces[80] <= 28
    assert 90 < paces[-1] <= 98  # 8 log2 of 5,000

    random = Random(5)
    for _ in range(4_000):
        clock += int(2 ** (20 * random.random())) - 1
        offset, length = random.randrange(20 << 20), random.choice((512, 4096, 1 << 21))
        for each in (ours, model):
            each.request(offset, length, clock)
        assert (ours.state[PACE], ours.state[REST]) == (model.pace, model.rest)


def test_a_sample_counts_half_at_the_age_that_it_is_at():
    """Of 8 samples at an age 4 count; of 8 that were touched at it or have left it, all."""
    reached, touched = np.zeros((2, AGES), np.int64)
    reached[:3] = 16 * reuse.WEIGHT, 12 * reuse.WEIGHT, 8 * reuse.WEIGHT
    touched[:2] = 4 * reuse.WEIGHT, 4 * reuse.WEIGHT
    prior = 8  # samples that count for the coarser class
    assert chance_of(touched, reached, 0, 0.0) == 4 / (16 + prior)
    assert chance_of(touched, reached, 1, 0.0) == 4 / (12 + prior)
    assert chance_of(touched, reached, 2, 0.0) == 0
    reached[1] = 4 * reuse.WEIGHT  # of the first 16 now 8 are still at the age
    assert chance_of(touched, reached, 0, 0.0) == 4 / (12 + prior)
    assert chance_of(touched, reached, 0, 0.5) == 8 / (12 + prior)


def test_a_row_without_samples_takes_no_turn_and_has_the_chances_of_the_row_above():
    policy = Learned.new(200, 300, 0)
    for _ in range(20):
        for page in range(100):
            policy.consider(0, page, 0, True)
    known = policy.reuse
    for _ in range(2 * len(known.parent)):  # two turns of each row
        known.go_on(3000)
    first, rows = known.classes, len(known.parent)
    used = set()
    for row in np.flatnonzero(known.reached[:, 0]):
        while row != -1:
            used.add(int(row))
            row = known.parent[row]
    for row in range(first, rows):
        above = known.parent[row]
        expected = row if row in used or above == -1 else first + known.source[above - first]
        assert known.source[row - first] == expected - first


@pytest.mark.parametrize("admission", ADMISSION)
@pytest.mark.parametrize("replacement", REPLACEMENT)
def test_what_a_loop_fetches_early_is_by_page(admission, replacement):
    """Each array has an entry for each page, and growth does not change its type."""
    policies = pair(ADMISSION[admission], REPLACEMENT[replacement], IDS, 4, {})
    few = Residency.new(4, PAGE, 0, *policies, IDS)
    many = few.grown(2 * IDS)
    assert few.by_page[0] is few.present
    assert {len(each) for each in few.by_page} == {IDS}
    assert {len(each) for each in many.by_page} == {2 * IDS}
    assert [each.dtype for each in few.by_page] == [each.dtype for each in many.by_page]
    assert len({id(each) for each in many.by_page}) == len(many.by_page)
    if admission == "learned":
        assert many.by_place is many.admission.regions
    else:
        assert isinstance(many.by_place, Nowhere)


def test_each_part_of_the_learned_policy_is_fetched_early_once():
    learned = ADMISSION["learned"]
    cache = Residency.new(4, PAGE, 0, *pair(learned, learned, IDS, 4, {}), IDS).grown(2 * IDS)
    expected = cache.present, cache.admission.pages, cache.admission.reuse.sample
    assert all(one is other for one, other in zip(cache.by_page, expected, strict=True))


@pytest.mark.parametrize("removed", ["another", "the victim", "the last page"])
def test_a_victim_that_was_chosen_is_evicted_unless_it_left(removed):
    """Pages change their positions when others leave between a choice and its eviction."""
    policy = Learned.new(200, 8, 0)
    for number in range(400):
        page = number % 8 if number < 300 else number % 200
        policy.request(page * PAGE, PAGE, 0)
        policy.consider(0, page, 0, False)
        if policy.pages.position[page] == learned_policy.NONE:
            if policy.state[learned_policy.HELD] == 8:
                policy.evict()
            policy.admit(page)
        else:
            policy.touch(page)
    held = policy.held.tolist()
    policy.request(7 * PAGE, PAGE, 0)
    policy.state[learned_policy.VICTIM], policy.state[learned_policy.VICTIM_AT] = held[5], 5
    gone = {"another": held[2], "the victim": held[5], "the last page": held[7]}[removed]
    policy.remove(gone)
    victim = policy.evict()
    assert (victim == held[5]) == (removed != "the victim")
    assert victim in set(held) - {gone}
    assert policy.pages.position[victim] == learned_policy.NONE
    rest = set(held) - {gone, victim}
    assert {policy.evict() for _ in rest} == rest
    assert policy.evict() == -1
