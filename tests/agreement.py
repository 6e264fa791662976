"""Shared by the tests of each cache: the engine against the reference, and constant-time tiers."""

import os

import numpy as np
from engine import counters, simulate
from hypothesis import HealthCheck, settings
from scenarios import Scenario

from hybridsim.foundation.codes import Level
from hybridsim.reference import SsdParameters, TierParameters
from hybridsim.requests.source import PASS_FROM

SECOND = 10**9


def relaxed(share):
    """Return Hypothesis settings for this share of the usual number of examples."""
    return settings(
        max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "60")) // share,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


LINKS = ("following",)  # names of the links of a pool's free list


def check_pools(part, name="machine"):
    """Check that the free list of each pool is as long as its count of free entries."""
    fields = part._asdict() if hasattr(part, "_asdict") else {}
    for field, value in fields.items():
        check_pools(value, f"{name}.{field}")
    links = next((fields[each] for each in LINKS if each in fields), None)
    if links is None or np.shape(fields.get("free")) != (2,):
        return
    entry, count = fields["free"].tolist()
    if len(links) == 1 and count == 0:  # a pool of no entries has one link
        return
    seen = set()
    while 0 <= entry < len(links) and entry not in seen:
        seen.add(entry)
        entry = int(links[entry])
    assert len(seen) == count, f"{name}: {len(seen)} free entries, counted {count}"


def both(requests, source, cache, slow, fast=None):
    """Run requests on engine and reference, check that they agree, and return the outcome."""
    return check(Scenario(requests, source, cache, slow, fast or slow), interpreted=True)


def first_difference(facts, expected):
    """Return the first request in which engine and reference differ."""
    pairs = (f"engine {a}, reference {b}" for a, b in zip(facts, expected) if a != b)
    return next(pairs, f"the engine has {len(facts)} requests, the reference {len(expected)}")


def check(scenario, **how):
    """Check that engine and reference give the same facts and counters, and lose no request.

    Return the outcome.
    """
    expected = scenario.run()
    load = [each for each in expected.facts if each.number < PASS_FROM]  # beside it, a backup reads
    assert len(load) == len(scenario.requests)
    facts, finished = simulate(scenario, **how)
    assert facts == expected.facts, first_difference(facts, expected.facts)
    check_pools(finished)
    result = counters(finished)
    assert result == {name: expected.counters.get(name, 0) for name in result}
    return expected


def check_cut(scenario):
    """Check that batch sizes and stops in time do not change the result."""
    whole, one = simulate(scenario, interpreted=True)
    pieces, other = simulate(scenario, interpreted=True, sizes=[1, 7] * 9, step_ns=SECOND)
    assert pieces == whole
    assert counters(other) == counters(one)


def steady(latency_ns, capacity, chunk_bytes=1 << 16):
    """Return a tier that takes the same time for every request at any queue depth."""
    device = SsdParameters(
        dies=capacity // 4096,
        unit_bytes=4096,
        command_ns=0,
        interval_ns=0,
        read_ns=latency_ns,
        program_ns=0,
        scatter_ns=0,
        suspend_ns=0,
        write_ns=latency_ns,
        buffer_ns=0,
        link_bytes_per_s=10**15,
        capacity_bytes=capacity,
    )
    return TierParameters(Level.STRIPE, 1, chunk_bytes, device, capacity)
