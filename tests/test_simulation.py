"""Random machines that combine all features, drawn from seeds, with all invariants checked.

A seed that fails is printed; HYBRIDSIM_SEEDS=SEED-SEED pytest tests/test_simulation.py -m long
repeats it alone.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from invariants import run_checked
from scenarios import scenarios
from scenarios_bcache import bcache_scenarios
from scenarios_dmcache import dmcache_scenarios
from scenarios_opencas import opencas_scenarios
from scenarios_writecache import writecache_scenarios

MACHINES = scenarios() | (
    scenarios() | bcache_scenarios() | dmcache_scenarios()
    | opencas_scenarios() | writecache_scenarios()
)  # fmt: skip
FIRST, LAST = map(int, os.environ.get("HYBRIDSIM_SEEDS", "100-1100").split("-"))


def simulate(number, examples):
    @seed(number)
    @settings(
        max_examples=examples, deadline=None, database=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(MACHINES)
    def run(scenario):
        run_checked(scenario)

    try:
        run()
    except BaseException:
        print(f"HYBRIDSIM_SEEDS={number}-{number} python -m pytest {__file__} -m long")
        raise


@pytest.mark.parametrize("number", range(2))
def test_invariants_hold_in_some_random_machines(number):
    simulate(number, 8)


@pytest.mark.long
@pytest.mark.parametrize("number", range(FIRST, LAST + 1))
def test_invariants_hold_in_many_random_machines(number):
    simulate(number, 50)
