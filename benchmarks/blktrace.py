"""Speed of reading a blktrace capture into requests with latencies, compared with blkparse and btt.

    python benchmarks/blktrace.py [--records 10_000_000] [--folder DIR]

Generates a capture of two CPUs (per request Q G I D C, and P and U on every fourth), then runs in
sequence: hybridsim in a new process whose machine code is on disk already, and `blkparse -d`
followed by `btt -A`.  CPU time is user + system of all processes, as it is comparable on a busy
machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

BOTH = "blkparse -d, then btt -A"
RECORDS_PER_REQUEST = 5.5  # Q G I D C, and half a record of P and U
BATCH_REQUESTS = 1 << 16
STEP_NS = 20_000  # between requests
RECORD = np.dtype(
    [
        ("magic", "<u4"),
        ("sequence", "<u4"),
        ("time", "<u8"),
        ("sector", "<u8"),
        ("bytes", "<u4"),
        ("action", "<u4"),
        ("pid", "<u4"),
        ("device", "<u4"),
        ("cpu", "<u4"),
        ("error", "<u2"),
        ("pdu_len", "<u2"),
    ]
)
# The events of each request: action, category bits besides READ or WRITE, time.
QUEUE, GETRQ, PLUG, UNPLUG, INSERT, ISSUE, COMPLETE = range(7)
ACTION = np.array([1, 4, 9, 10, 12, 7, 8], np.uint32)
CATEGORY = np.array([1 << 4, 0, 0, 0, 1 << 4, 1 << 6, 1 << 7], np.uint32)
AFTER_NS = np.array([0, 600, 900, 1_300, 1_700, 2_400, 90_000], np.uint64)

# The peak is that of /proc: getrusage may return that of the parent before exec.
STREAM = """
import re, sys, time
from hybridsim.traces.trace import Trace
for chunk in Trace.read(sys.argv[2]).chunks():  # numba and the machine code are loaded
    pass
begun = time.process_time()
trace = Trace.read(sys.argv[1])
requests = completed = 0
for chunk in trace.chunks():
    requests += chunk.rows
    completed += int((chunk.complete_ns >= 0).sum())
peak_kib = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print(requests, completed, time.process_time() - begun, peak_kib)
"""


def write_cpu(path: Path, cpu: int, requests: int, seed: int) -> int:
    """Write one CPU's file; return the number of records."""
    random = np.random.default_rng(seed)
    written = 0
    late = np.zeros(0, RECORD)  # records later than the first of the next batch
    with path.open("wb") as file:
        for first in range(0, requests, BATCH_REQUESTS):
            count = min(BATCH_REQUESTS, requests - first)
            every = np.concatenate((late, batch(random, cpu, first, count)))
            every = every[np.argsort(every["time"], kind="stable")]
            last = first + count >= requests
            ready = len(every) if last else np.searchsorted(every["time"], begin_of(first + count))
            late = every[ready:]
            every["sequence"] = np.arange(written + 1, written + 1 + len(every))
            file.write(with_payloads(every[:ready]))
            written += int(ready)
    return written


def begin_of(index: int) -> int:
    """Return when a request of the first CPU begins, in ns; the other's are half a step later."""
    return 10**9 + index * STEP_NS


