"""Intervals of means: each source, their combination, and how often they hold."""

import functools
import json
import math

import numpy as np
import pytest

from hybridsim.answers.intervals import (
    FINEST,
    MODEL,
    SEEDS,
    TRACE,
    Blocks,
    combined,
    gains,
    means,
    of_model,
    of_percentile,
    of_trace,
)
from hybridsim.answers.model_error import half_width, new_kind, real_runs
from hybridsim.answers.sampling import interval, ratio_interval
from hybridsim.foundation.histogram import BINS, VALUES, bin_of
from hybridsim.foundation.wording import LAST_NS, ranged

MS, SECOND = 10**6, 10**9


def blocks(counts, totals, took=None, kind="none", first=0):
    took = np.zeros(len(counts)) if took is None else took
    end, whole = first + int(counts.sum()), int(took.sum())
    return Blocks(kind, first, end, counts, totals, took, whole)


def test_independent_sources_add_up_in_squares():
    alone = combined(100.0, {TRACE: (80.0, 125.0)})
    assert (alone.low, alone.high) == pytest.approx((80, 125))
    both = combined(100.0, {TRACE: (80.0, 125.0), MODEL: 0.25, SEEDS: None})
    factor = math.exp(math.sqrt(2) * math.log(1.25))
    assert (both.low, both.high) == pytest.approx((100 / factor, 100 * factor))
    assert both.sources == (TRACE, MODEL)
    assert combined(100.0, {MODEL: None}) is None
    assert combined(0.0, {MODEL: 0.1}) is None


def test_an_interval_holds_its_figure():
    result = combined(100.0, {TRACE: (101.0, 130.0)})  # a skewed sample
    assert result.low == 100 / (1 + FINEST)
    assert result.high == pytest.approx(130)


def test_too_few_blocks_say_nothing():
    counts = np.zeros(20)
    counts[:4] = 5
    assert of_trace(counts * 7, counts) is None
    counts[4] = 5
    assert of_trace(counts * 7, counts) == pytest.approx((7, 7))


def test_the_models_error_is_that_of_real_runs_on_file():
    half = of_model("bcache", 0.0, "read_mean")
    assert half == half_width(real_runs(), "bcache", "read_mean")
    assert half > 0
    assert of_model("none", 0.0, "read_mean") is None
    # No run of a page cache is on file.
    assert of_model("page", 0.0, "read_mean") == new_kind(real_runs(), False, "read_mean")


def test_intervals_of_the_trace_hold_in_nine_of_ten_cases():
    """Blocks with different means and numbers: how often the true mean is inside."""
    draw = np.random.default_rng(7)
    inside = 0
    cases = 400
    for _ in range(cases):
        counts = np.stack([draw.poisson(50, 20), np.zeros(20)], axis=1).astype(float)
        level = draw.lognormal(0, 0.4, 20)
        totals = np.stack([counts[:, 0] * level, np.zeros(20)], axis=1)
        found = means(blocks(counts, totals))["read"]
        inside += found.low <= math.exp(0.08) <= found.high
    assert 0.84 <= inside / cases <= 0.95  # 20 blocks: a little less than the nominal 0.9


def mean(values, often):
    return often @ values / len(values)


def test_blocks_that_resemble_their_neighbours_are_drawn_together():
    """What lasts for several blocks, such as the contents of the drives' buffers."""
    draw = np.random.default_rng(8)
    inside = alone = 0
    cases = 300
    for _ in range(cases):
        steps = draw.normal(0, 0.3, 60)
        level = np.zeros(60)
        for at in range(1, 60):
            level[at] = 0.6 * level[at - 1] + steps[at]
        values = 10 + level[40:]
        low, high = interval(20, functools.partial(mean, values), held=20)
        inside += low <= 10 <= high
        low, high = interval(20, functools.partial(mean, values))
        alone += low <= 10 <= high
    assert alone / cases < 0.7
    assert inside / cases > 0.8


def test_slow_waves_that_only_one_machine_has_widen_a_paired_gain():
    """The difference of two machines is slow; bursts that both have do not matter."""
    draw = np.random.default_rng(9)
    inside, widths = 0, []
    cases = 400
    for _ in range(cases):
        steps, level = draw.normal(0, 0.02, 80), np.zeros(80)
        for at in range(1, 80):
            level[at] = 0.6 * level[at - 1] + steps[at]
        bursts = draw.lognormal(0, 1, 20)
        low, high = ratio_interval(2 * bursts * np.exp(level[60:]), bursts)
        inside += low <= 2 <= high
        widths.append(math.log(high / low) / 2)
    assert 0.85 <= inside / cases <= 0.97
    assert np.median(widths) < 0.05  # the sum of either machine scatters by about 0.3


