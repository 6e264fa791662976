"""Errors of the model of a hard disk, compared with real disks and with DiskSim 4.0.

    HYBRIDSIM_DATA=.../data python benchmarks/hdd.py [--json]

The tables: measured service times of four real disks (the traces of DiskSim's validation); the
throughput of one of them in DiskSim, with all schedulers and depths; measured IOPS of a consumer
disk by queue depth; and measurements of write caches.  The reference data are not part of the
project: set `HYBRIDSIM_DATA` to their folder.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import Level, Op
from hybridsim.foundation.machine_parameters import ArrayParameters
from hybridsim.jit.events import SLOW
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building
from hybridsim.storage import catalog
from hybridsim.storage.devices import HDD
from hybridsim.storage.devices.hdd_geometry import hdd_parameters
from hybridsim.storage.drives import HardDisk
from hybridsim.storage.raid import Tier
from hybridsim.traces.formats.files import zstd

DATA = Path(os.environ.get("HYBRIDSIM_DATA", Path(__file__).parents[2] / "shared/data"))
SECTOR_BYTES = 512
NEVER_NS = 10**15
ITS_TRACE = "its validation trace"  # in the source of a value that was read off the judged trace
# overheads of the 15K.5's DiskSim parameter file, in place of the fitted ones
RULE = {"seagate-cheetah-15k5": {"overhead": "0us", "write_overhead": "228us"}}
# trace, drive, overheads that are fitted, demerits of DiskSim 4.0 (% of the mean): all, reads, and
# writes, as its program with the same parameter file gives them
REAL_DISKS = [
    ("cheetah15k5", "seagate-cheetah-15k5", ("overhead", "write_overhead"), (4.86, None, None)),
    ("cheetah9LP", "seagate-cheetah-9lp", (), (2.52, 2.12, 12.31)),
    ("atlas10k", "quantum-atlas-10k", (), (6.89, 7.04, 19.66)),
    ("barracuda", "seagate-barracuda-4lp", (), (5.26, 5.37, 15.91)),
]
SCHEDULERS = {
    "FCFS": ("sptf", 1),
    "CLOOK": ("clook", 64),
    "SSTF": ("sstf", 64),
    "SPTF": ("sptf", 64),
}
# ublk-disksim's README: flush of N scattered 4 KiB writes on a ST2000DM006 takes 28 + 9.4 N ms
FLUSHES = [
    ("seagate-barracuda-st2000dm006", count, 28 + 9.4 * count) for count in (4, 16, 64, 200)
] + [("hgst-ultrastar-7k8", 8, 73.0), ("hgst-ultrastar-7k8", 64, 335.0)]


class Requests(NamedTuple):
    """The load of a disk: all requests at once, or each a gap after the previous completion."""

    op: np.ndarray
    offset: np.ndarray
    length: np.ndarray
    gap_ns: np.ndarray | None = None


class Served(NamedTuple):
    """The times of the requests, by number."""

    issue_ns: np.ndarray
    done_ns: np.ndarray

    @property
    def service_us(self):
        return (self.done_ns - self.issue_ns) / 1000


def drive(name, **changes):
    """Return a drive of the catalog with some values replaced."""
    rows = {key: row.value for key, row in catalog.load(name).rows.items()}
    return HardDisk.model_validate({"kind": "hdd", **rows, **changes})


def by_rule(name):
    """Return a drive by its parameter file alone, without the values read off the judged trace."""
    rows = catalog.load(name).rows.items()
    rows = {key: row.value for key, row in rows if ITS_TRACE not in row.source}
    return HardDisk.model_validate({"kind": "hdd", **rows, **RULE.get(name, {})})


def simulate(disk, requests, depth=1, **how):
    """Run requests on one disk; `how` replaces parameters of the device."""
    thinks = requests.gap_ns is not None
    site = Scenario.default().with_options(backing="single", members=1, depth=depth)
    machine = building.machine(site, "think" if thinks else "closed", 2**30, 0)
    bank = HDD.new(1, hdd_parameters(disk, disk.capacity_bytes, **how))
    tier = Tier.new(SLOW, ArrayParameters(Level.STRIPE, 1, 2**16), bank)
    run = Run(machine._replace(below=machine.below._replace(slow=tier)))
    count = len(requests.op)
    nothing = np.full(count, -1)
    run.feed(
        Batch(
            np.zeros(count, np.int64),
            requests.op,
            requests.offset,
            requests.length,
            np.arange(count) - 1 if thinks else nothing,
            requests.gap_ns if thinks else nothing,
            np.array([0, 1, 0]),
        )
    )
    served = Served(np.zeros(count, np.int64), np.zeros(count, np.int64))
    while True:
        status, facts = run.advance(loops.NEVER)
        facts = run.facts.drained() if facts is None else facts
        served.issue_ns[facts.number] = facts.issue_ns
        served.done_ns[facts.number] = facts.done_ns
        if status != loops.FACTS_FULL:
            return served


def table(name):
    """Return the rows of a CSV file of the reference data without its comment lines."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return csv.DictReader(line for line in lines if not line.startswith("#"))


