"""Forecasts of gains: against a second computation, and properties of what they may do."""

import dataclasses
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from hybridsim.answers.forecast import (
    AFTER,
    ALLOWANCE,
    ALLOWANCE_TRIED,
    ANY_AFTER,
    FALLS,
    HORIZON,
    LATER,
    LOSS_BY_FORMULA,
    MOST_GAIN,
    MOST_MEASURED,
    MUCH,
    NO,
    NOTHING,
    RISES,
    SIMULATED,
    SURE,
    UNSURE,
    USUAL_OFF,
    WORTH_IT,
    YES,
    Course,
    deviation,
    forecast,
    is_certain,
    own_error,
)

DRAWS = norm.ppf((np.arange(20_000) + 0.5) / 20_000)

FLAT = Course(
    gain=math.log(2), noise=0.02, hits=0.5, rising=0.0, per_hit=0.8, filling=0.0, kind="bcache",
    puts_off=False, settled=False, ahead=None, without_cheap=0.3, writes=0.2, adapts=False,
    unrest=0.05, requests=10_000,
)  # fmt: skip


def share(top=1.0):
    return st.floats(0, top)


@st.composite
def courses(draw):
    puts_off = draw(st.booleans())
    return Course(
        gain=draw(st.floats(-2, 4)), noise=draw(share()), hits=draw(share()),
        rising=draw(st.floats(-2, 2)), per_hit=draw(share()), filling=draw(share()),
        kind=draw(st.sampled_from([*RISES, "another"])), puts_off=puts_off,
        settled=draw(st.booleans()),
        ahead=draw(st.none() | share(HORIZON)) if puts_off else None,
        without_cheap=draw(st.floats(-1, 1)), writes=draw(share()), adapts=draw(st.booleans()),
        unrest=draw(share(2.0)), requests=draw(st.integers(200, 100_000)),
    )  # fmt: skip


def by_requests(course, steps=20_000):
    """A forecast by summing up over the requests to come, instead of in closed form."""
    place = 1 + HORIZON * (np.arange(steps) + 0.5) / steps  # of each request, in captures
    half = 0.5 + 0.5 * (np.arange(steps) + 0.5) / steps
    rises = RISES[course.kind]
    goes_on = rises.full + rises.filling * course.filling if course.rising > 0 else FALLS
    hits = course.hits + goes_on * course.rising * (np.log(place).mean() - np.log(half).mean())
    saved = course.per_hit * (min(max(hits, 0), 1) - course.hits)
    later = AFTER.get(course.kind, ANY_AFTER)
    after = later.adapts if course.adapts else later.kept
    after *= min(course.writes / 0.1, 1)
    now = math.exp(-course.gain)
    cheap = max(now - saved, 0.3 * now)
    dear = max(1 - course.without_cheap - saved, 0.05) / math.exp(after)
    is_cheap = np.full(steps, True) if course.ahead is None else place - 1 < course.ahead
    return 1 / np.where(is_cheap, cheap, dear).mean()


@settings(max_examples=200, deadline=None)
@given(courses().filter(lambda one: one.kind in RISES))
def test_it_is_what_the_requests_to_come_add_up_to(course):
    assert forecast(course).gain == pytest.approx(by_requests(course), rel=2e-3)


@settings(max_examples=200, deadline=None)
@given(courses())
def test_the_interval_is_the_root_of_the_squares_of_what_makes_it_unsure(course):
    result = forecast(course)
    parts = (1, course.noise, math.log(result.trend), course.gain, math.log(result.change),
             min(course.unrest, 1) * min(abs(course.gain), 1))  # fmt: skip
    half = math.hypot(*(each * part for each, part in zip(ALLOWANCE, parts)))
    assert result.low == pytest.approx(result.gain * math.exp(-half))
    if max(course.gain, math.log(result.gain)) < MOST_GAIN:  # else it has no upper end, see below
        assert result.high == pytest.approx(result.gain * math.exp(half))
    assert result.low <= result.cautious <= result.gain


@settings(max_examples=200, deadline=None)
@given(courses())
def test_an_answer_would_stay_if_the_forecast_were_off_by_a_part_of_the_allowance(course):
    result = forecast(course)
    off = (result.gain / result.low) ** SURE
    if result.answer == YES:
        assert result.gain >= WORTH_IT
        assert result.gain / off >= NOTHING * (1 - 1e-9)
        assert result.gain / (result.gain / result.low) ** LOSS_BY_FORMULA >= 1 - 1e-9
    elif result.answer == NO:
        assert result.gain < WORTH_IT
        assert result.gain * off < MUCH * (1 + 1e-9)
    else:
        loss = result.gain / (result.gain / result.low) ** LOSS_BY_FORMULA
        is_near = result.gain / off < NOTHING * (1 + 1e-9) or loss < 1 + 1e-9
        assert is_near or result.gain * off >= MUCH * (1 - 1e-9)


