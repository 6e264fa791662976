"""The folders that `validate` writes, as records."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.options import size
from validate import layout
from validate.twin.jobs import written
from validate.twin.record import Bare, Record, RecordError

MACHINE = Path("lab", "machine.toml")  # the devices that a lab made up
QUEUES = Path("lab", "queues.json")  # what the queues of its disks were set to
SIZES = re.compile(r"^\s*size\s*=", re.MULTILINE)
OFFSETS = re.compile(r"^\s*offset\s*=\s*(\S+)", re.MULTILINE)
SHARED = "calibration"  # begins the names of runs beside it whose bare runs may count for it
SECTOR = 512
THRESHOLD_SECTORS = 2048  # of dm-cache's migrations, where nothing was said
UNITS = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# What the kernel calls a setting of bcache, what a scenario does, and how it says the value.
BCACHE = {
    "sequential_cutoff": ("sequential_cutoff", "{}B"),
    "congested_read_threshold_us": ("congested_read", "{}us"),
    "congested_write_threshold_us": ("congested_write", "{}us"),
    "writeback_percent": ("writeback_percent", ""),
    "writeback_delay": ("writeback_delay", "{}s"),
}


def is_recorded(folder: Path) -> bool:
    """Tell whether `validate` wrote a folder, or wrote it as the warm part of another."""
    return (folder / layout.ENVIRONMENT).exists() or _is_warm(folder)


def _is_warm(folder: Path) -> bool:
    return folder.name == layout.RESTART and (folder.parent / layout.ENVIRONMENT).exists()


def read(folder: Path) -> Record:
    """Return what such a folder tells; RecordError where it is not complete."""
    if _is_warm(folder):
        before = read(folder.parent)
        told = _object(folder.parent / layout.ENVIRONMENT)
        return replace(
            before,
            folder=folder,
            title=f"{before.title}, warm",
            job=_sized(_job(folder / layout.JOB_FILE), told["devices"]["cached"]),
            created_s=told["cache"].get("restarted_uptime_s"),
            trace=None,
            before=before,
        )
    told = _object(folder / layout.ENVIRONMENT)
    if told.get("schema") != layout.SCHEMA:
        raise RecordError(f"{folder}: {told.get('schema')!r}; {layout.SCHEMA} is known")
    if not told.get("complete"):
        raise RecordError(f"{folder}: the run did not come to its end: {told.get('error')}")
    device = told["devices"]["cached"]
    job = _sized(_job(folder / layout.JOB_FILE), device)
    trace = folder / layout.TRACE
    return Record(
        folder=folder,
        title=_title(folder, told),
        cache=_cache(told["cache"]),
        origin_bytes=int(told["origin"]["size_bytes"]),
        job=job,
        depth=sum(each.depth for each in jobs_of(written(job))),
        created_s=told["cache"].get("made_uptime_s"),
        machine=_machine(folder),
        slow=_bare(folder, layout.BARE_SLOW),
        fast=_bare(folder, layout.BARE_FAST),
        cached_device=str(device["name"]),
        trace=trace if trace.is_dir() else None,
        throttle=_throttle(folder),
        notes=tuple(told.get("notes", ())),
    )


def _sized(job: str, device: Mapping[str, Any]) -> str:
    """Return a job file whose jobs reach to the end of the device, where they do not say.

    Without a size fio goes from a job's offset to the end.
    """
    whole = int(device["size_bytes"])
    job = job.replace("[global]\n", f"[global]\nsize={whole}\n", 1)
    sections = re.split(r"^(?=\[)", job, flags=re.MULTILINE)
    others = [each for each in sections if each.startswith("[global]")]
    if any(len(SIZES.findall(each)) > 1 for each in others):  # more than the one from here
        return job
    return "".join(
        each if each in others or SIZES.search(each) else _up_to(each, others, whole)
        for each in sections
    )


def _up_to(section: str, others: Sequence[str], whole: int) -> str:
    """Return a job without a size that goes from its offset, if it has one, to the end."""
    said = [found for each in (section, *others) for found in OFFSETS.findall(each)]
    if not said:
        return section
    text = said[0]
    begin = whole * int(text[:-1]) // 100 if text.endswith("%") else size(text)
    return f"{section.rstrip()}\nsize={max(whole - begin, 0)}\n\n"


def _throttle(folder: Path) -> str:
    """Return what writeback throttling of the slow device was set to; auto where nothing tells."""
    path = folder / QUEUES
    if not path.exists():
        return "auto"
    target_us = str(_object(path).get("set", {}).get("slow", {}).get("wbt_lat_usec", ""))
    if not target_us.isdigit():
        return "auto"
    return f"{target_us}us" if int(target_us) else "off"


def _object(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    return found


def _title(folder: Path, told: Mapping[str, Any]) -> str:
    """Return what repeated runs have in common: the experiment, word for word."""
    path = folder / layout.EXPERIMENT
    return path.read_text(encoding="utf-8") if path.exists() else str(told.get("name"))


def _job(path: Path) -> str:
    if not path.exists():
        raise RecordError(f"{path}: missing: what fio ran is not known")
    return path.read_text(encoding="utf-8")


def _machine(folder: Path) -> Mapping[str, Any] | None:
    path = folder / MACHINE
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _cache(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's table of the cache that was found or made."""
    kind = told["kind"]
    if kind == "none":
        return {"kind": "none"}
    table: dict[str, Any] = {"kind": kind, "mode": told["mode"], "size": f"{told['size_bytes']}B"}
    if kind == "dm-cache":
        sectors = told.get("migration_threshold_sectors") or THRESHOLD_SECTORS
        return table | {
            "block": f"{told['block_bytes']}B",
            "migration_threshold": f"{sectors * SECTOR}B",
        }
    table |= {"bucket": f"{told['bucket_bytes']}B", "replacement": told.get("policy") or "lru"}
    options = told.get("options") or {}
    for name, (key, form) in BCACHE.items():
        if options.get(name):
            number = _number(options[name])
            table[key] = form.format(number) if form else number
    return table


def _number(text: str) -> int:
    """Return a number as sysfs shows it: 4.0M, 512.0k, 2000."""
    unit = UNITS.get(text[-1:])
    return round(float(text[:-1]) * unit) if unit else int(text)


def _bare(folder: Path, name: str) -> tuple[Bare, ...]:
    """Return the runs on a bare device: its own, or of the calibration that is nearest in time."""
    beside = [each for each in folder.parent.glob(f"{SHARED}*") if (each / name).is_dir()]
    beside.sort(key=lambda each: (abs(_started_s(each) - _started_s(folder)), each.name))
    for place in (folder, *beside):
        found = sorted((place / name).glob("fio.*.json"))
        if found:
            return tuple(Bare(each, _bare_job(each)) for each in found)
    return ()


def _started_s(folder: Path) -> float:
    """Return when a run was started; 0 where nothing tells."""
    path = folder / layout.ENVIRONMENT
    told = _object(path).get("started") if path.exists() else None
    return datetime.fromisoformat(told).timestamp() if told else 0.0


def _bare_job(path: Path) -> str:
    """Return the job file of fio.NAME.json: NAME.fio."""
    return _job(path.with_name(path.name.removeprefix("fio.")).with_suffix(".fio"))
