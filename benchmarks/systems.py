"""The cloud systems of the reference documents: published figures compared with their presets.

    python benchmarks/systems.py [--quick] [--json]

Every figure of DigitalOcean, Alibaba Cloud, Oracle Cloud and Google Compute Engine in the reference
documents.  The load is fio's: a fixed queue depth, random (each block once per pass) or sequential.
All rows of a system use one set of parameters, the preset's.  `rule`: follows from published rules;
`fit`: a parameter was fitted to this row, or measured in it; `check`: follows from parameters
fitted to other rows; `open`: no stated rule explains the row, and no parameter was adjusted to it.
"""

from __future__ import annotations

import argparse
import json
from typing import NamedTuple

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

ROWS = 65_536
GIB, MIB, KIB = 2**30, 2**20, 2**10
FILE_BYTES = 10 * GIB
TARGET = 0.05


class Load(NamedTuple):
    """A load of fio."""

    way: str  # randread, randwrite, read, write
    block_bytes: int
    depth: int
    requests: int


class Figure(NamedTuple):
    """One published figure."""

    system: str
    drive: dict  # keys that differ from the preset's drive
    load: Load
    measure: str
    published: float
    basis: str  # rule, fit, check, open
    note: str = ""


def simulate(preset, drive, load):
    """Run a load on a preset; return its seconds, and latencies in ns in order of completion."""
    changes = "".join(f"{key} = {json.dumps(value)}\n" for key, value in drive.items())
    site = Scenario.loads(f'preset = "{preset}"\n[backing.drive]\n{changes}')
    machine = building.machine(site.with_options(depth=load.depth), "closed", FILE_BYTES, 0)
    run = Run(machine)
    latencies = []
    for batch in batches(load):
        run.feed(batch)
        while True:
            status, facts = run.advance(loops.NEVER)
            facts = run.facts.drained() if facts is None else facts
            latencies.append(facts.done_ns - facts.issue_ns)
            if status != loops.FACTS_FULL:
                break
    return run.now_ns / 1e9, np.concatenate(latencies)


