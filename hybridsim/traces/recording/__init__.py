"""Ways to record what a disk really does: a family.  A way is one file and one line in WAYS."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Protocol

from hybridsim.traces.recording.disk import Disk, Host

WAYS = {
    "blktrace": "hybridsim.traces.recording.blktrace",
    "tracefs": "hybridsim.traces.recording.tracefs",
}
Tick = Callable[[float], None]  # told the seconds that have passed, now and then


@dataclass(frozen=True)
class Order:
    """What is to be recorded, and where to."""

    disk: Disk
    prefix: Path  # of the files: PREFIX.blktrace.CPU.zst
    seconds: int
    buffer_bytes: int  # in the kernel, for each CPU
    host: Host
    stop: Event  # set: end early, and keep what there is
    tick: Tick


@dataclass(frozen=True)
class Outcome:
    """How a recording went."""

    dropped: int  # events that the kernel had no room for
    failed: str = ""  # why it is not whole; nothing where it is, or was told to stop


class Way(Protocol):
    """A module that records."""

    def check(self, disk: Disk, host: Host) -> None:
        """Raise RecordingError if it cannot be done here."""

    def record(self, order: Order) -> Outcome:
        """Record, and leave the system as it was; what there is stays, also where it fails."""


def way(name: str) -> Way:
    """Return the module of a way."""
    module: Way = importlib.import_module(WAYS[name])
    return module
