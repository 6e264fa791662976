"""`environment.json`: the settings, devices and commands of a run, to simulate and repeat it.

    schema      "hybridsim.validate/1"
    mode        "build" or "attach"
    name, seed, duration_s, restart_s
    complete    whether the run ended in order; error: why not
    started     local time, ISO 8601
    cache       kind, mode, size_bytes, block_bytes (dm-cache) or bucket_bytes (bcache), policy,
                options {name: value as the kernel shows it}, table and status lines (dm-cache,
                dm-writecache), shown: settings as casadm prints them (Open CAS),
                served: as `hybridsim serve` describes its cache (page, in the lab),
                made_uptime_s: when it was activated (smq counts its periods of 60 s from there)
    origin      size_bytes, raid_level, chunk_bytes, members, throttle_us (as specified)
    devices     cached, slow (a list), fast: name, path, number, size_bytes, logical_block_bytes,
                rotational, scheduler, queue_depth, model
    fio         version, job_file, writes
    host        kernel, machine, cpus, memory_bytes, python, versions {program: its version}
    commands    in the order of execution: argv, seconds, rc
    notes       remarks for the reader

Sizes are bytes, times seconds.  Values that do not apply are null.
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
    """The content of the file; it is filled in during the run, and written after each part."""

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
        """Return the JSON object of the file."""
        values = {
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
        return values | {part: getattr(self, part) for part in parts}

    def write(self, folder: Path) -> None:
        """Write the file atomically."""
        partial = folder / f".{layout.ENVIRONMENT}"
        partial.write_text(json.dumps(self.as_object(), indent=1) + "\n")
        partial.replace(folder / layout.ENVIRONMENT)
