"""What is written down each second: a family.  To add one: a file, and a line in COLLECTORS."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from validate.system import System

COLLECTORS = {
    "diskstats": "validate.collecting.diskstats",
    "host load": "validate.collecting.host_load",
    "dm-cache": "validate.collecting.dmcache",
    "bcache": "validate.collecting.bcache",
}


@dataclass(frozen=True)
class Subject:
    """The cache that is watched."""

    system: System
    kind: str
    numbers: dict[str, str]  # MAJOR:MINOR by role: cached, slow..., fast
    mapped: str = ""  # dm-cache: its name
    backing: Path = Path()  # bcache: the backing device's folder in sysfs


class Collector(Protocol):
    """Samples of one kind: a file with a header, and lines that begin with uptime in seconds."""

    file: str

    def header(self) -> str:
        """Return the first line, or ""."""

    def sample(self) -> list[str]:
        """Return what follows uptime, a line each; RunError where it cannot be read."""

    def close(self) -> None:
        """End it."""


def of(subject: Subject) -> list[Collector]:
    """Return the collectors that have something to say of a subject."""
    found: list[Any] = []
    for module in COLLECTORS.values():
        found += importlib.import_module(module).of(subject)
    return found
