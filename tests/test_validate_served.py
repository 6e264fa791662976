"""`hybridsim serve` in the lab: what is before the disks, its counters, and the twin of a run."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from nbd_disk import Disk
from serving_checker import Client

from hybridsim.answers.comparison import Row
from hybridsim.answers.measurements.measurement import CACHE, Name
from hybridsim.answers.measurements.samples import OfServe
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS
from hybridsim.serving import nbd
from validate import experiment, layout
from validate.cli import main
from validate.errors import MissingError
from validate.lab import fronts, running
from validate.report.bounds import judged
from validate.twin import page
from validate.twin.folders import record

RESULTS = Path(__file__).parents[1] / "validate" / "results"
EXPERIMENTS = RESULTS.parent / "experiments"
TEXT = """
name = "p"
[cache]
kind = "page"
size = "32MiB"
policy = "learned"
fill_when = "foreground"
[origin]
size = "1GiB"
[load]
duration = "30s"
job = "[a]\\nrw=randread\\n"
"""
CALIBRATING = TEXT + "[collect]\ncalibrate = true\n"
MIB = 1 << 20


def test_the_guest_has_the_cached_disk_only():
    what = experiment.parse(TEXT)
    assert [(each.name, each.size_bytes) for each in fronts.disks(what)] == [("cached", 1 << 30)]
    (front,) = fronts.of(what)
    assert front.words == (
        "--fast", "nbd+unix:///?socket=fast.sock", "--slow", "nbd+unix:///?socket=slow.sock",
        "--policy", "learned", "--mode", "write-through", "--page", "65536B",
        "--set=cache.fill_when=foreground",
    )  # fmt: skip
    served = running.disks(what, 0)
    assert [each.words for each in served] == [
        f"slow=array:{1 << 30}", f"fast=ssd:{33 * MIB}",
    ]  # fmt: skip
    assert fronts.command(what)[5:] == [
        "experiment.toml", "--device", "{cached}", "--out", "{out}/run",
    ]  # fmt: skip


def test_each_disk_of_a_calibration_is_behind_a_serve_that_caches_nothing():
    what = experiment.parse(CALIBRATING)
    assert [(each.name, each.size_bytes) for each in fronts.disks(what)] == [
        ("cached", 1 << 30), ("bare-fast", 33 * MIB),
    ]  # fmt: skip
    for front, disk in zip(fronts.of(what), ("slow", "fast"), strict=True):
        assert f"nbd+unix:///?socket={disk}.sock" in front.words
        assert "--set=cache.sequential_cutoff=512B" in front.words
        assert front.file_bytes == 2 * MIB
    assert fronts.command(what)[-2:] == ["--bare-fast", "{bare-fast}"]


def test_serve_runs_between_disks_and_client_and_ends_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size in (("slow", 8 * MIB), ("fast", 3 * MIB)):
        Path(f"{name}.img").write_bytes(bytes(size))
        Disk(f"{name}.img", f"{name}.sock").start()
    words = ("--fast", fronts._uri("fast"), "--slow", fronts._uri("slow"), "--policy", "lru")
    front = fronts.Front("cached", words)
    command = fronts.server(["sleep", "600"], ["slow", "fast"], [front])
    running = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(RESULTS.parents[1])})
    try:
        until = time.monotonic() + 300
        while not Path("cached.sock").exists():
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        client = Client("cached.sock", 8 * MIB)
        assert client.ask(nbd.WRITE, 0, 4096, b"x" * 4096) == (0, b"")
        assert client.ask(nbd.READ, 0, 4096) == (0, b"x" * 4096)
    finally:
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    whole = json.loads(Path("cached.served.json").read_text())
    assert whole["requests"]["write"]["n"] == 1
    with pytest.raises(SystemExit, match="was not served"):
        fronts._wait_for(Path("other.sock"), running, fronts.Event())


def test_counters_of_serve_are_on_the_clock_of_the_guest(tmp_path):
    names = ("read_hits", "read_misses", *fronts.COLUMNS[3:])
    series = {name: [0, 10, 20] for name in names}
    series |= {"read_bypasses": [0, 1, 2], "time_ns": [0, 2 * 10**9, 3 * 10**9]}
    (tmp_path / "lab/disks").mkdir(parents=True)
    document = {"series": series, "start_unix_ns": 999 * 10**9}
    (tmp_path / "lab/disks/cached.served.json").write_text(json.dumps(document))
    fronts.collect(tmp_path, zero_unix_s=1000.5)
    text = (tmp_path / layout.SERVED).read_text()
    assert text.splitlines()[1:] == [
        "0.500 10 9 1 10 10 10 10", "1.500 20 18 2 20 20 20 20",
    ]  # fmt: skip
    assert OfServe().detect("", text)
    counters = OfServe().read("", text).counters
    assert counters["misses"].time_ns.tolist() == [5 * 10**8, 15 * 10**8]
    assert counters["pages_present"].value.tolist() == [10, 20]
    assert LEVELS & counters.keys() == {"pages_present"}
    with pytest.raises(MissingError, match="are missing"):
        fronts.collect(tmp_path / "lab", 0.0)


@pytest.mark.parametrize("text", ["uptime hits misses writes\n", "uptime hits misses a\n1.0 2 3\n"])
def test_damaged_samples_are_refused(text):
    with pytest.raises(MeasurementError):
        OfServe().read("x", text)


def test_only_disks_of_the_lab_are_written_to(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(TEXT)
    blocks = [each for each in Path("/sys/block").iterdir() if not (each / "serial").exists()]
    if not blocks:
        pytest.skip("no block device here")
    assert main(["served", "p.toml", "--device", f"/dev/{blocks[0].name}"]) == 3
    assert "no disk of the lab" in capsys.readouterr().err


def test_requests_beyond_qemus_wait_in_the_guest():
    assert page.reaching("[a]\niodepth=32\n[b]\n iodepth = 4\n") == (
        "[a]\niodepth=12\n[b]\n iodepth = 4\n"
    )
    assert page.reaching("[a]\niodepth=32\n") == "[a]\niodepth=16\n"
    assert page.reaching("[a]\niodepth=8\n") == "[a]\niodepth=8\n"


def test_a_run_on_file_has_the_cache_that_was_served_and_its_own_calibration():
    run = record(RESULTS / "served-calibration-r2")
    assert run.cache == {
        "kind": "page", "mode": "write-through", "size": f"{32 * MIB}B", "page": "65536B",
        "admission": "learned", "replacement": "learned", "sequential_cutoff": "512B",
    }  # fmt: skip
    assert {bare.results.parents[1] for bare in (*run.slow, *run.fast)} == {run.folder}
    assert [job.depth for job in run.jobs] == [16]


def test_the_counters_of_a_page_cache_are_checked():
    for counter in ("hits", "misses", "fills_done", "evictions"):
        row = Row(Name("", CACHE, counter), 1000.0, 900.0, 0.1, 0.05)
        assert judged(row, None, "page").is_met is False
        assert judged(row, None, "bcache").is_met is None


def test_each_load_of_the_suite_is_that_of_a_kernel_cache():
    loads = {}
    for path in EXPERIMENTS.glob("*.toml"):
        if path.stem != "machine":
            what = experiment.load(path)
            loads.setdefault((what.load, what.cache.size_bytes), set()).add(what.cache.kind)
    assert len([kinds for kinds in loads.values() if "page" in kinds]) >= 5
    assert all(len(kinds) > 1 for kinds in loads.values() if "page" in kinds)
