"""Read the result folders of `validate`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from hybridsim.workloads.fio.options import size
from validate import layout
from validate.twin import opencas, page, writecache
from validate.twin.record import Bare, Record, RecordError

MACHINE = Path("lab", "machine.toml")  # the scenario of a lab's disks
QUEUES = Path("lab", "queues.json")  # the settings of the queues of its disks
LAB = Path("lab", "lab.json")
LATE_US = 5000  # at the 99th percentile, of answers of a lab's disk: its run is no repetition
# What differs in a cache where the processor is emulated: a gc of bcache rests after each node.
EMULATED: dict[str, dict[str, Any]] = {
    "bcache": {"gc_nodes": 1},
    "dm-writecache": writecache.EMULATED,
}
SIZES = re.compile(r"^\s*size\s*=", re.MULTILINE)
OFFSETS = re.compile(r"^\s*offset\s*=\s*(\S+)", re.MULTILINE)
RELEASE = re.compile(r"(\d+)\.(\d+)")
SHARED = "calibration"  # name prefix of sibling runs whose bare runs are used if a run has none
SECTOR = 512
THRESHOLD_SECTORS = 2048  # default migration threshold of dm-cache
UNITS = {"k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# bcache's setting in sysfs: (key in a scenario, format of the value there)
BCACHE = {
    "sequential_cutoff": ("sequential_cutoff", "{}B"),
    "congested_read_threshold_us": ("congested_read", "{}us"),
    "congested_write_threshold_us": ("congested_write", "{}us"),
    "writeback_percent": ("writeback_percent", ""),
    "writeback_delay": ("writeback_delay", "{}s"),
}


def is_recorded(folder: Path) -> bool:
    """Return whether a folder is a result folder of `validate`, or its restart/ folder."""
    return (folder / layout.ENVIRONMENT).exists() or _is_warm(folder)


def _is_warm(folder: Path) -> bool:
    return folder.name == layout.RESTART and (folder.parent / layout.ENVIRONMENT).exists()


def read(folder: Path) -> Record:
    """Return the run of such a folder; raise RecordError if it is not complete."""
    if _is_warm(folder):
        before = read(folder.parent)
        environment = _object(folder.parent / layout.ENVIRONMENT)
        return replace(
            before,
            folder=folder,
            title=f"{before.title}, warm",
            job=sized(
                _job(folder / layout.JOB_FILE), int(environment["devices"]["cached"]["size_bytes"])
            ),
            created_s=environment["cache"].get("restarted_uptime_s"),
            trace=None,
            before=before,
        )
    environment = _object(folder / layout.ENVIRONMENT)
    if environment.get("schema") != layout.SCHEMA:
        raise RecordError(f"{folder}: {environment.get('schema')!r}; expected {layout.SCHEMA}")
    if not environment.get("complete"):
        raise RecordError(f"{folder}: the run did not end in order: {environment.get('error')}")
    job = sized(_job(folder / layout.JOB_FILE), _size_bytes(environment))
    is_page = environment["cache"]["kind"] == "page"
    shared = page.SHARED if is_page else SHARED
    trace = folder / layout.TRACE
    return Record(
        folder=folder,
        title=f"{_title(folder, environment)}\n{_throttle(folder, environment)}",
        cache=_cache(environment["cache"], _release(environment)) | _beside(folder, environment),
        origin_bytes=int(environment["origin"]["size_bytes"]),
        job=page.reaching(job) if is_page else job,
        created_s=environment["cache"].get("made_uptime_s"),
        machine=_machine(folder),
        slow=bare(folder, layout.BARE_SLOW, shared),
        fast=bare(folder, layout.BARE_FAST, shared),
        cached_device=str(environment["devices"]["cached"]["name"]),
        trace=trace if trace.is_dir() else None,
        throttle=_throttle(folder, environment),
        notes=tuple(environment.get("notes", ())),
    )


def _size_bytes(environment: Mapping[str, Any]) -> int:
    """Return the size of the cached device."""
    return int(environment["devices"]["cached"]["size_bytes"])


def sized(job: str, whole: int) -> str:
    """Return a job file whose jobs without a size reach to the end of a device of `whole` bytes.

    Without a size fio goes from a job's offset to the end.
    """
    job = job.replace("[global]\n", f"[global]\nsize={whole}\n", 1)
    sections = re.split(r"^(?=\[)", job, flags=re.MULTILINE)
    others = [each for each in sections if each.startswith("[global]")]
    if any(len(SIZES.findall(each)) > 1 for each in others):  # more than the one added here
        return job
    return "".join(
        each if each in others or SIZES.search(each) else _up_to(each, others, whole)
        for each in sections
    )


def _up_to(section: str, others: Sequence[str], whole: int) -> str:
    """Return a job without a size that goes from its offset, if it has one, to the end."""
    offsets = [offset for each in (section, *others) for offset in OFFSETS.findall(each)]
    if not offsets:
        return section
    text = offsets[0]
    begin = whole * int(text[:-1]) // 100 if text.endswith("%") else size(text)
    return f"{section.rstrip()}\nsize={max(whole - begin, 0)}\n\n"


def _throttle(folder: Path, environment: Mapping[str, Any]) -> str:
    """Return the setting of writeback throttling of the slow device; auto if it was not set."""
    path = folder / QUEUES
    target_us = str(environment["origin"].get("throttle_us"))
    if path.exists():
        target_us = str(_object(path).get("set", {}).get("slow", {}).get("wbt_lat_usec", ""))
    if not target_us.isdigit():
        return "auto"
    return f"{target_us}us" if int(target_us) else "off"


def _object(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: cannot be read: {error}") from error
    return content


def _title(folder: Path, environment: Mapping[str, Any]) -> str:
    """Return the text of the experiment, which repeated runs have in common.

    A run whose disk answered late repeats none in which it was in time.
    """
    path = folder / layout.EXPERIMENT
    text = path.read_text(encoding="utf-8") if path.exists() else str(environment.get("name"))
    return f"{text}\nlate" if _is_late(folder) else text


def _is_late(folder: Path) -> bool:
    """Return whether the slow disk of a lab answered late."""
    path = folder / LAB
    disks = _object(path).get("disks", {}) if path.exists() else {}
    late_us = disks.get("slow", {}).get("late_us", {})
    return bool(late_us) and float(late_us["99"]) > LATE_US


def _job(path: Path) -> str:
    if not path.exists():
        raise RecordError(f"{path}: is missing: it is the job file that fio ran")
    return path.read_text(encoding="utf-8")


def _machine(folder: Path) -> Mapping[str, Any] | None:
    path = folder / MACHINE
    return served(path) if path.exists() else None


def served(path: Path) -> Mapping[str, Any]:
    """Return the tables of a scenario whose drives the lab serves."""
    machine = tomllib.loads(path.read_text(encoding="utf-8"))
    # The drives of the lab are models that it serves, and before machines had these keys, their
    # disks took turns, and their SSDs counted scattered writes by request and were sent FLUSH.
    machine.get("backing", {}).get("drive", {}).setdefault("destage_rule", "turns")
    ssd = machine.get("cache", {}).get("drive", {})
    ssd.setdefault("write_rule", "requests")
    ssd.setdefault("volatile_cache", True)
    return machine


def _release(environment: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the kernel's release, as (6, 1); of an unknown one (0,)."""
    numbers = RELEASE.match(str(environment.get("host", {}).get("kernel", "")))
    return tuple(int(each) for each in numbers.groups()) if numbers else (0,)


