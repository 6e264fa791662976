"""Requests per CPU second that the engine simulates, with full timing, in batches.

    python benchmarks/engine.py

Every figure is the best of three runs of one process with compiled code loaded, in CPU time of all
its threads.  DiskSim's figures were measured separately with -O2 (4 KiB random reads in its own
loop): they show the order of magnitude only.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

ROWS = 65_536
VOLUME_BYTES = 1 << 38
HOT_PAGES = 4_000
# Thousands of requests per CPU second of its slowest and its fastest disk (disksim_throughput.csv).
DISKSIM = {"one disk, depth 1": (46, 181), "one disk, depth 16, NCQ": (11, 46)}


class Speed(NamedTuple):
    """The result of one case."""

    requests_per_s: float  # per second of CPU time
    hit_ratio: float
    iops: float  # simulated


def batches(count, offsets, writes):
    """Yield requests in batches, as a trace is fed."""
    for start in range(0, count, ROWS):
        at = offsets[start : start + ROWS]
        none = np.full(len(at), -1)
        state = np.array([0, int(start + ROWS >= count), start])
        yield Batch(
            none, writes[start : start + ROWS], at, np.full(len(at), 4096), none, none, state
        )


def simulate(site, pages, depth, offsets, writes) -> Speed:
    """Run the requests once."""
    machine = building.machine(site.with_options(depth=depth), "closed", VOLUME_BYTES, pages)
    run = Run(machine)
    hits = done = 0
    begin = time.process_time()
    for batch in batches(len(offsets), offsets, writes):
        run.feed(batch)
        while True:
            status, facts = run.advance(loops.NEVER)
            if facts is None:
                facts = run.facts.drained()
            hits += int((facts.path == 0).sum())
            done += len(facts.number)
            if status != loops.FACTS_FULL:
                break
    spent = time.process_time() - begin
    assert done == len(offsets)
    return Speed(done / spent, hits / done, done / run.now_ns * 1e9)


def cases():
    """Yield name, scenario, pages, depth, offsets, share of writes."""
    rng = np.random.default_rng(1)
    disk = Scenario.default().with_options(backing="single", members=1)
    raid = Scenario.default()
    hot = rng.integers(0, HOT_PAGES * 16, 3_000_000) * 4096
    wide = rng.integers(0, VOLUME_BYTES // 4096, 1_000_000) * 4096
    yield "cache, nearly all hits, depth 32", raid, HOT_PAGES * 2, 32, hot, 0.0
    dm_cache = Scenario.loads('[cache]\nkind = "dm-cache"\nsize = "1GiB"')
    yield "dm-cache, nearly all hits, depth 32", dm_cache, HOT_PAGES * 2, 32, hot, 0.0
    open_cas = Scenario.loads('[cache]\nkind = "open-cas"\nsize = "1GiB"')
    lines = hot // 16 // 4096 * 4096
    yield "Open CAS, nearly all hits, depth 32", open_cas, HOT_PAGES * 2, 32, lines, 0.0
    back = Scenario.loads('[cache]\nmode = "write-back"')
    yield "write-back, hot pages, 30% writes", back, HOT_PAGES * 2, 32, hot[:1_000_000], 0.3
    bcache = Scenario.loads('[cache]\nkind = "bcache"\nsize = "1GiB"')
    yield "bcache, nearly all hits, depth 32", bcache, HOT_PAGES * 32, 32, hot, 0.0
    yield "one disk, depth 1", disk, 0, 1, wide, 0.0
    yield "one disk, depth 16, NCQ", disk, 0, 16, wide, 0.0
    yield "one disk, depth 32, NCQ", disk, 0, 32, wide, 0.0
    ssd = disk.with_options(backing_drive="samsung-pm9a3-1920gb")
    flash = Scenario.loads(
        '[backing]\nkind = "single"\n[backing.drive]\nlike = "samsung-pm9a3-1920gb"\n'
        '[backing.drive.flash]\ngc = "closed-form"\nchannels = 16\n'
    )
    yield "SSD, depth 1", ssd, 0, 1, wide, 0.0
    yield "SSD, depth 32", ssd, 0, 32, wide, 0.0
    yield "SSD, depth 32, 30% writes", ssd, 0, 32, wide, 0.3
    yield "SSD in detail, depth 32", flash, 0, 32, wide, 0.0
    yield "RAID-5 of 4, 30% writes, depth 16", raid, 0, 16, wide[:400_000], 0.3
    yield "cache, 10% of pages, all new", raid, 1000, 16, wide[:400_000], 0.0


def measured(
    wanted: Callable[[str], bool] = bool, part: float = 1.0
) -> Iterator[tuple[str, Speed]]:
    """Yield the best of three runs of each wanted case, with `part` of its requests."""
    rng = np.random.default_rng(2)
    for name, site, pages, depth, whole, share in cases():
        offsets = whole[: int(len(whole) * part)]
        writes = (rng.random(len(offsets)) < share).astype(np.uint8)
        if wanted(name):
            simulate(site, pages, depth, offsets[:1000], writes[:1000])
            yield name, max(simulate(site, pages, depth, offsets, writes) for _ in range(3))


def seconds(command, env=None):
    """Return the wall-clock seconds of a command, the best of three runs."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
        )
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    """Print the table."""
    print(f"{'':38}{'k requests':>12}{'hit':>7}{'simulated':>11}   DiskSim 4.0")
    print(f"{'':38}{'a CPU s':>12}{'ratio':>7}{'IOPS':>11}")
    for name, (speed, hit, iops) in measured():
        disksim = "{} to {} k".format(*DISKSIM[name]) if name in DISKSIM else ""
        print(f"{name:38}{speed / 1e3:12,.0f}{hit:7.1%}{iops:11,.0f}   {disksim}")
    for command in (["--help"], ["explain", "hit"], ["demo"]):
        took = seconds([sys.executable, "-m", "hybridsim", *command])
        print(f"hybridsim {' '.join(command):28}{took:12.2f} s")


if __name__ == "__main__":
    main()
