"""Intervals of the model's error: quantiles of the errors of real runs, and what they cover."""

import json
import math
import re
from pathlib import Path

import pytest
from fakes import SCENARIO, Load, result

from benchmarks import real_errors
from hybridsim.answers.model_error import (
    FEWEST,
    RealRun,
    alike,
    half_width,
    interval,
    model_error,
    real_runs,
)
from hybridsim.show.terminal import render

ROOT = Path(__file__).parents[1]

BCACHE = SCENARIO | {"cache_kind": "bcache"}
READS = Load(writes=0.0)


def runs_with(errors, kind="bcache"):
    return [RealRun(kind, f"e{n}", f"r{n}", 0.0, {"iops": each}) for n, each in enumerate(errors)]


def test_the_half_width_is_exceeded_by_at_most_one_in_ten_of_the_next_runs():
    """Of 19 errors, the 18th smallest: the rank of the next run's error is even over 1 to 20."""
    half = half_width(runs_with([(-1) ** n * n / 100 for n in range(1, 20)]), "iops")
    assert (half.value, half.level, half.runs) == (0.18, 0.9, 19)
    few = half_width(runs_with([0.01, -0.05, 0.02, 0.03, 0.04, 0.01, 0.02]), "iops")
    assert few.value == 0.05
    assert few.level == pytest.approx(7 / 8)


def test_too_few_runs_give_no_interval():
    assert half_width(runs_with([0.01] * (FEWEST - 1)), "iops") is None
    assert half_width(runs_with([0.01] * FEWEST), "hit_ratio") is None


def test_a_relative_error_scales_and_a_difference_stays_within_0_and_1():
    half = half_width(runs_with([0.10] * 9), "iops")
    assert interval("iops", 500.0, half) == pytest.approx((450.0, 550.0))
    assert interval("hit_ratio", 0.95, half) == pytest.approx((0.85, 1.0))


def test_a_replay_has_the_intervals_of_its_kind_of_cache_and_load():
    found = model_error(result(READS, scenario=BCACHE))
    runs = alike(real_runs(), "bcache", has_writes=False)
    half = half_width(runs, "hit_ratio")
    value, low, high = found.figures["hit_ratio"]
    assert (low, high) == pytest.approx((value - half.value, min(value + half.value, 1)))
    assert "iops" not in found.figures  # in open loop the arrivals determine it
    closed = model_error(result(READS, scenario=BCACHE | {"mode": "closed"}))
    assert "iops" in closed.figures
    assert model_error(result(READS)) is None


def test_a_kind_without_real_runs_says_why_it_has_no_interval():
    found = model_error(result(scenario=SCENARIO | {"cache_kind": "open-cas"}))
    assert found.figures == {}
    assert "0 real runs on open-cas with reads and writes" in found.why_not


def test_details_show_the_interval_and_what_it_covers():
    shown = render(result(READS, scenario=BCACHE), details=True)
    flat = " ".join(shown.split())
    assert re.search(r"interval hit ratio [0-9.]+% \([0-9.]+% to [0-9.]+%\)", flat)
    assert "real runs on bcache (reads)" in flat
    assert "not another load tomorrow" in flat


def experiments():
    return {run.name.removesuffix(" warm"): run for run in real_runs()}


def test_each_run_on_file_is_in_the_table():
    folders = [each.name for each in (ROOT / "validate" / "results").iterdir() if each.is_dir()]
    assert sorted(experiments()) == sorted(set(folders) - {real_errors.BARE})


def recomputed(names):
    folders = [ROOT / "validate" / "results" / name for name in names]
    return real_errors.table(real_errors.simulated(folders))


def lines(text, names):
    rows = [line for line in text.splitlines() if not line.startswith("#")][1:]
    return sorted(row for row in rows if row.split(",")[2].removesuffix(" warm") in names)


def equal(ours, others):
    assert len(ours) == len(others)
    for one, other in zip(ours, others):
        assert one.split(",")[:3] == other.split(",")[:3]
        for a, b in zip(one.split(",")[3:], other.split(",")[3:]):
            assert (a == b) or math.isclose(float(a), float(b), abs_tol=2e-4)


def test_the_table_is_what_the_twins_give():
    """Two short runs; all of them in the long test."""
    names = ["bcache-zipf", "dmcache-eightfold"]
    equal(lines(recomputed(names), names), lines(real_errors.TABLE.read_text(), names))


@pytest.mark.long
def test_the_whole_table_is_what_the_twins_give():
    names = list(experiments())
    equal(lines(recomputed([*names, "calibration"]), names),
          lines(real_errors.TABLE.read_text(), names))  # fmt: skip


def test_the_json_has_the_same_interval():
    document = json.loads(result(READS, scenario=BCACHE).to_json())["model_error"]
    assert document["level"] == 0.9
    assert set(document["figures"]["hit_ratio"]) == {"value", "low", "high"}
    assert document["why_not"] is None
