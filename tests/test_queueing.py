"""Waiting times of simulated queues agree with theory: M/D/1, M/M/1, Little's law."""

import numpy as np
import pytest
from engine import simulate
from scenarios import Scenario
from test_raid import disk
from test_reference import NO_CACHE, SSD

from hybridsim.foundation.codes import Level, Op, Replay
from hybridsim.reference import Request, SourceParameters, TierParameters

SECOND = 10**9
REQUESTS = 30_000
BATCHES = 20  # batches with nearly independent means
STUDENT = 3.88  # 19 degrees of freedom: 99.9% quantile in standard errors


def single(device):
    return TierParameters(Level.STRIPE, 1, 4096, device, device.capacity_bytes)


def interval(values):
    """Return the mean of correlated values and the half width of its confidence interval."""
    cut = len(values) // BATCHES * BATCHES
    means = np.asarray(values[:cut], float).reshape(BATCHES, -1).mean(axis=1)
    return means.mean(), STUDENT * means.std(ddof=1) / BATCHES**0.5


def responses(device, arrivals, lengths):
    """Return the latencies of reads of one device with these arrival times."""
    requests = [
        Request(int(at), Op.READ, 0, int(length))
        for at, length in zip(arrivals, lengths, strict=True)
    ]
    tiers = single(device), single(SSD)
    source = SourceParameters(Replay.OPEN)
    facts, _ = simulate(Scenario(requests, source, NO_CACHE, *tiers), interpreted=True)
    facts.sort(key=lambda fact: fact.number)
    return np.array([fact.done_ns - fact.issue_ns for fact in facts])


def poisson(random, rate):
    return np.cumsum(random.exponential(SECOND / rate, REQUESTS))


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_constant_service_times_wait_as_in_m_d_1(load):
    """Pollaczek and Khinchine: W = rho S / (2 (1 - rho)); one die of an SSD serves in S."""
    service = 100_000
    server = SSD._replace(read_ns=service)
    random = np.random.default_rng(7)
    arrivals = poisson(random, load * SECOND / service)
    waits = responses(server, arrivals, np.full(REQUESTS, 4096)) - service
    mean, half_width = interval(waits)
    expected = load * service / (2 * (1 - load))
    assert half_width < 0.15 * expected
    assert abs(mean - expected) < half_width


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_exponential_lengths_over_a_link_wait_as_in_m_m_1(load):
    """T = S / (1 - rho); the link carries lengths that are exponential, one after the other."""
    mean_bytes = 200_000
    server = SSD._replace(link_bytes_per_s=SECOND, unit_bytes=2**40, capacity_bytes=2**40)
    random = np.random.default_rng(8)
    arrivals = poisson(random, load * SECOND / mean_bytes)
    lengths = np.ceil(random.exponential(mean_bytes, REQUESTS))
    mean, half_width = interval(responses(server, arrivals, lengths))
    expected = mean_bytes / (1 - load)
    assert half_width < 0.15 * expected
    assert abs(mean - expected) < half_width


@pytest.mark.parametrize(("depth", "level"), [(1, Level.RAID10), (6, Level.RAID6)])
def test_a_closed_network_of_disks_obeys_littles_law(depth, level):
    """Requests in flight = throughput x time in the array."""
    device = disk()
    slow = TierParameters(level, 4, 65536, device, 2 * device.capacity_bytes)
    random = np.random.default_rng(9)
    places = random.integers(0, slow.capacity_bytes // 4096, 1500) * 4096
    ops = random.choice([Op.READ, Op.WRITE], 1500, p=[0.7, 0.3])
    requests = [Request(0, op, int(place), 4096) for op, place in zip(ops, places, strict=True)]
    source = SourceParameters(Replay.CLOSED, depth=depth)
    facts, _ = simulate(Scenario(requests, source, NO_CACHE, slow, single(SSD)), interpreted=True)
    inside = sum(fact.done_ns - fact.issue_ns for fact in facts)
    assert inside / facts[-1].done_ns == pytest.approx(depth, rel=0.01)
