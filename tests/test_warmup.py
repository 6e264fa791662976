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


def test_a_warm_up_without_scatter_is_known_to_a_bin():
    curve = [0.0] * 40 + [0.9] * 160
    warm_up = judged(curve)
    assert warm_up.warm_ns == 40 * SECOND
    assert warm_up.between_ns(90) == (39 * SECOND, 41 * SECOND)
    assert judged(np.linspace(0, 0.9, 200)).between_ns(90) is None  # not steady
    assert judged([0.9] * 200, 0.9).between_ns(90) is None  # nothing warms up


def test_the_interval_of_a_noisy_warm_up_holds_nine_times_in_ten():
    inside = cases = 0
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(0, 0.02, 400)
        warm_up = judged(exponential(30, n=400) + noise)
        ends = warm_up.between_ns(90)
        if ends is not None:
            cases += 1
            inside += ends[0] <= 30 * np.log(10) * SECOND <= ends[1]
    assert cases > 180
    assert 0.84 <= inside / cases <= 0.97


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


def test_times_are_the_ends_of_the_last_bins_that_fall_short():
    """Nothing for 20 s, six tenths of the way for 20 s, then all of it; bins of 2 s."""
    curve = np.repeat([0.0, 0.6, 1.0], [10, 10, 80])
    times_ns = np.arange(100) * 2 * SECOND
    for initial, level in ((0.0, 0.8), (0.1, 0.9), (0.9, 0.3)):
        warm_up = judge(times_ns, initial + (level - initial) * curve, 2 * SECOND, initial=initial)
        assert warm_up.state == State.STEADY
        assert warm_up.reached_ns == {50: 20 * SECOND, 90: 40 * SECOND, 95: 40 * SECOND}
        assert warm_up.warm_ns == 40 * SECOND
        assert (warm_up.initial, warm_up.level) == (initial, pytest.approx(level))
        assert warm_up.last_fifth_ns == 160 * SECOND
        assert (warm_up.noise, warm_up.needed_ns, warm_up.why) == (pytest.approx(0), None, "")


def test_a_share_that_is_just_reached_counts():
    curve = np.repeat([0.0, 0.5, 0.9, 0.95, 1.0], [10, 10, 10, 10, 160])
    assert judged(curve).reached_ns == {50: 10 * SECOND, 90: 20 * SECOND, 95: 30 * SECOND}


def test_noise_is_four_standard_errors_of_a_drift():
    """Raw bins one above and one below a line: a scatter of 1.4826, and the drift it may feign."""
    times = np.arange(48.0)
    slope, noise = trend(times, 2 * times + 5, 2 * times + 5 + (-1.0) ** np.arange(48))
    assert slope == 2
    assert noise == pytest.approx(4 * 1.4826 * np.sqrt(12 / 48))


@pytest.mark.parametrize(
    ("drift", "tolerance", "state"),
    [
        (0.009, 0.0, State.STEADY),  # two per cent of the level, 0.5, may be no trend
        (0.011, 0.0, State.RISING),
        (-0.011, 0.0, State.FALLING),
        (0.011, 0.02, State.STEADY),
        (-0.019, 0.02, State.STEADY),
        (0.021, 0.02, State.RISING),
    ],
)
def test_a_drift_is_a_trend_beyond_the_tolerance(drift, tolerance, state):
    late = 0.5 + drift * (np.arange(40) - 19.5) / 39
    warm_up = judged(np.concatenate([np.full(160, late[0]), late]), tolerance=tolerance)
    assert warm_up.state == state


@pytest.mark.parametrize(
    ("initial", "tolerance", "state"),
    [
        (0.511, 0.0, State.STEADY),  # further than two per cent of the level, 0.5
        (0.509, 0.0, State.FLAT),
        (0.491, 0.0, State.FLAT),
        (0.489, 0.0, State.STEADY),
        (0.489, 0.012, State.FLAT),
    ],
)
def test_what_stays_within_the_tolerance_of_where_it_began_is_flat(initial, tolerance, state):
    warm_up = judged(np.full(100, 0.5), initial=initial, tolerance=tolerance)
    assert warm_up.state == state


def test_an_unknown_beginning_is_the_median_of_the_first_five_bins():
    curve = np.concatenate([[9.0, 1.0, 3.0, 2.0, 50.0], np.full(95, 100.0)])
    assert judged(curve, initial=None).initial == 3.0


def test_five_bins_in_the_last_fifth_are_enough():
    assert judged(np.full(25, 0.5)).state == State.STEADY
    short = judged(np.full(24, 0.5))
    assert (short.state, short.level) == (State.SHORT, None)
    assert short.needed_ns == 600 * SECOND
    wide = judge(np.arange(24) * 10 * SECOND, np.full(24, 0.5), 10 * SECOND, initial=0.0)
    assert wide.needed_ns == 10 * 240 * SECOND


@pytest.mark.parametrize(
    ("constant", "needed"),
    [(200, 1000), (60, 1.5 * 200), (900, 10 * 200)],  # five constants, from 1.5 to 10 times the run
)
def test_a_longer_capture_is_proposed_by_the_time_constant(constant, needed):
    times_ns = np.arange(200) * SECOND
    rising = 0.9 * (1 - np.exp(-np.arange(200) / constant))
    warm_up = judge(times_ns, rising, SECOND, initial=0.0)
    assert warm_up.state == State.RISING
    assert warm_up.needed_ns / SECOND == pytest.approx(needed, rel=0.05)


def test_a_restless_run_is_to_be_captured_twice_as_long():
    # The whole last fifth lies at one level, but for its end, which falls far below it.
    curve = np.concatenate([np.full(60, 0.8), np.tile([0.8, 0.8, 0.8, 0.0, 0.0, 0.0], 40)[:240]])
    warm_up = judged(curve)
    assert warm_up.state == State.RESTLESS
    assert warm_up.needed_ns == 600 * SECOND
    assert "repeatedly fell below" in warm_up.why


def test_iops_are_requests_completed_a_second():
    """The last bin ends with the run and is left out."""
    (_, _), (plain, _) = machines(Load(seconds=100, iops=1000, hit_ratio=lambda share: 0))
    collector = collected(plain)
    warm_up = of_iops(collector, before=1.0)
    series = collector.series(warm_up.bin_ns)
    whole = collector.last_done_ns // warm_up.bin_ns
    assert warm_up.curve.tolist() == (series.done[:whole] * SECOND / warm_up.bin_ns).tolist()
    assert warm_up.times_ns.tolist() == [n * warm_up.bin_ns for n in range(whole)]
    assert (warm_up.measure, warm_up.initial) == ("IOPS", 1.0)
