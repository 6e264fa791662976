"""A disk or an SSD is fitted to fio's results, or the fit is refused with the reason."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hybridsim import Scenario, fit
from hybridsim.answers.fitting import fio, rotations
from hybridsim.answers.fitting.answer import Fit
from hybridsim.answers.fitting.fio import read
from hybridsim.foundation.errors import FitError, MeasurementError
from hybridsim.studies import fit as fitting
from hybridsim.studies.fit import fio_fidelity, judged

PERCENTS = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9)


def job(latency_ns, depth=1, iops=None, **options):
    count = len(latency_ns)
    empty = {"total_ios": 0}
    read = {
        "total_ios": count,
        "iops": iops or depth * 1e9 / float(np.mean(latency_ns)),
        "bw_bytes": 0,
        "clat_ns": {
            "mean": float(np.mean(latency_ns)),
            "percentile": {f"{p:.6f}": int(np.percentile(latency_ns, p)) for p in PERCENTS},
        },
    }
    job_options = {"rw": "randread", "iodepth": str(depth), **options}
    return {"jobname": "one", "job options": job_options, "read": read, "write": empty}


def results(path, *jobs, **common):
    options = {"bs": "4k", "direct": "1", **common}
    whole = {"fio version": "fio-3.33", "global options": options, "jobs": list(jobs)}
    path.write_text("fio: a message before it\n" + json.dumps(whole))
    return path


def disk(seed, count=4000):
    random = np.random.default_rng(seed)
    share = np.abs(np.diff(random.random(count + 1)))
    return (0.9 + 11 * np.sqrt(share) + random.uniform(0, 60e3 / 7200, count)) * 1e6


def estimate(model, key):
    return next(one for one in model.estimates if one.key == key)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4k", 4096), ("16KiB", 16_000), ("8kb", 8192), ("4k,64k", 4096), ("512", 512), ("?", 4096)],
)
def test_sizes_of_blocks_are_those_that_fio_reads(tmp_path, text, size):
    """To fio 16k are 16,384 bytes, and 16KiB 16,000."""
    (point,) = read([str(results(tmp_path / "one.json", job(disk(0)), bs=text))])
    assert point.block_bytes == size


@pytest.mark.parametrize("seed", range(3))
def test_a_disk_at_depth_1_is_recovered_within_its_intervals(tmp_path, seed):
    """Percentiles alone determine the sum of seek and rotation, hardly the two parts."""
    latency = disk(seed)
    model = fit(results(tmp_path / "disk.json", job(latency)))
    rpm, full = estimate(model, "rpm"), estimate(model, "seek_full")
    assert rpm.low <= 7200 <= rpm.high
    assert full.low <= 11.7e6 <= full.high or full.value == pytest.approx(11.7e6, rel=0.03)
    drive = model.scenario().backing.drive
    mean_ns = drive.overhead_ns + drive.seek_average_ns + drive.rev_ns / 2
    assert mean_ns == pytest.approx(latency.mean(), rel=0.02)


def writes(latency_ns, depth=1, iops=None):
    """Return a job of random writes."""
    one = job(latency_ns, depth, iops, rw="randwrite")
    one["read"], one["write"] = one["write"], one["read"]
    return one


@pytest.mark.parametrize(("order", "window"), [("clook", 12), ("sstf", 24), ("sptf", 32)])
def test_the_order_of_a_disk_is_that_of_its_measured_rates_and_tails(tmp_path, order, window):
    """A disk that serves its queue in a sweep, the nearest first, or by position, is recovered."""
    alone = job(disk(0))
    at = {depth: job(disk(1) * depth, depth) for depth in (4, 8, 32)}
    truth = fit(results(tmp_path / "alone.json", alone), check=False)
    keys = {"order": order, "window": window, "age_limit": "5s"}
    known = truth.scenario().with_values({f"backing.drive.{k}": v for k, v in keys.items()})
    for one in at.values():
        [point] = read([str(results(tmp_path / "one.json", one))])
        one["read"]["iops"], p99_ns = fitting.simulated(known, point)
        one["read"]["clat_ns"]["percentile"]["99.000000"] = p99_ns
    model = fit(results(tmp_path / "deep.json", alone, *at.values()), check=False)
    found = model.scenario().backing.drive
    assert (found.order, found.window) == (order, window)
    assert estimate(model, "order").determined


def test_one_deep_rate_determines_the_window_alone(tmp_path):
    alone, deep = job(disk(0)), job(disk(1) * 30, 32)
    iops = alone["read"]["iops"]
    deep["read"]["iops"] = 1.4 * iops
    model = fit(results(tmp_path / "disk.json", alone, deep), check=False)
    assert not estimate(model, "order").determined
    [point] = [one for one in read([str(tmp_path / "disk.json")]) if one.depth == 32]
    assert fitting.simulated(model.scenario(), point)[0] == pytest.approx(1.4 * iops, rel=0.05)


def test_without_a_queue_the_order_is_marked_as_assumed(tmp_path):
    model = fit(results(tmp_path / "disk.json", job(disk(0))), check=False)
    assert not estimate(model, "order").determined
    assert "depth 32" in estimate(model, "order").how


@pytest.mark.parametrize(
    ("options", "on_file"),
    [
        ({"filename": "/dev/sdb"}, False),
        ({"filename": r"\\.\PhysicalDrive1"}, False),
        ({}, False),  # not stated
        ({"filename": "test.bin"}, True),
        ({"directory": "/mnt"}, True),
    ],
)
def test_a_disk_measured_through_a_file_gets_a_note(tmp_path, options, on_file):
    model = fit(results(tmp_path / "disk.json", job(disk(0)), **options), check=False)
    assert any("on a file" in note for note in model.notes) == on_file


def test_writes_beyond_the_reads_give_a_write_cache(tmp_path):
    """Twice the reads, at any depth: cached, and destaged several at a time."""
    alone = job(disk(0))
    iops = 2 * alone["read"]["iops"]
    some = [writes(disk(0) / 2, 1, iops), writes(disk(0) * 16, 32, iops)]
    model = fit(results(tmp_path / "cached.json", alone, *some), check=False)
    assert model.scenario().backing.drive.write_cache_bytes > 0
    for point in read([str(tmp_path / "cached.json")])[1:]:
        assert fitting.simulated(model.scenario(), point)[0] == pytest.approx(iops, rel=0.1)


def test_writes_that_gain_from_the_queue_are_not_cached(tmp_path):
    """The arm reorders them, as it does reads."""
    alone = job(disk(0))
    iops = alone["read"]["iops"]
    some = [writes(disk(0), 1, iops), writes(disk(0) * 16, 32, 2 * iops)]
    model = fit(results(tmp_path / "off.json", alone, *some), check=False)
    assert not any(one.key == "write_cache" for one in model.estimates)


def test_the_time_of_fio_itself_is_not_the_drives(tmp_path):
    """90 us until the completion, 100 us until the next request: the host takes 10."""
    latency = np.full(1000, 90_000)
    jobs = job(latency, iops=10_000), job(latency * 4, 32, iops=80_000)
    model = fit(results(tmp_path / "ssd.json", *jobs))
    assert estimate(model, "read_latency").value == pytest.approx(90_000, rel=0.01)
    assert model.scenario().host.overhead_ns == pytest.approx(10_000, rel=0.02)
    assert model.fidelity.demerit < 0.02  # completion latencies are compared
    point = read([str(tmp_path / "ssd.json")])[0]
    assert fitting.simulated(model.scenario(), point)[0] == pytest.approx(10_000, rel=0.01)


def test_rare_stalls_do_not_count_as_latency(tmp_path):
    latency = np.where(np.arange(1000) % 100 == 0, 5_000_000, 30_000)
    jobs = job(np.full(1000, 90_000)), writes(latency), writes(latency * 8, 32, iops=7000)
    model = fit(results(tmp_path / "ssd.json", *jobs), check=False)
    assert estimate(model, "write_latency").value == pytest.approx(30_000, rel=0.01)


def test_the_writes_of_the_greatest_depth_are_those_that_last(tmp_path):
    """Measured first, at depth 1, they went to erased flash."""
    latency = np.full(1000, 35_000)
    jobs = job(np.full(1000, 90_000)), writes(latency, 1, 20_000), writes(latency, 32, 7000)
    more = writes(latency, 2, 9000)
    model = fit(results(tmp_path / "ssd.json", *jobs, more), check=False)
    found = estimate(model, "random_write_iops")
    assert found.determined
    assert found.value == 7000
    assert "before" in found.how


def test_reads_of_what_was_never_written_get_a_note(tmp_path):
    latency = np.where(np.arange(1000) % 10 < 6, 35_000, 110_000)
    model = fit(results(tmp_path / "empty.json", job(latency)), check=False)
    assert any("never written" in note for note in model.notes)
    whole = fit(results(tmp_path / "full.json", job(np.full(1000, 110_000))), check=False)
    assert not any("never written" in note for note in whole.notes)


def test_a_drive_that_falls_asleep_gets_a_note(tmp_path):
    latency = np.full(1000, 150_000)
    jobs = job(latency), job(latency * 0.8, 2, 15_600)
    model = fit(results(tmp_path / "asleep.json", *jobs), check=False)
    assert any("asleep" in note for note in model.notes)
    [point] = [one for one in read([str(tmp_path / "asleep.json")]) if one.depth == 2]
    assert estimate(model, "wake_up").value == pytest.approx(150_000 - 2e9 / 15_600, rel=1e-6)
    assert fitting.simulated(model.scenario(), point)[0] == pytest.approx(15_600, rel=0.03)


def test_an_ssd_that_is_as_fast_alone_does_not_sleep(tmp_path):
    latency = np.full(1000, 150_000)
    model = fit(results(tmp_path / "awake.json", job(latency), job(latency, 2)), check=False)
    assert not any(one.key == "wake_up" for one in model.estimates)


def test_an_nvme_drive_without_sequential_results_is_fitted(tmp_path):
    """Writes of 6 us: the link that is assumed has to be as fast."""
    reads, fast = np.full(1000, 60_000), np.full(1000, 6000)
    jobs = job(reads), job(reads * 4, 64, 250_000), writes(fast), writes(fast * 30, 64, 110_000)
    model = fit(results(tmp_path / "nvme.json", *jobs))
    drive = model.scenario().backing.drive
    assert (drive.read_latency_ns, drive.write_latency_ns) == (60_000, 6000)
    assert estimate(model, "sequential_read").how == "no sequential reads; as samsung-pm9a3-1920gb"


def test_latencies_of_fio_2_are_in_microseconds(tmp_path):
    one = job(disk(0))
    new = fit(results(tmp_path / "new.json", one), check=False)
    latency = one["read"].pop("clat_ns")
    percents = {name: value // 1000 for name, value in latency["percentile"].items()}
    one["read"]["clat"] = {"mean": latency["mean"] / 1000, "percentile": percents}
    old = fit(results(tmp_path / "old.json", one), check=False)
    assert estimate(old, "seek_average").value == pytest.approx(
        estimate(new, "seek_average").value, rel=0.01
    )


def test_results_without_latencies_are_refused(tmp_path):
    one = job(disk(0))
    del one["read"]["clat_ns"]
    with pytest.raises(FitError, match="no latencies"):
        fit(results(tmp_path / "reduced.json", one))


def test_a_network_volume_is_no_ssd(tmp_path):
    """Ceph: reads from memory, writes that wait for several disks."""
    jobs = job(np.full(1000, 800_000)), writes(np.full(1000, 8_000_000))
    with pytest.raises(FitError, match=r"no SSD.*network volume"):
        fit(results(tmp_path / "ceph.json", *jobs), check=False)


def test_completions_that_are_held_back_get_a_note(tmp_path):
    """A controller that gathers completions: fewer reads at depth 4 than at depth 2."""
    latency = np.full(1000, 70_000)
    rates = {2: 27_000, 4: 22_000, 8: 52_000}
    jobs = [job(latency, depth, iops) for depth, iops in rates.items()]
    model = fit(results(tmp_path / "held.json", job(latency), *jobs), check=False)
    assert any("interrupt coalescing" in note for note in model.notes)


def held_back(tmp_path, depths):
    """Return fio's results of an SSD whose completions are held for 120 us, and the points."""
    alone = job(np.full(2000, 80e3)), writes(np.full(2000, 30e3))
    found = fit(results(tmp_path / "alone.json", *alone), check=False)
    keys = {"hold": "120us", "hold_from": 5, "hold_within": "280us"}
    known = found.scenario().with_values({f"host.{key}": value for key, value in keys.items()})
    jobs = [job(np.full(2000, 80e3), depth) for depth in depths] + [alone[1]]
    points = read([str(results(tmp_path / "unknown.json", *jobs))])
    for one, point in zip(jobs, points, strict=True):
        if point.direction == "read" and point.depth > 1:
            one["read"]["iops"] = fitting.simulated(known, point, 6000)[0]
            percentiles = one["read"]["clat_ns"]["percentile"]
            longer = 120_000 if 3 <= point.depth <= 8 else 0
            one["read"]["clat_ns"]["percentile"] = {p: v + longer for p, v in percentiles.items()}
    return jobs, read([str(results(tmp_path / "ssd.json", *jobs))])


