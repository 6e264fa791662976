"""Write budgets: their syntax, that they hold, and that fills go to the most valuable pages."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_policies import ADMISSION_MODELS, REPLACEMENT_MODELS, Growing
from test_policies import IDS as ROOM

from hybridsim import hits
from hybridsim.caches.policies import Learned
from hybridsim.caches.policies.always import Always
from hybridsim.caches.policies.budget import ACCESS, Bucket, Budgeted
from hybridsim.caches.policies.lru import LRU
from hybridsim.caches.policies.write_budget import parse_write_budget
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.reference import BudgetParameters
from hybridsim.reference import learned as twin
from hybridsim.scenario import Scenario

DAY_NS = 86_400 * 10**9
KIB = 1024


@pytest.mark.parametrize(
    ("text", "drive_bytes", "a_day"),
    [
        ("500GB/day", None, 500 * 10**9 / (64 * KIB)),
        ("1 GiB/d", None, 16_384),
        ("3 DWPD", None, 3 * 4000),  # number of pages of the cache
        ("0.5dwpd", 2**40, 2**39 / (64 * KIB)),
    ],
)
def test_a_budget_per_day_sets_the_interval_of_fills(text, drive_bytes, a_day):
    budget = parse_write_budget(text, 64 * KIB, drive_bytes)
    assert DAY_NS / budget.interval(4000) == pytest.approx(a_day, rel=1e-4)
    assert DAY_NS / budget.interval(4000) <= a_day  # never above


def test_a_budget_may_be_a_share_of_the_accesses():
    budget = parse_write_budget("5%", 4096)
    assert budget.interval(4000) == 20 * ACCESS
    assert budget.burst(4000) == 1000
    assert budget.burst(1) == 1


def test_at_most_a_day_of_budget_is_saved_up():
    assert parse_write_budget("40KiB/day", 4096).burst(4000) == 10
    assert parse_write_budget("1KiB/day", 4096).burst(4000) == 1
    assert parse_write_budget("40GiB/day", 4096).burst(4000) == 1000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("500GB", "500GB/day"),
        ("5", "500GB/day"),
        ("0%", "above 0%"),
        ("200%", "at most 100%"),
        ("many DWPD", "drive writes"),
        ("0 DWPD", "is too small: it admits less than one page"),
        ("1GX/day", "unknown size unit"),
        ("0B/day", "is too small: it admits less than one page"),
    ],
)
def test_invalid_budgets_are_refused(text, why):
    with pytest.raises(ValueError, match=why):
        parse_write_budget(text, 4096)


def test_a_scenario_may_specify_a_budget():
    cache = Scenario.loads('[cache]\nwrite_budget = "1 DWPD"\n').cache
    drive = cache.drive.capacity_bytes
    assert DAY_NS / cache.budget.interval(10) == pytest.approx(drive / cache.page_bytes, rel=1e-4)
    assert cache.policy_parameters["write_budget"] == cache.budget
    with pytest.raises(ScenarioError, match=":2:16: '5 a day' is not a write budget"):
        Scenario.loads('[cache]\nwrite_budget = "5 a day"\n')


@given(
    pages=st.integers(1, 9),
    interval=st.integers(1, 50),
    burst=st.integers(1, 9),
    waits=st.lists(st.integers(0, 60), max_size=100),
)
def test_admissions_never_exceed_the_budget(pages, interval, burst, waits):
    """With any greedy policies, in any interval of time, without the initial fill of the cache."""
    both = Budgeted.new(Always.new(999, pages), LRU.new(999), Bucket.new(pages, interval, burst, 0))
    now, let_in = 0, []
    for page, wait in enumerate(waits):
        now += wait
        if both.consider(now, page, 0, True):
            both.missed(page)
            let_in.append(now)
    for i, start in enumerate(let_in):
        for j, end in enumerate(let_in[i:], 1):
            assert j <= (end - start) // interval + 1 + burst + pages
    for i, start in enumerate(let_in[pages:]):  # after the initial fill of the cache
        for j, end in enumerate(let_in[pages + i :], 1):
            assert j <= (end - start) // interval + 1 + burst


PAIRS = [("larc", "s3-fifo"), ("learned", "learned"), ("learned", "arc"), ("always", "learned")]


@pytest.mark.parametrize("names", PAIRS)
@settings(max_examples=15)
@given(
    capacity=st.integers(1, 20),
    interval=st.sampled_from([ACCESS // 2, 3 * ACCESS, 40 * ACCESS, 7, 300]),
    burst=st.integers(1, 30),
    seed=st.integers(0, 10**6),
)
def test_policies_within_a_budget_equal_their_model(names, capacity, interval, burst, seed):
    """Sometimes the victim cannot be evicted and is reinserted."""
    policy, model = both_kinds(names, capacity, interval, burst)
    random, now = Random(seed), 0
    growing, held = Growing(policy), set()
    for _ in range(120):
        page, write = int(random.paretovariate(0.6)) % 50, random.random() < 0.3
        now += random.randrange(30)
        growing.make_room(page)
        kinds = (growing.policy, model)
        for each in kinds:
            each.request(page * 4096, 4096, write)
        full = len(held) == capacity
        wanted, expected = (each.consider(now, page, write, full) for each in kinds)
        assert wanted == expected
        if page in held:
            for each in kinds:
                each.touch(page)
        elif wanted:
            take_in(kinds, held, page, full, random.random() < 0.1)
        assert growing.policy.bucket.state[0] == model.fills
    if names == ("learned", "learned"):
        assert growing.policy.admission.reuse.worth.price() == model.admission.price


def both_kinds(names, capacity, interval, burst):
    """Return the compiled policies, interpreted, and the reference's."""
    counts = interval >= ACCESS // 2
    bucket = Bucket.new(capacity, interval, burst, counts)
    budget = capacity, BudgetParameters(interval, burst, counts)
    if names == ("learned", "learned"):
        one, other = Learned.new(ROOM, capacity, 50), twin.Learned(capacity, 50)
        return Budgeted.new(one, one, bucket), twin.Budgeted(other, other, *budget)
    admission, replacement = ADMISSION_MODELS[names[0]], REPLACEMENT_MODELS[names[1]]
    (one, its_model), (other, others_model) = admission(capacity), replacement(capacity)
    return Budgeted.new(one, other, bucket), twin.Budgeted(its_model, others_model, *budget)


