"""What machines make of the load that goes on after a capture."""

import json

import numpy as np
import pytest

from hybridsim.answers.metrics import Collector
from hybridsim.scenario import Scenario
from hybridsim.studies import replay, runs
from hybridsim.studies.replay import Several
from hybridsim.traces.trace import Trace

HOT = "gen:hot-spot,span=64MiB,hot=10%,share=90%,read=70%,rate=60,requests=600"


def site(**options):
    return Scenario.default().with_options(cache_size="4MiB", **options)


@pytest.fixture(scope="module")
def result():
    return replay.replay(Trace.read(HOT), site())


def test_the_load_goes_on_for_seven_thirds_of_the_capture():
    trace = Trace.read(HOT)
    load = runs.continued(trace, site(), trace.summary().max_end_bytes)
    assert load.captured == 600
    assert load.rows.rows == 2000
    assert (np.diff(load.rows.arrival_ns) >= 0).all()
    captured = np.concatenate([each.offset_bytes for each in trace.from_first()])
    assert (load.rows.offset_bytes[:600] == captured).all()
    assert (load.rows.offset_bytes + load.rows.length_bytes).max() <= load.end_bytes


def test_a_load_goes_on_only_as_far_as_the_disks_have_room():
    trace = Trace.read("gen:sequential,span=64MiB,size=64k,requests=600")  # it goes on to new data
    end = trace.summary().max_end_bytes
    roomy, full = (
        runs.continued(trace, site().with_values({"backing.capacity": f"{members_bytes}B"}), end)
        for members_bytes in (end, -(-end // 3 // (1 << 20)) * (1 << 20))
    )
    assert roomy.end_bytes > full.end_bytes
    again = runs.continued(trace, site().with_values({"backing.capacity": f"{end}B"}), end)
    assert again is roomy


def after_the_capture(result):
    """Return the latencies and the duration of the load that goes on, of both machines."""
    runs = [each.collector.later for each in (result.plain, result.cached)]
    first = runs[0].captured // runs[0].ledger.each
    totals = [int(each.ledger.total_ns[first:].sum()) for each in runs]
    done = [each.ledger.progress_ns() for each in runs]
    return totals, [int(each[-1] - each[first - 1]) for each in done]


def test_the_forecast_knows_what_the_cache_gains_as_the_load_goes_on(result):
    (plain, cached), _ = after_the_capture(result)
    course = result.judgement.course
    assert course.later == pytest.approx(np.log(plain / cached), abs=0.1)  # the rest is luck
    assert result.judgement.forecast.low < np.exp(course.later) < result.judgement.forecast.high


def test_where_the_load_adapts_its_time_counts():
    off = []
    for seed in (1, 2, 3):
        one = replay.replay(Trace.read(f"{HOT},seed={seed}"), site(mode="closed"))
        _, (plain, cached) = after_the_capture(one)
        off.append(one.judgement.course.later - np.log(plain / cached))
    assert np.mean(off) == pytest.approx(
        0, abs=0.1
    )  # the rest is luck, up to 0.2 in either direction


def test_the_capture_itself_is_as_if_the_load_ended(result, monkeypatch):
    monkeypatch.setattr(runs, "MOST", 0)
    alone = replay.replay(Trace.read(HOT), site())
    assert alone.judgement.course.later is None
    for name in ("phases", "warm_up", "series"):
        ours, others = (json.dumps(each.to_dict()[name]) for each in (result, alone))
        assert ours == others
    assert result.judgement.gain == alone.judgement.gain
    assert result.judgement.sampled == alone.judgement.sampled


@pytest.mark.parametrize(
    ("requests", "events"),
    [(30, []), (600, [{"at": "2s", "reboot": "clean"}])],
    ids=["short", "events"],
)
def test_short_loads_and_those_with_events_do_not_go_on(requests, events):
    trace = Trace.read(HOT.replace("=600", f"={requests}"))
    one = replay.replay(trace, site(cache="dm-cache", mode="open").with_events(events))
    assert [each.collector.later for each in (one.plain, one.cached)] == [None, None]


def test_machines_side_by_side_are_forecast_as_one_by_one(result):
    several = Several(Trace.read(HOT), site())
    results = several.results([site(), site(cache_mode="write-back")])
    ours = [each.judgement.forecast for each in results]
    assert ours[0] == result.judgement.forecast
    alone = replay.replay(Trace.read(HOT), site(cache_mode="write-back"))
    assert ours[1] == alone.judgement.forecast


def test_an_end_of_cheap_writes_after_the_capture_is_forecast():
    load = "gen:random,span=512MiB,size=64k,read=0%,rate=60,requests=1500"
    sized = Scenario.default().with_options(
        cache="bcache", cache_size="256MiB", cache_mode="write-back"
    )
    one = replay.replay(Trace.read(load), sized)
    assert one.judgement.gain > 100  # all writes go to the SSD
    assert one.judgement.course.later < 0.1  # the cache is full soon, and they go past it
    assert one.judgement.expected < 2


def test_a_collector_without_a_later_load_says_so():
    assert Collector().later is None