def test_the_time_that_completions_are_held_is_recovered(tmp_path):
    jobs, points = held_back(tmp_path, (1, 2, 4, 8, 64))
    ends = [one for one in jobs if one["job options"]["iodepth"] not in ("2", "8")]
    model = fit(results(tmp_path / "ends.json", *ends), check=False)
    assert model.scenario().host.hold_ns == 120_000
    assert any("holds completions back" in note for note in model.notes)
    reads = [one for one in points if one.direction == "read"]
    assert errors(model, reads) == pytest.approx([0] * len(reads), abs=0.1)


def test_single_requests_that_were_held_are_no_latency_of_the_drive(tmp_path):
    """Of the writes at depth 1 a sixth took 120 us longer, as behind an HP P420."""
    jobs, _ = held_back(tmp_path, (1, 4, 64))
    latency = np.where(np.arange(2000) % 6, 30e3, 150e3)
    model = fit(results(tmp_path / "all.json", *jobs[:-1], writes(latency)), check=False)
    assert estimate(model, "write_latency").value == pytest.approx(30e3, rel=0.1)


def test_without_depths_between_nothing_is_held(tmp_path):
    jobs, _ = held_back(tmp_path, (1, 64))
    assert fit(results(tmp_path / "two.json", *jobs), check=False).scenario().host.hold_ns == 0


