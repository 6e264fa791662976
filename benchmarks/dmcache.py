"""Simulated dm-cache against the kernel's: its counters at every sample of `dmsetup status`.

    HYBRIDSIM_DATA=shared/data python benchmarks/dmcache.py [--json] [--late SECONDS] [RUN ...]

The runs (kernel-caches/dmcache-*; Linux 6.1.192 in a guest on a shared host) read with fio 3.33 at
a queue depth of 32, from an 80/20 hot spot.  fio's offsets are reproduced exactly.  The
simulated machine serves the same reads, also at a depth of 32, on devices with the parameters that
the runs describe.  Its only other inputs are the times when the cache was created and fio started.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fio_offsets import zoned

from hybridsim.caches import DmCache
from hybridsim.engine.machine import Machine, Run
from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import DmMode, Level, Replay
from hybridsim.foundation.machine_parameters import ArrayParameters, HddParameters, SsdParameters
from hybridsim.jit.events import FAST, SLOW
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import Source
from hybridsim.storage.devices import HDD, SSD
from hybridsim.storage.raid import Tier

SECOND, MS, US = 10**9, 10**6, 10**3
GIB, KIB = 1 << 30, 1 << 10
ORIGIN_BYTES = 8 * GIB
ZONES = [(80, 3), (20, 97)]
DEPTH = 32
COUNTERS = ("promotions", "demotions", "used_blocks", "read_hits", "read_misses")
REQUESTS_MAX = 400_000

# Estimated time from the creation of the cache to the first sample: the first demotions come 60 s
# after the creation, and came 59.2 to 59.8 s after the first sample.
LATE_S = 0.4
# Requests that the emulator keeps outstanding at the origin with its four spindles.
IN_FLIGHT = 16
# The SSD takes 250 us, one request at a time; 2,551 a second were measured through the guest.
SSD_NS = SECOND // 2551


@dataclass
class Measured:
    """One run: its parameters, the start of fio, and the samples, in ns since the creation."""

    block_bytes: int
    blocks: int
    threshold_bytes: int
    begin_ns: int
    samples: list[dict[str, int]]

    @classmethod
    def load(cls, folder: Path, late_s: float = LATE_S) -> Measured:
        """Read dmcache-status.log, and estimate the start of fio from its log."""
        rows = [line.split() for line in (folder / "dmcache-status.log").read_text().splitlines()]
        created_s = float(rows[0][0]) - late_s
        samples = []
        for row in rows:
            numbers = (row[13], row[12], row[7].split("/")[0], row[8], row[9])
            sample = dict(zip(COUNTERS, map(int, numbers)))
            samples.append({"time_ns": round((float(row[0]) - created_s) * SECOND), **sample})
        first, last = rows[0], rows[-1]
        threshold = int(last[last.index("migration_threshold") + 1])
        blocks = int(first[7].split("/")[1])
        begin = began_ns(folder / "fio_iops.1.log", samples)
        return cls(int(first[6]) * 512, blocks, threshold * 512, begin, samples)

    def column(self, name: str) -> np.ndarray:
        """Return one counter at all samples."""
        return np.array([sample[name] for sample in self.samples], float)


def issued(samples: list[dict[str, int]]) -> np.ndarray:
    """Return the reads issued up to each sample."""
    return np.array([one["read_hits"] + one["read_misses"] for one in samples], float)


def began_ns(log: Path, samples: list[dict[str, int]]) -> int:
    """Return the start of fio: the shift for which its log matches the samples best."""
    ends_ms, iops = np.loadtxt(log, delimiter=",", usecols=(0, 1)).T
    done = np.cumsum(iops * np.diff(ends_ms, prepend=0) / 1000)
    times = np.array([sample["time_ns"] for sample in samples]) / MS

    def error(begin_ms: float) -> float:
        since = times - begin_ms
        inside = (since > 1000) & (since < ends_ms[-1])
        result = np.interp(since, np.r_[0, ends_ms], np.r_[0, done]) + DEPTH
        return float(np.abs(result - issued(samples))[inside].mean())

    return min(range(0, 4000, 10), key=error) * MS


def machine(measured: Measured) -> Machine:
    """Build the machine of the run: four spindles, an SSD that serves one request at a time."""
    spindle = ORIGIN_BYTES // 4
    track = 1_250_000 // 512 * 512  # 150 MB/s at 7200 rpm
    tracks = -(-spindle // track)
    seek_ms = [0] + [0.5 + 7.5 * (way / tracks) ** 0.5 for way in range(1, tracks + 2)]
    moves = np.round(np.array(seek_ms) * MS).astype(np.int64)
    disk = HddParameters(
        rev_ns=60 * SECOND // 7200, zone_byte=[0], zone_track=[0], zone_track_bytes=[track],
        zone_angle_ns=[0], zone_skew_ns=[0], zone_cylinder_skew_ns=[0], surfaces=1, seek_shift=0,
        move_ns=moves, write_move_ns=moves, read_ns=0, hit_ns=0, write_ns=0, write_hit_ns=0,
        window=1, age_limit_ns=0, capacity_bytes=spindle, read_ahead_bytes=0, read_behind_bytes=0,
    )  # fmt: skip
    flash = SsdParameters(
        dies=1, unit_bytes=GIB, command_ns=SSD_NS, interval_ns=SSD_NS, write_interval_ns=SSD_NS,
        read_ns=0, program_ns=0, scatter_ns=0, suspend_ns=0, write_ns=0, buffer_ns=0,
        link_bytes_per_s=500 * 10**6, capacity_bytes=GIB,
    )  # fmt: skip
    bank = HDD.new(4, disk)
    slow = Tier.new(SLOW, ArrayParameters(Level.STRIPE, 4, 64 * KIB, queue_depth=IN_FLIGHT), bank)
    fast = Tier.new(FAST, ArrayParameters(Level.STRIPE, 1, 64 * KIB), SSD.new(1, flash))
    sizes = (measured.block_bytes, measured.blocks, DmMode.WRITETHROUGH)
    cache = DmCache.new(DmCacheParameters(*sizes, measured.threshold_bytes), ORIGIN_BYTES)
    return Machine.new(Source.new(int(Replay.CLOSED), DEPTH), cache, slow, fast)


def simulate(measured: Measured) -> list[dict[str, int]]:
    """Return the simulated counters at the times of the samples."""
    count = REQUESTS_MAX
    at = np.fromiter(itertools.islice(zoned(ORIGIN_BYTES, 4 * KIB, ZONES), count), np.int64, count)
    none = np.full(count, -1, np.int64)
    run = Run(machine(measured), facts_rows=count + 1)
    run.machine.clock[0] = measured.begin_ns
    ops, lengths = np.zeros(count, np.uint8), np.full(count, 4 * KIB)
    run.feed(Batch(none, ops, at, lengths, none, none, np.array([0, 1, 0])))
    result = []
    for sample in measured.samples:
        run.advance(sample["time_ns"])
        totals = run.machine.cache.totals()
        result.append({"time_ns": sample["time_ns"], **{name: totals[name] for name in COUNTERS}})
    return result


def errors(measured: Measured, result: list[dict[str, int]]) -> dict[str, np.ndarray]:
    """Return the error of each counter at each sample, as a share of its last value."""
    off = {}
    for name in COUNTERS:
        ours = np.array([sample[name] for sample in result], float)
        real = measured.column(name)
        off[name] = np.abs(ours - real) / max(real.max(), 1)
    return off


def print_table(measured: Measured, result: list[dict[str, int]]) -> None:
    """Print a dozen samples, measured and simulated."""
    print(f"{'s':>8}" + "".join(f"{counter:>24}" for counter in COUNTERS))
    rows = list(zip(measured.samples, result))
    for real, ours in [*rows[:: max(1, len(rows) // 12)], rows[-1]]:
        cells = (f"{real[name]:>12,} {ours[name]:>10,} " for name in COUNTERS)
        print(f"{real['time_ns'] / SECOND:8.1f}" + "".join(cells))


def main() -> None:
    """Print the comparison: measured, simulated, and the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--late", type=float, default=LATE_S, metavar="SECONDS")
    arguments = parser.parse_args()
    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "kernel-caches"
    if not data.is_dir():
        sys.exit(f"no {data}: set HYBRIDSIM_DATA to the folder of the reference data")
    for folder in sorted(data.glob("dmcache-*")):
        if arguments.runs and folder.name not in arguments.runs:
            continue
        measured = Measured.load(folder, arguments.late)
        result = simulate(measured)
        off = errors(measured, result)
        worst = {name: round(float(one.max()), 4) for name, one in off.items()}
        if arguments.json:
            print(json.dumps({"run": folder.name, "worst": worst, "simulated": result}))
            continue
        print(folder.name)
        print_table(measured, result)
        for name, one in off.items():
            share = f"within 5% at {(one <= 0.05).sum()} of {len(one)} samples"
            print(f"  {name:12} off by at most {worst[name]:6.1%} of its end, {share}")


if __name__ == "__main__":
    main()
