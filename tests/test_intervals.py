"""Intervals of means: each source, their combination, and how often they hold."""

import math

import numpy as np
import pytest

from hybridsim.answers.intervals import MODEL, SEEDS, TRACE, combined, means, of_model, of_trace
from hybridsim.answers.model_error import half_width, real_runs
from hybridsim.foundation.wording import ranged

MS, SECOND = 10**6, 10**9


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
    assert result.low == 100
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
    assert of_model("open-cas", 0.0, "read_mean") is None  # no run on file


def test_intervals_of_the_trace_hold_in_nine_of_ten_cases():
    """Blocks with different means and numbers: how often the true mean is inside."""
    draw = np.random.default_rng(7)
    inside = 0
    cases = 400
    for _ in range(cases):
        counts = np.stack([draw.poisson(50, 20), np.zeros(20)], axis=1).astype(float)
        level = draw.lognormal(0, 0.4, 20)
        totals = np.stack([counts[:, 0] * level, np.zeros(20)], axis=1)
        found = means(totals, counts, np.zeros(20), "none", 0.0)["read"]
        inside += found.low <= math.exp(0.08) <= found.high
    assert 0.84 <= inside / cases <= 0.95  # 20 blocks: a little less than the nominal 0.9


def test_means_of_both_directions():
    counts = np.full((20, 2), 10.0)
    totals = counts * [MS, 3 * MS]
    found = means(totals, counts, np.full(20, 2.0 * SECOND), "bcache", 0.5)
    assert found["read"].value == MS
    assert found["all"].value == 2 * MS
    assert found["took"].value == 40 * SECOND
    alone = means(totals, counts, np.zeros(20), "none", 0.5)
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
    ],
)
def test_an_interval_is_printed_in_the_unit_of_its_figure(value, ends, expected):
    assert ranged(value, *ends) == expected