@settings(max_examples=200, deadline=None)
@given(courses(), share(), st.sampled_from(["noise", "unrest"]))
def test_more_noise_or_unrest_never_makes_it_surer(course, more, name):
    other = dataclasses.replace(course, **{name: getattr(course, name) + more})
    before, after = forecast(course), forecast(other)
    assert after.gain == before.gain
    assert after.low <= before.low
    assert after.high >= before.high
    assert after.answer in (before.answer, UNSURE)


@settings(max_examples=200, deadline=None)
@given(courses(), share())
def test_a_larger_gain_of_the_capture_is_never_a_smaller_forecast(course, more):
    other = dataclasses.replace(course, gain=course.gain + more)
    assert forecast(other).gain >= forecast(course).gain * (1 - 1e-12)


@settings(max_examples=200, deadline=None)
@given(courses(), share())
def test_a_cache_that_still_fills_gains_from_a_rise_no_less_than_a_full_one(course, filling):
    rising = dataclasses.replace(course, rising=abs(course.rising), ahead=None)
    more, less = (
        dataclasses.replace(rising, filling=each) for each in (max(filling, course.filling),
                                                               min(filling, course.filling))
    )  # fmt: skip
    assert forecast(more).gain >= forecast(less).gain * (1 - 1e-12)
    assert forecast(less).trend >= 1 - 1e-12


def test_an_unsettled_load_makes_large_gains_unsure_and_none_of_no_gain():
    """A load that varies changes what a cache gains; where it gains nothing, nothing changes."""

    def width(gain, unrest):
        one = forecast(dataclasses.replace(FLAT, gain=gain, unrest=unrest))
        return math.log(one.high / one.low)

    assert width(0.0, 1.0) == width(0.0, 0.0)
    assert width(0.5, 1.0) > width(0.2, 1.0) > width(0.2, 0.0)


@settings(max_examples=200, deadline=None)
@given(courses(), st.floats(-2, 4), st.floats(0, 5), st.floats(0, 5))
def test_the_worse_the_past_was_forecast_the_wider_the_interval(course, later, off, more):
    """Where the load was continued; within bounds, and with the forecast unchanged."""
    known = dataclasses.replace(course, later=later)
    usual, better, worse = (
        forecast(dataclasses.replace(known, off=each)) for each in (USUAL_OFF, off, off + more)
    )
    widths = [math.log(each.high / each.gain) for each in (better, worse, usual)]
    assert widths[0] <= widths[1] * (1 + 1e-12)
    assert all(0.7 < width / widths[2] < 1.42 for width in widths[:2])
    assert better.gain == worse.gain == usual.gain
    assert forecast(dataclasses.replace(course, off=off)) == forecast(course)  # by the formula


@settings(max_examples=200, deadline=None)
@given(courses(), st.floats(-2, 4))
def test_machines_are_compared_by_the_cost_that_they_leave_on_average(course, later):
    """Over errors of their own, drawn; at least by the lower end of the interval."""
    known = dataclasses.replace(course, later=later)
    result, error = forecast(known), own_error(known)
    left = np.exp(error * DRAWS).mean() / result.gain
    assert result.cautious >= result.low * (1 - 1e-9)
    if error < 1:
        assert result.cautious == pytest.approx(max(1 / left, result.low), rel=2e-3)


@settings(max_examples=200, deadline=None)
@given(courses(), st.floats(-2, 4), st.floats(0, 3))
def test_what_all_machines_of_a_load_share_does_not_tell_them_apart(course, later, unrest):
    known = dataclasses.replace(course, later=later)
    restless = dataclasses.replace(known, unrest=unrest)
    assert own_error(restless) == own_error(known)


@pytest.mark.parametrize(
    ("answer", "low", "high", "certain"),
    [(YES, 1.06, 9.0, True), (YES, 1.04, 9.0, False), (NO, 0.5, 1.2, True),
     (NO, 0.5, 1.3, False), (UNSURE, 0.5, 3.0, True), (YES, None, None, True)],
)  # fmt: skip
def test_an_answer_is_certain_if_it_is_right_at_both_ends_of_the_interval(
    answer, low, high, certain
):
    assert is_certain(answer, low, high) == certain


def test_what_the_capture_itself_does_not_show_is_no_yes():
    """The simulation alone expects much, the formula next to nothing."""
    nothing = dataclasses.replace(FLAT, gain=math.log(1.03), noise=0.0, later=math.log(3))
    assert forecast(nothing).answer == UNSURE
    little = dataclasses.replace(nothing, gain=math.log(1.1))
    assert forecast(little).answer == YES


