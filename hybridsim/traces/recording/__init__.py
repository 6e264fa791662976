"""Methods of recording a disk: a family.  A method is one file and one line in WAYS."""

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
LEVEL = 3  # of the compression of files
Tick = Callable[[float], None]  # called now and then with the elapsed seconds


@dataclass(frozen=True)
class Order:
    """The parameters of a recording."""

    disk: Disk
    prefix: Path  # of the files: PREFIX.blktrace.CPU.zst
    seconds: int
    buffer_bytes: int  # in the kernel, for each CPU
    host: Host
    stop: Event  # when set: end early, and keep the events so far
    tick: Tick


@dataclass(frozen=True)
class Outcome:
    """The result of a recording."""

    dropped: int  # events lost because the kernel's buffers were full
    failed: str = ""  # why it is incomplete; empty if it is complete or was stopped


class Way(Protocol):
    """A module that implements a method of recording."""

    def check(self, disk: Disk, host: Host) -> None:
        """Raise RecordingError if the method does not work on this machine."""

    def record(self, order: Order) -> Outcome:
        """Record, then restore all settings; the events so far are kept, also after a failure."""


def way(name: str) -> Way:
    """Return the module of a method."""
    module: Way = importlib.import_module(WAYS[name])
    return module
