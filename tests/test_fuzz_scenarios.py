"""Random scenario files: valid ones and damaged ones.

A seed that fails is printed with the line that runs it again.
"""

import os
import re
import subprocess
import sys
import tomllib
from random import Random

import pytest
from damaged_toml import damaged_scenario
from engine import counters, simulate
from scenario_in_reference import in_reference
from scenario_texts import scenario_text
from scenarios import Workload

from hybridsim.foundation.codes import Op, Replay
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.toml.problems import keys_of
from hybridsim.scenario import Scenario, building
from hybridsim.scenario.machine import tables_of

MIB = 1 << 20
VOLUME = 64 * MIB
TABLES = [
    *[(), ("backing",), ("cache",), ("host",), ("replay",), ("price",), ("backing", "rebuild")],
    *[("backing", "controller"), ("backing", "drive"), ("cache", "drive", "flash")],
]
# Seeds of each kind in the long run: 100-100000 takes an hour.
FIRST, LAST = map(int, os.environ.get("HYBRIDSIM_FUZZ", "100-5000").split("-"))


def tried(check, seeds, *how):
    for seed in seeds:
        try:
            check(seed, *how)
        except BaseException:
            name = check.__name__.removeprefix("check_")
            print(f"HYBRIDSIM_FUZZ={seed}-{seed + 1} python -m pytest {__file__} -m long -k {name}")
            raise


def loaded_again(scenario):
    return Scenario.loads(scenario.to_toml(), "shown.toml")


class TestValidScenarios:
    def test_every_key_of_the_model_is_drawn(self):
        """Add a line for a new key to scenario_texts.py."""
        drawn = {path: set() for path in TABLES}
        for seed in range(900):
            table = tomllib.loads(scenario_text(seed))
            for path in TABLES:
                drawn[path] |= within(table, path).keys()
        for path in TABLES:
            assert drawn[path] == set(keys_of(tables_of((*path, ""))))

    def test_valid_scenarios_load_and_show_reproduces_them(self):
        tried(check_possible, range(60))

    @pytest.mark.long
    def test_valid_scenarios_load_and_show_reproduces_them_in_the_long_run(self):
        tried(check_possible, range(FIRST, LAST))

    def test_engine_and_reference_agree_on_valid_scenarios(self):
        tried(check_simulated, range(8))

    @pytest.mark.long
    def test_engine_and_reference_agree_on_valid_scenarios_in_the_long_run(self):
        tried(check_simulated, range(FIRST, min(LAST, FIRST + 1000)))


def within(table, path):
    """Return the table at a path, or an empty one."""
    for key in path:
        table = table.get(key, {}) if isinstance(table, dict) else {}
    return table if isinstance(table, dict) else {}


def check_possible(seed):
    scenario = Scenario.loads(scenario_text(seed), "site.toml")
    again = loaded_again(scenario)
    assert again == scenario
    assert loaded_again(again).to_toml() == again.to_toml()


def check_simulated(seed):
    """Run a short trace on the machine that scenario/building.py makes, and on the reference."""
    scenario = Scenario.loads(scenario_text(seed), "site.toml")
    if not is_quick(scenario):
        return
    rng = Random(f"simulated {seed}")
    mode = Replay[scenario.replay.mode.replace("auto", "open").upper()]
    pages = scenario.cache.pages(8 * MIB)
    workload = Workload(
        capacity=VOLUME, page_bytes=min(scenario.cache.page_bytes, MIB), hot=40,
        interval_ns=rng.choice([1000, 10**6, 2 * 10**7]), streams=3, reads=70, known=80, random=rng,
    )  # fmt: skip
    scenario = scenario.with_events([])
    simulated = in_reference(scenario, mode, VOLUME, pages, workload.requests(80))
    expected = simulated.run()
    machine = building.machine(scenario, mode.name.lower(), VOLUME, pages)
    facts, finished = simulate(simulated, interpreted=True, built=machine)
    assert facts == expected.facts
    counted = counters(finished)
    assert counted == {name: expected.counters.get(name, 0) for name in counted}
    check_conserved(simulated, facts, counted)


def is_quick(scenario):
    """Return whether 80 requests take neither hours of simulated time nor gigabytes of memory."""
    host, drives = scenario.host, (scenario.backing.drive, scenario.cache.drive)
    flash = [getattr(drive, "flash", None) for drive in drives]
    return (
        (host.max_bandwidth or MIB) >= MIB // 2
        and (host.max_iops or 1000) >= 1000
        and scenario.replay.speed >= 1
        and not any(each and each.gc == "simulated" for each in flash)
        and not any(getattr(drive, "read_iops_max", None) == 1 for drive in drives)
        and not any(getattr(drive, "write_iops_max", None) == 1 for drive in drives)
        and min(scenario.backing.chunk_bytes, scenario.cache.chunk_bytes) > 512
    )


def check_conserved(simulated, facts, counted):
    """Check that nothing is lost or counted twice."""
    assert sorted(fact.number for fact in facts) == list(range(len(simulated.requests)))
    for fact in facts:
        request = simulated.requests[fact.number]
        assert (fact.op, fact.length) == (request.op, request.length)
        assert 0 <= fact.issue_ns <= fact.done_ns
        assert 0 <= fact.pages_hit <= fact.pages  # the rest of its accesses are misses
    read = sum(fact.length for fact in facts if fact.op == Op.READ)
    written = sum(fact.length for fact in facts if fact.op == Op.WRITE)
    dram = counted.get("dram_read_bytes", 0) + counted.get("waited_bytes", 0)
    assert read <= counted["slow_read_bytes"] + counted["fast_read_bytes"] + dram
    if simulated.controller is None:
        assert written <= counted["slow_write_bytes"] + counted["fast_write_bytes"]


class TestDamagedScenarios:
    def test_damaged_scenarios_load_or_give_one_error_with_its_place(self, tmp_path):
        tried(check_damaged, range(150), tmp_path / "site.toml")

    @pytest.mark.long
    def test_damaged_scenarios_load_or_give_one_error_with_its_place_in_the_long_run(
        self, tmp_path
    ):
        tried(check_damaged, range(FIRST, LAST), tmp_path / "site.toml")

    @pytest.mark.parametrize(
        "text", ["[cache]\nsize = 16GiB", "[cache]\nsise = 1", "a." * 999 + "a = 1", "\xff"]
    )
    def test_the_command_line_prints_one_error(self, text, tmp_path):
        (tmp_path / "site.toml").write_text(text, encoding="latin-1")
        line = [sys.executable, "-m", "hybridsim", "scenario", "check", "site.toml"]
        env = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
        ran = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert re.fullmatch(r"hybridsim: error: site\.toml[: ].*\n(  .*\n)*", ran.stderr)


def check_damaged(seed, path):
    """Check that the file loads and show reproduces it, or that one error names file and place."""
    path.write_bytes(damaged_scenario(seed))
    try:
        scenario = Scenario.load(path)
    except ScenarioError as error:
        check_message(str(error), str(path))
    else:
        assert loaded_again(scenario) == scenario


def check_message(message, name):
    assert all(each.isprintable() or each in "\n\t" for each in message)
    first, *more = message.split("\n")
    if re.search(r"is not UTF-8|nested too deep", first):
        assert (name in first, more) == (True, [])
    else:
        assert re.match(r"\d+ problems in the scenario$|" + re.escape(name) + r":\d+:\d+: .", first)
        assert re.search(re.escape(name) + r":\d+:\d+: .", message)
