"""Read runs whose cache was built by hand: with casadm or dmsetup, on disks that the lab served.

Each folder has machine.toml (the scenario of the disks), commands.log (uptime and command a line),
load.fio and fio's results, env.txt with the devices, and samples of the cache's counters.  The
settings are those that the cache itself reported: casadm-before.txt, or table.txt and the first
status of a writecache.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from validate import layout
from validate.twin import recorded, writecache
from validate.twin.record import Bare, Record, RecordError

COMMANDS, QUEUES = "commands.log", "wbt.txt"
MACHINE, ENVIRONMENT = "machine.toml", "env.txt"
UNMERGED = "request-merging=off"  # in env.txt, of machines whose QEMU merges no requests
CASADM, TABLE, STATUS = "casadm-before.txt", "table.txt", "status-first.txt"
STATISTICS = "cas-stats.csv"
SECTOR, BLOCK = 512, 4096
RUN_OF_DISKS = Path(__file__).parent.parent / "results" / recorded.SHARED
COMMAND = re.compile(r"^(\d+\.\d+) (.*)$", re.MULTILINE)
# A parameter of casadm: (key in a scenario, format of the value there).
PARAMETERS = {
    "Sequential cutoff threshold [KiB]": ("sequential_cutoff", "{}KiB"),
    "Sequential cutoff policy": ("sequential_cutoff_policy", "{}"),
    "Promotion policy type": ("promotion", "{}"),
    "Insertion threshold": ("insertion_threshold", "{}"),
    "Policy trigger [%]": ("trigger_threshold", "{}%"),
    "Cleaning policy type": ("cleaning", "{}"),
    "Wake up time [s]": ("wake_up", "{}s"),
    "Stale buffer time [s]": ("staleness_time", "{}s"),
    "Activity threshold [ms]": ("activity_threshold", "{}ms"),
    "Wake up time [ms]": ("wake_up", "{}ms"),
    "Flush max buffers": ("flush_max_buffers", "{}"),
}
POLICIES = {"Wake up time [s]": "alru", "Wake up time [ms]": "acp"}  # first row of each policy
OF_POLICIES = {
    *POLICIES, "Stale buffer time [s]", "Activity threshold [ms]", "Flush max buffers",
}  # fmt: skip


def is_commanded(folder: Path) -> bool:
    """Return whether a folder has such a run, or is its restart/ folder."""
    return (folder / COMMANDS).exists() and (
        (folder / MACHINE).exists() or (folder.parent / MACHINE).exists()
    )


def read(folder: Path) -> Record:
    """Return the run of such a folder; raise RecordError if it is not complete."""
    if not (folder / MACHINE).exists():
        before = read(folder.parent)
        job = recorded.sized(_text(folder / layout.JOB_FILE), before.origin_bytes)
        restarted = COMMAND.findall(_text(folder / COMMANDS))[-1]
        return replace(before, folder=folder, title=f"{before.title}, warm", job=job,
                       created_s=float(restarted[0]), before=before)  # fmt: skip
    commands = COMMAND.findall(_text(folder / COMMANDS))
    if not commands:
        raise RecordError(f"{folder / COMMANDS}: no line of uptime and command")
    environment = _text(folder / ENVIRONMENT)
    created_s = float(commands[0][0])
    cache, device = _cache(folder) | _queries(folder, created_s), _device(environment)
    throttle = _throttle(folder)
    origin_bytes = int(_needed(r"^vda \S+ (\d+) bytes", environment, folder / ENVIRONMENT))
    job = recorded.sized(_text(folder / layout.JOB_FILE), origin_bytes)
    return Record(
        folder=folder,
        title=f"{cache} {throttle} {_merging(environment)}\n{job}",
        cache=cache,
        origin_bytes=origin_bytes,
        job=job,
        created_s=created_s,
        machine=recorded.served(folder / MACHINE),
        slow=_bare(folder, layout.BARE_SLOW),
        fast=_bare(folder, layout.BARE_FAST),
        cached_device=device,
        throttle=throttle,
        notes=(f"devices: calibrated to the runs of {RUN_OF_DISKS.name}, on the same models",),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from error


def _needed(pattern: str, text: str, path: Path) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise RecordError(f"{path}: no line like {pattern}")
    return match[1]


def _device(environment: str) -> str:
    """Return the name of the cached device: that of an exported object, or of a mapped device."""
    names = re.findall(r"^(cas\d+-\d+|dm-\d+) ", environment, re.MULTILINE)
    return names[-1] if names else ""


def _merging(environment: str) -> str:
    """Return whether QEMU merges requests to the disks: such runs do not repeat those without."""
    return "unmerged" if UNMERGED in environment else "merged"


def _bare(folder: Path, name: str) -> tuple[Bare, ...]:
    """Return the runs on a bare device beside a folder, or those on file of the same models."""
    return recorded.bare(folder, name) or recorded.bare(RUN_OF_DISKS, name)


def _throttle(folder: Path) -> str:
    """Return the setting of writeback throttling of the disk: the kernel's, or as it was set."""
    texts = [_text(folder / name) for name in (COMMANDS, QUEUES) if (folder / name).exists()]
    set_us = re.findall(r"echo (\d+) >\s*/sys/block/vda/queue/wbt_lat_usec", "\n".join(texts))
    if not set_us:
        return "auto"
    return f"{set_us[-1]}us" if int(set_us[-1]) else "off"


def _cache(folder: Path) -> dict[str, Any]:
    if (folder / CASADM).exists():
        return _open_cas(_text(folder / CASADM), folder / CASADM)
    if (folder / TABLE).exists():
        return writecache.table(_text(folder / TABLE), _text(folder / STATUS)) | writecache.EMULATED
    raise RecordError(f"{folder}: neither {CASADM} nor {TABLE}: the settings are unknown")


def _open_cas(shown: str, path: Path) -> dict[str, Any]:
    """Return a scenario's table of the cache that casadm shows."""
    blocks = int(_needed(r"^Cache Size\s+(\d+) \[4KiB Blocks\]", shown, path))
    table: dict[str, Any] = {
        "kind": "open-cas",
        "size": f"{blocks * BLOCK}B",
        "mode": _needed(r"^Write Policy\s+(\w+)", shown, path),
        "line": _needed(r"^Cache line size\s+(\d+)", shown, path) + "KiB",
    }
    cells = re.findall(r"^\|([^|\n]+)\|([^|\n]+)\|$", shown, re.MULTILINE)
    rows = [(name.strip(), text.strip()) for name, text in cells]
    cleaning = dict(rows).get("Cleaning policy type", "alru")
    of_policy = ""  # whose parameters the rows are
    for name, shown_value in rows:
        of_policy = POLICIES.get(name, of_policy)
        if name not in PARAMETERS or (name in OF_POLICIES and of_policy != cleaning):
            continue
        key, form = PARAMETERS[name]
        text = form.format(shown_value)
        table[key] = int(text) if text.isdigit() else text
    return table


def _queries(folder: Path, created_s: float) -> dict[str, Any]:
    """Return when casadm read the counters: Open CAS's cleaner stops for that."""
    if not (folder / STATISTICS).exists():
        return {}
    lines = _text(folder / STATISTICS).splitlines()[1:]
    times_ms = [round(1000 * (float(line.split(",")[0]) - created_s)) for line in lines]
    if len(times_ms) < 2:
        return {}
    gaps = sorted(after - before for before, after in pairwise(times_ms))
    interval_ms = gaps[len(gaps) // 2]
    return {
        "stats_interval": f"{interval_ms}ms",
        "stats_start": f"{times_ms[-1] % interval_ms}ms",
    }
