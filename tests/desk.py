"""A folder in which the files exist that the examples of the documents name, and their tools."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from captures import TRACES, cpu_files
from click.testing import CliRunner

from hybridsim.cli import cli

ROOT = Path(__file__).parent.parent


def furnish(folder):
    """Write the files into an empty folder."""
    for name, data in cpu_files("loop_ext4_buffered_meta").items():
        for when in ("sda", "yesterday"):
            (folder / f"{when}.blktrace.{name.split('.')[2]}").write_bytes(data)
    (folder / "traces").symlink_to(TRACES)
    (folder / "site.toml").write_text('[cache]\nsize = "20%"\n', encoding="utf-8")
    grid = "[sweep]\ntraces = ['sda.blktrace.0']\n[vary]\ncache.size = ['5%', '20%']\n"
    (folder / "grid.toml").write_text(grid, encoding="utf-8")
    job = "[a]\nrw=randread\nsize=1G\nruntime=1\nioengine=libaio\niodepth=4\ndirect=1\n"
    (folder / "job.fio").write_text(job, encoding="utf-8")
    latency = {"min": 1, "max": 2, "mean": 1.5, "stddev": 0.1, "percentile": {"99.000000": 2}}
    figures = {"io_bytes": 23347200, "bw_bytes": 23347200, "iops": 5700.0, "runtime": 1000}
    done = {"jobname": "a", "read": {**figures, "total_ios": 5700, "clat_ns": latency}}
    for name in ("real", "simulated"):
        results = {"fio version": "fio-3.33", "jobs": [done]}
        (folder / f"{name}.json").write_text(json.dumps(results), encoding="utf-8")
    row = {"disk_device": "sda", "r/s": 90.0, "w/s": 10.0, "r_await": 8.0, "w_await": 20.0}
    reports = {"sysstat": {"hosts": [{"statistics": [{"disk": [row]}]}]}}
    (folder / "iostat.json").write_text(json.dumps(reports), encoding="utf-8")
    iostat = "Device r/s rkB/s r_await w/s wkB/s w_await %util\nsda 90 800 8 10 80 20 60\n"
    (folder / "iostat.txt").write_text(iostat, encoding="utf-8")
    sar = "09:00:00 DEV tps rkB/s wkB/s await %util\n09:10:00 sdb 100.0 800.0 80.0 9.5 60.0\n"
    (folder / "sar.txt").write_text(sar, encoding="utf-8")
    event = " fio-1 [001] ..... 9.000100: block_bio_queue: 8,16 R 8 + 8 [fio]\n"
    (folder / "events.txt").write_text(event, encoding="utf-8")
    idle = {"io_bytes": 0, "runtime": 0, "total_ios": 0, "clat_ns": {**latency, "mean": 0}}
    whole = {"jobs": [{**done, "write": idle}]}
    (folder / "fio.json").write_text(json.dumps(whole), encoding="utf-8")
    recorded = (folder / "sda.blktrace.0").read_bytes()
    for cut, server in enumerate(("web1/sda", "web2/sda", "db1/sda")):  # of different lengths
        (folder / server).parent.mkdir(exist_ok=True)
        whole = recorded[: len(recorded) - cut * 48 * 100]
        (folder / f"{server}.blktrace.0").write_bytes(whole)
    checked = ROOT / "tests" / "data" / "check"
    shutil.copy(checked / "dm-cache-writeback.json", folder / "promise.json")
    samples = (checked / "dm-cache-writeback.log").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate((samples[0], samples[-1]), 1):
        (folder / f"counters-{number}.txt").write_text(f"{line}\n", encoding="utf-8")
    csv = str(folder / "sda.csv.zst")
    CliRunner().invoke(cli, ["trace", "convert", str(folder / "sda.blktrace.0"), csv])
    # The tools of the examples, by their commands here.
    tools = folder / "tools"
    tools.mkdir()
    script(tools / "hybridsim", f'exec "{sys.executable}" -m hybridsim "$@"')
    script(tools / "blktrace", f'cat "{folder}/sda.blktrace.0"')  # a stream; needs no root


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def run(line, folder, **settings):
    environment = os.environ | {
        "PATH": f"{folder}/tools:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        **settings,
    }
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
    )