def test_a_paired_gain_is_not_known_from_nothing():
    nothing, one = np.zeros(20), np.eye(20)[3]
    for old, new in ((nothing, one), (one, nothing), (one, one)):
        assert ratio_interval(old, new) == (0.0, math.inf)
    assert ratio_interval(np.full(20, 3.0), np.ones(20)) == pytest.approx((3, 3))


def test_a_straggler_widens_the_interval_of_a_duration():
    counts, took = np.full((20, 2), 10.0), np.full(20, 2.0 * SECOND)
    late = Blocks("none", 0, 400, counts, counts, took, 44 * SECOND)
    found = means(late)["took"]
    assert found.value == 44 * SECOND
    assert found.low == pytest.approx(40 * SECOND)
    gain = gains(late, blocks(counts, counts, took))["took"]
    assert gain.value == pytest.approx(1.1)
    assert gain.low == pytest.approx(1)


def test_means_of_both_directions():
    counts = np.full((20, 2), 10.0)
    totals = counts * [MS, 3 * MS]
    found = means(blocks(counts, totals, np.full(20, 2.0 * SECOND), "bcache"))
    assert found["read"].value == MS
    assert found["all"].value == 2 * MS
    assert found["took"].value == 40 * SECOND
    alone = means(blocks(counts, totals))
    assert "took" not in alone
    assert alone["write"].sources == (TRACE,)


@pytest.mark.parametrize(
    ("value", "ends", "expected"),
    [
        (2_600_000, (2_410_000, 2_880_000), "2.60 ms (2.4 to 2.9)"),
        (844 * MS, (801 * MS, 890 * MS), "844 ms (801 to 890)"),
        (23_800, (21_300, 1_030_000), "23.8 us (21 to 1,030)"),
        (49.4e9, (45.2e9, 54.9e9), "49.4 s (45 to 55)"),
        (9_120_000, (9_101_000, 9_139_000), "9.12 ms (9.10 to 9.14)"),
        (9_120_000, (9_119_000, 9_121_000), "9.12 ms"),
        (191e9, (171e9, 212e9), "3m 11s (2m 51s to 3m 32s)"),
        (LAST_NS, (16e9, 18e9), "> 17 s"),
    ],
)
def test_an_interval_is_printed_in_the_unit_of_its_figure(value, ends, expected):
    assert ranged(value, *ends) == expected


def test_the_latency_of_the_last_bin_is_worded_as_open_to_above():
    assert VALUES[-1] == LAST_NS  # worded without numpy, for commands that print little


def test_what_is_the_same_on_both_machines_does_not_widen_a_paired_gain():
    counts = np.full((20, 2), 10.0)
    level = np.random.default_rng(5).lognormal(0, 1, (20, 1))
    before, after = blocks(counts, counts * level * 4), blocks(counts, counts * level * 2)
    found = gains(before, after)
    assert found["all"].low == pytest.approx(2 / (1 + FINEST))
    assert found["all"].high == pytest.approx(2 * (1 + FINEST))
    alone = means(before)["all"]
    assert alone.high / alone.low > 1.5


def test_the_models_errors_on_both_machines_widen_a_gain():
    counts = np.full((20, 2), 10.0)
    one, other = (blocks(counts, counts * ns, kind="bcache") for ns in (4.0, 2.0))
    found = gains(one, other)["read"]
    half = of_model("bcache", 0.5, "read_mean")
    assert found.high / found.value == pytest.approx((1 + half) ** math.sqrt(2))
    assert found.sources == (TRACE, MODEL)
    assert MODEL not in gains(blocks(counts, counts), blocks(counts, counts))["read"].sources


def test_other_requests_are_not_paired():
    counts = np.full((20, 2), 10.0)
    assert gains(blocks(counts, counts), blocks(counts, counts, first=10)) == {}
    more = counts.copy()
    more[3, 0] += 1
    more[4, 0] -= 1
    assert gains(blocks(counts, counts), blocks(more, counts)) == {}


def test_blocks_survive_json():
    counts = np.full((20, 2), 10.0)
    one = blocks(counts, counts * 3, np.full(20, 7.0), "dm-cache", 40)
    again = Blocks.from_dict(json.loads(json.dumps(one.to_dict())))
    assert again.pairs_with(one)
    assert np.array_equal(again.totals_ns, one.totals_ns)
    assert (again.kind, again.took_ns.sum()) == ("dm-cache", 140)


def test_intervals_of_percentiles_hold():
    """Histograms of draws of a known distribution: its median is inside in about nine of ten."""
    draw, inside, cases = np.random.default_rng(8), 0, 200
    for _ in range(cases):
        values = draw.normal(20_000, 3_000, (20, 5))
        bins = np.stack([np.bincount(bin_of(each.astype(np.int64)), minlength=BINS)
                         for each in values]).astype(float)  # fmt: skip
        low, high = of_percentile(bins, 50)
        inside += low * 0.98 <= 20_000 <= high * 1.02  # the width of a bin
    assert 0.86 <= inside / cases <= 0.995
