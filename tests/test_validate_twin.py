"""The simulated twin of a real run: reading result folders, pace and calibration."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

from hybridsim.answers.comparison import Row
from hybridsim.answers.measurements.measurement import CACHE, SECOND, Curve, Name
from hybridsim.foundation.errors import UsageError
from hybridsim.scenario import Scenario
from hybridsim.workloads.fio.job import RealRun, jobs_of
from hybridsim.workloads.fio.requests import Generated, Pace
from validate import layout
from validate.experiment import load
from validate.report.bounds import judged
from validate.twin import calibrate, commanded, foreign, page, recorded, traced, writecache
from validate.twin.begin import begin_s, lateness_s
from validate.twin.calibrate import calibrated, slower
from validate.twin.folders import record, runs
from validate.twin.jobs import written
from validate.twin.pace import completed, loosened, paces
from validate.twin.record import Bare, Record, RecordError
from validate.twin.toml_text import toml_of
from validate.twin.traced import of_arrivals

EXPERIMENTS = Path(__file__).parents[1] / "validate" / "experiments"
MACHINE = """
[backing]
kind = "single"
members = 1
drive = "hgst-ultrastar-7k8"
[cache.drive]
kind = "ssd"
capacity = "64GB"
read_latency = "2ms"
write_latency = "2ms"
random_read_iops = 500
random_write_iops = 500
sequential_read = "100MB/s"
sequential_write = "50MB/s"
dies = 64
"""
STATUS = "{}.00 0 99 cache 8 1/9 128 {}/9 {} {} 0 0 0 0 0 0 2 migration_threshold 2 smq 0 rw -\n"
ENVIRONMENT = {
    "schema": layout.SCHEMA,
    "complete": True,
    "cache": {"kind": "dm-cache", "mode": "writethrough", "size_bytes": 1 << 25,
              "block_bytes": 65536, "made_uptime_s": 28.5},
    "origin": {"size_bytes": 2 << 30},
    "devices": {"cached": {"name": "dm-2", "size_bytes": 2 << 30}},
}  # fmt: skip
JOB = "[global]\nfilename=/dev/dm-2\ndirect=1\nioengine=libaio\nruntime=60\n\n[hot]\nrw=randread\n"


@pytest.fixture
def folder(tmp_path):
    """A run of 10 s at 100 requests a second, with its first request at 30.25 s of uptime."""
    place = tmp_path / "hot"
    place.mkdir()
    (place / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT))
    (place / layout.JOB_FILE).write_text(JOB + "iodepth=8\n")
    (place / layout.FIO_JSON).write_text("{}")
    (place / layout.BEGIN).write_text("29.90\n")
    lines = [STATUS.format(at, 0, 0, max(round(100 * (at - 30.25)) + 8, 0) * (at > 30.25))
             for at in range(28, 42)]  # fmt: skip
    (place / layout.DM_CACHE).write_text("".join(lines))
    log = "".join(f"{1000 * second}, 100, 0, 0, 0\n" for second in range(1, 11))
    (place / "fio_iops.1.log").write_text(log)
    return place


# Reading result folders.


def test_result_folder_has_cache_job_and_creation_time(folder):
    run = record(folder)
    assert run.cache == {"kind": "dm-cache", "mode": "writethrough", "size": "33554432B",
                         "block": "65536B", "migration_threshold": "1048576B"}  # fmt: skip
    assert (run.created_s, run.cached_device) == (28.5, "dm-2")
    assert [job.depth for job in run.jobs] == [8]
    assert f"size={2 << 30}\n" in run.job


def test_settings_of_bcache_are_converted_from_sysfs():
    cache = {"kind": "bcache", "mode": "writeback", "size_bytes": 1 << 26, "bucket_bytes": 65536,
             "policy": "fifo", "options": {"sequential_cutoff": "4.0M", "writeback_percent": "10",
                                           "congested_read_threshold_us": "2000",
                                           "writeback_delay": "30"}}  # fmt: skip
    table = recorded._cache(cache, (6, 1))
    assert (table["kernel"], recorded._cache(cache, (6, 15))["kernel"]) == ("6.1", "6.12")
    assert table["sequential_cutoff"] == f"{4 << 20}B"
    assert (table["congested_read"], table["writeback_percent"]) == ("2000us", 10)
    text = toml_of({"cache": table | {"drive": tomllib.loads(MACHINE)["cache"]["drive"]}})
    assert Scenario.loads(text).cache.replacement == "fifo"


def test_runs_inside_a_folder_are_found(folder):
    assert list(runs([str(folder.parent)])) == list(runs([str(folder)])) == [folder]


def test_invalid_result_folders_are_refused_with_the_reason(folder, tmp_path):
    with pytest.raises(RecordError, match="no such folder"):
        list(runs([str(tmp_path / "none")]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="no run in it"):
        list(runs([str(tmp_path / "empty")]))
    (folder / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT | {"complete": False}))
    with pytest.raises(RecordError, match="did not end in order"):
        record(folder)
    with pytest.raises(RecordError, match="did not end in order"):
        list(runs([str(folder)]))
    skipped = []
    assert list(runs([str(folder.parent)], skipped.append)) == []
    assert "did not end in order" in str(skipped[0])


@pytest.mark.parametrize("hour", [11, 13])
def test_bare_runs_of_the_calibration_nearest_in_time_are_used(folder, hour):
    for name, at in (("", 10), ("-again", 14)):
        place = folder.parent / f"{recorded.SHARED}{name}"
        (place / layout.BARE_SLOW).mkdir(parents=True)
        environment = ENVIRONMENT | {"started": f"2026-11-22T{at}:00:00+00:00"}
        (place / layout.ENVIRONMENT).write_text(json.dumps(environment))
    environment = ENVIRONMENT | {"started": f"2026-11-22T{hour}:00:00+00:00"}
    (folder / layout.ENVIRONMENT).write_text(json.dumps(environment))
    name = recorded.SHARED if hour == 11 else f"{recorded.SHARED}-again"
    bare = folder.parent / name / layout.BARE_SLOW
    (bare / "fio.randread-4k-qd1.json").write_text("{}")
    (bare / "randread-4k-qd1.fio").write_text("[a]\n")
    assert record(folder).slow == (Bare(bare / "fio.randread-4k-qd1.json", "[a]\n"),)


# Time of the first request, and pace.


def test_first_request_is_found_from_fio_log_and_cache_counters(folder):
    assert begin_s(record(folder)) == pytest.approx(30.25, abs=0.02)


def test_each_job_logs_from_its_own_start():
    """A burst of 9 s at 250 a second fills the counter by 16.07 s; two jobs come later."""
    folder = RESULTS / "dm-writecache-pause"
    assert begin_s(commanded.read(folder)) == pytest.approx(7.07, abs=0.05)


def test_a_twin_may_be_half_a_window_of_the_log_ahead():
    pace = loosened(Pace(np.array([0, 1, 2, 3]) * SECOND, np.array([0, 100, 300, 600])))
    assert (pace.time_ns / SECOND).tolist() == [0, 0.5, 1.5, 2.5, 3]
    assert pace.due_ns(100, 1, 0)[0] == SECOND // 2


def test_a_twin_does_not_get_further_than_its_log():
    """Else a cache that is filled by one run and used by another would hold more than the real."""
    pace = loosened(Pace(np.array([0, 1, 2, 3]) * SECOND, np.array([0, 100, 300, 600])))
    due = pace.due_ns(600, 4, 0) / SECOND
    assert due.tolist() == [2.5, 3, 3, 3]


def test_first_request_lies_between_the_last_zero_sample_and_the_next():
    pace = Pace(np.array([0, 10 * SECOND]), np.array([0, 1000]))
    late_s = lateness_s(pace, np.array([0.0, 1.0, 2.0]), np.array([0, 0, 900.0]))
    assert 1 <= late_s <= 2


def test_request_is_due_at_the_completion_of_an_earlier_one(folder):
    (pace,) = paces(folder, [object()])
    assert pace.done[-1] == 1000
    assert pace.due_ns(0, 4, 2).tolist() == [0, 0, 0, SECOND // 100]
    assert paces(folder, [object(), object()]) == []


def test_requests_of_a_trace_are_due_at_their_arrival():
    arrival = np.array([5, 5, 7, 30]) * SECOND
    due = of_arrivals(arrival, 2).due_ns(0, 4, 2)
    assert due.tolist() == [0, 0, 2 * SECOND, 25 * SECOND]


def test_requests_of_a_trace_are_compared_with_those_of_the_job():
    (job,) = jobs_of(written(JOB + "norandommap=1\nsize=1m\n"))
    offsets = Generated(job).take(9).offset
    assert traced._same(offsets, job, 1 << 20) == 9
    offsets[4] += 4096
    assert traced._same(offsets, job, 1 << 20) == 4


def test_pace_sums_both_directions():
    times = np.array([0, SECOND]), np.array([SECOND, 2 * SECOND])
    reads, writes = (Curve(*times, np.array(value, float)) for value in ([10, 20], [1, 2]))
    assert completed([reads, writes]).done.tolist() == [0, 11, 33]


# Calibration.


def bare(tmp_path, name, rw, depth, iops):
    """Return a run of fio on a bare device."""
    text = json.dumps({"fio version": "fio-3.33", "jobs": [{
        "jobname": name, "read": {"iops": iops, "total_ios": 9}, "write": {"iops": 0},
        "job options": {"rw": rw, "iodepth": str(depth)},
    }]})  # fmt: skip
    path = tmp_path / f"fio.{name}.json"
    path.write_text(text)
    return Bare(path, f"[{name}]\nrw={rw}\niodepth={depth}\nioengine=libaio\nsize=1g\n")


def machine_of(tmp_path, slow=(), fast=(), kind="dm-cache"):
    return Record(tmp_path, "a", {"kind": kind}, 2 << 30, "", None, tomllib.loads(MACHINE),
                  slow, fast)  # fmt: skip


@pytest.fixture
def model(monkeypatch):
    """Replace simulations by a device that serves one request in 5 ms at 7200 rpm."""

    def iops(tables, job):
        drive = tables["backing"]["drive"]
        service_s = 0.005 * 7200 / drive["rpm"] if "rpm" in drive else 1 / drive["random_read_iops"]
        return 1 / service_s

    monkeypatch.setattr(calibrate, "simulated_iops", iops)


def test_disks_are_calibrated_to_the_deepest_bare_run(tmp_path, model):
    runs = (bare(tmp_path, "one", "randread", 1, 90.0), bare(tmp_path, "deep", "randread", 32, 100))
    calibration = calibrated(machine_of(tmp_path, runs, kind="none"))
    assert calibration.tables["backing"]["drive"]["rpm"] == pytest.approx(3600, rel=0.01)
    deep = next(check for check in calibration.checks if check.depth == 32)
    assert deep.simulated_iops == pytest.approx(100, rel=0.01)


def test_ssd_gets_the_measured_figures(tmp_path, model):
    slow = (bare(tmp_path, "deep", "randread", 32, 100),)
    fast = (
        bare(tmp_path, "fone", "randread", 1, 100),
        bare(tmp_path, "fdeep", "randread", 32, 250),
    )
    drive = calibrated(machine_of(tmp_path, slow, fast)).tables["cache"]["drive"]
    assert drive["read_latency"] == "10ms"
    assert drive["random_read_iops"] == pytest.approx(250, abs=1)
    assert drive["write_latency"] == "2ms"  # not measured


def test_summary_has_measured_and_simulated_rates(tmp_path, model):
    runs = (bare(tmp_path, "deep", "randread", 32, 100), bare(tmp_path, "w", "randwrite", 64, 999))
    summary = calibrate.summary(calibrated(machine_of(tmp_path, runs, kind="none")))
    assert summary == "slow: at depth 32: 100 random reads a second, simulated 100"


def test_times_of_each_kind_of_drive_are_scaled():
    tables = slower(slower(tomllib.loads(MACHINE), "slow", 1.5), "fast", 1.5)
    scenario = Scenario.loads(toml_of(Calibrated(tables).with_cache({"kind": "dm-cache"})))
    assert scenario.backing.drive.rpm == 4800
    assert scenario.cache.drive.random_read_iops == 333
    assert scenario.cache.drive.read_latency_ns == 3_000_000


class Calibrated(calibrate.Calibration):
    """A calibration with given tables."""

    def __init__(self, tables):
        super().__init__(tables)


def test_run_without_model_and_bare_runs_is_refused(tmp_path):
    unknown = Record(tmp_path, "a", {"kind": "dm-cache"}, 1 << 30, "", None, None)
    with pytest.raises(RecordError, match="no runs on the bare slow device"):
        calibrated(unknown)


def test_tables_are_written_as_toml():
    tables = {"a": {"b": 'x"y', "c": [[1, 2.5]], "d": {"e": True}}}
    assert tomllib.loads(toml_of(tables)) == tables


# The suite, and runs of others.


def test_suite_covers_kinds_modes_and_restart():
    files = sorted(path for path in EXPERIMENTS.glob("*.toml") if path.stem != "machine")
    suite = [load(path) for path in files if path.stem not in (recorded.SHARED, page.SHARED)]
    assert len(suite) >= 16
    assert {each.cache.kind for each in suite} == {
        "dm-cache", "dm-writecache", "bcache", "open-cas", "page",
    }  # fmt: skip
    modes = {(each.cache.kind, each.cache.mode) for each in suite}
    assert {("dm-cache", "passthrough"), ("bcache", "writearound"), ("open-cas", "wb")} <= modes
    assert {each.origin.throttle_us for each in suite} == {None, 0}
    assert {mode for _, mode in modes} >= {"writethrough", "writeback"}
    assert any(each.restart_s for each in suite)
    assert all(path.stem == load(path).name for path in files)
    assert Scenario.load(EXPERIMENTS / "machine.toml").backing.queue_depth == 16


def test_a_machine_that_merges_requests_does_not_repeat_one_that_does_not():
    """Else the difference that merging makes would count as noise, and widen all bounds."""
    folders = [RESULTS / f"dm-writecache-randrw{end}" for end in ("", "-unmerged")]
    merged, unmerged = map(record, folders)
    assert merged.job == unmerged.job
    assert merged.title != unmerged.title


def test_runs_of_the_reference_data_are_read():
    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "kernel-caches"
    if not data.is_dir():
        pytest.skip(f"no {data}: HYBRIDSIM_DATA names the folder of the reference data")
    run = foreign.read(data / "dmcache-smq-wt-hot-c512-64k")
    assert (run.cache["block"], run.cached_device) == ("65536B", "dm-2")
    assert [job.depth for job in run.jobs] == [32]
    began = begin_s(run)
    assert began == pytest.approx(7.94, abs=0.05)
    assert len(list(runs([str(data)]))) == 9


def test_unknown_fio_option_is_reported(folder):
    (folder / layout.JOB_FILE).write_text(JOB + "nonsense=1\n")
    run = record(folder)
    with pytest.raises(UsageError, match="nonsense"):
        run.jobs  # noqa: B018


# A warm restart.


def test_run_on_a_warm_cache_refers_to_the_previous_run(folder):
    warm = folder / layout.RESTART
    warm.mkdir()
    (warm / layout.FIO_JSON).write_text("{}")
    (warm / layout.JOB_FILE).write_text(JOB.replace("runtime=60", "runtime=40"))
    cache = ENVIRONMENT["cache"] | {"restarted_uptime_s": 95.5}
    (folder / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT | {"cache": cache}))
    first, second = (record(each) for each in runs([str(folder)]))
    assert (first.before, second.before) == (None, first)
    assert (first.created_s, second.created_s) == (28.5, 95.5)
    assert second.name == "hot, warm"


def test_load_on_a_warm_cache_follows_the_first_load():
    later = RealRun(later=written(JOB + "[too]\nrw=read\n"), gap_ns=3_500_000_000)
    jobs = later.jobs(written(JOB))
    assert [(job.name, job.group, job.delay_ns) for job in jobs] == [
        ("hot", 0, 0), ("hot", 1, 3_500_000_000), ("too", 1, 3_500_000_000),
    ]  # fmt: skip
    first, again, too = (job.pattern.seeds() for job in jobs)
    assert first == again != too  # each fio numbers its jobs from 0


# Runs whose cache was built by hand.

RESULTS = Path(__file__).parents[1] / "validate" / "results"


def tables_of(cache):
    return Scenario.loads(toml_of({**tomllib.loads(MACHINE), "cache": dict(cache)}), "").cache


def test_settings_of_open_cas_are_those_that_casadm_shows():
    run = record(RESULTS / "opencas-wb-alru-often-wbtoff")
    assert run.cache == {
        "kind": "open-cas", "size": f"{23_488 * 4096}B", "mode": "wb", "line": "4KiB",
        "sequential_cutoff": "1024KiB", "sequential_cutoff_policy": "full",
        "promotion": "always", "insertion_threshold": 3, "trigger_threshold": "80%",
        "cleaning": "alru", "wake_up": "1s", "staleness_time": "10s", "flush_max_buffers": 100,
        "activity_threshold": "0ms", "stats_interval": "1000ms", "stats_start": "70ms",
        "queues": 2,
    }  # fmt: skip
    assert tables_of(run.cache).flush_max_buffers == 100
    assert (run.cached_device, run.throttle, run.created_s) == ("cas1-1", "off", 3.96)


def test_settings_of_a_writecache_are_those_of_its_table_and_status():
    run = record(RESULTS / "dm-writecache-randwrite-full")
    assert run.cache == {
        "kind": "dm-writecache",
        "size": f"{66_300 * 4096}B",
        "block": "4096B",
        "pass_time": writecache.EMULATED["pass_time"],
    }
    assert (run.cached_device, run.throttle) == ("dm-0", "auto")
    assert run.origin_bytes == 2 << 30
    assert "size=2147483648" in run.job


def test_a_writecache_that_validate_built_has_the_settings_of_its_table(folder):
    kept = {
        "kind": "dm-writecache", "mode": "writeback", "size_bytes": 1 << 26, "made_uptime_s": 28.5,
        "table": "0 4194304 writecache s 254:0 253:1 4096 2 autocommit_time 500",
        "status": "0 4194304 writecache 0 16320 16320 0 0 0 0 0 0 0 0 0 0 0",
    }  # fmt: skip
    (folder / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT | {"cache": kept}))
    wanted = {"kind": "dm-writecache", "size": f"{16320 * 4096}B", "block": "4096B",
              "autocommit_time": "500ms"}  # fmt: skip
    assert record(folder).cache == wanted
    (folder / "lab").mkdir()
    (folder / recorded.LAB).write_text('{"accelerator": "tcg"}')
    assert record(folder).cache == wanted | writecache.EMULATED


def test_an_open_cas_that_validate_built_has_the_settings_that_casadm_showed(folder):
    of_hand = RESULTS / "opencas-wb-alru-often-wbtoff"
    kept = {"kind": "open-cas", "mode": "wb", "size_bytes": 1 << 27, "made_uptime_s": 3.96,
            "shown": (of_hand / "casadm-before.txt").read_text()}  # fmt: skip
    origin = {"size_bytes": 2 << 30, "throttle_us": 0}
    (folder / layout.ENVIRONMENT).write_text(
        json.dumps(ENVIRONMENT | {"cache": kept, "origin": origin, "host": {"cpus": 2}})
    )
    (folder / layout.OPEN_CAS).write_text((of_hand / layout.OPEN_CAS).read_text())
    run, same = record(folder), record(of_hand)
    assert (run.cache, run.throttle, run.created_s) == (same.cache, "off", same.created_s)


def test_the_throttle_of_a_run_is_that_which_was_set(folder):
    def throttle(target_us):
        origin = {"size_bytes": 2 << 30, "throttle_us": target_us}
        (folder / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT | {"origin": origin}))
        return record(folder).throttle

    assert [throttle(each) for each in (None, 0, 2500)] == ["auto", "off", "2500us"]


def test_options_of_a_writecache_are_read_from_its_table(tmp_path):
    for name in (path.name for path in (RESULTS / "dm-writecache-pause").iterdir()):
        (tmp_path / name).write_text((RESULTS / "dm-writecache-pause" / name).read_text())
    table = "0 4194304 writecache s 254:0 254:16 4096 6 high_watermark 70 low_watermark 60 "
    (tmp_path / "table.txt").write_text(f"{table}pause_writeback 0\n")
    cache = dict(record(tmp_path).cache)
    assert (cache["high_watermark"], cache["low_watermark"]) == ("70%", "60%")
    assert tables_of(cache).pause_writeback_ns == 0


def test_the_second_load_of_a_restarted_cache_follows_the_first():
    run = record(RESULTS / "opencas-wt-restart" / "restart")
    assert run.before == record(RESULTS / "opencas-wt-restart")
    assert run.created_s > run.before.created_s


def test_disks_of_runs_by_hand_are_calibrated_to_the_runs_on_the_bare_models():
    run = record(RESULTS / "opencas-wt-hot-4k")
    assert {bare.results.parent.name for bare in (*run.slow, *run.fast)} == {
        layout.BARE_SLOW, layout.BARE_FAST,
    }  # fmt: skip


def test_runs_by_hand_without_settings_are_refused(tmp_path):
    for name in ("commands.log", "machine.toml", "load.fio", "fio.json", "env.txt"):
        text = (RESULTS / "dm-writecache-pause" / name).read_text()
        (tmp_path / name).write_text(text)
    with pytest.raises(RecordError, match=r"neither casadm-before\.txt nor table\.txt"):
        record(tmp_path)


def test_counters_with_few_events_are_not_checked():
    name = Name("", CACHE, "writes_around")
    few, many = (Row(name, real, 2 * real, 1.0, 0.05) for real in (16.0, 1600.0))
    assert judged(few, None, "dm-writecache").is_met is None
    assert judged(many, None, "dm-writecache").is_met is False
    assert judged(many, None, "dm-cache").is_met is None
