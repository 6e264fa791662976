"""The simulated twin of a real run: what is read of a folder, and how a model is calibrated."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

from hybridsim.answers.measurements.measurement import SECOND, Curve
from hybridsim.foundation.errors import UsageError
from hybridsim.scenario import Scenario
from hybridsim.workloads.fio.arrivals import Pace
from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.real_run import RealRun
from hybridsim.workloads.fio.requests import Generated
from validate import layout
from validate.experiment import load
from validate.twin import calibrate, foreign, recorded, traced
from validate.twin.begin import begin_s, lateness_s
from validate.twin.calibrate import calibrated, slower
from validate.twin.folders import record, runs
from validate.twin.jobs import written
from validate.twin.pace import completed, paces
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
    """A run of ten seconds at 100 requests a second, whose first one came at 30.25 s."""
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


# What is read.


def test_a_folder_of_the_driver_tells_the_cache_the_job_and_when_the_cache_was_made(folder):
    found = record(folder)
    assert found.cache == {"kind": "dm-cache", "mode": "writethrough", "size": "33554432B",
                           "block": "65536B", "migration_threshold": "1048576B"}  # fmt: skip
    assert (found.created_s, found.depth, found.cached_device) == (28.5, 8, "dm-2")
    assert f"size={2 << 30}\n" in found.job


def test_settings_of_bcache_are_as_the_kernel_shows_them():
    told = {"kind": "bcache", "mode": "writeback", "size_bytes": 1 << 26, "bucket_bytes": 65536,
            "policy": "fifo", "options": {"sequential_cutoff": "4.0M", "writeback_percent": "10",
                                          "congested_read_threshold_us": "2000",
                                          "writeback_delay": "30"}}  # fmt: skip
    table = recorded._cache(told)
    assert table["sequential_cutoff"] == f"{4 << 20}B"
    assert (table["congested_read"], table["writeback_percent"]) == ("2000us", 10)
    text = toml_of({"cache": table | {"drive": tomllib.loads(MACHINE)["cache"]["drive"]}})
    assert Scenario.loads(text).cache.replacement == "fifo"


def test_runs_are_found_in_a_folder_of_them(folder):
    assert list(runs([str(folder.parent)])) == list(runs([str(folder)])) == [folder]


def test_what_is_no_run_is_refused_with_the_reason(folder, tmp_path):
    with pytest.raises(RecordError, match="no such folder"):
        list(runs([str(tmp_path / "none")]))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordError, match="no run in it"):
        list(runs([str(tmp_path / "empty")]))
    (folder / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT | {"complete": False}))
    with pytest.raises(RecordError, match="did not come to its end"):
        record(folder)
    with pytest.raises(RecordError, match="did not come to its end"):
        list(runs([str(folder)]))
    told = []
    assert list(runs([str(folder.parent)], told.append)) == []
    assert "did not come to its end" in str(told[0])


@pytest.mark.parametrize("hour", [11, 13])
def test_bare_runs_of_the_calibration_nearest_in_time_are_its_own(folder, hour):
    for name, at in (("", 10), ("-again", 14)):
        place = folder.parent / f"{recorded.SHARED}{name}"
        (place / layout.BARE_SLOW).mkdir(parents=True)
        told = ENVIRONMENT | {"started": f"2026-11-22T{at}:00:00+00:00"}
        (place / layout.ENVIRONMENT).write_text(json.dumps(told))
    told = ENVIRONMENT | {"started": f"2026-11-22T{hour}:00:00+00:00"}
    (folder / layout.ENVIRONMENT).write_text(json.dumps(told))
    name = recorded.SHARED if hour == 11 else f"{recorded.SHARED}-again"
    bare = folder.parent / name / layout.BARE_SLOW
    (bare / "fio.randread-4k-qd1.json").write_text("{}")
    (bare / "randread-4k-qd1.fio").write_text("[a]\n")
    assert record(folder).slow == (Bare(bare / "fio.randread-4k-qd1.json", "[a]\n"),)


# When the load began, and how fast it was.


def test_the_log_of_fio_and_the_cache_tell_when_the_first_request_came(folder):
    assert begin_s(folder, "dm-2", 8) == pytest.approx(30.25, abs=0.02)


def test_it_lies_between_the_last_sample_of_none_and_the_first_of_some():
    pace = Pace(np.array([0, 10 * SECOND]), np.array([0, 1000]))
    found = lateness_s(pace, np.array([0.0, 1.0, 2.0]), np.array([0, 0, 900.0]))
    assert 1 <= found <= 2


def test_requests_come_as_the_one_so_many_before_was_complete(folder):
    (pace,) = paces(folder, [object()])
    assert pace.done[-1] == 1000
    assert pace.due_ns(0, 4, 2).tolist() == [0, 0, 0, SECOND // 100]
    assert paces(folder, [object(), object()]) == []


def test_a_trace_tells_when_each_request_came():
    arrival = np.array([5, 5, 7, 30]) * SECOND
    due = of_arrivals(arrival, 2).due_ns(0, 4, 2)
    assert due.tolist() == [0, 0, 2 * SECOND, 25 * SECOND]


def test_requests_of_a_trace_are_held_against_those_of_the_job():
    (job,) = jobs_of(written(JOB + "norandommap=1\nsize=1m\n"))
    made = Generated(job).take(9).offset
    assert traced._same(made, job, 1 << 20) == 9
    made[4] += 4096
    assert traced._same(made, job, 1 << 20) == 4


def test_directions_are_paced_together():
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
    return Record(tmp_path, "a", {"kind": kind}, 2 << 30, "", 1, None, tomllib.loads(MACHINE),
                  slow, fast)  # fmt: skip


@pytest.fixture
def model(monkeypatch):
    """A device that serves one request after another, 5 ms each at 7200 rpm, in place of a run."""

    def iops(tables, job):
        drive = tables["backing"]["drive"]
        service_s = 0.005 * 7200 / drive["rpm"] if "rpm" in drive else 1 / drive["random_read_iops"]
        return 1 / service_s

    monkeypatch.setattr(calibrate, "simulated_iops", iops)


def test_the_deepest_bare_run_tells_how_slow_the_disks_are(tmp_path, model):
    runs = (bare(tmp_path, "one", "randread", 1, 90.0), bare(tmp_path, "deep", "randread", 32, 100))
    found = calibrated(machine_of(tmp_path, runs, kind="none"))
    assert found.tables["backing"]["drive"]["rpm"] == pytest.approx(3600, rel=0.01)
    deep = next(check for check in found.checks if check.depth == 32)
    assert deep.simulated_iops == pytest.approx(100, rel=0.01)


def test_of_an_ssd_the_figures_are_those_that_were_measured(tmp_path, model):
    slow = (bare(tmp_path, "deep", "randread", 32, 100),)
    fast = (
        bare(tmp_path, "fone", "randread", 1, 100),
        bare(tmp_path, "fdeep", "randread", 32, 250),
    )
    drive = calibrated(machine_of(tmp_path, slow, fast)).tables["cache"]["drive"]
    assert drive["read_latency"] == "10ms"
    assert drive["random_read_iops"] == pytest.approx(250, abs=1)
    assert drive["write_latency"] == "2ms"  # nobody measured it


def test_what_a_calibrated_device_does_is_told_beside_what_was_measured(tmp_path, model):
    runs = (bare(tmp_path, "deep", "randread", 32, 100), bare(tmp_path, "w", "randwrite", 64, 999))
    told = calibrate.summary(calibrated(machine_of(tmp_path, runs, kind="none")))
    assert told == "slow: at depth 32: 100 random reads a second, simulated 100"


def test_each_kind_of_drive_can_be_slower():
    tables = slower(slower(tomllib.loads(MACHINE), "slow", 1.5), "fast", 1.5)
    scenario = Scenario.loads(toml_of(Calibrated(tables).with_cache({"kind": "dm-cache"})))
    assert scenario.backing.drive.rpm == 4800
    assert scenario.cache.drive.random_read_iops == 333
    assert scenario.cache.drive.read_latency_ns == 3_000_000


class Calibrated(calibrate.Calibration):
    """Tables that were calibrated elsewhere."""

    def __init__(self, tables):
        super().__init__(tables)


def test_without_a_model_and_bare_runs_there_is_no_twin(tmp_path):
    unknown = Record(tmp_path, "a", {"kind": "dm-cache"}, 1 << 30, "", 1, None, None)
    with pytest.raises(RecordError, match="no runs on the bare slow device"):
        calibrated(unknown)


def test_tables_are_written_as_toml():
    tables = {"a": {"b": 'x"y', "c": [[1, 2.5]], "d": {"e": True}}}
    assert tomllib.loads(toml_of(tables)) == tables


# The suite, and the runs that others made.


def test_the_suite_has_the_runs_that_it_must_have():
    files = sorted(path for path in EXPERIMENTS.glob("*.toml") if path.stem != "machine")
    suite = [load(path) for path in files if path.stem != recorded.SHARED]
    assert len(suite) >= 16
    assert {each.cache.kind for each in suite} == {"dm-cache", "bcache"}
    modes = {(each.cache.kind, each.cache.mode) for each in suite}
    assert {("dm-cache", "passthrough"), ("bcache", "writearound")} <= modes
    assert {mode for _, mode in modes} >= {"writethrough", "writeback"}
    assert any(each.restart_s for each in suite)
    assert all(path.stem == load(path).name for path in files)
    assert Scenario.load(EXPERIMENTS / "machine.toml").backing.queue_depth == 16


def test_runs_of_the_reference_data_are_records():
    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "kernel-caches"
    if not data.is_dir():
        pytest.skip(f"no {data}: HYBRIDSIM_DATA names the folder of the reference data")
    found = foreign.read(data / "dmcache-smq-wt-hot-c512-64k")
    assert (found.cache["block"], found.depth, found.cached_device) == ("65536B", 32, "dm-2")
    began = begin_s(found.folder, found.cached_device, found.depth)
    assert began == pytest.approx(7.94, abs=0.05)
    assert len(list(runs([str(data)]))) == 9


def test_an_option_that_fio_does_not_know_is_told(folder):
    (folder / layout.JOB_FILE).write_text(JOB + "nonsense=1\n")
    with pytest.raises(UsageError, match="nonsense"):
        record(folder)


# A warm restart.


def test_the_run_on_the_warm_cache_knows_the_one_before_it(folder):
    warm = folder / layout.RESTART
    warm.mkdir()
    (warm / layout.FIO_JSON).write_text("{}")
    (warm / layout.JOB_FILE).write_text(JOB.replace("runtime=60", "runtime=40"))
    told = ENVIRONMENT["cache"] | {"restarted_uptime_s": 95.5}
    (folder / layout.ENVIRONMENT).write_text(json.dumps(ENVIRONMENT | {"cache": told}))
    first, second = (record(each) for each in runs([str(folder)]))
    assert (first.before, second.before) == (None, first)
    assert (first.created_s, second.created_s) == (28.5, 95.5)
    assert second.name == "hot, warm"


def test_its_load_comes_after_the_first_one_is_over():
    later = RealRun(later=written(JOB + "[too]\nrw=read\n"), gap_ns=3_500_000_000)
    jobs = later.jobs(written(JOB))
    assert [(job.name, job.group, job.delay_ns) for job in jobs] == [
        ("hot", 0, 0), ("hot", 1, 3_500_000_000), ("too", 1, 3_500_000_000),
    ]  # fmt: skip
    first, again, too = (job.pattern.seeds() for job in jobs)
    assert first == again != too  # another fio counts its jobs anew
