"""Child processes that end with their parent, however the parent ends.

The kernel kills a child when its parent dies (PR_SET_PDEATHSIG), so that even SIGKILL leaves no
guest behind.  In addition each guest's folder lists its processes, so that a later run can kill
any that remain.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from validate.lab.errors import LabError

PR_SET_PDEATHSIG = 1
PATIENCE_S = 10
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LIBC = ctypes.CDLL(None)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Make the kernel send this process a signal when its parent dies."""
    _LIBC.prctl(PR_SET_PDEATHSIG, number)


class Folder:
    """The folder of a running guest: its sockets, disks, and process IDs."""

    def __init__(self, path: Path) -> None:
        """Use an existing folder."""
        self.path = path

    def start(self, name: str, command: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
        """Start a child in this folder, with its standard error in NAME.log."""
        with (self.path / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                command, cwd=self.path, stdin=subprocess.DEVNULL, stderr=log,
                preexec_fn=die_with_parent, start_new_session=True, **how,
            )  # fmt: skip
        (self.path / f"{name}.pid").write_text(str(child.pid))
        return child

    def log(self, name: str) -> str:
        """Return the standard error of a child."""
        path = self.path / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""


def put_before(pid: int, but: str) -> None:
    """Give all threads of a process, but those with a name that begins so, a higher priority.

    Only in a real-time class: with an equal priority the others would wait there for the end of a
    time slice, 100 ms.
    """
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended, or is not ours
            number = int(task.name)
            policy = os.sched_getscheduler(number)
            is_behind = (task / "comm").read_text().startswith(but)
            if policy in (os.SCHED_FIFO, os.SCHED_RR) and not is_behind:
                above = os.sched_getparam(number).sched_priority + 1
                os.sched_setscheduler(number, policy, os.sched_param(above))


def stop(child: subprocess.Popen[Any]) -> None:
    """Terminate a child, kill it after PATIENCE_S, and wait for it."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()


@contextlib.contextmanager
def folder_below(runs: Path) -> Iterator[Folder]:
    """Create a private folder, lock it during the context, and remove it afterwards."""
    runs.mkdir(parents=True, exist_ok=True)
    clear_leftovers(runs)
    path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=runs))
    with (path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield Folder(path)
        finally:
            shutil.rmtree(path, ignore_errors=True)


def clear_leftovers(runs: Path) -> list[str]:
    """Remove folders of processes that were killed, and kill their children; return the names."""
    cleared = []
    for path in sorted(runs.iterdir()) if runs.exists() else []:
        with contextlib.suppress(OSError), (path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held while its guest runs
            for pid_file in path.glob("*.pid"):
                _kill_if_ours(int(pid_file.read_text() or 0), path)
            shutil.rmtree(path, ignore_errors=True)
            cleared.append(path.name)
    return cleared


def _kill_if_ours(pid: int, folder: Path) -> None:
    """Kill a process if its working folder is `folder`: process IDs are reused."""
    with contextlib.suppress(OSError):
        if pid > 1 and os.readlink(f"/proc/{pid}/cwd") == str(folder):
            os.kill(pid, signal.SIGKILL)


class StoppedError(LabError):
    """A signal ended the run; the contexts clean up."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}; the guest is gone")
        self.exit_code = 128 + number


@contextlib.contextmanager
def signals_raise() -> Iterator[None]:
    """Raise StoppedError on the signals in STOPPING (main thread only)."""

    def stopped(number: int, frame: FrameType | None) -> None:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)  # further signals must not interrupt the cleanup
        raise StoppedError(number)

    previous = {each: signal.signal(each, stopped) for each in STOPPING}
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
