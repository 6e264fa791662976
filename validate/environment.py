"""`environment.json`: all that a run was made of, so that it can be simulated and repeated.

    schema      "hybridsim.validate/1"
    mode        "build" or "attach"
    name, seed, duration_s, restart_s
    complete    whether the run came to its end; error: why not
    started     local time, ISO 8601
    cache       kind, mode, size_bytes, block_bytes (dm-cache) or bucket_bytes (bcache), policy,
                options {name: value as the kernel shows it}, table and status lines (dm-cache),
                made_uptime_s: when it was put to work (dm-cache counts its 60 s from there)
    origin      size_bytes, raid_level, chunk_bytes, members
    devices     cached, slow (a list), fast: name, path, number, size_bytes, logical_block_bytes,
                rotational, scheduler, queue_depth, model
    fio         version, job_file, writes
    host        kernel, machine, cpus, memory_bytes, python, versions {program: what it says}
    commands    in their order: argv, seconds, rc
    notes       what a reader should know

Sizes are bytes, times seconds.  What does not apply is null.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from validate import layout
from validate.experiment import Experiment


@dataclass
class Environment:
    """What is written; filled in as the run goes on, and written after each part of it."""

    experiment: Experiment
    mode: str
    started: str = ""
    complete: bool = False
    error: str | None = None
    cache: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)
    devices: dict[str, Any] = field(default_factory=dict)
    fio: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    commands: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_object(self) -> dict[str, Any]:
        """Return what the file holds."""
        told = {
            "schema": layout.SCHEMA,
            "mode": self.mode,
            "name": self.experiment.name,
            "seed": self.experiment.seed,
            "duration_s": self.experiment.load.duration_s,
            "restart_s": self.experiment.restart_s,
            "collect": asdict(self.experiment.collect),
        }
        parts = ("started", "complete", "error", "cache", "origin", "devices", "fio", "host",
                 "commands", "notes")  # fmt: skip
        return told | {part: getattr(self, part) for part in parts}

    def write(self, folder: Path) -> None:
        """Write it; a reader never sees half of it."""
        partial = folder / f".{layout.ENVIRONMENT}"
        partial.write_text(json.dumps(self.as_object(), indent=1) + "\n")
        partial.replace(folder / layout.ENVIRONMENT)
