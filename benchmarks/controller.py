"""Effect of a RAID controller's DRAM, next to closed-form expectations.

    python benchmarks/controller.py [--json]

RAID-5 of four 7,200 rpm disks, chunks of 64 KiB, closed loop.  Expectations:
* reads and writes at depth 1: limited by DRAM and link, at most the array's streaming rate (reads
  of 16 MiB at depth 2);
* random writes: the latency of DRAM and link until the high-water mark; then at least the rate of
  the array alone at a depth of `max_destages` (sorting by address may be faster);
* sequential writes: no reads for parity.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

KIB, MIB = 1 << 10, 1 << 20
VOLUME_BYTES = 1 << 40
SECOND = 10**9
DRAM = Scenario.loads("[backing.controller]\n")
PLAIN = Scenario.default()


def replay(site, depth, offsets, length, write):
    """Return latencies in order of issue, the last completion, and the machine at the end."""
    n = len(offsets)
    none, zero = np.full(n, -1), np.zeros(n, np.int64)
    op, lengths = np.full(n, write, np.uint8), np.full(n, length)
    machine = building.machine(site.with_options(depth=depth), "closed", VOLUME_BYTES, 0)
    run = Run(machine, facts_rows=n + 1)
    run.feed(Batch(zero, op, offsets, lengths, none, zero, np.array([0, 1, 0])))
    while run.advance(loops.NEVER)[0] != loops.FINISHED:
        pass
    facts = run.facts.drained()
    order = np.argsort(facts.number)
    return (facts.done_ns - facts.issue_ns)[order], int(facts.done_ns.max()), run.machine


def rate(length, count, end_ns):
    """Return MB/s."""
    return length * count / end_ns * SECOND / 1e6


def dram_rate(length):
    """Return the MB/s that one request at a time gets from DRAM."""
    dram = DRAM.backing.controller
    return rate(length, 1, dram.latency_ns + length * SECOND // dram.rate)


def streaming_rate():
    """Return the MB/s of the array alone."""
    offsets = np.arange(256) * 16 * MIB
    _, end, _ = replay(PLAIN, 2, offsets, 16 * MIB, 0)
    return rate(16 * MIB, len(offsets), end)


def sequential(what, write, sizes, streaming):
    """Yield name, simulated and expected figures of sequential requests, one at a time."""
    for length in sizes:
        n = 2048 * MIB // length
        for label, site in (("no DRAM", PLAIN), ("DRAM", DRAM)):
            few = n // 16 if site is PLAIN else n
            _, end, machine = replay(site, 1, np.arange(few) * length, length, write)
            name = f"sequential {what} {length // KIB} KiB, depth 1, {label}"
            expected = min(dram_rate(length), streaming) if site is DRAM else None
            yield f"{name}: MB/s", rate(length, few, end), expected
            if write:
                disks = machine.below.slow.device.totals(end)
                share = disks["bytes_read"] / disks["bytes_written"]
                yield "  bytes read per byte written to disks", share, 0 if site is DRAM else None


def random_writes():
    """Yield the figures of small writes before and after DRAM is full."""
    depth, dram = 16, DRAM.backing.controller
    offsets = np.random.default_rng(1).permutation(VOLUME_BYTES // 4096)[:250_000] * 4096
    latency, _, _ = replay(DRAM, depth, offsets, 4096, 1)
    quick = latency[: dram.share_of_lines(dram.high_water)]
    expected = (dram.latency_ns + 4096 * SECOND // dram.rate) / 1e3
    yield "random write 4 KiB, depth 16, DRAM not full: p50 us", np.median(quick) / 1e3, expected
    _, alone_end, _ = replay(PLAIN, dram.max_destages, offsets[:50_000], 4096, 1)
    alone = 50_000 / alone_end * SECOND
    yield "  full: IOPS", depth / latency[-50_000:].mean() * SECOND, alone


def main():
    """Print the table."""
    streaming = streaming_rate()
    rows = [
        *sequential("read", 0, (4 * KIB, 64 * KIB, MIB), streaming),
        *random_writes(),
        *sequential("write", 1, (4 * KIB, MIB), streaming),
    ]
    if "--json" in sys.argv:
        print(json.dumps([dict(zip(("case", "simulated", "expected"), row)) for row in rows]))
        return
    for name, simulated, expected in rows:
        reference = "" if expected is None else f"{expected:12,.1f}"
        print(f"{name:54}{simulated:12,.1f}{reference}")


if __name__ == "__main__":
    main()
