"""Read runs whose cache was built by hand: with casadm or dmsetup, on disks that the lab served.

Each folder has machine.toml (the scenario of the disks), commands.log (uptime and command a line),
load.fio and fio's results, env.txt with the devices, and samples of the cache's counters.  The
settings are those that the cache itself reported: casadm-before.txt, or table.txt and the first
status of a writecache.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from validate import layout
from validate.twin import opencas, recorded, writecache
from validate.twin.record import Bare, Record, RecordError

COMMANDS, QUEUES = "commands.log", "wbt.txt"
MACHINE, ENVIRONMENT = "machine.toml", "env.txt"
UNMERGED = "request-merging=off"  # in env.txt, of machines whose QEMU merges no requests
CASADM, TABLE, STATUS = "casadm-before.txt", "table.txt", "status-first.txt"
SECTOR = 512
RUN_OF_DISKS = Path(__file__).parent.parent / "results" / recorded.SHARED
COMMAND = re.compile(r"^(\d+\.\d+) (.*)$", re.MULTILINE)


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
    cache = _cache(folder) | opencas.queries(folder, created_s)
    if cache["kind"] == "open-cas":
        cache["queues"] = int(_needed(r"^cpus (\d+)$", environment, folder / ENVIRONMENT))
    device = _device(environment)
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
        return opencas.table(_text(folder / CASADM), folder / CASADM)
    if (folder / TABLE).exists():
        return writecache.table(_text(folder / TABLE), _text(folder / STATUS)) | writecache.EMULATED
    raise RecordError(f"{folder}: neither {CASADM} nor {TABLE}: the settings are unknown")
