"""Intervals of the model's error: quantiles of the errors of real runs, and what they cover."""

import json
import math
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fakes import SCENARIO, Load, result

from benchmarks import real_errors
from hybridsim.answers.model_error import (
    FEW_WRITES,
    FEWEST_POOLED,
    WITH_WRITES,
    RealRun,
    half_of,
    half_width,
    interval,
    model_error,
    new_kind,
    real_runs,
    size_of,
)
from hybridsim.show.terminal import render

ROOT = Path(__file__).parents[1]

BCACHE = SCENARIO | {"cache_kind": "bcache"}
READS = Load(writes=0.0)


def runs_with(errors, kind="bcache", figure="iops", writes=0.0):
    return [
        RealRun(kind, f"{kind}{writes}-{n}", f"r{n}", writes, {figure: each})
        for n, each in enumerate(errors)
    ]


def test_the_half_width_is_exceeded_by_at_most_one_in_ten_of_the_next_runs():
    """A new run of the same distribution, 400 times; intervals of less than 87 % would show."""
    random = np.random.default_rng(4)
    held = []
    for _ in range(400):
        *errors, new = random.standard_t(4, 25) / 100
        held.append(abs(new) <= half_width(runs_with(errors), "bcache", "iops"))
    assert 0.88 <= np.mean(held) <= 0.98


def test_groups_share_the_shape_but_not_the_size_of_errors():
    small, large = [0.01, 0.02, 0.03] * 4, [0.1, 0.2, 0.3] * 4
    runs = runs_with(small) + runs_with(large, "dm-cache")
    widths = [half_width(runs, kind, "iops") for kind in ("bcache", "dm-cache")]
    assert 0.03 <= widths[0] < 0.06
    assert 0.3 <= widths[1] < 0.4
    few = runs_with(small) + runs_with(large[:3], "dm-cache")
    assert half_width(few, "dm-cache", "iops") > widths[1]


def test_writes_on_bcache_and_dm_cache_are_one_group():
    runs = runs_with([0.01] * 10) + runs_with([0.1, 0.1], writes=0.3)
    assert half_width(runs, WITH_WRITES, "iops") is None
    runs += runs_with([0.1, 0.1], "dm-cache", writes=0.3)
    assert half_width(runs, WITH_WRITES, "iops") >= 0.1 * (1 - 1e-9)


def test_repeated_runs_of_one_experiment_count_once():
    runs = runs_with([0.01 * n for n in range(1, 13)])
    again = [replace(run, name=run.name + "-r2") for run in runs]
    assert half_width(runs + again, "bcache", "iops") == half_width(runs, "bcache", "iops")


def test_too_few_experiments_give_no_interval():
    runs = runs_with([0.01] * 12)
    assert half_width(runs, "bcache", "iops") is not None
    assert half_width(runs, "bcache", "hit_ratio") is None
    assert half_width(runs, "dm-cache", "iops") is None
    assert half_width(runs[: FEWEST_POOLED - 1], "bcache", "iops") is None


def test_a_relative_error_scales_and_a_difference_stays_within_0_and_1():
    assert interval("iops", 500.0, 0.1) == pytest.approx((500 / 1.1, 550.0))
    assert interval("hit_ratio", 0.95, 0.1) == pytest.approx((0.85, 1.0))
    assert interval("promotions", 99.0, 0.1) == pytest.approx((90.0, 110.0))  # share of the real


def test_a_replay_has_the_intervals_of_its_kind_of_cache_and_load():
    found = model_error(result(READS, scenario=BCACHE))
    half = half_width(real_runs(), "bcache", "hit_ratio")
    value, low, high = found.figures["hit_ratio"]
    assert (low, high) == pytest.approx((value - half, min(value + half, 1)))
    assert "iops" not in found.figures  # in open loop the arrivals determine it
    closed = model_error(result(READS, scenario=BCACHE | {"mode": "closed"}))
    assert "iops" in closed.figures
    assert model_error(result(READS)) is None


def test_a_replay_with_writes_has_intervals_from_bcache_and_dm_cache():
    found = model_error(result(scenario=BCACHE | {"mode": "closed"}))
    assert found.load == WITH_WRITES
    assert {"iops", "hit_ratio"} <= found.figures.keys()
    assert "34 real runs on bcache and dm-cache (reads and writes)" in found.covers


@pytest.mark.parametrize(("figure", "most"), [("iops", 0.06), ("hit_ratio", 0.03)])
def test_intervals_hold_for_experiments_that_are_left_out(figure, most):
    inside, widths = [], []
    for run in real_runs():
        others = tuple(one for one in real_runs() if one.experiment != run.experiment)
        if figure not in run.errors:
            continue
        half = half_of(run.kind, run.writes > FEW_WRITES, figure, others)
        widths.append(half.width)
        inside.append(size_of(figure, run.errors[figure]) <= widths[-1])
    assert 0.87 <= np.mean(inside) <= 0.97
    assert np.median(widths) <= most


def test_a_kind_without_real_runs_has_the_interval_of_all_kinds_and_says_so():
    found = model_error(result(READS, scenario=SCENARIO | {"cache_kind": "another"}))
    value, low, _ = found.figures["hit_ratio"]
    half = new_kind(real_runs(), False, "hit_ratio")
    assert value - low == pytest.approx(min(half, value))
    words = "160 real runs on all kinds on file, as there are too few of another with such a load"
    assert words in found.covers
    own = model_error(result(READS, scenario=SCENARIO | {"cache_kind": "open-cas"}))
    assert "from 11 real runs on open-cas (reads)" in own.covers
    served = model_error(result(READS, scenario=SCENARIO | {"cache_kind": "page"}))
    assert "from 18 real runs on page (reads)" in served.covers


