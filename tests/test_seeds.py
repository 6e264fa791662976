"""Replays are repeated over seeds, with intervals, if and only if randomness is involved."""

import re

import numpy as np
import pytest
from fakes import SCENARIO, Load
from fakes import result as fake_result

from hybridsim import Scenario, Trace
from hybridsim.answers.requirements import parse_all
from hybridsim.studies.bench import Bench, Point, over_seeds
from hybridsim.studies.others import repeated
from hybridsim.studies.sweep import seeds as chance
from hybridsim.studies.sweep.seeds import estimate

SITE = {**SCENARIO, "cache_bytes": 16384 << 16}


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "any.csv"
    path.write_text("arrival_ns,op,offset,length,dispatch_ns,complete_ns\n0,R,0,4096,,\n")
    return str(path)


def test_an_interval_uses_students_t():
    """From the t table: 2.776 for 4 degrees of freedom at 95%, 2.262 for 9."""
    assert estimate([1.0, 2.0, 3.0, 4.0, 5.0]).half == pytest.approx(2.776 * (2.5 / 5) ** 0.5, 1e-3)
    ten = estimate([0.0] * 5 + [1.0] * 5)
    assert ten.half == pytest.approx(2.262 * (10 / 36 / 10) ** 0.5, 1e-3)
    assert estimate([7.0]).half is None
    assert estimate([7.0, 7.0]).half == 0
    assert estimate([1.0, None]) is None


@pytest.fixture
def drawn(monkeypatch):
    """Replace replays by fakes whose answer depends on the seed; return the list of seeds."""
    seeds = []

    def fake(trace, scenario, report=None, **how):
        seeds.append(scenario.seed)
        known = Load(seconds=300, seed=scenario.seed)
        return fake_result(known, scenario=SITE).with_requirements(how.get("require", ()))

    monkeypatch.setattr("hybridsim.studies.others.replay", fake)
    return seeds


VOLUME = Scenario.default().with_options(preset="digitalocean-volume")


def test_a_random_replay_is_repeated_over_seeds(trace, drawn):
    result = repeated(Trace.read(trace), VOLUME, 5, require=parse_all(["hit>80%", "mean<1us"]))
    assert drawn == [1, 2, 3, 4, 5]
    reason = result.verdict.reasons[-1]
    assert re.search(r"Over 5 seeds: mean .* ± .*, hit .* ± ", reason)
    about = result.to_dict()["verdict"]["confidence"]["seeds"]
    assert (about["n"], about["answers"]) == (5, {"yes": 5})
    assert [each.met for each in result.required] == [True, False]


def test_a_deterministic_replay_runs_once(trace, drawn):
    result = repeated(Trace.read(trace), Scenario.default(), 5)
    assert drawn == [1]
    assert result.verdict.reasons[-1] == chance.NONE


def test_a_generated_load_depends_on_the_seed():
    load = Trace.read("gen:hot-spot,span=1GiB,hot=10%,requests=100")
    first, again, other = (
        np.concatenate([part.offset_bytes for part in load.seeded(seed).chunks()])
        for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert chance.drawn(Scenario.default(), load.is_generated)


@pytest.mark.parametrize(
    ("values", "is_drawn"),
    [
        ({"cache.kind": "bcache"}, True),
        ({"cache.kind": "dm-cache"}, False),
        ({"cache.admission": "probabilistic"}, True),
        ({"preset": "digitalocean-volume", "cache.kind": "none"}, True),
        ({}, False),
    ],
)
def test_random_parts_of_a_scenario_are_detected(values, is_drawn):
    assert bool(chance.drawn(Scenario.default().with_values(values))) == is_drawn


def test_a_bench_over_seeds_has_means_with_intervals():
    def measure(site, seed):
        iops = 100.0 + seed
        point = Point("warm", "hot random read", 1, iops, 4096 * iops, 1e6, seed, 0.01, seed != 2)
        return Bench("a machine", {}, None, [point])

    (point,) = over_seeds(Scenario.default(), 3, measure).points
    assert (point.iops, point.p99_ns, point.steady) == (102, 2, False)
    assert point.iops_half == pytest.approx(
        4.303 / 3**0.5, 1e-3
    )  # t for 2 degrees of freedom at 95%
