"""Hits without devices and the curve of LRU: speed and misses compared with libCacheSim.

    python benchmarks/hits.py [--requests 20000000] [--share 0.1] [--peer PYTHON] [POLICY ...]
    python benchmarks/hits.py --exact

PYTHON is an interpreter with `libcachesim` (PyPI), which is not a dependency of this project.  The
trace has independent draws of a Zipf distribution (2 million objects, alpha 1) in libCacheSim's
binary format; both programs read the same file, and their times include this.  Times are CPU
seconds of the process, the best of three runs, with the two programs in turn.  The misses are
compared too.

--exact compares the misses with those in $HYBRIDSIM_DATA/cache-policies/miss_ratios.csv instead.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

OBJECTS = 2_000_000
SEED = 42
ROUNDS = 3
ROWS = 1 << 16
# policy: (its name in libCacheSim, target ratio of the speeds)
PEERS = {
    "fifo": ("FIFO", 3.0),
    "clock": ("Clock", 3.0),
    "lru": ("LRU", 3.0),
    "sieve": ("Sieve", 3.0),
    "s3-fifo": ("S3FIFO", 3.0),
    "slru": ("SLRU", 1.5),
    "2q": ("TwoQ", 1.5),
    "lfu": ("LFU", 1.5),
    "arc": ("ARC", 1.5),
    "lirs": ("LIRS", 1.5),
    "lhd": ("LHD", 1.5),
    "w-tinylfu": ("WTinyLFU", 1.5),
    "belady": ("Belady", 1.5),
}
PEER_RUN = """
import json, sys, time
import libcachesim
path, name, pages = sys.argv[1], sys.argv[2], int(sys.argv[3])
reader = libcachesim.TraceReader(
    trace=path,
    trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE,
    reader_init_params=libcachesim.ReaderInitParam(ignore_obj_size=True),
)
cache = getattr(libcachesim, name)(cache_size=pages)
begin = time.process_time()
ratio, _ = cache.process_trace(reader)
print(json.dumps([time.process_time() - begin, ratio]))
"""


def record():
    import numpy as np

    return np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])


def write_trace(path, requests, alpha=1.0):
    """Write requests with ranks drawn by cumulated weights, a million at a time, and next uses."""
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(SEED))
    weight = np.cumsum(np.arange(1, OBJECTS + 1, dtype=np.float64) ** -alpha)
    weight /= weight[-1]
    million = 1_000_000
    draws = (rng.random(min(million, requests - at)) for at in range(0, requests, million))
    ranks = np.concatenate([np.searchsorted(weight, each, side="right") for each in draws])
    order = np.argsort(ranks, kind="stable")
    again = ranks[order[1:]] == ranks[order[:-1]]
    rows = np.zeros(requests, record())
    rows["next"] = -1
    rows["next"][order[:-1][again]] = order[1:][again] + 1
    rows["time"] = np.arange(requests) // 10_000
    rows["id"] = ((ranks.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) >> 1
    rows["size"] = 4096
    rows.tofile(path)
    return len(np.unique(ranks))


def pages_of(path):
    """Yield the page numbers of the trace in chunks."""
    import numpy as np

    rows = np.memmap(path, record(), "r")
    for start in range(0, len(rows), ROWS):
        yield rows["id"][start : start + ROWS].astype(np.int64)


def our_run(path, policy, pages):
    from hybridsim import hits

    begin = time.process_time()
    (result,) = hits(pages_of(path), pages * 4096, policy)
    return time.process_time() - begin, result.page_misses


def our_curve(path):
    from hybridsim import miss_ratio_curve

    begin = time.process_time()
    curve = miss_ratio_curve(pages_of(path))
    return time.process_time() - begin, curve


class Zipf(NamedTuple):
    """The trace, and the size of the cache."""

    path: Path
    requests: int
    distinct: int
    pages: int


class Race(NamedTuple):
    """The best runs of a policy; figures of the peer are None if it was not run."""

    seconds: float  # of CPU
    misses: int
    peer_s: float | None
    peer_misses: int | None


def zipf(path, share, requests=0):
    """Return a trace; it is generated if a number of requests is specified."""
    import numpy as np

    if requests:
        write_trace(path, requests)
    count = path.stat().st_size // record().itemsize
    distinct = len(np.unique(np.concatenate(list(pages_of(path)))))
    return Zipf(path, count, distinct, int(distinct * share))


def race(trace, policy, peer=None):
    """Run a policy in both programs, in turn."""
    compile_for(policy)
    ours, theirs = [], []
    misses = peer_misses = None
    for _ in range(ROUNDS):
        spent, misses = our_run(trace.path, policy, trace.pages)
        ours.append(spent)
        if peer:
            command = [peer, "-c", PEER_RUN, str(trace.path), PEERS[policy][0], str(trace.pages)]
            spent, ratio = json.loads(subprocess.check_output(command, text=True))
            theirs.append(spent)
            peer_misses = round(ratio * trace.requests)
    return Race(min(ours), misses, min(theirs, default=None), peer_misses)


def compile_for(policy):
    """Compile the machine code of a policy."""
    import numpy as np

    from hybridsim import hits

    hits(np.arange(100), 10 * 4096, policy)


def curve_s(trace):
    """Return CPU seconds of the exact curve of LRU for all sizes, and of a run with one size."""
    our_curve(trace.path)
    curve = min(our_curve(trace.path)[0] for _ in range(ROUNDS))
    return curve, min(our_run(trace.path, "lru", trace.pages)[0] for _ in range(ROUNDS))


def speed(arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.trace or f"{folder}/zipf.bin")
        trace = zipf(path, arguments.share, 0 if arguments.trace else arguments.requests)
        print(f"{trace.requests:,} requests, {trace.distinct:,} objects, cache of {trace.pages:,}")
        heads = f"{'peer':>8}{'ratio':>8}{'target':>8}{'misses':>12}"
        print(f"{'':12}{'M requests / CPU s':>20}{heads}")
        for policy in arguments.policies or PEERS:
            print_row(policy, trace.requests, race(trace, policy, arguments.peer))
        if not arguments.policies:
            spent, alone = curve_s(trace)
            print(f"exact curve of LRU: {spent:.2f} CPU s, {spent / alone:.1f} single LRU runs")


def print_row(policy, requests, result):
    """Print the row of a policy."""
    row = f"{policy:12}{requests / result.seconds / 1e6:20.1f}"
    if result.peer_s:
        same = "equal" if result.misses == result.peer_misses else f"peer {result.peer_misses:,}"
        ratio, target = result.peer_s / result.seconds, PEERS[policy][1]
        row += f"{requests / result.peer_s / 1e6:8.1f}{ratio:8.1f}{target:8.1f}"
        row += f"{result.misses:12,}  {same}"
    else:
        row += f"{result.misses:36,}"
    print(row, flush=True)


def exact():
    """Compare the misses with those of the reference data."""
    import numpy as np

    from hybridsim import Trace, hits

    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data"))
    traces = {
        "OLTP": (data / "traces" / "OLTP.lis.zst", 512),
        "cp_4k": (data / "traces" / "cloudPhysicsIO.vscsi.zst", 4096),
    }
    ours = {name: policy for policy, (name, _) in PEERS.items()}
    with (data / "cache-policies" / "miss_ratios.csv").open() as stream:
        rows = list(csv.DictReader(line for line in stream if not line.startswith("#")))
    for name, (path, page) in traces.items():
        trace = Trace.read(path)
        for policy in dict.fromkeys(row["policy"] for row in rows):
            mine = [r for r in rows if (r["trace"], r["policy"]) == (name, policy)]
            if policy not in ours or not mine:
                continue
            sizes = [int(row["cache_objs"]) * page for row in mine]
            result = hits(trace, sizes, ours[policy], page=page)
            off = [f.page_misses - round(float(r["misses"])) for f, r in zip(result, mine)]
            share = np.abs(np.array(off) / [float(r["misses"]) for r in mine]).max()
            text = "equal" if not any(off) else f"off by {off}, at most {share:.4%}"
            print(f"{name:8}{ours[policy]:12}{len(mine)} sizes: {text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", choices=[*PEERS, []], metavar="POLICY")
    parser.add_argument("--requests", type=int, default=20_000_000)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--trace", help="an existing trace in libCacheSim's binary format")
    parser.add_argument("--exact", action="store_true")
    arguments = parser.parse_args()
    if arguments.exact:
        exact()
    else:
        speed(arguments)


if __name__ == "__main__":
    sys.exit(main())
