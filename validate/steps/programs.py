"""Background programs of a measurement: fio, blktrace.  They end when this process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from validate.errors import RunError
from validate.steps import Scene
from validate.system import System

PATIENCE_S = 10


@dataclass(frozen=True)
class RunProgram:
    """A program in a session of its own; another process finds it by name and working folder."""

    words: tuple[str, ...]
    folder: str
    output: str
    traced: tuple[str, ...] = ()  # MAJOR:MINOR of devices whose tracing ends with it

    def describe(self) -> str:
        """Return what the step does."""
        return f"run {' '.join(self.words)}"

    def do(self, scene: Scene) -> None:
        """Start it; the kernel sends it SIGTERM if this process dies."""
        with (Path(self.folder) / self.output).open("wb") as stream:
            process = scene.system.start(self.words, Path(self.folder), stream)
        scene.facts[self.words[0]] = process

    def undo(self, system: System) -> None:
        """End processes with its name whose working folder is its folder, and their traces."""
        for process in self._left(system):
            _end(process, system)
        for number in self.traced:
            if system.read(system.block(number) / "trace/enable", "0") != "0":
                node = f"/dev/{system.block(number).name}"
                system.run(["blktrace", "-d", node, "-k"], check=False)

    def _left(self, system: System) -> list[int]:
        wanted = os.path.realpath(self.folder)
        numbers = []
        for process in system.proc.iterdir():
            if process.name.isdigit() and system.read(process / "comm", "") == self.words[0]:
                with contextlib.suppress(OSError):
                    if os.readlink(process / "cwd") == wanted:
                        numbers.append(int(process.name))
        return numbers


def _end(number: int, system: System) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, how)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if _has_ended(number, system):
                return
            time.sleep(0.05)
    raise RunError(
        f"process {number} did not end after SIGKILL: it waits for a device, see `dmesg`"
    )


def _has_ended(number: int, system: System) -> bool:
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(number, os.WNOHANG)[0] == number:
            return True
    state = system.read(system.proc / str(number) / "stat", "").rpartition(")")[2].split()
    return not state or state[0] in "ZX"


def finish(process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGINT) -> int:
    """Send a program a signal, kill it after PATIENCE_S, and return its exit code."""
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE_S)
    return process.returncode