def test_a_new_kind_drawn_like_those_on_file_is_inside_as_often_as_promised():
    """Four kinds and a fifth, whose errors differ in size; its next run, 400 times."""
    random = np.random.default_rng(12)
    inside = []
    for _ in range(400):
        size = {f"kind{n}": 0.05 * random.lognormal(0, 0.8) for n in range(5)}
        runs = [run for kind in list(size)[:4]
                for run in runs_with(size[kind] * random.lognormal(0, 0.7, 8), kind)]  # fmt: skip
        new = size["kind4"] * random.lognormal(0, 0.7)
        inside.append(new <= new_kind(tuple(runs), False, "iops"))
    assert 0.87 <= np.mean(inside) <= 0.95


def test_kinds_that_differ_make_the_interval_of_a_new_one_wider():
    kinds = ("bcache", "dm-cache", "open-cas", "page")
    errors = [0.01, 0.02, 0.03] * 3
    alike = tuple(run for kind in kinds for run in runs_with(errors, kind))
    own = half_width(alike, "bcache", "iops")
    assert new_kind(alike, False, "iops") == pytest.approx(own, rel=0.1)
    sizes = dict(zip(kinds, (1, 1, 2, 4)))
    differ = tuple(run for kind, by in sizes.items()
                   for run in runs_with([by * one for one in errors], kind))  # fmt: skip
    assert new_kind(differ, False, "iops") > 3 * own


def test_the_spread_of_two_kinds_is_that_of_all_figures():
    errors = [0.01, 0.02, 0.03] * 3
    two = tuple(runs_with(errors) + runs_with(errors, "dm-cache"))
    sizes = {"a": 1, "b": 3, "c": 9}
    errors_of = {kind: [by * one for one in errors] for kind, by in sizes.items()}
    others = tuple(run for kind in sizes for run in runs_with(errors_of[kind], kind, "read_mean"))
    assert new_kind(two + others, False, "iops") > 2 * new_kind(two, False, "iops")
    assert new_kind(tuple(runs_with(errors)), False, "iops") is None


def test_a_kind_that_is_left_out_is_inside_as_often_as_promised():
    """Each kind on file is judged as if it were new, by the runs of all others alone.

    Experiments of a kind and figure count in equal parts, as in the promise, runs of each in turn.
    """
    inside = defaultdict(lambda: defaultdict(list))
    for run in real_runs():
        others = tuple(one for one in real_runs() if one.kind != run.kind)
        for figure, error in run.errors.items():
            half = half_of("new", run.writes > FEW_WRITES, figure, others)
            if half is not None:
                held = size_of(figure, error) <= half.width
                inside[figure, run.kind][run.experiment].append(held)
    shares = {
        pair: np.mean([np.mean(runs) for runs in each.values()]) for pair, each in inside.items()
    }
    assert np.mean(list(shares.values())) >= 0.87
    hits = [share for (figure, _), share in shares.items() if figure == "hit_ratio"]
    assert np.mean(hits) >= 0.87


def test_small_groups_with_errors_of_other_sizes_hold_as_often_as_promised():
    """The next experiment's run is inside, over groups as often as there are experiments.

    Errors have heavy tails, and those of an experiment's runs are alike.  An error takes part in
    the centre of its own group, which the interval allows for.
    """
    random = np.random.default_rng(11)
    groups = [("bcache", 9, 0.01), ("dm-cache", 3, 0.1), ("open-cas", 3, 0.003), ("page", 4, 0.03)]
    inside = {kind: [] for kind, _, _ in groups}
    for _ in range(400):
        runs, news = [], {}
        for kind, count, size in groups:
            for n in range(count + 1):
                level = size * random.lognormal(0, 0.8)
                errors = level * random.lognormal(0, 0.3, random.integers(1, 4))
                if n == count:
                    news[kind] = errors[0]
                    continue
                runs += [RealRun(kind, f"{kind}-{n}", f"{kind}-{n}-{at}", 0.0, {"iops": each})
                         for at, each in enumerate(errors)]  # fmt: skip
        for kind, error in news.items():
            inside[kind].append(error <= half_width(runs, kind, "iops"))
    shares = {kind: np.mean(some) for kind, some in inside.items()}
    weight = sum(count + 1 for _, count, _ in groups)
    pooled = sum(shares[kind] * (count + 1) for kind, count, _ in groups) / weight
    assert 0.88 <= pooled <= 0.95


def test_one_wild_run_among_several_of_an_experiment_counts_in_part():
    runs = runs_with([0.01, 0.02, 0.03] * 4)
    again = [replace(run, name=f"{run.name}-{n}") for run in runs for n in range(3)]
    wild = [replace(again[0], name="wild", errors={"iops": 5.0})]
    assert half_width(again + wild, "bcache", "iops") < 0.1
    assert half_width(runs[1:] + wild, "bcache", "iops") == pytest.approx(5)


def test_an_error_by_a_factor_counts_the_same_in_both_directions():
    assert size_of("read_mean", 1.0) == pytest.approx(size_of("read_mean", -0.5)) == 1
    assert size_of("hit_ratio", -0.05) == 0.05


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
    tests = [each for each in folders if real_errors.SAME.sub("", each) not in real_errors.BARE]
    assert sorted(experiments()) == sorted(tests)


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