def batch(random: np.random.Generator, cpu: int, first: int, count: int) -> np.ndarray:
    """Return the records of a batch of requests."""
    index = np.arange(first, first + count, dtype=np.uint64)
    begin = np.uint64(10**9) + index * np.uint64(STEP_NS) + np.uint64(cpu * STEP_NS // 2)
    sector = random.integers(0, 1 << 27, count).astype(np.uint64) * np.uint64(8)
    size = random.choice(np.array([4096, 8192, 65536], np.uint32), count)
    write = random.random(count) < 0.4
    kinds = np.arange(len(ACTION))
    table = np.zeros((count, len(kinds)), RECORD)
    table["magic"] = 0x65617407
    table["time"] = begin[:, None] + AFTER_NS[kinds]
    table["sector"] = sector[:, None]
    table["bytes"] = size[:, None]
    direction = np.where(write, 2, 1).astype(np.uint32)[:, None]
    table["action"] = ACTION[kinds] | (CATEGORY[kinds] | direction) << np.uint32(16)
    table["pid"] = 1000 + cpu
    table["device"] = 8 << 20
    table["cpu"] = cpu
    plugs = (kinds == PLUG) | (kinds == UNPLUG)
    for name in ("sector", "bytes"):
        table[name][:, plugs] = 0
    table["pdu_len"][:, kinds == UNPLUG] = 8
    kept = np.ones(table.shape, bool)
    kept[np.arange(count) % 4 != 0] = ~plugs
    return table[kept]


def with_payloads(records: np.ndarray) -> bytes:
    """Return the records' bytes, each followed by its payload."""
    size = RECORD.itemsize + records["pdu_len"].astype(np.int64)
    begin = np.cumsum(size) - size
    out = np.zeros(int(size.sum()), np.uint8)
    where = begin[:, None] + np.arange(RECORD.itemsize)
    out[where] = records.view(np.uint8).reshape(len(records), RECORD.itemsize)
    out[begin[records["pdu_len"] > 0] + RECORD.itemsize + 7] = 1  # big-endian depth of 1
    return out.tobytes()


def cpu_seconds(command: list[str], **options: object) -> tuple[float, float, str]:
    """Run a command; return CPU seconds, wall-clock seconds and its output."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begun
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, wall, done.stdout


class Used(NamedTuple):
    """The time that a program took."""

    cpu_s: float
    wall_s: float


class Measured(NamedTuple):
    """The times of all programs for the same capture."""

    records: int
    requests: int
    capture_bytes: int
    reading: Used  # hybridsim, without the start of the process
    whole: Used
    peak_bytes: int  # of hybridsim
    peers: dict[str, Used]  # empty if blktrace is not installed


def measure(folder: Path, records: int) -> Measured:
    """Generate the capture in an empty folder, and read it with each program."""
    requests = round(records / RECORDS_PER_REQUEST / 2)
    written = sum(write_cpu(folder / f"sda.blktrace.{cpu}", cpu, requests, cpu) for cpu in (0, 1))
    files = sorted(folder.glob("sda.blktrace.*"))
    warm = folder / "warm"
    warm.mkdir()
    write_cpu(warm / "sda.blktrace.0", 0, 100, 0)
    ours = [sys.executable, "-c", STREAM]
    small = str(warm / "sda.blktrace.0")
    cpu_seconds([*ours, small, small])

    whole, wall, printed = cpu_seconds([*ours, str(files[0]), small])
    got, completed, stream, peak_kib = printed.split()
    assert int(got) == int(completed) == 2 * requests, printed
    return Measured(
        written,
        2 * requests,
        sum(file.stat().st_size for file in files),
        Used(float(stream), wall),
        Used(whole, wall),
        int(peak_kib) << 10,
        peers(folder) if shutil.which("blkparse") and shutil.which("btt") else {},
    )


def peers(folder: Path) -> dict[str, Used]:
    """Return the times of blkparse and btt, in sequence."""
    merged = folder / "merged"
    into = ["blkparse", "-q", "-O", "-i", "sda", "-d", str(merged)]
    parse = Used(*cpu_seconds(into, cwd=folder)[:2])
    btt = Used(*cpu_seconds(["btt", "-A", "-i", str(merged)], cwd=folder)[:2])
    both = Used(parse.cpu_s + btt.cpu_s, parse.wall_s + btt.wall_s)
    return {"blkparse -d": parse, "btt -A": btt, BOTH: both}


def show(measured: Measured) -> None:
    """Print the table."""
    size = measured.capture_bytes / 1e6
    print(f"{measured.records:,} records, {measured.requests:,} requests, {size:,.0f} MB")
    rows = {"hybridsim, reading": measured.reading, "  with start of the process": measured.whole}
    print(f"{'':<26} {'CPU s':>7} {'M records/s':>12} {'wall s':>7} {'ratio':>7}")
    for name, (used, wall) in (rows | measured.peers).items():
        speed, ratio = measured.records / used / 1e6, used / measured.reading.cpu_s
        print(f"{name:<26} {used:>7.2f} {speed:>12.1f} {wall:>7.2f} {ratio:>6.1f}x")
    print(f"hybridsim's peak memory: {measured.peak_bytes / (1 << 20):,.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="folder of the capture (default: a new one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="blktrace-") as folder:
        show(measure(Path(folder), options.records))


def prepare() -> None:
    """Set the environment so that new processes find hybridsim and keep bytecode."""
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[1]))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles numba's source


if __name__ == "__main__":
    prepare()
    main()