def _cache(cache: Mapping[str, Any], release: tuple[int, ...]) -> dict[str, Any]:
    """Return a scenario's table of the cache of a run."""
    kind = cache["kind"]
    if kind == "none":
        return {"kind": "none"}
    if kind == "dm-writecache":
        return writecache.table(cache["table"], cache["status"])
    if kind == "open-cas":
        return opencas.table(cache["shown"], Path(layout.ENVIRONMENT))
    if kind == "page":
        return page.table(cache)
    table: dict[str, Any] = {"kind": kind, "mode": cache["mode"], "size": f"{cache['size_bytes']}B"}
    if kind == "dm-cache":
        sectors = cache.get("migration_threshold_sectors") or THRESHOLD_SECTORS
        return table | {
            "block": f"{cache['block_bytes']}B",
            "migration_threshold": f"{sectors * SECTOR}B",
        }
    table |= {"bucket": f"{cache['bucket_bytes']}B", "replacement": cache.get("policy") or "lru"}
    table["kernel"] = "6.12" if release >= (6, 12) else "6.1"
    options = cache.get("options") or {}
    for name, (key, form) in BCACHE.items():
        if options.get(name):
            number = _number(options[name])
            table[key] = form.format(number) if form else number
    return table


def _beside(folder: Path, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else a cache is given: when it is sampled, CPUs, what emulated ones change.

    The last applies to a lab whose guest has such processors.
    """
    kept = environment["cache"]
    if kept["kind"] == "open-cas":
        queues = {"queues": int(environment["host"]["cpus"])}
        if kept.get("made_uptime_s") is None:
            return queues
        return queues | opencas.queries(folder, float(kept["made_uptime_s"]))
    path = folder / LAB
    is_emulated = path.exists() and _object(path).get("accelerator") == "tcg"
    of_kind: dict[str, Any] = EMULATED.get(environment["cache"]["kind"], {})
    return of_kind if is_emulated else {}


def _number(text: str) -> int:
    """Return the value of a number in sysfs' format: 4.0M, 512.0k, 2000."""
    unit = UNITS.get(text[-1:])
    return round(float(text[:-1]) * unit) if unit else int(text)


def bare(folder: Path, name: str, shared: str = SHARED) -> tuple[Bare, ...]:
    """Return the runs on a bare device: its own, or of the calibration nearest in time."""
    beside = [each for each in folder.parent.glob(f"{shared}*") if (each / name).is_dir()]
    beside.sort(key=lambda each: (abs(_started_s(each) - _started_s(folder)), each.name))
    for place in (folder, *beside):
        results = sorted((place / name).glob("fio.*.json"))
        if results:
            return tuple(Bare(each, _bare_job(each)) for each in results)
    return ()


def _started_s(folder: Path) -> float:
    """Return the start time of a run as a timestamp; 0 if it is unknown."""
    path = folder / layout.ENVIRONMENT
    started = _object(path).get("started") if path.exists() else None
    return datetime.fromisoformat(started).timestamp() if started else 0.0


def _bare_job(path: Path) -> str:
    """Return the job file of fio.NAME.json: NAME.fio."""
    return _job(path.with_name(path.name.removeprefix("fio.")).with_suffix(".fio"))
