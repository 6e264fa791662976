"""Simulated bcache against the kernel's: its counters at every sample of `stats_total`.

    HYBRIDSIM_DATA=shared/data python benchmarks/bcache.py [--json] [RUN ...]

The runs (kernel-caches/bcache-*; Linux 6.1.192 in a guest on a shared host) are by fio 3.33 at a
queue depth of 32, from an 80/20 hot spot.  fio's offsets are reproduced exactly.  The simulated
machine serves the same requests, also at a depth of 32, on devices with the parameters that the
runs describe.  Its only other inputs are the times when the cache was attached and fio started.

The second number of each pair is from the same machine with requests at the times of fio's log: the
remaining difference is then not due to the pace of a busy host.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import dmcache
import numpy as np
from dmcache import DEPTH, GIB, KIB, MS, ORIGIN_BYTES, SECOND, ZONES
from fio_offsets import mixed_reads, zoned

from hybridsim.caches import Bcache
from hybridsim.caches.bcache.inserts import INTERVAL_NS
from hybridsim.engine.machine import Machine, Run
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import SYNC, BcacheMode, Op, Replay
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import Source

COUNTERS = ("cache_hits", "cache_misses", "bypassed_sectors")
REQUESTS_MAX = 200_000
SIZES = {"k": KIB, "M": KIB * KIB, "G": GIB}


@dataclass
class Measured:
    """One run: its settings, the start of fio, and the samples, in ns since the cache's attach."""

    settings: dict[str, str]
    begin_ns: int
    samples: list[dict[str, int]]
    pace: tuple[np.ndarray, np.ndarray]  # ns since the start of fio, requests completed

    @classmethod
    def load(cls, folder: Path) -> Measured:
        """Read bcache-stats.log and env.txt, and estimate the start of fio from its log."""
        env = (folder / "env.txt").read_text()
        settings = dict(re.findall(r"^(\w+)=(.*)$", env, re.M))
        rows = [line.split() for line in (folder / "bcache-stats.log").read_text().splitlines()[1:]]
        samples = []
        for row in rows:
            numbers = (int(row[1]), int(row[2]), sectors(row[5]))
            sample = dict(zip(COUNTERS, numbers))
            samples.append({"time_ns": round(float(row[0]) * SECOND), **sample})
        attached = attached_ns(samples)
        for sample in samples:
            sample["time_ns"] -= attached
        log = folder / "fio_iops.1.log"
        ends_ms, done = completed(log, [0, 1])
        return cls(settings, began_ns(log, samples), samples, (ends_ms * MS, done))

    def column(self, name: str) -> np.ndarray:
        """Return one counter at all samples."""
        return np.array([sample[name] for sample in self.samples], float)

    @property
    def mode(self) -> BcacheMode:
        """The mode, which sysfs puts in brackets."""
        return BcacheMode[re.search(r"\[(\w+)\]", self.settings["cache_mode"])[1].upper()]

    @property
    def has_writes(self) -> bool:
        """Whether the load had writes."""
        return bool(self.column("bypassed_sectors").any())


def sectors(text: str) -> int:
    """Return a size of sysfs, which has one decimal, in sectors."""
    return round(float(text[:-1]) * SIZES[text[-1]]) // 512


def steps(samples: list[dict[str, int]]) -> list[int]:
    """Return the indices of the samples at which counters changed."""
    pairs = itertools.pairwise(samples)
    return [i + 1 for i, (a, b) in enumerate(pairs) if a["cache_misses"] != b["cache_misses"]]


def attached_ns(samples: list[dict[str, int]]) -> int:
    """Return a time from which all steps are whole intervals, as precise as the samples."""
    ends = [(samples[i - 1]["time_ns"], samples[i]["time_ns"]) for i in steps(samples)]
    after = max(low - i * INTERVAL_NS for i, (low, _) in enumerate(ends, 1))
    before = min(high - i * INTERVAL_NS for i, (_, high) in enumerate(ends, 1))
    return (after + before) // 2


