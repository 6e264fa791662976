"""A simulated run compared with a real one: parsing, alignment, scores and reports."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from fakes import Load, result

from hybridsim.answers.comparison import Tolerances, edges_of, parse
from hybridsim.answers.fidelity import distance
from hybridsim.answers.measurements import FORMATS, formats, gather
from hybridsim.answers.measurements.measurement import Curve, Name
from hybridsim.cli.compare import compare as command
from hybridsim.foundation.errors import MeasurementError, UsageError
from hybridsim.foundation.histogram import Distribution
from hybridsim.show.comparison import text
from hybridsim.studies.compare import compare

SECOND = 10**9
MAXIQ = """[root@uklab-cern5 fio]# fio random4K
random-read: (g=0): rw=randread, bs=4K-4K/4K-4K, ioengine=libaio, iodepth=64
random-read: (groupid=0, jobs=1): err= 0: pid=31826
read : io=0B, bw=71,594KB/s, iops=17,898, runt=117169msec
slat (usec): min=7, max=966, avg=20.51, stdev= 6.90
clat (usec): min=43, max=171K, avg=3550.21, stdev=939.53
bw (KB/s) : min=69362, max=72206, per=100.14%, avg=71691.28, stdev=666.91
issued r/w: total=2097152/0, short=0/0
"""
DIGITALOCEAN = """Outputbw-test: (groupid=0, jobs=1): err= 0: pid=2584: Fri Apr 20 17:14:19 2018
 write: io=22937MB, , , runt=120160msec
   clat (msec): min=7, max=779, avg=167.48, stdev=26.28
    lat (msec): min=7, max=779, avg=167.62, stdev=26.28
   clat percentiles (msec):
    |  1.00th=[  101],  5.00th=[  155], 99.00th=[  306], 99.99th=[  545]
    issued    : total=r=0/w=22937/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0
Run status group 0 (all jobs):
 WRITE: io=22937MB, aggrb=195468KB/s, minb=195468KB/s, maxb=195468KB/s
"""
ALIBABA = """# fio -direct=1 -iodepth=128 -rw=randwrite -name=Rand_Write_Testing
write: IOPS=23.4k, BW=91.6MiB/s (96.0MB/s)(10.0GiB/111824msec)
# fio -direct=1 -iodepth=128 -rw=randread -bs=64k -filename =iotest -name=Rand_Read_Testing
read: IOPS=16.4k, BW=1023MiB/s (1073MB/s)(10.0GiB/10006msec)
"""
STATUS = (
    "{} 0 16777216 cache 8 11/2048 512 {}/2048 {} {} 0 0 {} {} 0 1 writethrough 2 x 1 smq 0 rw -\n"
)


def job(name="hot", iops=1000.0, p99_ms=30, **others):
    """Return fio's JSON of a job that reads."""
    latency = {"min": 1, "max": 10**8, "mean": 2e7, "stddev": 1.0, "N": 1000}
    percentile = {"50.000000": 10 * 10**6, "99.000000": p99_ms * 10**6}
    read = {
        "io_bytes": 4096000, "bw_bytes": int(4096 * iops), "iops": iops, "runtime": 1000,
        "total_ios": 1000, "clat_ns": {**latency, "percentile": percentile}, "lat_ns": latency,
    }  # fmt: skip
    return {
        "jobname": name,
        "groupid": 0,
        "job options": {"rw": "randread"},
        "read": read,
        **others,
    }


def put(path, *jobs, version="fio-3.33", **others):
    path.write_text(json.dumps({"fio version": version, "jobs": list(jobs), **others}))
    return str(path)


def rows(comparison):
    return {str(row.name): row for row in comparison.rows}


def warming(seconds, t90_s, level=1000.0):
    """Return the lines of an IOPS log with one step up at this time."""
    values = [level if second >= t90_s else level / 10 for second in range(seconds)]
    return "".join(f"{1000 * (at + 1)}, {value:.0f}, 0, 0, 0\n" for at, value in enumerate(values))


