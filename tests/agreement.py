"""Shared by the tests of each cache: the engine against the reference, and constant-time tiers."""

import os

from engine import counters, simulate
from hypothesis import HealthCheck, settings

from hybridsim.foundation.codes import Level
from hybridsim.reference import SsdParameters, TierParameters

SECOND = 10**9


def relaxed(share):
    """Return Hypothesis settings for this share of the usual number of examples."""
    return settings(
        max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "60")) // share,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def check(scenario, **how):
    """Check that engine and reference give the same facts and counters."""
    expected = scenario.run()
    facts, finished = simulate(scenario, **how)
    assert facts == expected.facts
    result = counters(finished)
    assert result == {name: expected.counters.get(name, 0) for name in result}


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
