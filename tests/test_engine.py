"""The engine gives the same facts as the reference, to the nanosecond, in every way to run it."""

from dataclasses import replace

import pytest
from agreement import check, relaxed
from engine import counters, simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import scenarios

from hybridsim.foundation.codes import Level, Spread

usual = relaxed(1)  # HYBRIDSIM_EXAMPLES=3000: some minutes


@usual
@given(scenarios())
def test_interpreted_engine_equals_reference(scenario):
    check(scenario, interpreted=True)


@pytest.mark.parametrize(
    ("admission", "replacement", "controller", "slow", "fast"),
    [
        ("learned", "learned", False, "volume", "ssd"),
        ("touches", "lru", False, "ssd", "flash"),
        ("touches", "lru", True, "disk", "ssd"),
    ],
)
def test_compiled_engine_equals_reference(admission, replacement, controller, slow, fast):
    @settings(usual, max_examples=40)
    @given(
        scenarios(slow, fast, admission=admission, replacement=replacement, controller=controller)
    )
    def compare(scenario):
        check(scenario)

    compare()


@usual
@given(
    scenarios(),
    st.lists(st.integers(1, 50), max_size=20),
    st.integers(1, 40),
    st.sampled_from([10**5, 10**7, 10**9, 10**12]),
)
def test_batch_sizes_and_stops_do_not_change_the_result(scenario, sizes, facts_rows, step_ns):
    """The ends of batches and fact buffers and stops in time only pause the engine."""
    whole, one = simulate(scenario, interpreted=True)
    end = whole[-1].done_ns if whole else 0
    step_ns = max(step_ns, end // 200)
    pieces, other = simulate(
        scenario, interpreted=True, sizes=sizes, facts_rows=facts_rows, step_ns=step_ns
    )
    assert pieces == whole
    assert counters(other) == counters(one)


@settings(usual, max_examples=15)
@given(scenarios(), st.sampled_from([63, 64, 65, 70, 130]))
def test_arrays_with_more_than_64_members_equal_the_reference(scenario, members):
    """More members than a machine word has bits."""
    slow = scenario.slow
    capacity = (members - 1) * slow.device.capacity_bytes // slow.chunk_bytes * slow.chunk_bytes
    scenario.slow = replace(
        slow,
        level=Level.RAID5,
        members=members,
        capacity_bytes=capacity,
        spread=Spread.NEAR,
        failed=slow.failed[:1] if slow.rebuild is None else [],
    )
    scenario.controller = None
    row_bytes = (members - 1) * slow.chunk_bytes
    for i, request in enumerate(scenario.requests):
        if i % 3 == 0 and request.length > 0:
            length = min(row_bytes + request.length, 1 << 20, capacity - request.offset)
            scenario.requests[i] = replace(request, length=length)
    check(scenario, interpreted=True)
