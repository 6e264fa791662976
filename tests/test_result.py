"""The JSON document of a result holds the figures of the result, and no others."""

import json

import numpy as np
import pytest
from fakes import SCENARIO, SECOND, TRACE, Load, collected, counters, machines, result

from hybridsim.answers.metrics import Kind
from hybridsim.answers.requirements import parse_all
from hybridsim.answers.result import PERCENTILES, Warning, conclude, plain
from hybridsim.answers.warmup import of_hits, of_iops
from hybridsim.foundation.histogram import Distribution

LOAD = Load(seconds=300, iops=200)
RECORDED = Distribution.of(np.full(1000, 9_000_000))


@pytest.fixture(scope="module")
def found():
    scenario = {**SCENARIO, "capacity_bytes": 10**12}
    more = {"warnings": [Warning("W1", "what", "mend it")], "seed": 7, "engine": "interpreted"}
    one = result(LOAD, scenario=scenario, recorded=RECORDED, **more)
    return one.with_requirements(parse_all(["mean<1s"]))


@pytest.fixture(scope="module")
def as_json(found):
    return found.to_dict()


def latency(one):
    return {
        "n": one.count,
        "mean_ns": one.mean_ns,
        "max_ns": one.max_ns if one.count else None,
        "p": {f"{percent:g}": one.percentile(percent) for percent in PERCENTILES},
        "bins": one.by_value(),
    }


@pytest.mark.parametrize("name", ["none", "cold", "warm", "whole", "none_cold", "none_whole"])
def test_a_phase_is_in_the_document(found, as_json, name):
    phase, document = found.phases[name], as_json["phases"][name]
    figures = phase.figures
    reasons = {each.name.lower(): n for each, n in figures.read_reasons.items()}
    hits, misses, bypasses, writes, other = (figures.latency[kind] for kind in Kind)
    read = latency(hits + misses + bypasses) | {
        "hit": figures.hit_ratio,
        "page_hit": figures.page_hit_ratio,
        "hits": latency(hits),
        "misses": latency(misses),
        "bypasses": latency(bypasses),
        "bytes": figures.reads.count * 4096,
    }
    assert document == {
        "start_ns": figures.start_ns,
        "end_ns": figures.end_ns,
        "saturated": phase.saturated,
        "overloaded": phase.overloaded,
        "iops": phase.iops,
        "read": read,
        "write": latency(writes) | {"bytes": writes.count * 4096},
        "other": latency(other),
        "bypass": reasons,
        "disk_utilisation": phase.utilisation,
        "disk_time_ns": phase.disk_time_ns,
        "disk_queue_ns": phase.disk_queue_ns,
        "ssd_utilisation": phase.ssd_utilisation,
        "ssd_time_ns": phase.ssd_time_ns,
        "counters": phase.counters,
    }


def test_phases_divide_the_run_where_the_cache_is_warm(found):
    border = found.phases["warm"].figures.start_ns
    width = max(found.cached.collector.width_ns, found.plain.collector.width_ns)
    assert border % width == 0
    assert 0 <= border - found.warm_up.warm_ns < width
    for cold, warm, whole, run in (
        ("cold", "warm", "whole", found.cached),
        ("none_cold", "none", "none_whole", found.plain),
    ):
        ends = [found.phases[name].figures for name in (cold, warm, whole)]
        assert [each.start_ns for each in ends] == [0, border, 0]
        assert [each.end_ns for each in ends] == [border, run.end_ns, run.end_ns]
        assert ends[0].requests + ends[1].requests == ends[2].requests == 60_000
    assert found.phases["cold"].figures.hit_ratio < found.phases["warm"].figures.hit_ratio
    assert found.phases["none_whole"].figures.hit_ratio == 0


def test_a_cache_that_never_gets_warm_leaves_the_last_bin_to_be_judged():
    """A border beyond the end of the load would leave nothing: it is drawn back."""
    short = result(Load(seconds=1, iops=50))
    warm = short.phases["warm"].figures
    assert warm.end_ns - warm.start_ns > 0
    assert warm.end_ns == short.cached.end_ns
    assert short.phases["cold"].figures.end_ns == warm.start_ns


def test_the_warm_up_is_in_the_document(found, as_json):
    warm_up = found.warm_up
    assert warm_up.steady
    assert as_json["warm_up"] == {
        "measure": "hit ratio",
        "bin_ns": warm_up.bin_ns,
        "state": "steady",
        "why": None,
        "initial": 0.0,
        "level": warm_up.level,
        "last_fifth_level": warm_up.level,
        "noise": warm_up.noise,
        **{f"t{share}_ns": warm_up.reached_ns[share] for share in (50, 90, 95)},
        "t90": found.warm_interval.to_dict(),
        "needed_ns": None,
        "curve": {"t_ns": warm_up.times_ns.tolist(), "x": warm_up.smooth.tolist()},
    }
    rising = result(LOAD._replace(hit_ratio=lambda share: share))
    document = rising.to_dict()["warm_up"]
    assert document["state"] == "rising"
    assert document["why"] == rising.warm_up.why
    assert document["level"] is None
    assert document["last_fifth_level"] == rising.warm_up.level > 0.8
    assert document["t50_ns"] is document["t90_ns"] is document["t95_ns"] is None
    assert document["needed_ns"] == rising.warm_up.needed_ns > 300 * SECOND