# Input formats.


def read(name, words):
    form = next(each for each in formats().values() if each.detect(name, words))
    return form.read(name, words)


def test_a_report_of_fio_1_is_parsed():
    figures = read("a", MAXIQ).figures
    assert figures[Name("random-read", "read", "IOPS")] == 17_898
    assert figures[Name("random-read", "read", "bandwidth")] == 71_594 * 1024
    assert figures[Name("random-read", "read", "clat mean")] == 3_550_210
    assert figures[Name("random-read", "read", "clat max")] == 171_000_000


def test_a_web_page_with_a_partial_report_of_fio_2_is_parsed():
    page = read("a", DIGITALOCEAN)
    figures = {name.measure: value for name, value in page.figures.items()}
    assert figures["IOPS"] == pytest.approx(190.89, abs=0.01)
    assert any("from requests and runtime" in note for note in page.notes)
    assert figures["bandwidth"] == 195_468 * 1024
    assert (figures["clat p1"], figures["clat p99.99"]) == (101 * 10**6, 545 * 10**6)


def test_reports_of_fio_3_below_their_commands_are_parsed():
    page = read("a", ALIBABA)
    assert page.jobs == ["Rand_Write_Testing", "Rand_Read_Testing"]
    assert page.figures[Name("Rand_Write_Testing", "write", "IOPS")] == 23_400
    assert page.figures[Name("Rand_Read_Testing", "read", "bandwidth")] == 1023 << 20


def test_latencies_of_fio_2_json_are_microseconds():
    old = job()
    old["read"]["clat"] = {**old["read"].pop("clat_ns"), "percentile": {"99.000000": 30_000}}
    page = read("a", json.dumps({"fio version": "fio-2.2.10", "jobs": [old]}))
    assert page.figures[Name("hot", "read", "clat p99")] == 30_000_000


def test_what_a_job_of_one_direction_reports_as_mixed_is_of_that_direction():
    apart, mixed = job(), job()
    mixed["mixed"] = mixed.pop("read")
    documents = [json.dumps({"fio version": "fio-3.33", "jobs": [each]}) for each in (apart, mixed)]
    one, other = (read("a", text) for text in documents)
    assert other.figures == one.figures
    assert one.figures[Name("hot", "read", "IOPS")]


def test_the_sum_of_a_mix_is_compared_with_such_a_sum():
    mixed = job()
    mixed["mixed"] = mixed.pop("read")
    mixed["job options"] = {"rw": "randrw"}
    page = read("a", json.dumps({"fio version": "fio-3.33", "jobs": [mixed]}))
    assert {name.what for name in page.figures} == {"mixed"}
    mixed["read"] = mixed["mixed"]  # unified_rw_reporting=both
    page = read("a", json.dumps({"fio version": "fio-3.33", "jobs": [mixed]}))
    assert {name.what for name in page.figures} == {"read"}


def test_syncs_of_fdatasync_are_counted_by_their_latencies():
    one = job()
    one["sync"] = {"total_ios": 0, "lat_ns": {"min": 1, "max": 9, "mean": 5, "stddev": 1, "N": 63}}
    page = read("a", json.dumps({"fio version": "fio-3.33", "jobs": [one]}))
    assert page.figures[Name("hot", "sync", "requests")] == 63
    assert page.figures[Name("hot", "sync", "lat mean")] == 5


def test_logs_of_fio_2_are_read_as_microseconds_with_a_note():
    new = read("x_clat.1.log", "1000, 5000000, 0, 0, 0\n2000, 5000000, 0, 0, 0\n")
    old = read("x_clat.1.log", "1000, 5000, 0, 0\n2000, 5000, 0, 0\n")
    name = Name("log 1", "read", "clat")
    assert new.curves[name].value.tolist() == old.curves[name].value.tolist() == [5e6, 5e6]
    assert old.notes
    assert not new.notes


