"""Replays end to end, on real captures."""

import json

import numpy as np
import pytest
from captures import TRACES

from hybridsim import Scenario, Trace, advise, replay, size
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ScenarioError, TraceError, UsageError
from hybridsim.scenario import building
from hybridsim.show.terminal import render
from hybridsim.studies.batches import batches
from hybridsim.studies.replay import Several
from hybridsim.traces.example import CAPTURE, SITE, demo_file

SMALL = TRACES / "blktrace" / "loop_ext4_buffered_meta"


@pytest.fixture(scope="module")
def demo():
    return Trace.read(demo_file(CAPTURE))


@pytest.fixture(scope="module")
def answer(demo):
    return replay(demo, Scenario.load(demo_file(SITE)))


def csv_trace(path, rows):
    head = "arrival_ns,op,offset,length,dispatch_ns,complete_ns\n"
    path.write_text(head + "".join(f"{t},{op},{at},{size},,\n" for t, op, at, size in rows))
    return Trace.read(path)


def test_every_request_of_the_trace_completes_once(demo, answer):
    summary = demo.summary()
    for machine in (answer.cached, answer.plain):
        figures = machine.whole.figures
        assert figures.requests == summary.requests
        assert figures.reads.count == summary.reads
        assert figures.writes.count == summary.writes


def test_the_demo_warms_up_and_its_verdict_is_yes(answer):
    assert answer.verdict.answer == "yes"
    assert answer.warm_up.steady
    assert answer.phases["warm"].figures.hit_ratio > answer.phases["cold"].figures.hit_ratio
    warm, none = answer.phases["warm"], answer.phases["none"]
    assert warm.figures.reads.mean_ns < none.figures.reads.mean_ns


def test_counters_of_fills_and_pages_are_consistent(answer):
    counters = answer.cached.whole.counters
    assert counters["fills_started"] == counters["fills_done"] + counters["fills_doomed"]
    assert max(answer.cached.series().occupancy_pages) <= answer.scenario["cache_pages"]
    assert counters["fast_bytes_written"] >= 65536 * counters["fills_done"]


def test_the_same_replay_gives_the_same_result(demo, answer):
    again = replay(demo, Scenario.load(demo_file(SITE)))
    assert again.to_json() == answer.to_json()


def test_chunk_sizes_do_not_change_the_result(demo, answer, monkeypatch):
    chunks = demo.chunks
    monkeypatch.setattr(demo, "chunks", lambda rows=777: chunks(rows))
    again = replay(demo, Scenario.load(demo_file(SITE)))
    assert again.to_json() == answer.to_json()


def test_the_json_has_no_nan_and_the_report_has_the_verdict(answer):
    document = json.loads(answer.to_json(), parse_constant=lambda name: pytest.fail(name))
    assert document["schema"] == "hybridsim.result/1"
    assert "VERDICT      Yes." in render(answer)


@pytest.mark.parametrize("mode", ["open", "closed", "think", "auto"])
@pytest.mark.parametrize("cache_mode", ["read-only", "write-through"])
def test_a_capture_is_replayed_whole_in_every_mode(mode, cache_mode):
    site = Scenario.default().with_options(mode=mode, cache_mode=cache_mode, members=3)
    result = replay(Trace.read(SMALL), site)
    assert result.cached.whole.figures.requests == Trace.read(SMALL).summary().requests


@pytest.mark.parametrize("mode", ["closed", "think"])
def test_counters_of_a_load_that_adapts_are_those_at_its_last_completion(tmp_path, mode):
    rng = np.random.default_rng(1)
    offsets = (rng.zipf(1.3, 600) % 2000 * 65536).tolist()
    rows = [f"{i * 10**7},R,{at},4096,,{i * 10**7 + 5 * 10**6}" for i, at in enumerate(offsets)]
    head = "arrival_ns,op,offset,length,dispatch_ns,complete_ns"
    (tmp_path / "load.csv").write_text("\n".join([head, *rows]) + "\n")
    trace = Trace.read(tmp_path / "load.csv")
    site = Scenario.default().with_options(cache_size="4MiB", mode=mode, members=4)
    whole = replay(trace, site).cached
    pages = site.cache.pages(trace.summary().footprint_bytes)
    run = Run(building.machine(site, mode, trace.summary().max_end_bytes, pages))
    run.feed(next(batches(trace, with_waits=mode == "think")))
    run.advance(whole.last_done_ns + 1)
    totals = run.cache_totals()
    assert totals.items() <= whole.whole.counters.items()
    assert (
        whole.whole.counters["fast_bytes_written"]
        == (run.machine.below.fast.device.totals(run.now_ns)["bytes_written"])
    )


