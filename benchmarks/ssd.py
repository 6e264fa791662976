"""The SSD models compared with closed forms, a simulator and measured drives.

    python benchmarks/ssd.py [wa] [mqsim] [7300] [flush] [--json]

Sources of the reference figures:
  write amplification: the closed form (Luojie and Kurkoski 2011; Desnoyers 2012) and a page-level
    simulation with blocks of 256 pages (gc_write_amplification.csv)
  MQSim (CMU-SAFARI, commit 7ec40e3): 8 channels x 4 chips, tR 75 us, tPROG 750 us, 4 KiB requests
    at random, closed loop (mqsim_reference.csv; latencies are truncated to whole microseconds)
  measured drives: lumir-sliva/ublk-disksim, docs/img/data/{latency,flush,fsync}.tsv and
    docs/VALIDATION.md: measured with fio, a Micron 7300 in a virtual machine, a Samsung 850 EVO
    through NTFS.  Synced writes of other drives: lists of Ceph users, cited there.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridsim import jit
from hybridsim.foundation.codes import FUA, Op
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.jit.events import FAST, KIND_BITS, Events
from hybridsim.storage import catalog
from hybridsim.storage.devices.flash import Flash, Mapping
from hybridsim.storage.devices.ssd_timing import write_amplification
from hybridsim.storage.drives import Placement, SolidState

US, SECOND = 1000, 10**9
READ, WRITE, FLUSH = (int(op) for op in (Op.READ, Op.WRITE, Op.FLUSH))
FORCED = WRITE | FUA  # completes when it is programmed
PAGE = 4096


class Row(NamedTuple):
    """One simulated figure, and its reference."""

    name: str
    simulated: float
    reference: float

    @property
    def error(self) -> float:
        return self.simulated / self.reference - 1


# --- write amplification ------------------------------------------------------------------------

SPARE = [0.05, 0.07, 0.10, 0.15, 0.20, 0.28, 0.30, 0.40, 0.50, 1.00]
BLOCKS, BLOCK_UNITS = 2048, 1024
# Greedy collection, blocks of 256 pages, from the CSV: uniform; 80 % of writes to 20 % of space
CSV_UNIFORM = [10.3529, 7.6473, 5.5901, 3.9707, 3.1626, 2.4649, 2.3508, 1.9482, 1.7086, 1.2494]
CSV_SKEWED = [10.7298, 8.0185, 5.9549, 4.3311, 3.5110, 2.8071, 2.6896, 2.2758, 2.0255, 1.5121]


def write_all(mapping, units):
    for unit in units:
        mapping.write(0, unit)


def measured_amplification(spare, blocks, block_units, hot=1.0, of_writes=1.0, aligned=1):
    """Fill a drive, overwrite it twice at random, and measure over two more overwrites."""
    units = int(blocks * block_units / (1 + spare))
    flash = {
        "dies": 1, "program_units": 1, "block_units": block_units, "blocks": blocks,
        "mapped_units": units, "filled": 1, "read_ns": 0, "program_ns": 0, "erase_ns": 0,
    }  # fmt: skip
    mapping = Mapping.new(1, flash)
    random = np.random.default_rng(7)

    def write(count):
        for _ in range(0, count, 1_000_000):
            n = min(count, 1_000_000) // aligned
            where = random.integers(0, units // aligned, n)
            if hot < 1:
                is_hot = random.random(n) < of_writes
                at_hot = random.integers(0, int(units * hot), n)
                where = np.where(is_hot, at_hot, random.integers(int(units * hot), units, n))
            jit.fresh(write_all)(mapping, (where[:, None] * aligned + np.arange(aligned)).ravel())
        placed, moved = mapping.moves()
        return placed, moved

    before = write(2 * units)
    after = write(2 * units)
    return 1 + (after[1] - before[1]) / (after[0] - before[0])


def amplification():
    """Yield tables of write amplification."""
    rows = []
    for spare in SPARE:
        wa = measured_amplification(spare, BLOCKS, BLOCK_UNITS)
        rows.append(Row(f"over-provisioning {spare:.0%}", wa, write_amplification(spare)))
    title = f"greedy collection, uniform writes, {BLOCKS} blocks of {BLOCK_UNITS} units"
    yield f"Write amplification: {title}; reference: closed form", rows
    uniform, skewed = [], []
    for spare, even, hot in zip(SPARE, CSV_UNIFORM, CSV_SKEWED):
        name = f"over-provisioning {spare:.0%}"
        uniform.append(Row(name, measured_amplification(spare, 4096, 256), even))
        skewed.append(Row(name, measured_amplification(spare, 4096, 256, 0.2, 0.8), hot))
    yield "the same, 4096 blocks of 256 units; reference: the csv's simulation", uniform
    yield "80 % of the writes to 20 % of the space; reference: the csv's simulation", skewed
    segments = [
        Row(f"segments of {size} units", measured_amplification(0.1, 2048, 1024, aligned=size), 1)
        for size in (1, 16, 256, 1024, 4096)
    ]
    yield (
        "over-provisioning 10 %, aligned segments; reference: a log that needs no moving",
        segments,
    )


# --- closed loops on a device -------------------------------------------------------------------


@dataclass
class Job:
    """One thread of a load generator: it repeats `ops` at random offsets, in sequence."""

    ops: list[int]
    host_ns: int = 0  # between a completion and the next request
    reads: float = 0.0  # share of the requests that are replaced by reads


def closed_loop(device, jobs, count, seed=1):
    """Run jobs in parallel until `count` requests complete; return (job, op, issue, done) rows."""
    random = np.random.default_rng(seed)
    events, places = Events.new(1 << 16), random.integers(0, device.capacity_bytes // PAGE, 1 << 16)
    started: list[tuple[int, int, int]] = []
    turns = [0] * len(jobs)
    facts = []

    def issue(number, now):
        job = jobs[number]
        op = job.ops[turns[number] % len(job.ops)]
        if random.random() < job.reads:
            op = READ
        turns[number] += 1
        tag = len(started)
        started.append((number, op, now))
        length = 0 if op == FLUSH else PAGE
        offset = int(places[tag % len(places)]) * PAGE
        device.submit(now, 0, tag, op, offset, length, FAST, events)

    later: dict[int, int] = {}  # tags of waits: job
    for number in range(len(jobs)):
        issue(number, 0)
    while len(facts) < count:
        now, what = int(events.heap.time_ns[0]), int(events.heap.what[0]) >> KIND_BITS
        events.heap.pop()
        if what in later:
            issue(later.pop(what), now)
            continue
        tag = device.complete(now, what, FAST, events)
        if tag < 0:
            continue
        number, op, begin = started[tag]
        facts.append((number, op, begin, now))
        if jobs[number].host_ns:
            wait = 1 << 40 | tag
            later[wait] = number
            events.push(now + jobs[number].host_ns, FAST, wait)
        else:
            issue(number, now)
    return np.array(facts)


def latency_us(facts, warm=0.2):
    """Return latencies in microseconds, without the first `warm` share of the completions."""
    facts = facts[int(len(facts) * warm) :]
    return (facts[:, 3] - facts[:, 2]) / US


# --- MQSim --------------------------------------------------------------------------------------

# Its configuration; a chip serves one command at a time, so a die here is a chip there.
MQSIM = FlashParameters(
    dies=32, channels=8, unit_bytes=PAGE, program_units=1, interval_ns=0,
    command_ns=0, write_ns=0, read_ns=75 * US, step_ns=0, program_ns=750 * US,
    collect_ns=0, suspend_ns=10 * SECOND, flush_ns=0, is_protected=1, is_blocking=0,
    is_static=1,  # it places pages by their address
    # its 88 us at depth 1, less tR and the data at 333 MB/s
    bus_ns=700, channel_bytes_per_s=333 * 10**6,
    buffer_units=1, link_bytes_per_s=10**15, capacity_bytes=1 << 38,
)  # fmt: skip
MQSIM_READS = {1: 88, 2: 90, 4: 94, 8: 102, 16: 119, 32: 165, 64: 280, 128: 519, 256: 991}
MQSIM_MIXED = {70: 417, 50: 581, 30: 742}
MQSIM_CACHED = {1: 23, 4: 92, 16: 371, 32: 742}


def mqsim():
    """Yield tables of IOPS; those of MQSim are depth / mean latency."""
    reads, mixed, cached = [], [], []
    for depth, lat in MQSIM_READS.items():
        name, reference = f"depth {depth}", depth / lat * 1e3
        reads.append(Row(name, thousand_iops(MQSIM, [Job([READ])] * depth), reference))
    yield "MQSim, 4 KiB random reads, thousand IOPS", reads
    # without its cache a write completes when it is programmed
    uncached = MQSIM._replace(is_protected=0, buffer_units=1 << 30)
    for share, lat in MQSIM_MIXED.items():
        jobs = [Job([FORCED], reads=share / 100)] * 16
        mixed.append(Row(f"{share} % reads", thousand_iops(uncached, jobs), 16 / lat * 1e3))
    yield "MQSim, depth 16, no write cache, thousand IOPS", mixed
    # its cache's memory moves 200 MB/s: 100 million transfers a second of a byte, on both edges
    memory = MQSIM._replace(buffer_units=65_536, link_bytes_per_s=200 * 10**6)
    for depth, lat in MQSIM_CACHED.items():
        jobs = [Job([WRITE])] * depth
        cached.append(Row(f"depth {depth}", thousand_iops(memory, jobs), depth / lat * 1e3))
    yield "MQSim, 256 MB write cache, 4 KiB random writes, thousand IOPS", cached


def thousand_iops(flash, jobs):
    """Return thousands of requests per second of parallel jobs: depth / mean latency."""
    facts = closed_loop(Flash.new(1, flash, 512), jobs, 10_000 + 60 * len(jobs))
    return len(jobs) / latency_us(facts).mean() * 1e3


# --- measured drives ----------------------------------------------------------------------------

PERCENTILES = [25, 50, 75, 90, 95]
TAIL = [50, 75, 90, 95, 99, 99.5, 99.9]
STEADY_7300 = [104, 136, 255, 489, 2376, 2703, 3097]  # VALIDATION.md, "The drive in steady state"


def drive(name, **changes):
    """Return a drive of the catalog with some values replaced."""
    rows = {key: row.value for key, row in catalog.load(name).rows.items()}
    return SolidState.model_validate({"kind": "ssd", **rows, **changes})


def device(drive):
    """Return one idle drive of 4 GiB, the part of each that was measured."""
    return drive.bank(1, Placement(1 << 32))


def percentiles(facts, reference, host_us=0, ranks=PERCENTILES):
    """Compare the latencies of reads with measured ones, in microseconds."""
    latencies = latency_us(facts[facts[:, 1] == READ])
    # no interpolation: latencies may be of two kinds, with half of the requests each
    result = np.percentile(latencies, ranks, method="higher") + host_us
    pairs = zip(ranks, result, reference)
    return [Row(f"p{rank}, us", simulated, real) for rank, simulated, real in pairs]


def micron_7300():
    """Yield tables of percentiles: reads alone, and next to a writer, drive empty and full."""
    # the host: fitted to a mean read of 117 us (the datasheet's: 90) and to a write each 34 us
    reader, writer = Job([READ], host_ns=27 * US), Job([WRITE], host_ns=9 * US)
    empty = {"random_write_iops": 378_000}  # as fast as sequential writes: no collection yet
    structure = {"channels": 16, "channel_rate": "800MB/s", "gc": "closed-form"}
    for how, table in (("by datasheet", None), ("in detail", structure)):
        flash = {} if table is None else {"flash": table}
        count = 200_000 if table is None else 60_000  # the latter is slow
        spare = {} if table is None else {"flash": table | {"over_provisioning": "400%"}}
        alone = closed_loop(device(drive(M7300, **empty, **spare)), [reader], 10_000)
        rows = percentiles(alone, [87.55, 115.2, 158.7, 164.9, 166.9], 27)
        yield f"Micron 7300 PRO {how}: reads alone", rows
        beside = closed_loop(device(drive(M7300, **empty, **spare)), [reader, writer], count)
        rows = percentiles(beside, [88.58, 117.2, 162.8, 169, 171], 27)
        # two runs more, of which the share above 1 ms is known as well
        rows += percentiles(beside, [378, 1376, 2736], 27, [99, 99.5, 99.9])
        reads = beside[beside[:, 1] == READ]
        rows.append(Row("above 1 ms, %", 100 * (latency_us(reads) + 27 > 1000).mean(), 0.535))
        yield f"Micron 7300 PRO {how}: reads beside a writer, nearly empty", rows
        full = device(drive(M7300, **flash))
        facts = closed_loop(full, [reader, writer], count)
        rows = percentiles(facts, STEADY_7300, 27, TAIL)
        reads = facts[facts[:, 1] == READ]
        rows.append(Row("above 1 ms, %", 100 * (latency_us(reads) + 27 > 1000).mean(), 2.9))
        yield f"Micron 7300 PRO {how}: reads beside a writer, steady state", rows


M7300 = "micron-7300-pro-3840gb"


def flushes():
    """Yield tables of synced writes, and of reads next to them."""
    synced = Job([WRITE, FLUSH])
    rows = []
    published = {
        "samsung-pm883-960gb": 15_500,
        "samsung-pm9a3-1920gb": 70_000,
        "samsung-870-evo-1tb": (248 + 311) / 2,
        "samsung-850-evo-250gb": 317,
    }
    for name, reference in published.items():
        facts = closed_loop(device(drive(name)), [synced], 4_000)
        per_write = np.diff(facts[facts[:, 1] == WRITE][:, 2]).mean()
        rows.append(Row(f"{name}, a second", SECOND / per_write, reference))
    facts = closed_loop(device(drive(M7300)), [Job([WRITE], host_ns=9 * US)], 4_000)
    rows.append(Row(f"{M7300}, us", np.diff(facts[:, 2]).mean() / US, 34))
    yield "4 KiB write and flush, depth 1 (the 7300 and the PM9A3 need no flush)", rows
    alone = closed_loop(device(drive(EVO)), [Job([READ])], 5_000)
    reference = [86.53, 91.65, 97.79, 103.9, 108]
    yield (
        "Samsung 850 EVO: reads alone",
        [
            *percentiles(alone, reference),
            Row("reads a second", 1e6 / latency_us(alone).mean(), 10_652),
        ],
    )
    # assumed time of Windows and NTFS between two commands of the writer
    beside = Job([WRITE, FLUSH], host_ns=60 * US)
    facts = closed_loop(device(drive(EVO)), [Job([READ]), beside], 8_000)
    reads = facts[facts[:, 1] == READ]
    yield (
        "Samsung 850 EVO: reads beside a writer that flushes",
        [
            *percentiles(facts, [109.1, 2703, 2933, 3031, 3424]),
            Row("reads a second", len(reads) * SECOND / facts[-1, 3], 612),
        ],
    )


EVO = "samsung-850-evo-250gb"


def main():
    """Print the tables, or all of them as JSON."""
    parts = {"wa": amplification, "mqsim": mqsim, "7300": micron_7300, "flush": flushes}
    wanted = [word for word in sys.argv[1:] if word != "--json"] or list(parts)
    tables = {title: rows for part in wanted for title, rows in parts[part]()}
    if "--json" in sys.argv:
        as_rows = {title: [[*row, row.error] for row in rows] for title, rows in tables.items()}
        print(json.dumps(as_rows, indent=1))
        return
    for title, rows in tables.items():
        print(f"\n{title}\n{'':34}{'simulated':>11}{'reference':>11}{'error':>8}")
        for row in rows:
            print(f"{row.name:34}{row.simulated:11.2f}{row.reference:11.2f}{row.error:8.1%}")


if __name__ == "__main__":
    main()