def take_in(kinds, held, page, full, is_stuck):
    for each in kinds:
        each.missed(page)
    if full:
        victim = evicted(kinds)
        if is_stuck:
            for each in kinds:
                each.missed(victim)
                each.admit(victim)
            victim = evicted(kinds)
        held.remove(victim)
        for each in kinds:
            each.evicted(victim)
    for each in kinds:
        each.admit(page)
    held.add(page)


def evicted(kinds):
    victim, expected = (each.evict() for each in kinds)
    assert victim == expected
    return victim


def test_the_price_rises_as_the_bucket_empties():
    policy = Learned.new(8, 4, 250)
    both = Budgeted.new(policy, policy, Bucket.new(4, 100 * ACCESS, 8, True))
    prices = []
    for page in range(12):
        both.consider(0, page % 8, 0, False)
        prices.append(float(policy.reuse.worth.price()))
        both.missed(page % 8)
    both.consider(0, 0, 0, False)
    assert prices[:5] == [0.25] * 5  # the initial fill of the cache does not count
    assert prices[5:] == sorted(prices[5:])
    assert prices[8] == 0.25 + 1  # half of the bucket remains
    assert not both.consider(0, 5, 0, False)


def test_a_budget_per_day_needs_times():
    numbers = np.arange(100) % 9
    with pytest.raises(UsageError, match="no times"):
        hits(numbers, 4096, "fifo", write_budget="1GB/day")
    with pytest.raises(UsageError, match="500GB/day"):
        hits(numbers, 4096, "fifo", write_budget="5")
    with pytest.raises(UsageError, match="bound"):
        hits(numbers, 4096, "belady", write_budget="5%")