def test_a_deviation_counts_in_halves_of_the_interval():
    known = dataclasses.replace(FLAT, later=0.5)
    one = forecast(known)
    assert deviation(known, math.log(one.gain)) == pytest.approx(0)
    assert deviation(known, math.log(one.high)) == pytest.approx(1)
    assert deviation(known, math.log(one.low)) == pytest.approx(-1)


def test_a_course_that_does_not_change_is_its_own_forecast():
    result = forecast(FLAT)
    assert result.gain == pytest.approx(2)
    assert result.trend == pytest.approx(1)
    assert result.change == 1
    assert result.answer == YES


def test_a_change_at_the_end_of_the_horizon_is_none():
    far = dataclasses.replace(FLAT, puts_off=True, ahead=HORIZON)
    assert forecast(far).gain == pytest.approx(2)
    near = dataclasses.replace(far, ahead=0.0)
    assert forecast(near).gain == pytest.approx(math.exp(AFTER["bcache"].kept) / 0.7)


@pytest.mark.parametrize(
    ("gain", "noise", "answer"),
    [(1.5, 0.0, YES), (1.16, 0.0, YES), (1.14, 0.0, NO), (1.0, 0.0, NO), (1.2, 0.5, UNSURE),
     (1.1, 0.5, UNSURE), (5.0, 0.4, YES), (0.5, 0.5, NO),
     (1.3, 0.12, YES), (1.3, 0.2, UNSURE)],
)  # fmt: skip
def test_answers(gain, noise, answer):
    assert forecast(dataclasses.replace(FLAT, gain=math.log(gain), noise=noise)).answer == answer


def test_later_is_the_mean_logarithm_of_the_requests_to_come_over_that_of_the_second_half():
    ahead = 1 + HORIZON * (np.arange(10**6) + 0.5) / 10**6
    half = 0.5 + 0.5 * (np.arange(10**6) + 0.5) / 10**6
    difference = np.log(ahead).mean() - np.log(half).mean()
    assert difference == pytest.approx(LATER, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.lists(courses().filter(lambda one: one.kind in RISES), min_size=1, max_size=5))
def test_the_fit_computes_what_the_forecast_does(several):
    pytest.importorskip("scipy")
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    try:
        import decision_fit as fit
    finally:
        del sys.path[0]
    constants = np.array(
        [getattr(table.get(kind, ANY_AFTER), field)
         for table, fields in ((RISES, RISES["page"]._fields), (AFTER, ANY_AFTER._fields))
         for field in fields for kind in fit.KINDS] + [FALLS]
    )  # fmt: skip
    columns = fit.Columns([fit.Known("a", "b", each, 0.0) for each in several])
    centre, before = columns.centres(constants)
    half = np.sqrt(columns.parts(constants) @ np.square(ALLOWANCE))
    for course, c, b, h in zip(several, centre, before, half):
        result = forecast(course)
        assert result.gain == pytest.approx(math.exp(c))
        assert result.change == pytest.approx(math.exp(c - b))
        assert result.low == pytest.approx(math.exp(c - h))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(courses().filter(lambda one: one.kind in RISES), min_size=1, max_size=5),
    st.floats(-3, 3),
    st.floats(0.1, 3),
)
def test_the_fit_computes_what_the_forecast_of_a_load_that_goes_on_does(several, later, off):
    pytest.importorskip("scipy")
    sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
    try:
        import decision_fit as fit
    finally:
        del sys.path[0]
    several = [dataclasses.replace(one, later=later, off=off) for one in several]
    columns = fit.Simulated([fit.Known("a", "b", each, 0.0) for each in several])
    constants = np.array([SIMULATED])
    half = np.sqrt(columns.parts(constants) @ np.square(ALLOWANCE_TRIED))
    for course, centre, h in zip(several, columns.centres(constants)[0], half):
        result = forecast(course)
        assert result.gain == pytest.approx(math.exp(centre))
        assert result.low == pytest.approx(math.exp(centre - h))


@pytest.mark.parametrize("later", [None, MOST_GAIN])
def test_a_gain_that_is_not_measured_any_further_has_no_upper_end(later):
    gain = MOST_GAIN if later is None else 1.0
    result = forecast(dataclasses.replace(FLAT, gain=gain, later=later))
    assert result.high == MOST_MEASURED
    assert result.low < result.gain < MOST_MEASURED
    less = forecast(dataclasses.replace(FLAT, gain=1.0, later=later and later - 0.1))
    assert less.high < MOST_MEASURED
