"""Run blktrace on the cached, slow and fast devices, while fio runs."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validate import layout
from validate.devices import Device
from validate.errors import MissingError, RunError
from validate.site import Site
from validate.steps.programs import RunProgram, finish
from validate.system import System

OUTPUT = "blktrace.txt"
BUFFER_KIB, BUFFERS = 1024, 8  # for each CPU and device
BEGIN_S = 10.0
DROPPED = re.compile(r"You have (\d+) .*dropped events")
LOCKED = ("[integrity]", "[confidentiality]")


def check(system: System) -> None:
    """Raise MissingError if blktrace cannot work."""
    system.need("blktrace")
    lockdown = system.read(system.sys / "kernel/security/lockdown", "")
    if any(word in lockdown for word in LOCKED):
        raise MissingError(
            "the kernel's lockdown mode forbids blktrace: write trace = false in [collect]"
        )
    if not (system.sys / "kernel/debug/block").is_dir():
        raise MissingError("blktrace needs debugfs: mount -t debugfs none /sys/kernel/debug")


@dataclass
class Trace:
    """A blktrace recording that starts at `start_s` of the load and lasts `duration_s`."""

    devices: Sequence[Device]
    folder: Path
    start_s: int
    duration_s: int
    site: Site
    step: RunProgram | None = None
    ended: bool = False

    def tick(self, passed_s: float) -> None:
        """Start or stop the recording if it is due at `passed_s` of the load."""
        if self.step is None and not self.ended and passed_s >= self.start_s:
            self.begin()
        if self.step is not None and passed_s >= self.start_s + self.duration_s:
            self.end()

    def begin(self) -> None:
        """Start blktrace, and wait until it traces all devices."""
        folder = self.folder / layout.TRACE
        folder.mkdir(exist_ok=True)
        words = ["blktrace", "-b", str(BUFFER_KIB), "-n", str(BUFFERS)]
        words += [word for device in self.devices for word in ("-d", device.node)]
        self.step = RunProgram(
            tuple(words), str(folder), OUTPUT, tuple(device.number for device in self.devices)
        )
        self.site.do(self.step)
        until = time.monotonic() + BEGIN_S
        while time.monotonic() < until and not self._is_on():
            if self._process.poll() is not None:
                raise RunError(f"blktrace failed: {self._output()[:300]}")
            time.sleep(0.05)

    def end(self) -> str:
        """Stop blktrace; return a note on lost events, or ""."""
        if self.step is None:
            return ""
        begun = time.monotonic()
        finish(self._process)
        self.site.scene.system.note(self.step.words, begun, self._process.returncode)
        self.site.undo(self.step)
        self.step, self.ended = None, True
        dropped = DROPPED.search(self._output())
        return f"blktrace lost {dropped[1]} events" if dropped else ""

    @property
    def _process(self) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = self.site.scene.facts["blktrace"]
        return process

    def _is_on(self) -> bool:
        read = self.site.scene.system.read
        return all(read(each.folder / "trace/enable", "0") != "0" for each in self.devices)

    def _output(self) -> str:
        path = self.folder / layout.TRACE / OUTPUT
        return path.read_text(errors="replace").strip() if path.exists() else ""
