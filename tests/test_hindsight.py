"""How far off forecasts of a load's past were: of loads that go on as before, and that change."""

import dataclasses
import math

import numpy as np
import pytest

from hybridsim.requests.rows import joined
from hybridsim.scenario import Scenario
from hybridsim.studies import runs as hindsight
from hybridsim.studies.replay import Several, replay
from hybridsim.traces.trace import Trace, in_memory

STEADY = "gen:zipf,theta=1.1,span=64MiB,read=80%,rate=60,requests=2000"
MIB = 1 << 20


def rows_of(text):
    return joined(list(Trace.read(text).from_first()))


def turned():
    """After three tenths of the requests, when much came back, nothing does."""
    rows = rows_of(STEADY)
    cut = round(hindsight.EARLIER * rows.rows)
    offset = rows.offset_bytes.copy()
    offset[cut:] = 64 * MIB + np.arange(rows.rows - cut) * MIB // 16
    return rows._replace(offset_bytes=offset)


def course(trace, **options):
    site = Scenario.default().with_options(cache_size="8MiB", **options)
    return replay(trace, site).judgement.course


def test_of_a_load_that_turns_forecasts_were_further_off():
    goes_on, turns = (
        course(in_memory(name, rows)).off
        for name, rows in (("steady", rows_of(STEADY)), ("turned", turned()))
    )
    assert 0 <= goes_on < 1.5
    assert turns > 2 * goes_on


def test_all_machines_are_judged_by_the_same_hindsight():
    trace = Trace.read(STEADY)
    ours = [course(trace, cache=kind).off for kind in ("page", "bcache")]
    sites = [
        Scenario.default().with_options(cache="page", cache_size=size) for size in ("4MiB", "32MiB")
    ]
    ours += [each.judgement.course.off for each in Several(trace, sites[0]).results(sites)]
    assert ours == [ours[0]] * 4
    again = course(Trace.read(STEADY)).off  # nothing kept
    assert again == ours[0]


def test_other_disks_have_their_own_hindsight():
    trace = Trace.read(STEADY)
    few, many = (course(trace, members=members).off for members in (3, 8))
    assert few != many


def test_it_is_the_root_mean_square_of_what_a_replay_of_the_first_part_forecast():
    trace = Trace.read(STEADY)
    rows = rows_of(STEADY)
    cut = round(hindsight.EARLIER * rows.rows)
    early = in_memory("early", rows.between(0, cut), is_generated=True)
    footprint_bytes = trace.summary().footprint_bytes
    squares = []
    for share in hindsight.SHARES:
        site = Scenario.default().with_values(
            hindsight.PANEL | {"cache.size": f"{round(share * footprint_bytes)}"}
        )
        forecast = replay(early, site).judgement
        whole = replay(trace, site)
        sides = [each.collector.ledger for each in (whole.plain, whole.cached)]
        first = -(-cut // sides[0].each)
        plain, cached = (int(each.total_ns[first:].sum()) for each in sides)
        plainly = dataclasses.replace(forecast.course, off=None)
        squares.append(hindsight.deviation(plainly, math.log(plain / cached)) ** 2)
    expected = math.sqrt(np.mean(squares))
    # Levels of dirty data are sampled less often.
    assert course(trace).off == pytest.approx(expected, rel=0.005)


def test_too_few_requests_have_no_hindsight():
    few = "gen:zipf,theta=1.1,span=64MiB,rate=60,requests=100"
    one = course(Trace.read(few))
    assert one.later is not None
    assert one.off is None