def test_large_random_requests_give_the_link(tmp_path):
    """128 KiB at depth 32 go by its rate, also where nothing was read in sequence."""
    jobs = [job(np.full(1000, 80e3)), job(np.full(1000, 160e3), 32), writes(np.full(1000, 30e3))]
    large = job(np.full(1000, 1.3e6), 32, bs="128k"), writes(np.full(1000, 2.5e6), 32)
    large[1]["job options"]["bs"] = "128k"
    for one, direction, rate in ((large[0], "read", 3.2e9), (large[1], "write", 1.7e9)):
        one[direction]["bw_bytes"] = rate
    model = fit(results(tmp_path / "large.json", *jobs, *large), check=False)
    drive = model.scenario().backing.drive
    assert (drive.sequential_read, drive.sequential_write) == (3_200_000_000, 1_700_000_000)
    alone = fit(results(tmp_path / "small.json", *jobs), check=False)
    assert not estimate(alone, "sequential_read").determined
    assert any("Larger requests" in note for note in alone.notes)
    assert not any("Larger requests" in note for note in model.notes)


def crowded(tmp_path, depths):
    """Return fio's results of an SSD in which requests wait for one another, and the points."""
    keys = {
        "dies": 24, "page_size": "64KiB", "write_lanes": 3,
        "random_read_iops": 200_000, "random_write_iops": 200_000,
    }  # fmt: skip
    kinds = ((job, np.full(2000, 80e3)), (writes, np.full(2000, 20e3)))
    streams = [job(np.full(100, 1e6), 32, rw="read"), writes(np.full(100, 1e6), 32)]
    streams[1]["job options"]["rw"] = "write"
    for direction, one in zip(("read", "write"), streams, strict=True):
        one[direction]["bw_bytes"] = 3e9
    alone = results(tmp_path / "alone.json", *(make(latency) for make, latency in kinds), *streams)
    drive = {f"backing.drive.{key}": value for key, value in keys.items()}
    known = fit(alone, check=False).scenario().with_values(drive)
    jobs = [make(latency, depth) for make, latency in kinds for depth in depths]
    points = read([str(results(tmp_path / "unknown.json", *jobs))])
    for one, point in zip(jobs, points, strict=True):
        one[point.direction]["iops"] = fitting.simulated(known, point, 6000)[0]
    points = read([str(results(tmp_path / "ssd.json", *jobs))])
    return [*jobs, *streams], points