def test_a_log_with_one_line_per_request_is_binned_by_seconds():
    lines = "".join(f"{at}, 1, 0, 4096, 0\n" for at in range(0, 3000, 100))
    iops = read("x_iops.1.log", lines).curves[Name("log 1", "read", "IOPS")]
    assert iops.value.tolist() == [10, 10]  # the last second is partial
    bandwidth = read("x_bw.1.log", lines).curves[Name("log 1", "read", "bandwidth")]
    assert bandwidth.value.tolist() == [40_960, 40_960]


def test_times_of_day_are_relative_to_the_first_line():
    curve = read("x_iops.1.log", "1795234075263, 100, 0, 0, 0\n1795234076263, 100, 0, 0, 0\n")
    assert curve.curves[Name("log 1", "read", "IOPS")].end_ns.tolist() == [
        263 * 10**6,
        1263 * 10**6,
    ]


def test_a_gap_in_a_log_is_a_period_without_requests():
    curve = Curve.of_windows(np.array([1, 2, 5]) * SECOND, np.array([10.0, 10.0, 20.0]))
    edges = np.arange(6) * SECOND
    assert curve.binned(edges, True).tolist() == [10, 10, 0, 0, 20]
    assert np.isnan(curve.binned(edges, False)).tolist() == [False, False, True, True, False]


def test_iops_logs_of_several_processes_are_summed(tmp_path):
    put(tmp_path / "fio.json", job())
    for number, (iops, lat_ms) in enumerate([(100, 1), (300, 5)], 1):
        for kind, value in (("iops", iops), ("lat", lat_ms * 10**6)):
            lines = "".join(f"{at}000, {value}, 0, 0, 0\n" for at in range(1, 4))
            (tmp_path / f"x_{kind}.{number}.log").write_text(lines)
    run = gather(str(tmp_path))
    assert run.curves[Name("hot", "read", "IOPS")].value.tolist() == [400] * 3
    assert (
        run.curves[Name("hot", "read", "lat")].value.tolist() == [4e6] * 3
    )  # mean weighted by requests
    assert any("added up" in note for note in run.notes)


def test_counters_count_from_the_start_of_the_load(tmp_path):
    samples = [(9, 0, 0), (10, 100, 100), (20, 500, 100), (30, 1300, 300)]
    path = tmp_path / "dmcache-status.log"
    lines = [STATUS.format(f"{at}.0", 5, hits, misses, 0, 7) for at, hits, misses in samples]
    path.write_text("".join(lines))
    (tmp_path / "workload-start-uptime.txt").write_text("10.0\n")
    run = gather(str(tmp_path))
    hits = run.counters["read_hits"]
    assert hits.time_ns.tolist() == [0, 0, 10 * SECOND, 20 * SECOND]
    assert hits.value.tolist() == [0, 0, 400, 1200]
    assert run.counters["used_blocks"].value.tolist() == [5] * 4  # a level, not a count
    assert run.curves[Name("", "cache", "hit ratio")].value.tolist() == [1.0, 0.8]
    path.write_text("".join([*lines, "31.0 nonsense\n"]))
    with pytest.raises(MeasurementError, match=r"dmcache-status\.log:5"):
        gather(str(tmp_path))


def test_an_unrecorded_start_of_the_load_is_detected_and_noted(tmp_path):
    path = tmp_path / "dmcache-status.log"
    counts = [(9, 5), (10, 5), (11, 5), (12, 25)]
    path.write_text("".join(STATUS.format(f"{at}.0", 5, hits, 0, 0, 7) for at, hits in counts))
    run = gather(str(path))
    assert run.counters["read_hits"].time_ns.tolist() == [0, 0, SECOND]
    assert run.counters["read_hits"].value.tolist() == [0, 0, 20]
    assert "2.0 s after the first sample" in run.notes[0]


