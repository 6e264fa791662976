"""What tests of each kind of cache share: the engine against the reference, and plain tiers."""

import os

from engine import counters, simulate
from hypothesis import HealthCheck, settings

from hybridsim.foundation.codes import Level
from hybridsim.reference import SsdParameters, TierParameters

SECOND = 10**9


def relaxed(share):
    """Settings for as large a part of the usual examples as is told."""
    return settings(
        max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "60")) // share,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def check(scenario, **how):
    """Engine and reference give the same facts and counters."""
    expected = scenario.run()
    facts, finished = simulate(scenario, **how)
    assert facts == expected.facts
    found = counters(finished)
    assert found == {name: expected.counters.get(name, 0) for name in found}


def check_cut(scenario):
    """The result does not depend on how the requests and the time are cut."""
    whole, one = simulate(scenario, interpreted=True)
    pieces, other = simulate(scenario, interpreted=True, sizes=[1, 7] * 9, step_ns=SECOND)
    assert pieces == whole
    assert counters(other) == counters(one)


def steady(latency_ns, capacity, chunk_bytes=1 << 16):
    """A tier that takes the same time for everything, however much there is to do."""
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