def errors(model, points):
    scenario = model.scenario()
    return [fitting.simulated(scenario, point)[0] / point.iops - 1 for point in points]


def test_the_dies_and_lanes_on_which_requests_wait_are_recovered(tmp_path):
    jobs, points = crowded(tmp_path, (1, 2, 4, 8, 16, 64))
    model = fit(results(tmp_path / "all.json", *jobs), check=False)
    drive = model.scenario().backing.drive
    assert drive.dies == pytest.approx(24, rel=0.15)
    assert drive.write_lanes == 3
    assert estimate(model, "dies").determined
    assert errors(model, points) == pytest.approx([0] * len(points), abs=0.08)


def test_a_rate_below_the_limit_determines_those_between(tmp_path):
    jobs, points = crowded(tmp_path, (1, 2, 3, 4))
    ends = [one for one in jobs if one["job options"]["iodepth"] not in ("2", "3")]
    model = fit(results(tmp_path / "ends.json", *ends), check=False)
    assert errors(model, points) == pytest.approx([0] * len(points), abs=0.08)


def test_what_the_dies_read_of_4_kib_bounds_an_unknown_link(tmp_path):
    """24 dies of 80 us cannot read 6.8 GB/s in units of 4 KiB, which lie on them in turn."""
    jobs, _ = crowded(tmp_path, (1, 2, 4, 8, 16, 64))
    random = [one for one in jobs if one["job options"]["rw"].startswith("rand")]
    model = fit(results(tmp_path / "random.json", *random), check=False)
    drive = model.scenario().backing.drive
    assert drive.page_bytes == 4096
    expected = (drive.dies - 2) * 4096e9 / drive.mean_read_ns
    assert drive.sequential_read == pytest.approx(expected, rel=0.05)
    assert not estimate(model, "sequential_read").determined


