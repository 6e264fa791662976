"""Events in the life of a machine (DESIGN.md 2.17): the engine against the reference."""

from dataclasses import replace

from agreement import check, check_cut, relaxed
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import Scenario
from scenarios_bcache import bcache_scenarios
from scenarios_dmcache import dmcache_scenarios
from scenarios_writecache import writecache_scenarios

from hybridsim.foundation.codes import Change
from hybridsim.reference import EventParameters

KIB, MIB = 1 << 10, 1 << 20
MS, SECOND = 10**6, 10**9
usual = relaxed(4)
RESTARTS = [Change.REBOOT, Change.CRASH]
LAST = [Change.DETACH, Change.SSD_DIES]


@st.composite
def lives(draw: st.DrawFn, scenario: Scenario) -> Scenario:
    """Draw events for a machine: some reboots, then perhaps the removal of the cache."""
    span = max((request.arrival_ns for request in scenario.requests), default=0)
    span = round(span / scenario.source.speed)
    moments = st.integers(0, span) | st.integers(0, span) | st.integers(0, 2 * SECOND)
    changes = draw(st.lists(st.sampled_from(RESTARTS), max_size=2))
    changes += draw(st.lists(st.sampled_from(LAST), max_size=1))
    if not changes:
        changes = [draw(st.sampled_from([*RESTARTS, *LAST]))]
    times = sorted(draw(moments) for _ in changes)
    down = st.sampled_from([0, 0, 1, 3 * MS, 5 * SECOND, 100 * SECOND])
    events = [
        EventParameters(at, change, draw(down) if change in RESTARTS else 0)
        for at, change in zip(times, changes, strict=True)
    ]
    return replace(scenario, events=events)


@usual
@given(dmcache_scenarios().flatmap(lives))
def test_dmcache_with_events_equals_reference(scenario):
    check(scenario, interpreted=True)


@usual
@given(bcache_scenarios().flatmap(lives))
def test_bcache_with_events_equals_reference(scenario):
    check(scenario, interpreted=True)


@usual
@given(writecache_scenarios().flatmap(lives))
def test_writecache_with_events_equals_reference(scenario):
    check(scenario, interpreted=True)


@settings(usual, max_examples=10)
@given(dmcache_scenarios().flatmap(lives))
def test_batch_sizes_and_stops_do_not_change_a_life(scenario):
    check_cut(scenario)
