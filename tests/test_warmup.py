"""The definition of warm, on curves with known answers."""

import numpy as np
import pytest
from fakes import Load, collected, machines
from hypothesis import given
from hypothesis import strategies as st

from hybridsim.answers.metrics import Collector
from hybridsim.answers.warmup import State, centred_median, judge, of_hits, of_iops, trend

SECOND = 10**9


def judged(curve, initial=0.0, **more):
    curve = np.asarray(curve, np.float64)
    return judge(np.arange(len(curve)) * SECOND, curve, SECOND, initial=initial, **more)


def exponential(constant, n=500, level=0.9):
    return level * (1 - np.exp(-(np.arange(n) + 0.5) / constant))


@given(st.floats(3, 80), st.floats(0.05, 1.0))
def test_an_exponential_warm_up_is_steady_with_the_analytic_times(constant, level):
    warm_up = judged(exponential(constant, level=level))
    assert warm_up.state == State.STEADY
    assert warm_up.level == pytest.approx(level, rel=0.01)
    for share, time_ns in warm_up.reached_ns.items():
        expected = -constant * np.log(1 - share / 100)
        # The level is the median of the last fifth: a little lower than the limit.
        assert time_ns / SECOND == pytest.approx(expected, rel=0.1, abs=2.5)
    assert warm_up.warm_ns == warm_up.reached_ns[90]


def test_t50_t90_and_t95_are_in_order():
    reached = judged(exponential(40)).reached_ns
    assert reached[50] < reached[90] < reached[95]


def test_an_unfinished_warm_up_has_no_times():
    warm_up = judged(exponential(400))
    assert warm_up.state == State.RISING
    assert not warm_up.reached_ns
    assert "still rising" in warm_up.why
    assert warm_up.warm_ns == warm_up.last_fifth_ns == 400 * SECOND
    # The time constant follows from the curve, and from it the capture time needed.
    assert warm_up.needed_ns / SECOND == pytest.approx(5 * 400, rel=0.05)


def test_a_steady_drift_is_not_steady():
    assert judged(np.linspace(0.1, 0.9, 300)).state == State.RISING
    assert judged(0.9 - np.linspace(0, 0.5, 300)).state == State.FALLING


def test_a_flat_curve_has_nothing_to_warm_up():
    warm_up = judged(np.full(300, 0.001), tolerance=0.005)
    assert warm_up.state == State.FLAT
    assert warm_up.steady
    assert warm_up.warm_ns == 0
    assert judged(np.full(300, 500.0), initial=None).state == State.FLAT


def test_a_noisy_constant_is_flat_although_its_first_bins_differ():
    curve = 200 + 14 * np.random.default_rng(1).standard_normal(300)
    curve[:5] += 9
    assert judged(curve, initial=None).state == State.FLAT


def test_a_rise_with_a_restless_end_is_not_flat():
    # Nine tenths of the reads hit, then the hot spot moves: the last fifth falls and recovers.
    curve = np.concatenate([0.9 * (1 - np.exp(-np.arange(80) / 15)), np.linspace(0.9, 0.1, 10)])
    curve = np.concatenate([curve, np.linspace(0.1, 0.9, 10)])
    warm_up = judged(curve, tolerance=0.005)
    assert warm_up.noise > warm_up.level  # such an end shows no trend ...
    assert warm_up.state == State.RESTLESS  # ... but the hit ratio did rise
    assert not warm_up.steady


def test_a_cache_that_is_warm_at_once_has_times_of_0():
    warm_up = judged(np.full(300, 0.8))
    assert warm_up.state == State.STEADY
    assert warm_up.reached_ns == {50: 0, 90: 0, 95: 0}


@pytest.mark.parametrize("seed", range(20))
def test_a_noisy_warm_up_is_steady(seed):
    rng = np.random.default_rng(seed)
    warm_up = judged(exponential(30) + rng.normal(0, 0.03, 500))
    assert warm_up.state == State.STEADY
    assert 30 * SECOND < warm_up.reached_ns[90] < 110 * SECOND


def test_noise_is_mistaken_for_a_trend_in_at_most_5_percent():
    rng = np.random.default_rng(7)
    states = [judged(0.5 + rng.normal(0, 0.1, 300)).state for _ in range(200)]
    assert sum(state in (State.RISING, State.FALLING) for state in states) <= 10


def test_single_outliers_do_not_change_the_times():
    curve = exponential(30)
    curve[[200, 300, 450]] = 0
    assert judged(curve).reached_ns == judged(exponential(30)).reached_ns


def test_a_repeatedly_moving_hot_spot_is_not_warm():
    curve = np.tile(exponential(60, 100), 5)
    warm_up = judged(curve)
    assert warm_up.state in (State.RISING, State.RESTLESS)
    assert not warm_up.reached_ns


def test_a_hot_spot_that_moved_once_is_warm_after_the_move():
    curve = np.concatenate([exponential(10, 200), exponential(10, 300)])
    assert judged(curve).reached_ns[90] > 200 * SECOND


@pytest.mark.parametrize("n", [0, 1, 4, 20])
def test_a_run_that_is_too_short_is_reported_as_short(n):
    warm_up = judged(np.full(n, 0.5))
    assert warm_up.state == State.SHORT
    assert warm_up.needed_ns >= 600 * SECOND


def test_iops_curves_start_at_the_disks_alone_and_may_fall():
    rising = judge(
        np.arange(300) * SECOND, 1000 + 20_000 * exponential(20, 300, 1), SECOND, "IOPS", 1000.0
    )
    assert rising.state == State.STEADY
    assert rising.level == pytest.approx(21_000, rel=0.01)
    falling = judged(5000 - 4000 * exponential(20, 300, 1), initial=None)
    assert falling.state == State.STEADY
    assert falling.reached_ns[90] == pytest.approx(46 * SECOND, rel=0.1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_centred_median_equals_the_naive_one(curve):
    expected = [np.median(curve[max(i - 2, 0) : i + 3]) for i in range(len(curve))]
    assert centred_median(np.array(curve)).tolist() == pytest.approx(expected)


def test_the_slope_is_the_theil_sen_estimate():
    slope, noise = trend(np.arange(50.0), 3 * np.arange(50.0), 3 * np.arange(50.0))
    assert slope == 3
    assert noise == 0


@pytest.mark.parametrize(
    ("seconds", "iops", "bin_seconds"),
    [(300, 400, 1), (20, 2000, 0.25), (3600, 1000, 8), (300, 20, 4)],
)
def test_bins_are_seconds_unless_the_run_is_short_long_or_sparse(seconds, iops, bin_seconds):
    (cached, _), _ = machines(Load(seconds=seconds, iops=iops))
    assert of_hits(collected(cached)).bin_ns == bin_seconds * SECOND


def test_warm_ups_are_judged_from_facts():
    (cached, _), (plain, _) = machines(Load(seconds=600, iops=400))
    hits = of_hits(collected(cached))
    assert hits.state == State.STEADY
    assert hits.level == pytest.approx(0.93, abs=0.01)
    assert of_iops(collected(plain)).level == pytest.approx(400, rel=0.05)
    assert of_hits(Collector()).state == State.SHORT
    assert of_iops(Collector()).state == State.SHORT