def completed(log: Path, directions: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return times in ms and the requests completed by then: reads (0), writes (1)."""
    rows = np.loadtxt(log, delimiter=",", usecols=(0, 1, 2))
    parts = [rows[rows[:, 2] == one, :2].T for one in directions]
    ends_ms = parts[0][0]
    done = np.zeros(len(ends_ms))
    for times, iops in parts:
        if len(times):
            sums = np.cumsum(iops * np.diff(times, prepend=0) / 1000)
            done += np.interp(ends_ms, times, sums)
    return np.r_[0, ends_ms], np.r_[0, done]


def began_ns(log: Path, samples: list[dict[str, int]]) -> int:
    """Return the start of fio: the shift for which its log of reads matches the steps best."""
    ends_ms, done = completed(log, [0])
    after = [samples[i] for i in steps(samples)]
    times = np.array([round(one["time_ns"] / INTERVAL_NS) * INTERVAL_NS / MS for one in after])
    counted = np.array([one["cache_hits"] + one["cache_misses"] for one in after])

    def error(begin_ms: float) -> float:
        result = np.interp(times - begin_ms, ends_ms, done)
        return float(np.abs(result - counted).mean())

    return min(range(0, 15_000, 10), key=error) * MS


def machine(measured: Measured, paced: bool) -> Machine:
    """Build the machine of the run; the devices are those of the dm-cache runs."""
    settings = measured.settings
    parameters = BcacheParameters(
        512 * KIB,
        1024,
        512,
        measured.mode,
        sequential_cutoff_bytes=0,
        congested_read_us=int(settings["congested_read_threshold_us"]),
        congested_write_us=int(settings["congested_write_threshold_us"]),
    )
    cache = Bcache.new(parameters)
    built = dmcache.machine(dmcache.Measured(64 * KIB, 4096, 0, 0, []))._replace(cache=cache)
    return built._replace(source=Source.new(int(Replay.OPEN), 1)) if paced else built


def simulate(measured: Measured, paced: bool = False) -> list[dict[str, int]]:
    """Return the simulated counters of sysfs at the times of the samples."""
    count = int(measured.pace[1][-1]) if paced else REQUESTS_MAX
    at = np.fromiter(itertools.islice(zoned(ORIGIN_BYTES, 4 * KIB, ZONES), count), np.int64, count)
    ops = np.zeros(count, np.uint8)
    if measured.has_writes:
        reads = np.fromiter(itertools.islice(mixed_reads(70), count), bool, count)
        ops[~reads] = Op.WRITE | SYNC
    none, lengths = np.full(count, -1, np.int64), np.full(count, 4 * KIB)
    arrival = none
    if paced:  # each at the completion of the request DEPTH before it
        arrival = np.interp(np.arange(count) - DEPTH, measured.pace[1], measured.pace[0])
        arrival = arrival.astype(np.int64) + measured.begin_ns
    run = Run(machine(measured, paced), facts_rows=count + 1)
    run.machine.clock[0] = measured.begin_ns
    run.feed(Batch(arrival, ops, at, lengths, none, none, np.array([0, 1, 0])))
    result = []
    for sample in measured.samples:
        run.advance(sample["time_ns"])
        totals = run.machine.cache.totals()
        counters = {name: totals[f"sysfs_{name}"] for name in COUNTERS}
        result.append({"time_ns": sample["time_ns"], **counters})
    return result


def errors(measured: Measured, result: list[dict[str, int]]) -> dict[str, np.ndarray]:
    """Return the error of each counter at each sample, as a share of its last value."""
    off = {}
    for name in COUNTERS:
        ours = np.array([sample[name] for sample in result], float)
        real = measured.column(name)
        if real.any() or ours.any():
            off[name] = np.abs(ours - real) / max(real.max(), 1)
    return off


def print_table(measured: Measured, *simulated: list[dict[str, int]]) -> None:
    """Print the samples before counters change: measured, simulated, simulated at its pace."""
    print(f"{'s':>8}" + "".join(f"{counter:>32}" for counter in COUNTERS))
    for i in [*(step - 1 for step in steps(measured.samples)), -1]:
        print(f"{measured.samples[i]['time_ns'] / SECOND:8.1f}", end="")
        for name in COUNTERS:
            three = [measured.samples[i][name], *(result[i][name] for result in simulated)]
            print("  " + "".join(f"{number:>10,}" for number in three), end="")
        print()


def main() -> None:
    """Print the comparison: measured, simulated, and the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "kernel-caches"
    if not data.is_dir():
        sys.exit(f"no {data}: set HYBRIDSIM_DATA to the folder of the reference data")
    for folder in sorted(data.glob("bcache-*")):
        if arguments.runs and folder.name not in arguments.runs:
            continue
        measured = Measured.load(folder)
        result = {"at depth 32": simulate(measured), "at its pace": simulate(measured, paced=True)}
        off = {how: errors(measured, rows) for how, rows in result.items()}
        if arguments.json:
            worst = {
                how: {name: float(one.max()) for name, one in each.items()}
                for how, each in off.items()
            }
            print(json.dumps({"run": folder.name, "worst": worst, "simulated": result}))
            continue
        print(f"{folder.name}: fio began {measured.begin_ns / SECOND:.2f} s after attaching")
        print_table(measured, *result.values())
        for how, each in off.items():
            for name, one in each.items():
                share = f"within 5% at {(one <= 0.05).sum()} of {len(one)} samples"
                print(f"  {how}, {name:16} off by at most {one.max():6.1%} of its end, {share}")


if __name__ == "__main__":
    main()
