"""The collectors that sample a run.  To add one, add a file and a line in COLLECTORS."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from validate.system import System

COLLECTORS = {
    "diskstats": "validate.collecting.diskstats",
    "host load": "validate.collecting.host_load",
    "mapped cache": "validate.collecting.mapped",
    "bcache": "validate.collecting.bcache",
    "Open CAS": "validate.collecting.opencas",
}


@dataclass(frozen=True)
class Subject:
    """The cache that is sampled."""

    system: System
    kind: str
    numbers: dict[str, str]  # MAJOR:MINOR by role: cached, slow..., fast
    mapped: str = ""  # dm-cache, dm-writecache: name of the mapped device
    backing: Path = Path()  # bcache: the backing device's folder in sysfs
    statistics: tuple[str, ...] = ()  # Open CAS: the command that prints its counters


class Collector(Protocol):
    """Samples of one kind: a file with a header, and lines that begin with uptime in seconds."""

    file: str
    separator: str  # between the uptime and a line

    def header(self) -> str:
        """Return the first line, or ""."""

    def sample(self) -> list[str]:
        """Return the lines of one sample, without the uptime; raise RunError if reading fails."""

    def close(self) -> None:
        """Release all resources."""


def of(subject: Subject) -> list[Collector]:
    """Return the collectors that apply to a subject."""
    collectors: list[Any] = []
    for module in COLLECTORS.values():
        collectors += importlib.import_module(module).of(subject)
    return collectors
