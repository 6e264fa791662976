"""Runs that others made, as result folders: those of kernel-caches in the reference data.

Each has env.txt, fio's JSON and logs, samples of the cache, and a README that tells its parameters
and its devices.  The devices are an emulator's whose rules the README states, so their model is
written down here; how fast they are through the guest comes from the run without a cache beside
them.  When dm-cache was made is not on file: it is taken from its 60-s period.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from validate.twin.record import Bare, Record, RecordError

GIB, SECTOR = 1 << 30, 512
BARE = "none-hdd-hot"
# From the making of dm-cache to the first sample: estimated from the first demotions of the runs,
# which come 60 s after the one and came 59.2 to 59.8 s after the other: 0.2 to 0.8 s.  All runs
# agree best with this.
LATE_S = 0.4
# Flags that fio's JSON does not tell.
FLAGS = {"time_based": "1", "norandommap": "1", "size": "8G"}
# The emulator's rules (README, "Devices").  The SSD answered 2,551 requests a second through the
# guest at depth 64, without a cache.
MACHINE = """
[backing]
kind = "stripe"
members = 4
chunk = "64KiB"
capacity = "2GiB"
scheduler = "fcfs"
window = 1
queue_depth = 16  # the emulator's NBD client has no more under way
[backing.drive]
kind = "hdd"
name = "nbd"
rpm = 7200
capacity = "2GiB"
seek_track_to_track = "0.5ms"
seek_average = "4.5ms"
seek_full = "8ms"
rate_outer = "150MB/s"
rate_inner = "150MB/s"
overhead = "0us"
window = 1
read_ahead = "0B"
[cache.drive]
kind = "ssd"
name = "nbd"
capacity = "1GiB"
read_latency = "392us"
write_latency = "392us"
random_read_iops = 2551
random_write_iops = 2551
sequential_read = "500MB/s"
sequential_write = "300MB/s"
dies = 48
"""


def is_foreign(folder: Path) -> bool:
    """Tell whether a folder is such a run."""
    readme = folder / "README.md"
    return (folder / "env.txt").exists() and readme.exists() and "KIND='" in readme.read_text()


def read(folder: Path) -> Record:
    """Return what such a folder tells; RecordError where fio's JSON is missing."""
    if not (folder / "fio.json").exists():
        raise RecordError(f"{folder}: no fio.json in it: only runs of fio have a twin")
    told = dict(re.findall(r"(\w+)='([^']*)'", (folder / "README.md").read_text()))
    job, depth = _job(folder)
    bare = folder.parent / BARE
    slow = (Bare(bare / "fio.json", _job(bare)[0]),) if (bare / "fio.json").exists() else ()
    varied = [f"{key}={told[key]}" for key in ("MODE", "CACHE_MB", "CBS", "MIGTHR", "CONGR")
              if key in told]  # fmt: skip
    return Record(
        folder=folder,
        title=" ".join([told["KIND"], *varied, told.get("FIOARGS", "")]),
        cache=_cache(told),
        origin_bytes=8 * GIB,
        job=job,
        depth=depth,
        created_s=_created_s(folder),
        machine=tomllib.loads(MACHINE),
        slow=slow,
        cached_device=_cached_device(folder),
        notes=(
            "made by others: devices as its README states them; when the cache was made is "
            f"estimated ({LATE_S} s before the first sample)",
        ),
    )


def _job(folder: Path) -> tuple[str, int]:
    """Return a run's job file and its depth, from fio's JSON."""
    told = json.loads((folder / "fio.json").read_text())
    (one,) = told["jobs"]
    options = {**told["global options"], **one["job options"], **FLAGS}
    kept = {key: value for key, value in options.items() if "log" not in key and key != "name"}
    text = f"[{one['jobname']}]\n" + "".join(f"{key}={value}\n" for key, value in kept.items())
    return text, int(kept.get("iodepth", 1))


def _cache(told: Mapping[str, str]) -> dict[str, Any]:
    if told["KIND"] == "none":
        return {"kind": "none"}
    table: dict[str, Any] = {"size": f"{told['CACHE_MB']}MiB", "mode": told["MODE"]}
    if told["KIND"] == "bcache":
        table |= {"kind": "bcache", "sequential_cutoff": "0B"}
        if "CONGR" in told:  # in sysfs 0 is never
            table |= {"congested_read": "0s", "congested_write": "0s"}
        return table
    threshold = int(told.get("MIGTHR", 2048)) * SECTOR
    block = int(told["CBS"]) * SECTOR
    return table | {
        "kind": "dm-cache", "block": f"{block}B", "migration_threshold": f"{threshold}B",
    }  # fmt: skip


def _created_s(folder: Path) -> float | None:
    status = folder / "dmcache-status.log"
    if not status.exists():
        return None
    return float(status.read_text().split(maxsplit=1)[0]) - LATE_S


def _cached_device(folder: Path) -> str:
    match = re.search(r"^cached=[^\s(]*+\((\w[\w-]*)\)", (folder / "env.txt").read_text(), re.M)
    return match[1] if match else ""
