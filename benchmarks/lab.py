"""The lab's disks under fio in a guest compared with their model; and the overhead of a guest.

python benchmarks/lab.py [--seconds 8]
"""

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from hybridsim.foundation.codes import Op
from hybridsim.scenario import Scenario
from validate.lab import guest, running, serve
from validate.lab.machine import Disk

GIB = 1 << 30
DEPTHS = (1, 4, 16)
SIZES = {"slow": ("array", 8 * GIB), "fast": ("ssd", GIB)}
BLOCK = 4096


def alone(name, depth, requests=3000):
    """Return the model's requests per second and mean latency in ms at a queue depth."""
    part, size = SIZES[name]
    live, _ = serve.model(Scenario.load(running.MACHINE), part, size)
    places = random.Random(1)
    begun, total_ns, done = {}, 0, 0

    def submit(now_ns, tag):
        begun[tag] = now_ns
        live.submit(now_ns, tag, Op.READ, places.randrange(size // BLOCK) * BLOCK, BLOCK)

    for tag in range(depth):
        submit(0, tag)
    while done < requests:
        for tag, at_ns in live.advance(live.next_ns):
            total_ns += at_ns - begun[tag]
            done += 1
            submit(at_ns, tag)
    return done / live.now_ns * 1e9, total_ns / done / 1e6


def in_guest(seconds, out):
    """Measure the same with fio; return the guest, and fio's figures by disk and depth."""
    disks = [Disk("slow", SIZES["slow"][1], True), Disk("fast", SIZES["fast"][1], True, False)]
    served = [running.Served(disk, SIZES[disk.name][0]) for disk in disks]
    commands = [
        ["fio", f"--name={name}-{depth}", f"--filename={{{name}}}", "--rw=randread", "--direct=1",
         f"--bs={BLOCK}", "--ioengine=libaio", f"--iodepth={depth}", "--norandommap",
         "--time_based", f"--runtime={seconds}", "--output-format=json",
         f"--output={{out}}/{name}-{depth}.json"]
        for name in SIZES for depth in DEPTHS
    ]  # fmt: skip
    words = [sys.executable, "-m", "validate.lab.serve", str(running.MACHINE)]
    server = [*words, *(each.words for each in served)]
    done = guest.run(commands, disks, out, server=server)
    result = {}
    for name in SIZES:
        for depth in DEPTHS:
            reads = json.loads((out / f"{name}-{depth}.json").read_text())["jobs"][0]["read"]
            result[name, depth] = reads["iops"], reads["lat_ns"]["mean"] / 1e6
    return done, result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=8)
    seconds = parser.parse_args().seconds
    empty = tempfile.mkdtemp()
    one = guest.run([["true"]], [], Path(empty))
    print(
        f"a guest ({one.accelerator}): up {one.boot_s:.1f} s, from start to end {one.wall_s:.1f} s"
    )
    out = Path(tempfile.mkdtemp())
    _, result = in_guest(seconds, out)
    print(f"load of the host {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    print("disk depth | IOPS model  guest | mean ms model  guest")
    for (name, depth), (iops, mean_ms) in result.items():
        model_iops, model_ms = alone(name, depth)
        print(
            f"{name} {depth:5} | {model_iops:10.0f} {iops:6.0f} | {model_ms:13.2f} {mean_ms:6.2f}"
        )
    for name in SIZES:
        model = json.loads((out / "disks" / f"{name}.model.json").read_text())
        late = ", ".join(f"p{p} {us:.0f}" for p, us in model["late_us"].items())
        mean_us = model["mean_late_us"]
        print(f"{name}: {model['requests']} completions late by {mean_us:.0f} us; {late}")


if __name__ == "__main__":
    main()
