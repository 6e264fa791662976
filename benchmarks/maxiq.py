"""The figures of Adaptec's MaxIQ guide (2009), compared with those of its presets.

    python benchmarks/maxiq.py [--quick] [--json] [--learned PRICE]

Rows A1 to A5 of the document, and what it says of the learning phase: as fast as ordinary
storage.  The cache (admission, fills, SSD, controller) is the same in all rows; disks and host may
differ, as the machines did.  Loads are random reads of 4 KiB at a fixed queue depth: fio's with
every block once per run (A2, A3), all others with independent draws.  The cache is warm when the
IOPS first reach 90% of their level, which the host limits.

With --learned the cache uses the learned policy at this price of a fill, in disk reads; all else is
as in the presets.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

ROWS = 65_536
BLOCK = 4096
GIB = 2**30
SSD_KIB = 31_119_616
SECOND = 10**9
DISKS = (2, 3, 4, 8, 16)
MINUTES = {  # A1: hot spot in GB: minutes until steady, by number of disks
    32: (30, 20, 15, 10, 5),
    64: (55, 40, 30, 15, 10),
    96: (85, 55, 45, 25, 15),
    128: (110, 75, 55, 30, 15),
}
WARM, ENOUGH_HITS = 0.9, 0.998
FILLS = "each miss is followed by the fill of its page"
POLICY: dict[str, str | float] = {}  # replaces that of the presets


class Row(NamedTuple):
    """One published figure."""

    row: str
    what: str
    published: str
    simulated: float
    lowest: float
    highest: float
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the simulated figure lies within the target."""
        return self.lowest <= self.simulated <= self.highest


def drawn(data_bytes: int, count: int) -> Iterator[np.ndarray]:
    """Yield `count` random offsets of blocks in chunks, or (0) without end."""
    rng = np.random.default_rng(1)
    blocks = data_bytes // BLOCK
    done = 0
    while not count or done < count:
        size = min(ROWS, count - done) if count else ROWS
        done += size
        yield rng.integers(0, blocks, size) * BLOCK