def test_twice_the_speed_halves_arrival_times(demo):
    first = next(batches(demo, speed=1.0))
    fast = next(batches(demo, speed=2.0))
    assert np.array_equal(fast.arrival_ns, np.rint(first.arrival_ns / 2))


def test_without_a_cache_both_machines_are_equal(demo):
    result = replay(demo, Scenario.default().with_options(cache="none", mode="think"))
    assert result.phases["whole"].figures.reads.mean_ns == (
        result.phases["none_whole"].figures.reads.mean_ns
    )
    assert result.phases["whole"].figures.hit_ratio == 0


def test_auto_uses_think_times_if_the_disks_cannot_keep_up(demo):
    result = replay(demo)
    assert result.scenario["mode"] == "think"
    assert any(note.code == "arrivals" for note in result.warnings)


def test_auto_uses_recorded_arrivals_if_the_disks_keep_up(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(i * 50_000_000, "R", int(rng.integers(500)) * 65536, 4096) for i in range(500)]
    result = replay(csv_trace(tmp_path / "slow.csv", rows))
    assert result.scenario["mode"] == "open"


def test_auto_replays_a_list_without_times_at_a_fixed_depth_and_judges_it(tmp_path):
    path = tmp_path / "pages.lis"
    pages = np.random.default_rng(3).zipf(1.3, 4000) % 5000 * 8
    path.write_text("".join(f"{page} 8 0 {n}\n" for n, page in enumerate(pages)))
    trace, site = Trace.read(path), Scenario.default().with_options(cache_size="4MiB")
    result = replay(trace, site)
    assert result.scenario["mode"] == "closed"
    assert not result.judgement.too_short
    assert result.judgement.gain > 1.2
    other = Several(trace, site).results([site])[0].judgement
    assert (other.gain, other.sampled) == (result.judgement.gain, result.judgement.sampled)


def test_a_trace_without_reads_or_writes_is_refused(tmp_path):
    with pytest.raises(TraceError, match="no reads or writes"):
        replay(csv_trace(tmp_path / "flush.csv", [(0, "F", 0, 0)]))


@pytest.mark.parametrize("question", [replay, advise, lambda path: size(path, require=["hit>10%"])])
def test_a_path_instead_of_a_trace_is_refused_with_the_correction(question):
    with pytest.raises(UsageError, match=r"not the path 'sda': use Trace.read\('sda'\)"):
        question("sda")


def test_think_times_need_completions(tmp_path):
    trace = csv_trace(tmp_path / "open.csv", [(0, "R", 0, 4096), (5, "W", 0, 4096)])
    with pytest.raises(UsageError, match="completions"):
        replay(trace, Scenario.default().with_options(mode="think"))


def test_a_trace_larger_than_the_array_is_refused(tmp_path):
    trace = csv_trace(tmp_path / "big.csv", [(0, "R", 1 << 44, 4096)])
    with pytest.raises(ScenarioError, match="array holds"):
        replay(trace, Scenario.default().with_options(capacity="1TB"))


def test_an_impossible_request_is_refused(tmp_path):
    trace = csv_trace(tmp_path / "huge.csv", [(0, "W", 0, 1 << 40)])
    with pytest.raises(TraceError, match="is impossible"):
        replay(trace)


def test_a_single_request_is_replayed_with_an_unsure_verdict(tmp_path):
    result = replay(csv_trace(tmp_path / "one.csv", [(0, "R", 4096, 4096)]))
    assert result.verdict.answer == "unsure"
    assert render(result)
    assert render(result, details=True)


def test_large_offsets_and_long_pauses_are_replayed(tmp_path):
    day = 86_400 * 10**9
    rows = [(0, "R", 1 << 45, 8192), (day, "W", 3 << 40, 8192), (9 * day, "R", 1 << 45, 8192)]
    result = replay(csv_trace(tmp_path / "far.csv", rows))
    assert result.cached.whole.figures.requests == len(rows)


def test_write_zeroes_are_writes(tmp_path):
    trace = csv_trace(tmp_path / "zeroes.csv", [(0, "Z", 0, 4096), (9, "R", 0, 4096)])
    batch = next(batches(trace))
    assert batch.op.tolist() == [Op.WRITE, Op.READ]


def test_a_footprint_beyond_a_tebibyte_is_estimated(tmp_path):
    rows = [(i, "R", i * 37 << 30, 65536) for i in range(20_000)]
    summary = csv_trace(tmp_path / "wide.csv", rows).summary()
    assert not summary.footprint_is_exact
    assert summary.footprint_bytes == pytest.approx(20_000 * 65536, rel=0.01)