def test_pages_of_three_kinds_are_recovered_from_the_percentiles(tmp_path):
    """Thirds of 51, 70 and 101 us, as of an Intel P4510: three steps of 17 us."""
    latency = np.repeat([51e3, 67.7e3, 101e3], 700)
    model = fit(results(tmp_path / "levels.json", job(latency), job(latency, 2)), check=False)
    assert estimate(model, "read_step").value == pytest.approx(16_700, rel=0.01)
    assert model.scenario().backing.drive.read_latency_ns == pytest.approx(73_200, rel=0.05)
    alike = results(tmp_path / "alike.json", job(np.full(1000, 70e3)), job(np.full(1000, 70e3), 2))
    assert not any(one.key == "read_step" for one in fit(alike, check=False).estimates)


def test_a_name_of_nvme_is_no_sata_drive_however_slow(tmp_path):
    jobs = job(np.full(1000, 90e3)), job(np.full(1000, 360e3), 32, 80_000)
    slow = results(tmp_path / "slow.json", *jobs, filename="/dev/nvme0n1")
    sata = results(tmp_path / "sata.json", *jobs, filename="/dev/sda")
    found = [estimate(fit(each, check=False), "write_latency").how for each in (slow, sata)]
    assert "pm9a3" in found[0]
    assert "pm883" in found[1]


