"""The real runs of kernel-runs in the reference data, as `validate` reads its own.

Those of Open CAS and dm-writecache were made by hand: each folder has fio's job file and results,
samples of the cache, and the commands that made it; those of bcache and dm-cache by `validate`.
All were made in its lab, with the disks of its calibration, so that their twins are simulated on
the devices as calibrated by the bare runs in validate/results.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hybridsim.answers.comparison.comparing import compare
from hybridsim.answers.comparison.tolerances import Tolerances
from hybridsim.show.comparison import document
from validate.report.holding import at_its_pace, measured
from validate.twin import recorded
from validate.twin.jobs import written
from validate.twin.record import Record
from validate.twin.simulate import twin

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("HYBRIDSIM_DATA", ROOT.parent / "shared" / "data"))
PLACE = DATA / "kernel-runs"
CALIBRATION = ROOT / "validate" / "results" / "calibration"
VOLUME_BYTES, BLOCK = 2 << 30, 4096
# Of casadm's listing: the parameter's name, and the key and the unit of a scenario.
PARAMETERS = (
    ("Seq cutoff threshold", "sequential_cutoff", "KiB"),
    ("Seq cutoff policy", "sequential_cutoff_policy", ""),
    ("Promotion Policy", "promotion", ""),
    ("Cleaning Policy", "cleaning", ""),
)
# Of the tables of the policy in use.
OF_ALRU = (
    ("Wake up time [s]", "wake_up", "s"),
    ("Stale buffer time [s]", "staleness_time", "s"),
    ("Flush max buffers", "flush_max_buffers", None),
    ("Activity threshold [ms]", "activity_threshold", "ms"),
)
OF_NHIT = (
    ("Insertion threshold", "insertion_threshold", None),
    ("Policy trigger [%]", "trigger_threshold", "%"),
)


def folders() -> Iterator[Path]:
    """Yield the runs, if the reference data are there."""
    if PLACE.is_dir():
        for kind in ("opencas", "dm-writecache", "wbt"):
            yield from sorted(PLACE.glob(f"{kind}-*"))


def read(folder: Path) -> Record:
    """Return the record of a run."""
    bare = {side: recorded._bare(CALIBRATION, f"bare-{side}") for side in ("slow", "fast")}
    if recorded.is_recorded(folder):
        return replace(recorded.read(folder), **bare)
    is_cas = folder.name.startswith("opencas")
    job = recorded._sized((folder / "load.fio").read_text(), {"size_bytes": VOLUME_BYTES})
    return Record(
        folder=folder,
        title=folder.name,
        cache=_open_cas(folder) if is_cas else _writecache(folder),
        origin_bytes=VOLUME_BYTES,
        job=job,
        depth=sum(each.depth for each in recorded.jobs_of(written(job))),
        created_s=float((folder / "made-uptime.txt").read_text()),
        machine=_machine(folder),
        **bare,
        cached_device="cas1-1" if is_cas else "dm-0",
        throttle=_throttle(folder),
        notes=("the devices are calibrated by bare runs of another day in the same lab",),
    )


def compared(folder: Path) -> dict[str, Any]:
    """Return a run and its twin, as one of the runs of the report of `validate`."""
    record = read(folder)
    simulated = twin(record)
    comparison = compare(measured(record, simulated), simulated.measured, Tolerances())
    if simulated.paced is not None:
        paced = compare(measured(record, simulated), simulated.paced, Tolerances())
        comparison = at_its_pace(comparison, paced)
    return {
        "name": record.name,
        "scenario": simulated.scenario,
        "comparison": document(comparison),
    }


def _machine(folder: Path) -> dict[str, Any]:
    machine = tomllib.loads((folder / "machine.toml").read_text())
    machine["backing"]["drive"].setdefault("destage_rule", "turns")
    machine["cache"]["drive"].setdefault("write_rule", "requests")
    machine["cache"]["drive"].setdefault("volatile_cache", True)
    return machine


def _throttle(folder: Path) -> str:
    commands = (folder / "commands.log").read_text()
    if (folder / "wbt.txt").exists():
        commands += (folder / "wbt.txt").read_text()
    return "off" if "echo 0 >/sys/block/vda/queue/wbt_lat_usec" in commands else "auto"


def _writecache(folder: Path) -> dict[str, Any]:
    blocks = re.search(r"of ([0-9,]+) blocks", (folder / "README.md").read_text())
    assert blocks is not None
    size = int(blocks[1].replace(",", "")) * BLOCK
    return {"kind": "dm-writecache", "size": f"{size}B"}


def _open_cas(folder: Path) -> dict[str, Any]:
    text = (folder / "casadm-before.txt").read_text()

    def of(name: str) -> str:
        found = re.search(rf"^\|?\s*{re.escape(name)}\s*\|?\s+([\w-]+)", text, re.M)
        assert found is not None, f"{folder}: no {name}"
        return found[1]

    line = int(of("Cache line size")) * 1024
    size = int(of("Cache Size")) * BLOCK // line * line
    table: dict[str, Any] = {"kind": "open-cas", "mode": of("Write Policy"),
                             "size": f"{size}B", "line": f"{line}B"}  # fmt: skip
    rows = [*PARAMETERS, *(OF_ALRU if of("Cleaning Policy") == "alru" else ()),
            *(OF_NHIT if of("Promotion Policy") == "nhit" else ())]  # fmt: skip
    for name, key, unit in rows:
        table[key] = int(of(name)) if unit is None else f"{of(name)}{unit}"
    return table
