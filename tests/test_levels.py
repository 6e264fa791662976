"""Counters are counts or levels by name: of a phase, counts are differences, levels end values."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from hybridsim.answers.metrics import Counters
from hybridsim.foundation.levels import LEVELS
from hybridsim.studies.runs import SAMPLES_MAX, Sampler
from hybridsim.traces.formats.requests_csv import HEADER

ROOT = Path(__file__).parent.parent
REQUESTS = 3000
KINDS = {
    "page": "--cache page --cache-size 2MiB",
    "page-back": "--cache page --cache-size 2MiB --set cache.mode=write-back",
    "bcache": "--cache bcache --cache-size 64MiB",
    "dm-cache": "--cache dm-cache --cache-size 8MiB",
    "dm-writecache": "--cache dm-writecache --cache-size 2MiB",
    "open-cas": "--cache open-cas --cache-size 8MiB --set cache.mode=write-back",
}
# All rows of counters, and the phases of the result.
PROGRAM = """
import json, sys
from hybridsim.cli import cli
from hybridsim.answers import outcome
from hybridsim.answers.metrics import Counters
from hybridsim.studies import runs
runs.MOST = 0  # counters are of the load alone: it does not go on
rows, kept = {}, Counters.__init__
def keep(self, columns):
    kept(self, columns)
    if "pages_present" in columns:
        rows.update({name: [int(one) for one in column] for name, column in columns.items()})
Counters.__init__ = keep
found = {}
for name, line in json.load(sys.stdin).items():
    cli.main([*line.split(" "), "--json", "run.json"], standalone_mode=False)
    found[name] = {"rows": dict(rows), "phases": json.load(open("run.json"))["phases"]}
    rows.clear()
json.dump(found, open("found.json", "w"))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder, draw = tmp_path_factory.mktemp("levels"), Random(1)
    lines = [
        f"{at * 10**7},{draw.choice('RRW')},{int(2 ** draw.uniform(0, 14)) * 4096},4096,,"
        for at in range(REQUESTS)
    ]
    (folder / "load.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    lines = {name: f"replay load.csv {options}" for name, options in KINDS.items()}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=folder, input=json.dumps(lines),
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_counts_begin_at_0_and_never_fall(kind, outcomes):
    rows = outcomes[kind]["rows"]
    assert rows["time_ns"][0] == 0
    for name, column in rows.items():
        if name.endswith("_members") or name.endswith("_rebuild_bytes"):
            assert len(set(column)) == 1
        elif name not in LEVELS:
            assert (np.diff(column) >= 0).all(), name
            assert column[0] == 0, name


@pytest.mark.parametrize("kind", KINDS)
def test_a_level_of_a_phase_is_its_value_at_the_end(kind, outcomes):
    phases = {name: each["counters"] for name, each in outcomes[kind]["phases"].items()}
    levels = LEVELS & phases["whole"].keys()
    assert "pages_present" in levels
    for name in levels:
        assert phases["warm"][name] == phases["whole"][name], name
        assert min(each.get(name, 0) for each in phases.values()) >= 0, name
    counts = phases["whole"].keys() - levels
    for name in counts:  # interpolated between rows of whole numbers
        parts = phases["cold"][name] + phases["warm"][name]
        assert abs(parts - phases["whole"][name]) <= 1, name
    assert phases["warm"]["pages_present"] > 0


def test_every_level_belongs_to_some_cache(outcomes):
    names = {name for each in outcomes.values() for name in each["rows"]}
    assert LEVELS - {"pages_kept"} <= names  # with a warm start only


def test_a_level_has_its_first_value_before_the_first_row():
    rows = {"time_ns": [100, 200], "available_buckets": [40, 39], "gc_runs": [1, 3]}
    counters = Counters(rows)
    assert counters.between("available_buckets", 0, 100) == 40
    assert counters.between("available_buckets", 100, 200) == 39
    assert counters.between("gc_runs", 100, 200) == 2


def test_the_reference_has_the_same_levels():
    import hybridsim.reference as reference

    folder = Path(reference.__file__).parent
    text = "".join(each.read_text() for each in folder.glob("*.py"))
    # The page cache's reference has none of these.
    shown = LEVELS - {"dirty_pages", "dirty_bytes", "pages_kept"}
    assert all(f'"{name}"' in text for name in shown)


@pytest.mark.parametrize("begin", [0, 1])
def test_sampled_rows_keep_the_first_row_and_equal_distances(begin):
    sampler = Sampler(1)
    if begin == 0:
        sampler.take(0, {"free": 7})
    for time in range(1, 5 * SAMPLES_MAX):
        if time == sampler.due_ns:
            sampler.take(time, {"free": 7})
    times = sampler.columns()["time_ns"]
    assert len(times) <= SAMPLES_MAX + 1
    assert (times[0] == 0) == (begin == 0)
    assert len(set(np.diff(times).tolist())) == 1