def test_counters_of_bcache_are_sampled_when_they_change():
    names = "uptime cache_hits cache_misses bypassed cache_miss_collisions\n"
    lines = ["1.0 0 0 0.0k -", "2.0 0 0 0.0k -", "3.0 70 30 0.0k -", "4.0 70 30 0.0k -"]
    run = read("bcache-stats.log", names + "\n".join(lines))
    assert run.counters["cache_hits"].time_ns.tolist() == [SECOND, 3 * SECOND]
    assert "bypassed" in run.notes[0]
    assert "cache_miss_collisions" not in run.counters


def test_files_of_unknown_formats_are_listed_in_the_notes(tmp_path):
    put(tmp_path / "fio.json", job())
    (tmp_path / "README.md").write_text("about\n")
    assert any("README.md" in note for note in gather(str(tmp_path)).notes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: str(folder / "none"), "no such file or folder"),
        (lambda folder: str(folder), "no files in this folder"),
        (lambda folder: str(put(folder / "x.json")), "no results"),
        (lambda folder: _written(folder / "a.json", '{"fio version": "3", '), "not fio's JSON"),
        (lambda folder: _written(folder / "x_bw.1.log", "1, 2, 0, 0, 0\nx\n"), "of a fio log"),
        (lambda folder: _written(folder / "x.json", '{"schema": "hybridsim.result/1"}'), "replay"),
        (lambda folder: _twice(folder), "is also reported by"),
    ],
)  # fmt: skip
def test_damaged_or_missing_files_are_refused_with_the_reason(make, message, tmp_path):
    with pytest.raises(MeasurementError, match=message):
        gather(make(tmp_path))


def _written(path, words):
    path.write_text(words)
    return str(path)


def _twice(folder):
    put(folder / "a.json", job())
    put(folder / "b.json", job())
    return str(folder)


# Comparison.


def test_a_run_agrees_with_itself_and_differs_from_another(tmp_path):
    real = put(tmp_path / "a.json", job())
    assert not compare(real, real).failed
    comparison = compare(real, put(tmp_path / "b.json", job(iops=1050.0, p99_ms=60)))
    assert [str(row.name) for row in comparison.failed] == ["hot read clat p99"]
    assert rows(comparison)["hot read IOPS"].error == pytest.approx(0.05)
    assert rows(comparison)["hot read IOPS"].is_met
    assert rows(comparison)["hot read runtime"].is_met is None  # reported, not checked


def test_single_jobs_are_matched_and_unmatched_jobs_are_listed(tmp_path):
    real = put(tmp_path / "a.json", job("mine"))
    comparison = compare(real, put(tmp_path / "b.json", job("theirs")))
    assert "mine read IOPS" in rows(comparison)
    assert "theirs" in comparison.notes[0]
    comparison = compare(real, put(tmp_path / "c.json", job("mine"), job("other")))
    assert {name.job for name, _ in comparison.only_simulated} == {"other"}
    with pytest.raises(MeasurementError, match="nothing to compare"):
        compare(put(tmp_path / "d.json", job("a"), job("b")), put(tmp_path / "c.json", job("c")))


def of_logs(folder, name, lines):
    path = folder / f"{name}_iops.1.log"
    path.write_text(lines)
    return str(path)


def test_a_late_warm_up_shows_in_t90_and_in_the_distance_of_the_curves(tmp_path):
    real = of_logs(tmp_path, "real", warming(100, 20))
    same = compare(real, of_logs(tmp_path, "same", warming(100, 21)))
    assert not same.failed  # one bin is the resolution of a log
    late = rows(compare(real, of_logs(tmp_path, "late", warming(100, 40))))
    assert late["read IOPS t90"].error == pytest.approx(1.0)
    assert late["read IOPS curve"].error == pytest.approx(0.9 * 20 / 100, rel=0.02)
    assert late["read IOPS level"].is_met