def test_a_limit_alone_leaves_the_dies_assumed(tmp_path):
    reads = [job(np.full(2000, 80e3)), job(np.full(2000, 640e3), 64, 100_000.0)]
    model = fit(results(tmp_path / "limit.json", *reads), check=False)
    dies = estimate(model, "dies")
    assert not dies.determined
    assert dies.value == pytest.approx(1.5 * 100_000 * 80e-6, abs=1)


def test_an_ssd_at_several_depths_is_recovered(tmp_path):
    latency = np.full(1000, 90_000)
    model = fit(results(tmp_path / "ssd.json", job(latency), job(latency * 4, 32, iops=80_000)))
    assert estimate(model, "read_latency").value == pytest.approx(90_000, rel=0.01)
    assert estimate(model, "random_read_iops").value == 80_000
    assert not estimate(model, "write_latency").determined
    assert model.scenario().backing.drive.kind == "ssd"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"direct": "0"}, "page cache"),
        ({"random_distribution": "zipf:1.1"}, "hot spots"),
        ({"rw": "randrw"}, "mixes reads and writes"),
        ({"depth": 32}, "mostly waiting"),
    ],
)
def test_unsuitable_results_are_refused_with_the_reason(tmp_path, options, why):
    path = results(tmp_path / "odd.json", job(disk(0), **options))
    with pytest.raises(FitError, match=why):
        fit(path)


def test_a_fit_is_compared_with_the_measurement(tmp_path):
    path = results(tmp_path / "disk.json", job(disk(0)))
    model = fit(path)
    assert model.fidelity.likeness == "good"
    assert not any("of another kind" in note for note in model.notes)
    assert fit(path, check=False).fidelity is None


def test_a_device_unlike_its_model_gets_a_note(tmp_path):
    model = fit(results(tmp_path / "disk.json", job(disk(0))), check=False)
    other = fio_fidelity(fio.checked(read([str(tmp_path / "disk.json")])), slow_disk())
    assert other.likeness == "poor"
    assert "of another kind" in judged(model, other).notes[-1]


def slow_disk():
    keys = {"kind": "single", "members": 1, "drive.seek_average": "24ms", "drive.seek_full": "40ms"}
    return Scenario.default().with_values({f"backing.{key}": each for key, each in keys.items()})


def test_reads_partly_from_flash_are_refused(tmp_path):
    """A cache above a disk: 70 % of the reads take 90 us, the others as long as the disk's."""
    latency = np.where(np.arange(4000) % 10 < 7, 90e3, disk(0))
    with pytest.raises(FitError, match=r"two devices.*0% of them.*as a disk"):
        fit(results(tmp_path / "cached.json", job(latency)), check=False)


def test_rates_that_one_arm_cannot_reach_are_refused(tmp_path):
    """Two actuators that reorder: 5 times the rate at depth 32; one arm reaches 3.3 times."""
    alone = job(disk(0))
    iops = alone["read"]["iops"]
    one_arm, two = (job(disk(1) * 8, 32, iops=times * iops) for times in (3.3, 5))
    fit(results(tmp_path / "one.json", alone, one_arm), check=False)
    with pytest.raises(FitError, match=r"5\.0 times those at depth 1.*two actuators"):
        fit(results(tmp_path / "two.json", alone, two), check=False)


def test_writes_that_are_faster_than_the_arm_get_a_note(tmp_path):
    writes = job(np.full(1000, 400_000), rw="randwrite")
    writes["write"], writes["read"] = writes["read"], {"total_ios": 0}
    model = fit(results(tmp_path / "smr.json", job(disk(0)), writes), check=False)
    assert "shingled recording (SMR)" in model.notes[-1]


def test_a_sequential_write_rate_that_falls_is_noted(tmp_path):
    jobs = [job(np.full(1000, 90_000))]
    for rate in (3_000_000_000, 900_000_000):
        stream = job(np.full(1000, 40_000), rw="write", bs="128k")
        stream["write"] = stream["read"] | {"bw_bytes": rate}
        stream["read"] = {"total_ios": 0}
        jobs.append(stream)
    model = fit(results(tmp_path / "slc.json", *jobs), check=False)
    assert "900 MB/s was measured too" in estimate(model, "sequential_write").how


