"""Read runs of others: those of kernel-caches in the reference data.

Each folder has env.txt, fio's JSON and logs, samples of the cache, and a README with parameters and
devices.  The devices are emulated by rules in the README, so their model is a constant here; it is
calibrated to the run without a cache.  The creation time of dm-cache is not recorded: it is
estimated from its 60-s period.
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
# Seconds from the creation of dm-cache to the first sample.  The first demotions come 60 s after
# the creation, and came 59.2 to 59.8 s after the first sample: 0.2 to 0.8 s.  This value fits all
# runs best.
LATE_S = 0.4
# Options that fio's JSON does not contain.
FLAGS = {"time_based": "1", "norandommap": "1", "size": "8G"}
# The emulator's rules (README, "Devices").  In the guest the SSD served 2,551 requests a second at
# depth 64, without a cache.
MACHINE = """
[backing]
kind = "stripe"
members = 4
chunk = "64KiB"
capacity = "2GiB"
scheduler = "fcfs"
window = 1
queue_depth = 16  # requests in flight of the NBD client
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
    """Return whether a folder has such a run."""
    readme = folder / "README.md"
    return (folder / "env.txt").exists() and readme.exists() and "KIND='" in readme.read_text()


def read(folder: Path) -> Record:
    """Return the run of such a folder; raise RecordError if fio's JSON is missing."""
    if not (folder / "fio.json").exists():
        raise RecordError(f"{folder}: has no fio.json: only runs of fio have a twin")
    parameters = dict(re.findall(r"(\w+)='([^']*)'", (folder / "README.md").read_text()))
    job = _job(folder)
    bare = folder.parent / BARE
    slow = (Bare(bare / "fio.json", _job(bare)),) if (bare / "fio.json").exists() else ()
    varied = [f"{key}={parameters[key]}" for key in ("MODE", "CACHE_MB", "CBS", "MIGTHR", "CONGR")
              if key in parameters]  # fmt: skip
    return Record(
        folder=folder,
        title=" ".join([parameters["KIND"], *varied, parameters.get("FIOARGS", "")]),
        cache=_cache(parameters),
        origin_bytes=8 * GIB,
        job=job,
        created_s=_created_s(folder),
        machine=tomllib.loads(MACHINE),
        slow=slow,
        cached_device=_cached_device(folder),
        notes=(
            "devices as specified in the README of the run; the creation time of the cache is "
            f"estimated ({LATE_S} s before the first sample)",
        ),
    )


def _job(folder: Path) -> str:
    """Return a run's job file, from fio's JSON."""
    results = json.loads((folder / "fio.json").read_text())
    (one,) = results["jobs"]
    options = {**results["global options"], **one["job options"], **FLAGS}
    kept = {key: value for key, value in options.items() if "log" not in key and key != "name"}
    return f"[{one['jobname']}]\n" + "".join(f"{key}={value}\n" for key, value in kept.items())


def _cache(parameters: Mapping[str, str]) -> dict[str, Any]:
    if parameters["KIND"] == "none":
        return {"kind": "none"}
    table: dict[str, Any] = {"size": f"{parameters['CACHE_MB']}MiB", "mode": parameters["MODE"]}
    if parameters["KIND"] == "bcache":
        table |= {"kind": "bcache", "sequential_cutoff": "0B"}
        if "CONGR" in parameters:  # 0 in sysfs: never congested
            table |= {"congested_read": "0s", "congested_write": "0s"}
        return table
    threshold = int(parameters.get("MIGTHR", 2048)) * SECTOR
    block = int(parameters["CBS"]) * SECTOR
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