def each_once(data_bytes: int, runs: int) -> Iterator[np.ndarray]:
    """Yield offsets as fio does: every block once per run, each run in the same order."""
    order = np.random.default_rng(1).permutation(data_bytes // BLOCK) * BLOCK
    for _ in range(runs):
        yield from (order[start : start + ROWS] for start in range(0, len(order), ROWS))


class Load:
    """Reads at a fixed queue depth on a machine; `done_ns` are the completions so far."""

    def __init__(self, site: Scenario, depth: int, data_bytes: int) -> None:
        machine = building.machine(
            site.with_options(depth=depth), "closed", data_bytes, site.cache.pages(data_bytes)
        )
        self.run = Run(machine)
        self.done_ns: list[np.ndarray] = []
        self.issued = 0

    def feed(self, places: np.ndarray, is_last: bool = False) -> float:
        """Read these offsets; return the share of hits among the reads that completed."""
        none = np.full(len(places), -1)
        length = np.full(len(places), BLOCK)
        state = np.array([0, int(is_last), self.issued])
        reads = np.zeros(len(places), np.uint8)
        self.run.feed(Batch(none, reads, places, length, none, none, state))
        self.issued += len(places)
        hits = completed = 0
        while True:
            status, facts = self.run.advance(loops.NEVER)
            facts = self.run.facts.drained() if facts is None else facts
            self.done_ns.append(facts.done_ns.copy())
            hits += int(facts.pages_hit.sum())
            completed += len(facts.done_ns)
            if status != loops.FACTS_FULL:
                return hits / max(completed, 1)

    def iops(self, seconds: int = 1) -> np.ndarray:
        """Return the IOPS of each interval, without the last one, which may be incomplete."""
        done = np.concatenate(self.done_ns)
        return np.bincount(done // (seconds * SECOND))[:-1] / seconds

    def warm_s(self) -> int:
        """Return the second in which the IOPS first reach 90% of their level."""
        curve = self.iops()
        return int(np.argmax(curve >= WARM * np.median(curve[-10:])))


def system(name: str, disks: int = 0, ssds: int = 1, refuses: bool = False) -> Scenario:
    """Return a preset with these numbers of disks and SSDs; `refuses`: nothing is ever cached."""
    members = f"members = {disks}" if disks else ""
    chosen = {"admission": "touches", "touches": 255} if refuses else POLICY
    policy = "\n".join(f"{key} = {json.dumps(value)}" for key, value in chosen.items())
    return Scenario.loads(
        f'preset = "{name}"\n[backing]\n{members}\n'
        f'[cache]\nmembers = {ssds}\nsize = "{ssds * SSD_KIB}KiB"\n{policy}\n'
    )


def until_warm(site: Scenario, depth: int, data_bytes: int) -> Load:
    """Read at random until nearly all reads are hits, or ten reads per block."""
    load = Load(site, depth, data_bytes)
    for places in drawn(data_bytes, 10 * data_bytes // BLOCK):
        if load.feed(places) > ENOUGH_HITS:
            break
    return load


def table_of_times(quick: bool) -> Iterator[Row]:
    """A1: a hot spot as large as the SSDs, on several numbers of disks."""
    for gigabytes, minutes in MINUTES.items():
        for disks, published in zip(DISKS, minutes, strict=True):
            if quick and gigabytes != 32:
                continue
            ssds = gigabytes // 32
            site = system("adaptec-maxiq-sata", disks, ssds)
            warm_s = until_warm(site, 64, ssds * SSD_KIB * 1024).warm_s()
            simulated = 5 * math.ceil(warm_s / 300)
            off = max(5, 0.15 * published)
            note = f"{warm_s / 60:.1f}; both rounded up to 5"
            yield Row(
                "A1",
                f"{gigabytes} GB, {disks} disks, min",
                str(published),
                simulated,
                published - off,
                published + off,
                note,
            )


def learning(row: str, name: str, load: Load) -> Iterator[Row]:
    """The learning phase of a run, beside the same disks without a cache."""
    alone = Load(system(name, refuses=True), 64, 8 * GIB)
    alone.feed(next(each_once(8 * GIB, 1)))
    disks_iops = float(alone.iops()[2:].mean())
    mean = float(load.iops()[: load.warm_s()].mean())
    note = f"{disks_iops:,.0f} IOPS of the disks alone"
    yield Row(row, "learning / disks", "about 1", mean / disks_iops, 0.8, 1.25, note)
    first = float(load.iops(3)[0])
    yield Row(row, "first 3 s / disks", "about 1", first / disks_iops, 0.8, 1.25, FILLS)


def five_runs(quick: bool) -> Iterator[Row]:
    """A2: one fio job, five times."""
    published = (3775, 17_869, 17_898, 17_800, 17_884)[: 2 if quick else 5]
    load = Load(system("adaptec-maxiq-3x-sata"), 64, 8 * GIB)
    blocks = 8 * GIB // BLOCK
    parts = list(each_once(8 * GIB, len(published)))
    for number, places in enumerate(parts):
        load.feed(places, number + 1 == len(parts))
    done = np.sort(np.concatenate(load.done_ns))
    ends = [0, *(int(done[(run + 1) * blocks - 1]) for run in range(len(published)))]
    for run, iops in enumerate(published):
        simulated = blocks * SECOND / (ends[run + 1] - ends[run])
        share = 0.2 if run == 0 else 0.03
        note = "" if run == 0 else "the host's cap, measured in these runs"
        bounds = iops * (1 - share), iops * (1 + share)
        yield Row("A2", f"run {run + 1}, IOPS", f"{iops:,}", simulated, *bounds, note)
    yield from learning("A2", "adaptec-maxiq-3x-sata", load)


def eight_disks(quick: bool) -> Iterator[Row]:
    """A3: the same job on eight fast disks."""
    load = Load(system("adaptec-maxiq-8x-sas"), 64, 8 * GIB)
    for places in each_once(8 * GIB, 1):
        load.feed(places)
    curve = load.iops()
    first = float(load.iops(3)[0])  # fio averaged over 3 s
    note = "the host's cap, measured in this run"
    yield Row("A3", "IOPS at first", "about 1,000", first, 700, 1300)
    yield Row("A3", "knee, s", "40 to 60", load.warm_s(), 40, 60)
    level = float(np.median(curve[-10:]))
    yield Row("A3", "plateau, IOPS", "23,000", level, 0.95 * 23_000, 1.05 * 23_000, note)
    yield from learning("A3", "adaptec-maxiq-8x-sas", load)


def sysbench(quick: bool) -> Iterator[Row]:
    """A4: 13 runs of 20 s; the document does not specify the disks: those of A3 are assumed."""
    for gib, note in ((16, "16 GB in its command line"), (8, "8 GB in its text")):
        load = Load(system("adaptec-maxiq-8x-sas"), 16, gib * GIB)
        while not load.done_ns or load.run.now_ns < 270 * SECOND:
            load.feed(next(drawn_on(load, gib * GIB)))
        runs = load.iops(20)[:13]
        peak = int(np.argmax(runs >= 0.95 * runs.max())) + 1
        yield Row("A4", "peak from run", "6", peak, 5, 7, note)


def drawn_on(load: Load, data_bytes: int) -> Iterator[np.ndarray]:
    """Yield random offsets, which depend on the reads issued so far."""
    rng = np.random.default_rng(load.issued)
    while True:
        yield rng.integers(0, data_bytes // BLOCK, ROWS) * BLOCK


def application(quick: bool) -> Iterator[Row]:
    """A5: an application with a hot spot of 30 GB on three disks."""
    site = system("adaptec-maxiq-3x-sata")
    load = until_warm(site, 64, 30 * 10**9)
    note = "its load is not documented: random reads at depth 64"
    yield Row("A5", "steady after, min", "20 to 30", load.warm_s() / 60, 20, 30, note)


def rows(quick: bool = False) -> Iterator[Row]:
    """Yield all rows."""
    for part in (table_of_times, five_runs, eight_disks, sysbench, application):
        yield from part(quick)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a part of A1 and A2")
    parser.add_argument("--json", action="store_true", help="one object a row instead")
    parser.add_argument("--learned", type=float, metavar="PRICE", help="decide by this policy")
    options = parser.parse_args()
    if options.learned is not None:
        POLICY.update(admission="learned", replacement="learned", write_price=options.learned)
    result = []
    for row in rows(options.quick):
        result.append(row)
        if not options.json:
            mark = " " if row.is_met else "*"
            print(
                f"{row.row} {row.what:24}{row.published:>12}{row.simulated:12,.1f} {mark}", row.note
            )
    if options.json:
        print(json.dumps([row._asdict() | {"met": row.is_met} for row in result], indent=1))
    else:
        print(f"within the target: {sum(row.is_met for row in result)} of {len(result)}")


if __name__ == "__main__":
    main()