def test_a_measured_rate_of_sequential_writes_is_kept(tmp_path):
    """Random writes were not measured: what is assumed of them gives way."""
    stream = job(np.full(1000, 40_000), rw="write", bs="128k")
    stream["write"] = stream["read"] | {"bw_bytes": 3_000_000_000}
    stream["read"] = {"total_ios": 0}
    latency = np.full(1000, 90_000)
    model = fit(results(tmp_path / "ssd.json", job(latency), stream), check=False)
    rate = estimate(model, "sequential_write")
    assert rate.determined
    assert rate.value == 3_000_000_000
    assert not estimate(model, "random_write_iops").determined
    assert model.scenario().backing.drive.kind == "ssd"


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "cut.json"
    path.write_text('{"fio version": "fio-3.33", "jobs": [{')
    with pytest.raises(MeasurementError, match="not fio's JSON"):
        fit(path)


def test_a_usual_speed_that_is_taken_lies_within_the_interval():
    below, above = 60e3 / 7000, 60e3 / 6900
    assert fio._rpms(below, above, 7200) == (6900, 7200)
    assert fio._rpms(below, above, 5400) == (5400, 7000)


def drawn_ms(random, base, reach, rotation, linear, count=4000):
    """Return latencies of random reads, one at a time."""
    share = 1 - np.sqrt(1 - random.random(count))
    seek = base + reach * ((1 - linear) * np.sqrt(share) + linear * share)
    return seek + rotation * random.random(count)


def test_the_shares_of_latencies_are_those_of_drawn_requests():
    took = drawn_ms(np.random.default_rng(1), 0.8, 9.0, 8.3, 0.3, 200_000)
    shares = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
    found = rotations.quantiles(0.8, 9.0, 8.3, 0.3, shares)
    assert found == pytest.approx(np.quantile(took, shares), rel=0.01)


