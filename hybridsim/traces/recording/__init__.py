"""Recording of a disk: the disk, from sysfs, which is never written to; and the methods, a family.

A method is one file and one line in WAYS.
"""

from __future__ import annotations

import importlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Protocol

from hybridsim.foundation.errors import RecordingError
from hybridsim.foundation.suggest import nearest

WAYS = {
    "blktrace": "hybridsim.traces.recording.blktrace",
    "tracefs": "hybridsim.traces.recording.tracefs",
}
LEVEL = 3  # of the compression of files
Tick = Callable[[float], None]  # called now and then with the elapsed seconds
RECORD_BYTES = 48
SECTOR_BYTES = 512  # of all sizes in sysfs
EVENTS = 3  # of a request: queued, issued, completed
# Of a disk's `stat` file: reads, writes, discards, flushes completed; the first three merged.
KINDS = ((0, 4, 11, 15), (1, 5, 12))
SAMPLE_S = 1.0
LOCKED = ("[integrity]", "[confidentiality]")


@dataclass(frozen=True)
class Host:
    """The machine; tests substitute another."""

    sys: Path = Path("/sys")
    uid: int = field(default_factory=os.geteuid)
    release: str = field(default_factory=lambda: os.uname().release)
    sample_s: float = SAMPLE_S

    @property
    def is_locked_down(self) -> bool:
        """Whether the kernel denies root its debugfs files."""
        try:
            text = (self.sys / "kernel/security/lockdown").read_text()
        except OSError:
            return False
        return any(word in text for word in LOCKED)


@dataclass(frozen=True)
class Disk:
    """A block device: its name in the kernel, its number, and its folder in sysfs."""

    name: str
    path: str
    folder: Path

    @property
    def devices(self) -> list[int]:
        """Numbers of the disk and its partitions, as in events: MAJOR << 20 | MINOR."""
        folders = [self.folder, *(each.parent for each in self.folder.glob("*/partition"))]
        pairs = (map(int, (each / "dev").read_text().split(":")) for each in folders)
        return [major << 20 | minor for major, minor in pairs]

    @property
    def size_bytes(self) -> int:
        """Its size."""
        return int((self.folder / "size").read_text()) * SECTOR_BYTES

    def requests_done(self) -> tuple[int, int]:
        """Return the numbers of requests completed and merged since boot."""
        fields = [int(word) for word in (self.folder / "stat").read_text().split()]
        done, merged = (sum(fields[at] for at in of if at < len(fields)) for of in KINDS)
        return done, merged

    def holds(self, folder: Path) -> bool:
        """Return whether a folder is on this disk or one of its partitions."""
        device = os.stat(folder).st_dev
        return os.major(device) << 20 | os.minor(device) in self.devices


def find(device: str, host: Host) -> Disk:
    """Return the block device of that path or name.  Raises RecordingError if there is none."""
    path = Path(device if "/" in device else f"/dev/{device}")
    name = os.path.realpath(path).rsplit("/", 1)[-1]
    folder = host.sys / "class/block" / name
    if not folder.is_dir():
        known = sorted(each.name for each in (host.sys / "class/block").glob("*"))
        like = nearest(name, known)
        seen = f"did you mean {like}?" if like else f"available: {', '.join(known) or 'none'}"
        raise RecordingError(f"{device}: not a block device: {seen}")
    return Disk(name, str(path), folder)


@dataclass(frozen=True)
class Estimate:
    """The expected size of a recording, if the load stays as in the last second."""

    requests_per_second: float
    bytes: int  # uncompressed
    free_bytes: int


def estimate(disk: Disk, seconds: int, folder: Path, host: Host) -> Estimate:
    """Sample the counters of a disk for a second, and estimate the size of a recording."""
    done, merged = disk.requests_done()
    begun = time.monotonic()
    time.sleep(host.sample_s)
    passed_s = max(time.monotonic() - begun, 1e-3)
    more_done, more_merged = disk.requests_done()
    rate = (more_done - done) / passed_s
    events = EVENTS * rate + (more_merged - merged) / passed_s
    return Estimate(rate, round(events * RECORD_BYTES * seconds), shutil.disk_usage(folder).free)


@dataclass(frozen=True)
class Order:
    """What is recorded."""

    disk: Disk
    prefix: Path  # of the files: PREFIX.blktrace.CPU.zst
    seconds: int
    buffer_bytes: int  # in the kernel, for each CPU
    host: Host


class Way(Protocol):
    """A module that implements a method of recording."""

    def check(self, disk: Disk, host: Host) -> None:
        """Raise RecordingError if the method does not work on this machine."""

    def record(self, order: Order, stop: Event, tick: Tick) -> tuple[int, str]:
        """Record, then restore all settings; the events so far are kept, also after a failure.

        Once `stop` is set it ends.  Return the events lost because the kernel's buffers were full,
        and why the recording is incomplete, or "" if it is complete or was stopped.
        """


def way(name: str) -> Way:
    """Return the module of a method."""
    module: Way = importlib.import_module(WAYS[name])
    return module