# Real disks.


def real_trace(name):
    """Return the requests of a validation trace, and the measured service times in us."""
    text = zstd.decompress((DATA / f"disksim/{name}.trace.zst").read_bytes()).decode()
    rows = [line.split() for line in io.StringIO(text)]
    number = np.array([[float(field) for field in row[2:]] for row in rows])
    gap_ns = np.rint(number[:, 3] * 1000).astype(np.int64)
    requests = Requests(
        np.array([Op.WRITE if row[0] == "W" else Op.READ for row in rows], np.uint8),
        number[:, 0].astype(np.int64) * SECTOR_BYTES,
        number[:, 1].astype(np.int64) * SECTOR_BYTES,
        np.concatenate([[0], gap_ns[:-1]]),
    )
    return requests, number[:, 2]


def apart(simulated_us, measured_us, is_read):
    """Return the demerits of all requests, of the reads and of the writes."""
    kinds = (slice(None), is_read, ~is_read)
    return [demerit(simulated_us[kind], measured_us[kind]) for kind in kinds]


def part(requests, rows):
    return Requests(*(column[rows] for column in requests))


def demerit(simulated_us, measured_us):
    """Return the RMS difference of sorted service times, in % of the measured mean."""
    difference = np.sort(simulated_us) - np.sort(measured_us)
    return 100 * np.sqrt(np.mean(difference**2)) / measured_us.mean()


def fitted(name, keys, requests, measured_us):
    """Return the overheads with the smallest demerit on these reads and on these writes."""
    is_read = requests.op == Op.READ

    def cost(values_ms):
        changes = {key: f"{abs(ms) * 1e6:.0f}ns" for key, ms in zip(keys, values_ms, strict=True)}
        simulated_us = simulate(drive(name, **changes), requests).service_us
        kinds = (is_read, ~is_read)
        return sum(demerit(simulated_us[kind], measured_us[kind]) for kind in kinds)

    result = minimize(
        cost, [0.3, 0.6], method="Nelder-Mead", options={"xatol": 2e-3, "fatol": 1e-3}
    )
    return {key: f"{abs(ms) * 1000:.0f}us" for key, ms in zip(keys, result.x, strict=True)}


def real_disks():
    """Yield a row for each real disk: by rule, and as in the catalog, reads and writes apart.

    What is fitted is fitted to the first half of the trace; both halves are shown.
    """
    for trace, name, keys, disksim in REAL_DISKS:
        requests, measured_us = real_trace(trace)
        half = len(measured_us) // 2
        first, second = slice(0, half), slice(half, None)
        changes = fitted(name, keys, part(requests, first), measured_us[first]) if keys else {}
        whole_us = simulate(drive(name, **changes), requests).service_us
        rule_us = simulate(by_rule(name), requests).service_us
        difference_us = whole_us - measured_us
        is_read = requests.op == Op.READ
        yield {
            "disk": trace,
            "fitted": " ".join(f"{key} {value}" for key, value in changes.items()) or "nothing",
            "mean ms": measured_us.mean() / 1000,
            "simulated": whole_us.mean() / 1000,
            "1st half %": demerit(whole_us[first], measured_us[first]),
            "2nd half %": demerit(whole_us[second], measured_us[second]),
            **{
                f"{how} {kind} %": value
                for how, values in (
                    ("rule", apart(rule_us, measured_us, is_read)),
                    ("catalog", apart(whole_us, measured_us, is_read)),
                    ("DiskSim", ["-" if value is None else value for value in disksim]),
                )
                for kind, value in zip(("all", "reads", "writes"), values, strict=True)
            },
            "each %": 100 * np.sqrt(np.mean(difference_us**2)) / measured_us.mean(),
        }


# DiskSim.


def minstd(count, seed=12345):
    """Return numbers of the generator specified in the header of `disksim_reference.csv`."""
    numbers = np.zeros(count, np.int64)
    for place in range(count):
        seed = seed * 16807 % 2147483647
        numbers[place] = seed
    return numbers


def disksim_requests(row, sectors=286_749_487):
    """Return the requests of a row of DiskSim's results."""
    size_bytes, count = int(row["bytes"]), int(row["n"])
    a, b, c = minstd(3 * count).reshape(-1, 3).T
    size = size_bytes // SECTOR_BYTES
    blocks = (sectors - 4096) // size
    blocks = blocks // 10 if row["workload"] == "local" else blocks
    block = (a * 2147483647 + b) % blocks
    if row["workload"] == "seqread":
        block = np.arange(count)
    reads = {"randwrite": 0, "mix70": 70}.get(row["workload"], 100)
    op = np.where(c % 100 < reads, int(Op.READ), int(Op.WRITE)).astype(np.uint8)
    return Requests(op, block * size_bytes, np.full(count, size_bytes))