def batches(load):
    """Yield the requests of a load in batches."""
    blocks = np.arange(load.requests) % (FILE_BYTES // load.block_bytes)
    if load.way.startswith("rand"):
        rng = np.random.default_rng(1)
        order = rng.permutation(FILE_BYTES // load.block_bytes)
        blocks = order[blocks]
    op = np.uint8("write" in load.way)
    for start in range(0, load.requests, ROWS):
        at = blocks[start : start + ROWS] * load.block_bytes
        none = np.full(len(at), -1)
        state = np.array([0, int(start + ROWS >= load.requests), start])
        yield Batch(
            none,
            np.full(len(at), op),
            at,
            np.full(len(at), load.block_bytes),
            none,
            none,
            state,
        )


def measured(measure, load, seconds, latencies_ns):
    """Return one measure of a run."""
    if measure == "IOPS":
        return load.requests / seconds
    if measure == "MB/s":
        return load.requests * load.block_bytes / seconds / 1e6
    if measure == "MiB/s":
        return load.requests * load.block_bytes / seconds / MIB
    if measure == "mean us":
        return latencies_ns.mean() / 1e3
    if measure == "stdev us":
        return latencies_ns.std() / 1e3
    if measure == "mean ms":
        return latencies_ns.mean() / 1e6
    return np.percentile(latencies_ns, float(measure[1:].split()[0])) / 1e6  # "p99 ms"


def digitalocean():
    """System B."""
    name, nothing = "digitalocean-volume", {}
    for block, iops, rate in (
        (4, 5000, 20),
        (16, 5000, 80),
        (32, 5000, 160),
        (64, 3200, 200),
        (256, 800, 200),
    ):
        load = Load("randread", block * KIB, 64, min(iops, 5000) * 60)
        yield Figure(name, nothing, load, "IOPS", iops, "rule", "rounded in the document")
        yield Figure(name, nothing, load, "MB/s", rate, "rule", "rounded in the document")
    yield Figure(
        name, nothing, Load("randread", 4 * KIB, 4, 300_000), "IOPS", 5000, "rule", "at its cap"
    )
    yield Figure(
        name, nothing, Load("randread", 256 * KIB, 2, 48_000), "MB/s", 200, "rule", "at its cap"
    )
    alone = Load("randread", 4 * KIB, 1, 213_840)
    yield Figure(name, nothing, alone, "IOPS", 1782, "fit", "read latency")
    yield Figure(name, nothing, alone, "mean us", 556, "fit", "read latency")
    yield Figure(name, nothing, alone, "stdev us", 2189, "fit", "read latency")
    for way in ("randread", "randwrite"):
        load = Load(way, 4 * KIB, 128, 600_000)
        yield Figure(name, nothing, load, "IOPS", 5000, "rule")
    run = Load("randwrite", MIB, 32, 22_937)
    yield Figure(name, nothing, run, "MB/s", 195_468 * KIB / 1e6, "rule")
    yield Figure(name, nothing, run, "IOPS", 190.9, "rule", "22,937 in 120.16 s")
    yield Figure(name, nothing, run, "mean ms", 167.48, "rule")
    for percent, time_ms in ((50, 167), (95, 178), (99, 306), (99.9, 420)):
        note = "write latency" if percent < 99 else "stalls"
        yield Figure(name, nothing, run, f"p{percent} ms", time_ms, "fit", note)
    for percent, time_ms in ((1, 101), (5, 155), (10, 159), (90, 172), (99.5, 363)):
        note = "after a stall" if percent == 1 else ""
        yield Figure(name, nothing, run, f"p{percent} ms", time_ms, "shared", note)
    fast = "digitalocean-volume-high-cpu"
    load = Load("randread", 4 * KIB, 128, 600_000)
    yield Figure(fast, nothing, load, "IOPS", 6000, "rule", "the document: 6,000 and more")
    load = Load("randwrite", MIB, 32, 30_000)
    yield Figure(fast, nothing, load, "MB/s", 300, "rule")


def alibaba():
    """System C."""
    one = Load("randread", 4 * KIB, 128, 300_000)
    for system, gib, iops in (
        ("alibaba-ultra", 399, 4992),
        ("alibaba-ultra", 400, 5000),
        ("alibaba-ssd", 500, 16_800),
        ("alibaba-ssd", 774, 25_000),
    ):
        load = one._replace(requests=iops * 60)
        yield Figure(system, {"capacity": f"{gib}GiB"}, load, "IOPS", iops, "rule", f"{gib} GiB")
    for system, rate in (("alibaba-ultra", 140), ("alibaba-ssd", 300)):
        load = Load("read", 64 * KIB, 64, 200_000)
        yield Figure(system, {}, load, "MiB/s", rate, "fit", "the cap is this figure")
    for way, block, depth, iops, rate, basis, note in (
        ("randwrite", 4, 128, 23_400, 91.6, "fit", "the host"),
        ("randwrite", 64, 128, 8704, 544, "open", "half of what its disks allow"),
        ("randread", 4, 128, 23_500, 91.8, "fit", "the host"),
        ("randread", 64, 128, 16_400, 1023, "predicted", "unevenly spread over the disks"),
        ("write", 64, 64, 14_400, 901, "fit", "write latency"),
        ("read", 64, 64, 17_900, 1118, "predicted", "eight disks from one"),
    ):
        load = Load(way, block * KIB, depth, FILE_BYTES // block // KIB)
        yield Figure("alibaba-8x-ultra", {}, load, "IOPS", iops, basis, note)
        yield Figure("alibaba-8x-ultra", {}, load, "MiB/s", rate, basis, note)


def oracle():
    """System D."""
    small = Load("randread", 4 * KIB, 128, 500_000)
    large = Load("randread", 256 * KIB, 64, 20_000)
    yield Figure("oracle-balanced-50gb", {}, small, "IOPS", 3000, "rule")
    yield Figure("oracle-balanced-50gb", {}, large, "MB/s", 24, "rule")
    yield Figure("oracle-balanced-1tb", {}, small, "IOPS", 25_000, "rule")
    note = "the most of its time: this figure"
    yield Figure("oracle-balanced-1tb", {}, large, "MB/s", 320, "fit", note)
    many = Load("randread", 4 * KIB, 1024, 2_500_000)
    yield Figure(
        "oracle-balanced-20x1tb", {}, many, "IOPS", 400_000, "fit", "the host; disks: 500,000"
    )
    note = "the host; 30 balanced disks: 750,000"
    yield Figure("oracle-higher-30x800gb", {}, many, "IOPS", 800_000, "fit", note)


def google():
    """System E."""
    for way, iops in (("randread", 680_000), ("randwrite", 360_000)):
        load = Load(way, 4 * KIB, 1024, 2_500_000)
        yield Figure(
            "google-local-ssd-4x", {}, load, "IOPS", iops, "rule", "4 x one device's, recalled"
        )


SYSTEMS = (digitalocean, alibaba, oracle, google)


def figures(quick=False, wanted=lambda figure: True):
    """Yield the wanted figures with their simulated values."""
    runs = {}
    for system in SYSTEMS:
        for figure in filter(wanted, system()):
            load = figure.load
            if quick:
                load = load._replace(requests=min(load.requests, 60_000))
            key = (figure.system, json.dumps(figure.drive), load)
            if key not in runs:
                runs[key] = simulate(figure.system, figure.drive, load)
            yield figure, measured(figure.measure, load, *runs[key])


def words(figure):
    """Return the load of a figure as text."""
    load = figure.load
    block = f"{load.block_bytes // KIB}k" if load.block_bytes < MIB else "1M"
    return f"{load.way:9} {block:>4}  depth {load.depth:<4}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="at most 60,000 requests a row")
    parser.add_argument("--json", action="store_true", help="one object a figure instead")
    options = parser.parse_args()
    rows = []
    for figure, value in figures(options.quick):
        error = value / figure.published - 1
        rows.append({**figure._asdict(), "simulated": value, "error": error})
        if not options.json:
            mark = "" if abs(error) <= TARGET else " *"
            print(
                f"{figure.system:28} {words(figure)} {figure.measure:8}{value:11,.1f}"
                f"{figure.published:11,.1f}{error:+8.1%}{mark:2}  {figure.basis:5} {figure.note}"
            )
    if options.json:
        print(json.dumps([{**row, "load": row["load"]._asdict()} for row in rows], indent=1))
        return
    print(f"within {TARGET:.0%}, by what they rest on (benchmarks/reference.py explains it):")
    for basis in dict.fromkeys(row["basis"] for row in rows):
        errors = [abs(row["error"]) for row in rows if row["basis"] == basis]
        print(f"  {basis:10}{sum(error <= TARGET for error in errors):3} of {len(errors)}")


if __name__ == "__main__":
    main()
