"""A write-back dm-cache under ext4: the trace of a run replayed, its counters next to the run's.

    HYBRIDSIM_DATA=shared/data python benchmarks/dmcache_files.py

The trace (kernel-caches/fs-ext4-on-dmcache-wb) begins while mkfs is writing, after it has discarded
the whole device.  So a discard of the whole device is added at the beginning, and about 500 blocks
are missing: compare the growth of the counters from the third sample on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from dmcache import GIB, KIB, LATE_S, SECOND, Measured, machine

from hybridsim.caches import DmCache
from hybridsim.engine.machine import Run
from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import DmMode, Op, Replay
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import Source
from hybridsim.studies.batches import batches
from hybridsim.traces.trace import Trace

ORIGIN_BYTES = 2 * GIB
BEGAN_S = 12.86  # uptime of the first traced request; the last is by `umount`, 8.56 s later
NAMES = {
    "used_blocks": 7, "read_hits": 8, "read_misses": 9, "write_hits": 10, "write_misses": 11,
    "promotions": 13, "dirty_blocks": 14,
}  # fmt: skip


def discarded_first(batch: Batch, begin_ns: int) -> Batch:
    """Return the requests, shifted, after a discard of the whole device."""
    first = {"arrival_ns": begin_ns - SECOND // 10, "op": int(Op.DISCARD), "offset": 0}
    first["length"] = ORIGIN_BYTES
    columns = batch._replace(arrival_ns=batch.arrival_ns + begin_ns)._asdict()
    state = columns.pop("state")
    joined = {
        name: np.concatenate([np.array([first.get(name, -1)], column.dtype), column])
        for name, column in columns.items()
    }
    return Batch(**joined, state=np.array([0, 1, int(state[2])]))


def main() -> None:
    """Print measured and simulated counters by sample."""
    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "kernel-caches"
    folder = data / "fs-ext4-on-dmcache-wb"
    if not folder.is_dir():
        sys.exit(f"no {folder}: set HYBRIDSIM_DATA to the folder of the reference data")
    rows = [line.split() for line in (folder / "dmcache-status.log").read_text().splitlines()]
    created_s = float(rows[0][0]) - LATE_S
    cache = DmCache.new(
        DmCacheParameters(64 * KIB, 4096, DmMode.WRITEBACK, 1024 * KIB), ORIGIN_BYTES
    )
    built = machine(Measured(64 * KIB, 4096, 0, 0, []))
    as_recorded = Source.new(int(Replay.OPEN), 1)
    run = Run(built._replace(cache=cache, source=as_recorded), facts_rows=10_000)
    batch = next(batches(Trace.read(folder / "trace" / "dm-2.merged.bin.zst")))
    run.feed(discarded_first(batch, round((BEGAN_S - created_s) * SECOND)))
    print(f"{'uptime':>8}" + "".join(f"{name:>18}" for name in NAMES))
    for row in rows[:9]:
        run.advance(round((float(row[0]) - created_s) * SECOND))
        totals = run.machine.cache.totals()
        real = {name: int(row[at].split("/")[0]) for name, at in NAMES.items()}
        cells = (f"{real[name]:>9,} {totals[name]:>7,} " for name in NAMES)
        print(f"{row[0]:>8}" + "".join(cells))


if __name__ == "__main__":
    main()