def test_curves_with_few_shared_bins_are_not_compared(tmp_path):
    comparison = compare(
        of_logs(tmp_path, "a", warming(4, 0)), of_logs(tmp_path, "b", warming(4, 0, 1200.0))
    )
    assert "read IOPS curve" not in rows(comparison)
    assert any("4 common bins" in note for note in comparison.notes)
    assert rows(comparison)["read IOPS mean"].error == pytest.approx(0.2)


def test_the_level_of_an_unsteady_run_is_reported_but_not_checked(tmp_path):
    rising = "".join(f"{at}000, {10 * at}, 0, 0, 0\n" for at in range(1, 101))
    steeper = "".join(f"{at}000, {max(0, 20 * at - 1000)}, 0, 0, 0\n" for at in range(1, 101))
    compared = rows(compare(of_logs(tmp_path, "a", rising), of_logs(tmp_path, "b", steeper)))
    assert compared["read IOPS level"].is_met is None
    assert compared["read IOPS curve"].is_met is False


def test_the_distance_of_curves_ignores_their_level(tmp_path):
    real = of_logs(tmp_path, "real", warming(100, 20))
    compared = rows(compare(real, of_logs(tmp_path, "high", warming(100, 20, 1300.0))))
    assert compared["read IOPS level"].error == pytest.approx(0.3)
    assert compared["read IOPS curve"].error == pytest.approx(0)


def test_bandwidth_curves_replace_missing_iops_curves(tmp_path):
    paths = []
    for name, t90_s in (("real", 20), ("late", 40)):
        path = tmp_path / f"{name}_bw.1.log"
        path.write_text(warming(100, t90_s))
        paths.append(str(path))
    assert rows(compare(*paths))["read bandwidth t90"].is_met is False


def test_a_run_with_and_one_without_a_warm_up_differ_in_t90(tmp_path):
    real = of_logs(tmp_path, "real", warming(100, 20))
    flat = compare(real, of_logs(tmp_path, "flat", warming(100, 0)))
    assert rows(flat)["read IOPS t90"].is_met is False
    assert any("did not rise" in note for note in flat.notes)


def test_bins_are_seconds_except_in_short_and_long_runs():
    def curve(width_ms, until_s):
        end = np.arange(width_ms, until_s * 1000 + 1, width_ms) * 10**6
        return Curve(end - width_ms * 10**6, end, np.ones(len(end)))

    assert np.diff(edges_of(curve(500, 100), curve(1000, 100)))[0] == SECOND
    assert np.diff(edges_of(curve(500, 100), curve(500, 100)))[0] == SECOND
    assert np.diff(edges_of(curve(500, 20), curve(100, 20)))[0] == SECOND // 2
    assert np.diff(edges_of(curve(1000, 2000), curve(1000, 1500)))[0] == 3 * SECOND


def simulated(path, counters, **others):
    return put(path, job(), hybridsim={"windows": [], "cache": counters}, **others)