def test_rotation_and_seeks_are_within_their_intervals_as_often_as_promised():
    """The shape of the seeks and the rotation are drawn as they are taken to be."""
    random = np.random.default_rng(5)
    shares = np.array([1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99]) / 100
    held = []
    for _ in range(30):
        rotation = np.exp(random.uniform(*np.log([4, 15])))
        linear = float(np.clip(random.normal(0.2, 0.15), -0.2, 0.8))
        base, reach = random.uniform(0.5, 3), random.uniform(5, 15)
        took_ns = 1e6 * np.quantile(drawn_ms(random, base, reach, rotation, linear), shares)
        width = 2.0 ** (np.floor(np.log2(took_ns)) - 6)  # fio's bins
        known = rotations.rotations(shares, (took_ns // width + 0.5) * width, 0.0, 4000)
        mean = base + reach * (8 / 15 - linear * (8 / 15 - 1 / 3))
        truths = ((known.rotation(0.95), rotation), (known.seek(None, 0.95), mean),
                  (known.seek(1.0, 0.95), base + reach))  # fmt: skip
        held.append([low <= truth <= high for (low, high), truth in truths])
    assert (np.mean(held, axis=0) >= 0.85).all()
    assert np.mean(held) <= 0.99


def test_the_mean_seek_is_known_better_than_its_parts():
    """What a longer reach takes, a shorter base does not: the sum is that of the latencies."""
    took_ns = 1e6 * drawn_ms(np.random.default_rng(2), 0.8, 9.0, 60e3 / 7200, 0.2)
    shares = np.array([1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99]) / 100
    known = rotations.rotations(shares, np.quantile(took_ns, shares), 0.0, 4000)
    nearest = np.argmin(np.abs(known.rotation_ms - 60e3 / 7200))
    known = replace(
        known, rotation_ms=known.rotation_ms[[nearest]], weight=np.ones(1),
        free=known.free[[nearest]], spread=known.spread[[nearest]],
    )  # fmt: skip
    low, high = known.seek(None, 0.95)
    assert low <= 0.8 + 9.0 * (8 / 15 - 0.04) <= high
    parts = [np.diff(known.seek(part, 0.95))[0] for part in (0.0, 1.0)]
    assert high - low < min(parts)


def around(rpm, spread):
    """Return rotations whose logarithms are spread around a speed, with a base that grows."""
    log = np.linspace(-5, 5, 1001)
    rotation_ms = 60e3 / rpm * np.exp(spread * log)
    weight = np.exp(-(log**2) / 2)
    free = np.stack([np.log(rotation_ms / 10), np.full(1001, np.log(9.0)), 0.2 + 0 * log], axis=1)
    spreads = np.tile(np.diag([1e-6, 1e-6, 1e-6]), (1001, 1, 1))
    return rotations.Rotations(rotation_ms, weight / weight.sum(), free, spreads)


def test_a_usual_speed_is_the_middle_where_the_latencies_leave_it_open():
    known = around(6900, 0.1)
    assert 60e3 / known.middle_ms == pytest.approx(6900, rel=0.005)
    assert 60e3 / known.with_usual().middle_ms == pytest.approx(7200)
    precise = around(6900, 0.005).with_usual()
    assert 60e3 / precise.middle_ms == pytest.approx(6900, rel=0.005)


def test_without_a_usual_speed_among_them_no_rotation_is_favoured():
    known, more = around(8500, 0.01), around(8500, 0.01).with_usual()
    assert more.rotation_ms == pytest.approx(known.rotation_ms)
    assert more.weight == pytest.approx(known.weight)


def test_the_values_belong_together():
    """Those of the seek are the likeliest with the rotation that is taken, not on average."""
    base, reach, rotation, linear = around(6900, 0.1).with_usual().values()
    assert rotation == 60e3 / 7200
    assert (base, reach, linear) == pytest.approx((rotation / 10, 9.0, 0.2), rel=0.002)


def test_an_assumed_overhead_is_in_the_intervals_of_the_seeks_once():
    """Base and reach are certain here: the interval is 95 % of the range of the overhead."""
    known = around(7200, 1e-6)
    low, high = known.seek(1.0, 0.95, np.linspace(0, 0.6, 61))
    whole = 60e3 / 7200 / 10 + 9.0
    assert (low, high) == pytest.approx((whole - 0.585, whole - 0.015), abs=0.02)


@pytest.mark.parametrize(("more", "order"), [(1.07, "clook"), (1.5, "sptf")])
def test_one_deep_rate_is_of_a_sweep_unless_it_is_clearly_beyond_one(tmp_path, more, order):
    """Two measured disks are 6 % faster at depth 32 than any simulated sweep, and sweep."""
    alone, deep = job(disk(0)), job(disk(1) * 30, 32)
    truth = fit(results(tmp_path / "alone.json", alone), check=False)
    keys = {"order": "clook", "window": 32, "age_limit": "5s"}
    known = truth.scenario().with_values({f"backing.drive.{k}": v for k, v in keys.items()})
    [point] = read([str(results(tmp_path / "deep.json", deep))])
    deep["read"]["iops"] = more * fitting.simulated(known, point)[0]
    model = fit(results(tmp_path / "both.json", alone, deep), check=False)
    assert model.scenario().backing.drive.order == order


def test_a_shortest_seek_beyond_a_revolution_gives_a_valid_scenario():
    """15,000 rpm and a base of 6 ms: percentiles alone can be as far off."""
    known = around(15_000, 1e-6)
    known = replace(known, free=known.free + np.array([np.log(15), 0, 0]))
    estimates = fio._disk_estimates(known, known.rotation(0.95), 15_000)
    Fit("fio", "One disk.", estimates, 1).scenario()


def test_a_long_least_time_is_that_of_an_old_or_of_a_later_disk(tmp_path):
    """4 ms before the shortest seek ends: most of it overhead, or none; the value is inside."""
    random = np.random.default_rng(3)
    latency = 1e6 * drawn_ms(random, 4.0, 10.0, 60e3 / 7200, 0.2)
    model = fit(results(tmp_path / "disk.json", job(latency)), check=False)
    full = estimate(model, "seek_full")
    assert full.low < full.value - 2e6  # an overhead of some ms
    assert full.high > full.value + 0.3e6