def disksim_rows():
    """Yield throughput next to DiskSim's, for the same disk without overheads and caches."""
    disk = drive("seagate-cheetah-15k5", overhead="0us", write_overhead="228us", read_ahead="0B")
    for row in table("disksim/disksim_reference.csv"):
        if row["model"] != "cheetah15k5" or row["cache"] != "off":
            continue
        requests = disksim_requests(row)
        order, window = SCHEDULERS[row["scheduler"]]
        how = {"order": building.ORDERS[order], "window": window}
        how |= {"age_limit_ns": NEVER_NS, "aging_ppm": 0}
        done_ns = np.sort(simulate(disk, requests, int(row["qd"]), **how).done_ns)
        skipped = len(done_ns) // 20
        iops = (len(done_ns) - skipped) / (done_ns[-1] - done_ns[skipped - 1]) * 1e9
        reference = float(row["iops"])
        yield {
            "workload": row["workload"],
            "KiB": int(row["bytes"]) // 1024,
            "depth": int(row["qd"]),
            "scheduler": row["scheduler"],
            "DiskSim": reference,
            "simulated": iops,
            "error %": 100 * (iops / reference - 1),
        }


# A consumer disk.


def random_requests(disk, count=8000, seed=3):
    blocks = disk.capacity_bytes // 4096
    offsets = np.random.default_rng(seed).integers(0, blocks, count) * 4096
    return Requests(np.zeros(count, np.uint8), offsets, np.full(count, 4096))


def depths():
    """Yield IOPS of random reads by depth."""
    disk = drive("seagate-barracuda-st2000dm006")
    for row in table("devices/real_st2000dm006_qd.csv"):
        if "(real)" not in row["device"]:
            continue
        done_ns = simulate(disk, random_requests(disk), int(row["qd"])).done_ns
        iops, reference = len(done_ns) / done_ns.max() * 1e9, float(row["iops"])
        yield {
            "depth": int(row["qd"]),
            "measured": reference,
            "simulated": iops,
            "error %": 100 * (iops / reference - 1),
        }


# Write caches.


def flush_ms(disk, count, rounds=40):
    """Return the mean time of a flush after `count` scattered writes of 4 KiB, in ms."""
    offsets = np.random.default_rng(5).integers(0, disk.capacity_bytes // 4096, rounds * count)
    op = np.tile([*[int(Op.WRITE)] * count, int(Op.FLUSH)], rounds).astype(np.uint8)
    is_write = op == Op.WRITE
    offset = np.zeros(len(op), np.int64)
    offset[is_write] = offsets * 4096
    served = simulate(disk, Requests(op, offset, np.where(is_write, 4096, 0)))
    return served.service_us[~is_write].mean() / 1000


def flushes():
    """Yield the times of flushes."""
    for name, count, reference in FLUSHES:
        simulated = flush_ms(drive(name), count)
        yield {
            "drive": name,
            "writes": count,
            "measured ms": reference,
            "simulated": simulated,
            "error %": 100 * (simulated / reference - 1),
        }


def absorbed():
    """Yield the rate of sequential writes, and the data that a write cache absorbs."""
    disk = drive("hgst-ultrastar-7k8")
    for depth, reference in ((1, 78.0), (4, 205.0)):
        count, size = 400, 2**20
        offsets = disk.capacity_bytes // 2 // size * size + np.arange(count) * size
        writes = Requests(np.ones(count, np.uint8), offsets, np.full(count, size))
        done_ns = simulate(disk, writes, depth, write_cache_bytes=0).done_ns
        rate = count * size / done_ns.max() * 1e3
        yield {
            "what": f"1 MiB writes in sequence, cache off, depth {depth}, MB/s",
            "measured": reference,
            "simulated": rate,
            "error %": 100 * (rate / reference - 1),
        }
    disk = drive("seagate-barracuda-st2000dm006")
    requests = random_requests(disk, 400)
    served = simulate(disk, requests._replace(op=np.ones(400, np.uint8)))
    quick = int(np.argmax(served.service_us > 2000))
    yield {
        "what": "scattered 4 KiB writes absorbed before one waits, KiB",
        "measured": 1024.0,
        "simulated": 4.0 * quick,
        "error %": 100 * (4 * quick / 1024 - 1),
    }


TABLES = {  # title: its rows
    "Real disks: RMS difference of sorted service times": real_disks,
    "DiskSim 4.0, Cheetah 15K.5 without cache: IOPS": disksim_rows,
    "ST2000DM006, random reads of 4 KiB: IOPS": depths,
    "Flush after scattered writes of 4 KiB": flushes,
    "Other facts of write caches": absorbed,
}


def shown(value):
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def main():
    """Print the tables."""
    if not DATA.is_dir():
        sys.exit(f"no reference data in {DATA}: set HYBRIDSIM_DATA to their folder")
    tables = {title: list(rows()) for title, rows in TABLES.items()}
    if "--json" in sys.argv[1:]:
        print(json.dumps(tables, indent=1))
        return
    for title, rows in tables.items():
        cells = [list(rows[0]), *([shown(value) for value in row.values()] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        print(f"\n{title}")
        for line in cells:
            print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
        errors = [abs(row["error %"]) for row in rows if "error %" in row]
        if errors:
            print(f"largest error {max(errors):.1f} %")


if __name__ == "__main__":
    main()