def test_the_rest_of_the_document(found, as_json):
    assert as_json["schema"] == "hybridsim.result/1"
    assert (as_json["tool"]["seed"], as_json["tool"]["engine"]) == (7, "interpreted")
    assert as_json["inputs"]["trace"] == TRACE
    assert as_json["inputs"]["scenario"] == {**SCENARIO, "capacity_bytes": 10**12}
    assert as_json["verdict"]["answer"] == found.verdict.answer
    assert as_json["verdict"]["headline"] == found.verdict.headline
    assert as_json["verdict"]["reasons"] == found.verdict.reasons
    assert as_json["verdict"]["confidence"] == found.verdict.confidence
    assert as_json["verdict"]["advice"] == [vars(each) for each in found.verdict.advice]
    assert as_json["wear"] == {**vars(found.wear), "per_day": found.wear_interval.to_dict()}
    assert found.wear_interval.value == found.wear.bytes_per_day
    assert found.wear.bytes_written == found.phases["whole"].counters["fast_bytes_written"]
    assert found.wear.endurance_bytes == SCENARIO["endurance_bytes"]
    assert found.wear.drive_writes_per_day == found.wear.bytes_per_day / 10**12
    series = dict(as_json["series"])
    assert series.pop("none") == vars(found.plain.series())
    assert series == vars(found.cached.series())
    assert as_json["bypass"] == as_json["phases"]["whole"]["bypass"]
    assert set(as_json["bypass"]) == {"cold", "not_hot", "evicted", "sequential"}
    assert as_json["rebuild"] == {"cached": None, "none": None}
    assert as_json["fidelity"] == found.fidelity.to_dict()
    assert [each["ok"] for each in as_json["require"]] == [True]
    assert as_json["warnings"] == [{"code": "W1", "text": "what", "fix": "mend it"}]
    assert (as_json["warm_start"], as_json["cost"], as_json["miss_ratio_curve"]) == (
        None,
        None,
        None,
    )
    assert json.loads(found.to_json()) == json.loads(json.dumps(plain(as_json)))
    assert "\n" not in found.to_json(indent=None)


def test_a_rebuild_is_reported_by_machine():
    (cached, cached_counters), (disks, disk_counters) = machines(LOAD)
    rows = len(cached_counters["time_ns"])
    rebuilt = np.minimum(np.arange(1, rows + 1), rows // 2) * 100
    cached_counters |= {"slow_rebuild_bytes": np.full(rows, 1000 * rows)}
    cached_counters |= {"slow_rebuilt_bytes": rebuilt}
    one = conclude(TRACE, SCENARIO, collected(cached), cached_counters, collected(disks),
                   disk_counters)  # fmt: skip
    as_json = one.to_dict()["rebuild"]
    assert as_json["cached"] == vars(one.cached.rebuild)
    assert as_json["cached"]["share"] == pytest.approx(0.05)
    assert as_json["none"] is None


@pytest.mark.parametrize(
    ("more", "why_not"),
    [
        ({}, None),
        ({"mode": "think"}, None),
        ({"speed": 1.0}, None),
        ({"mode": "closed"}, "queue depth"),
        ({"speed": 2.0}, "another speed"),
    ],
)
def test_recorded_latencies_are_compared_where_the_recorded_load_was_replayed(more, why_not):
    matches = result(LOAD, scenario={**SCENARIO, **more}, recorded=RECORDED)
    assert matches.fidelity.is_known == (why_not is None)
    assert (why_not or "") in matches.fidelity.why_not
    figures = matches.plain.whole.figures
    assert matches.fidelity.modelled.count == figures.requests == 60_000
    assert matches.fidelity.measured.count == 1000


def test_disks_that_cannot_serve_the_arrivals_are_not_compared():
    matches = result(LOAD._replace(backlog_ns_per_s=50_000_000), recorded=RECORDED)
    assert "cannot serve" in matches.fidelity.why_not


def test_a_closed_loop_is_judged_by_iops_and_both_machines_by_the_same_requests():
    """The disks alone take twice as long for the same requests."""
    scenario = {**SCENARIO, "mode": "closed"}
    (cached, cached_counters), _ = machines(LOAD)
    slower = cached._replace(issue_ns=cached.issue_ns * 2, done_ns=cached.done_ns * 2)
    end = int(slower.done_ns[-1])
    runs = collected(cached), collected(slower)
    matches = conclude(TRACE, scenario, runs[0], cached_counters, runs[1],
                     counters(slower, LOAD, end, 1))  # fmt: skip
    assert matches.warm_up.measure == "IOPS"
    assert matches.warm_up.initial == of_iops(runs[1]).level
    opened = conclude(TRACE, SCENARIO, runs[0], cached_counters, runs[1],
                      counters(slower, LOAD, end, 1))  # fmt: skip
    assert opened.warm_up.level == of_hits(runs[0]).level
    cold, none_cold = (matches.phases[name].figures for name in ("cold", "none_cold"))
    assert none_cold.requests == pytest.approx(cold.requests, abs=400)
    assert none_cold.end_ns == pytest.approx(
        2 * cold.end_ns, abs=3 * matches.plain.collector.width_ns
    )


def test_json_has_no_infinities_and_no_types_of_numpy():
    thing = {1: (np.int64(2), float("inf")), "a": [float("nan"), np.float64(0.5), None, "x"]}
    assert plain(thing) == {"1": [2, None], "a": [None, 0.5, None, "x"]}
    assert type(plain(thing)["1"][0]) is int
