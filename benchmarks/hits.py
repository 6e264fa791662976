"""Hits without devices and LRU's curve: speed beside libCacheSim, misses beside its own.

    python benchmarks/hits.py [--requests 20000000] [--share 0.1] [--peer PYTHON] [POLICY ...]
    python benchmarks/hits.py --exact

PYTHON is an interpreter that has `libcachesim` (PyPI), which is no dependency of this project.  The
trace is independent draws of a Zipf distribution (2 million objects, alpha 1), in libCacheSim's own
binary form; both programs read the same file, and their times include it.  CPU seconds of the
process, the best of three runs, the two programs in turn.  Every run's misses are compared.

--exact compares with the misses in $HYBRIDSIM_DATA/cache-policies/miss_ratios.csv instead.
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

OBJECTS = 2_000_000
SEED = 42
ROUNDS = 3
ROWS = 1 << 16
# ours: (libCacheSim's name, how many times as fast we want to be)
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
    """Draw ranks by their cumulated weights, a million at a time, and tell each its next use."""
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
    """Read the trace, a chunk after the other."""
    import numpy as np

    rows = np.memmap(path, record(), "r")
    for start in range(0, len(rows), ROWS):
        yield rows["id"][start : start + ROWS].astype(np.int64)


def our_run(path, policy, pages):
    from hybridsim import hits

    begin = time.process_time()
    (found,) = hits(pages_of(path), pages * 4096, policy)
    return time.process_time() - begin, found.page_misses


def our_curve(path):
    from hybridsim import miss_ratio_curve

    begin = time.process_time()
    curve = miss_ratio_curve(pages_of(path))
    return time.process_time() - begin, curve


def speed(said):
    with tempfile.TemporaryDirectory() as folder:
        path = said.trace or f"{folder}/zipf.bin"
        if not said.trace:
            write_trace(path, said.requests)
        requests = Path(path).stat().st_size // record().itemsize
        import numpy as np

        distinct = len(np.unique(np.concatenate(list(pages_of(path)))))
        pages = int(distinct * said.share)
        print(f"{requests:,} requests, {distinct:,} objects, cache of {pages:,}")
        heads = f"{'peer':>8}{'ratio':>8}{'target':>8}{'misses':>12}"
        print(f"{'':12}{'M requests / CPU s':>20}{heads}")
        for policy in said.policies or PEERS:
            tell(path, policy, pages, requests, said.peer)
        if not said.policies:
            tell_curve(path, pages)


def tell(path, policy, pages, requests, peer):
    """Print the row of a policy."""
    name, target = PEERS[policy]
    our_run(path, policy, pages)  # compiles
    ours, theirs = [], []
    misses = peer_misses = None
    for _ in range(ROUNDS):
        spent, misses = our_run(path, policy, pages)
        ours.append(spent)
        if peer:
            command = [peer, "-c", PEER_RUN, str(path), name, str(pages)]
            spent, ratio = json.loads(subprocess.check_output(command, text=True))
            theirs.append(spent)
            peer_misses = round(ratio * requests)
    row = f"{policy:12}{requests / min(ours) / 1e6:20.1f}"
    if peer:
        same = "equal" if misses == peer_misses else f"peer {peer_misses:,}"
        row += f"{requests / min(theirs) / 1e6:8.1f}{min(theirs) / min(ours):8.1f}{target:8.1f}"
        row += f"{misses:12,}  {same}"
    else:
        row += f"{misses:36,}"
    print(row, flush=True)


def tell_curve(path, pages):
    our_curve(path)
    curves = [our_curve(path) for _ in range(ROUNDS)]
    alone = min(our_run(path, "lru", pages)[0] for _ in range(ROUNDS))
    spent = min(spent for spent, _ in curves)
    print(f"exact curve of LRU: {spent:.2f} CPU s, {spent / alone:.1f} single LRU runs (target 4)")


def exact():
    """Compare with the misses that are on file."""
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
            found = hits(trace, sizes, ours[policy], page=page)
            off = [f.page_misses - round(float(r["misses"])) for f, r in zip(found, mine)]
            share = np.abs(np.array(off) / [float(r["misses"]) for r in mine]).max()
            text = "equal" if not any(off) else f"off by {off}, at most {share:.4%}"
            print(f"{name:8}{ours[policy]:12}{len(mine)} sizes: {text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("policies", nargs="*", choices=[*PEERS, []], metavar="POLICY")
    parser.add_argument("--requests", type=int, default=20_000_000)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--peer", metavar="PYTHON")
    parser.add_argument("--trace", help="a trace written before, in libCacheSim's binary form")
    parser.add_argument("--exact", action="store_true")
    said = parser.parse_args()
    if said.exact:
        exact()
    else:
        speed(said)


if __name__ == "__main__":
    sys.exit(main())