def test_counters_are_compared_over_time(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    lines = [STATUS.format(f"{at}.0", 9, 10 * at, 5, 0, 100 * at) for at in range(41)]
    (real / "dmcache-status.log").write_text("".join(lines))
    (real / "workload-start-uptime.txt").write_text("0.0\n")
    time_ns = [at * SECOND for at in range(41)]
    ahead = [100 * at + (300 if 5 < at < 15 else 0) for at in range(41)]
    counters = {"time_ns": time_ns, "promotions": ahead, "read_hits": [10 * at for at in range(41)]}
    comparison = compare(str(real), simulated(tmp_path / "sim.json", counters))
    assert rows(comparison)["cache promotions"].error == pytest.approx(300 / 4000)
    assert rows(comparison)["cache read_hits"].is_met
    assert "read_misses over time" in {missing for _, missing in comparison.only_real}


def test_the_json_of_a_simulated_run_contains_its_curves(tmp_path):
    rate = {"width_ns": SECOND // 2, "value": [100.0] * 10}
    window = {"job": 0, "direction": "read", "iops": rate, "bandwidth": rate}
    path = put(tmp_path / "sim.json", job(), hybridsim={"windows": [window], "cache": {}})
    curve = gather(path).curves[Name("hot", "read", "IOPS")]
    assert (curve.until_ns, curve.value.mean()) == (5 * SECOND, 100)


def test_distributions_are_compared_if_both_runs_have_bins(tmp_path):
    near, far = job(), job()
    near["read"]["clat_ns"]["bins"] = {"1000000": 500, "2000000": 500}
    far["read"]["clat_ns"]["bins"] = {"1000000": 200, "2000000": 800}
    real = put(tmp_path / "a.json", near)
    comparison = compare(real, put(tmp_path / "b.json", far))
    assert rows(comparison)["hot read clat KS"].error == pytest.approx(0.3)
    comparison = compare(real, put(tmp_path / "c.json", job()))
    assert "distribution of clat" in {missing for _, missing in comparison.only_real}


def test_the_distance_of_distributions_is_0_to_1():
    one = Distribution.of(np.array([1, 2, 3, 4]))
    assert distance(one, one) == 0
    assert distance(one, Distribution.of(np.array([10, 20]))) == 1


def test_a_replay_is_compared_by_latency_iops_and_hit_ratio(tmp_path):
    for name, warmth in (("real", 40), ("slow", 8), ("none", 0)):
        load = Load(seconds=300, iops=200, hit_ratio=lambda share, w=warmth: 1 - np.exp(-w * share))
        (tmp_path / f"{name}.json").write_text(result(load).to_json())
    paths = [str(tmp_path / f"{name}.json") for name in ("real", "slow", "none")]
    same = compare(paths[0], paths[0])
    assert not same.failed
    assert {"read lat p99", "all IOPS level", "cache hit ratio t90"} <= rows(same).keys()
    assert "read clat p99" not in rows(same)  # equal to lat, reported once
    slow = rows(compare(paths[0], paths[1]))
    assert slow["cache hit ratio t90"].error > 1
    assert slow["all IOPS level"].is_met
    assert any("cache hit ratio" in str(row.name) for row in compare(paths[0], paths[2]).failed)


def test_lat_equals_clat_in_a_replay(tmp_path):
    (tmp_path / "replay.json").write_text(result(Load(seconds=60, iops=100)).to_json())
    comparison = compare(put(tmp_path / "real.json", job()), str(tmp_path / "replay.json"))
    both = rows(comparison)
    assert both["hot read clat mean"].simulated == both["hot read lat mean"].simulated
    assert both["hot read clat p99"].tolerance == 0.15


def test_reads_and_writes_of_a_real_run_are_summed_for_a_replay(tmp_path):
    (tmp_path / "replay.json").write_text(result(Load(seconds=60, iops=100)).to_json())
    for kind, iops in ((0, 60), (1, 40)):
        lines = "".join(f"{at}000, {iops}, {kind}, 0, 0\n" for at in range(1, 61))
        with (tmp_path / "x_iops.1.log").open("a") as log:
            log.write(lines)
    comparison = compare(str(tmp_path / "x_iops.1.log"), str(tmp_path / "replay.json"))
    assert rows(comparison)["all IOPS level"].real == 100


# Tolerances.


def test_tolerances_have_defaults_and_can_be_specified():
    assert Tolerances().of("IOPS") == 0.10
    assert Tolerances().of("clat p99") == 0.15
    assert Tolerances().of("clat p42") is None
    specified = parse(["iops=5%,p42=1%", "clat p99=0.2", "p90=none"])
    assert specified.of("IOPS") == 0.05
    assert specified.of("clat p42") == 0.01
    assert specified.of("clat p99") == 0.2
    assert specified.of("clat p90") is None
    every = parse(["30%"])
    assert every.of("clat p99") == 0.3
    assert every.of("IOPS curve") == 0.05  # a distance, not a share
    assert every.of("slat mean") is None


@pytest.mark.parametrize("wrong", ["iops=lots", "-3%", "iosp=5%", "p99=", "", "iops=5"])
def test_a_wrong_tolerance_is_refused(wrong):
    with pytest.raises(UsageError, match="--tolerance"):
        parse([wrong])


# Reports.


def test_the_report_fits_a_screen_and_the_exit_code_is_4_for_a_difference(tmp_path):
    real, other = put(tmp_path / "a.json", job()), put(tmp_path / "b.json", job(p99_ms=60))
    same = CliRunner().invoke(command, [real, real])
    assert same.exit_code == 0
    assert "AGREES" in same.output
    unlike = CliRunner().invoke(command, [real, other])
    assert unlike.exit_code == 4
    assert "hot read clat p99, +100.0% where ±15% is allowed" in " ".join(unlike.output.split())
    assert all(len(line) <= 100 for line in unlike.output.splitlines())
    allowed = CliRunner().invoke(command, [real, other, "--tolerance", "p99=120%"])
    assert allowed.exit_code == 0


def test_curves_can_be_drawn_in_ascii(tmp_path):
    comparison = compare(
        of_logs(tmp_path, "real", warming(100, 20)), of_logs(tmp_path, "sim", warming(100, 40))
    )
    drawing = text(comparison, ascii_only=True)
    assert drawing.isascii()
    assert "***" in drawing
    assert "simulated" in drawing


def test_the_json_contains_every_row(tmp_path):
    real, other = put(tmp_path / "a.json", job()), put(tmp_path / "b.json", job(p99_ms=60))
    written = json.loads(CliRunner().invoke(command, [real, other, "--json"]).output)
    assert written["pass"] is False
    (row,) = [each for each in written["rows"] if each["pass"] is False]
    assert (row["measure"], row["error"]) == ("clat p99", 1.0)
    assert compare(real, real).to_dict()["pass"] is True


def test_every_input_format_is_registered_and_has_a_docstring():
    assert all(form.__doc__ for form in formats().values())
    assert list(formats()) == list(FORMATS)


# Real runs.

DATA = Path(os.environ.get("HYBRIDSIM_DATA", Path(__file__).parents[2] / "shared" / "data"))
KERNEL = DATA / "kernel-caches"


@pytest.mark.skipif(not KERNEL.is_dir(), reason="HYBRIDSIM_DATA names no folder of reference data")
def test_all_measurements_of_runs_of_real_caches_are_read():
    run = gather(str(KERNEL / "dmcache-smq-wt-hot-c512"))
    assert run.counters["promotions"].value[-1] == 4096
    assert run.figures[Name("", "cache", "hit ratio")] == pytest.approx(0.71, abs=0.005)
    assert len(run.curves[Name("hot", "read", "IOPS")].value) == 149
    run = gather(str(KERNEL / "bcache-wt-hot-c512"))
    assert run.figures[Name("hot", "read", "IOPS")] == pytest.approx(682.110073)
    assert len(run.counters["cache_hits"].value) > 8


@pytest.mark.parametrize(
    ("counts", "began_s", "then"),
    [
        ([0, 0, 60, 160], 8.6, [0, 60, 160]),  # the load began between the samples at 8 and 9 s
        ([0, 100, 200, 300], 8.5, [0, 50, 150]),  # a cache in use: it had counted 150 by then
    ],
)
def test_counts_begin_with_the_load(tmp_path, counts, began_s, then):
    path = tmp_path / "dmcache-status.log"
    lines = [STATUS.format(f"{7 + at}.0", 5, hits, 0, 0, 7) for at, hits in enumerate(counts)]
    path.write_text("".join(lines))
    run = gather(str(tmp_path), begin_s=began_s)
    assert run.counters["read_hits"].value.tolist() == then
