"""Open CAS: the engine against the reference, and both against what its rules lead one to expect.

No run of the real one was at hand: the experiments are those that the rules predict.
"""

import os

from engine import counters, simulate
from hypothesis import HealthCheck, given, settings
from scenarios_opencas import opencas_scenarios

SECOND = 10**9

relaxed = settings(
    max_examples=int(os.environ.get("HYBRIDSIM_EXAMPLES", "200")) // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def check(scenario, **how):
    expected = scenario.run()
    facts, finished = simulate(scenario, **how)
    assert facts == expected.facts
    found = counters(finished)
    assert found == {name: expected.counters.get(name, 0) for name in found}


@relaxed
@given(opencas_scenarios())
def test_interpreted_engine_equals_reference(scenario):
    check(scenario, interpreted=True)


@settings(relaxed, max_examples=10)
@given(opencas_scenarios())
def test_result_does_not_depend_on_how_it_is_cut(scenario):
    whole, one = simulate(scenario, interpreted=True)
    pieces, other = simulate(scenario, interpreted=True, sizes=[1, 7] * 9, step_ns=SECOND)
    assert pieces == whole
    assert counters(other) == counters(one)
