"""Recording with blktrace(8): the usual way."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time

from hybridsim.foundation.errors import RecordingError
from hybridsim.traces.recording import Order, Outcome
from hybridsim.traces.recording.disk import Disk, Host
from hybridsim.traces.recording.packing import pack

PROGRAM = "blktrace"
# Queued, issued, completed, and sent again: all that requests and their latencies are made of.
ACTIONS = ("queue", "issue", "complete", "requeue")
BUFFERS = 8
TICK_S = 0.2
PATIENCE_S = 10  # for blktrace to write its last buffers
DROPPED = re.compile(r"You have (\d+) .*dropped events")
# Of a CPU whose file blktrace cannot open it tells in a line, goes on, and ends with code 0.
FAILED = re.compile(
    r"fail|not permitted|denied|cannot|could ?n[o']t|no such|no space|error", re.IGNORECASE
)
SOON_S = 1  # blktrace may end so much before its time


def check(disk: Disk, host: Host) -> None:
    """Raise RecordingError where blktrace is not installed, or is denied its files."""
    if shutil.which(PROGRAM) is None:
        raise RecordingError(
            "blktrace is not installed: install it (Debian: apt install blktrace), "
            "or record with --via tracefs"
        )
    if host.is_locked_down:
        raise RecordingError(
            "the kernel's lockdown denies blktrace its debugfs files: record with --via tracefs"
        )


def command(order: Order) -> list[str]:
    """Return what is run."""
    buffer_kib = max(order.buffer_bytes // BUFFERS // 1024, 4)
    words = [PROGRAM, "-d", order.disk.path, "-D", str(order.prefix.parent)]
    words += ["-o", order.prefix.name, "-w", str(order.seconds)]
    words += ["-b", str(buffer_kib), "-n", str(BUFFERS)]
    return words + [word for action in ACTIONS for word in ("-a", action)]


def record(order: Order) -> Outcome:
    """Run blktrace to its end, or until told to stop; then pack its files."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        # Of a session of its own: a Ctrl-C is for us, and we tell it.
        process = subprocess.Popen(
            command(order), stdout=output, stderr=output, start_new_session=True
        )
        try:
            while not order.stop.is_set() and process.poll() is None:
                order.stop.wait(TICK_S)
                order.tick(time.monotonic() - begun)
        finally:
            if process.poll() is None:
                _end(process, order.disk)
        passed_s = time.monotonic() - begun
        output.seek(0)
        told = output.read()
    pack(order.prefix)
    failed = ""
    if not order.stop.is_set():
        failed = failure(told, process.returncode, passed_s, order)
    return Outcome(sum(map(int, DROPPED.findall(told))), failed)


def failure(told: str, code: int, passed_s: float, order: Order) -> str:
    """Return why a recording is not whole, from what blktrace told and when it ended."""
    lines = [line for line in told.splitlines() if not DROPPED.search(line)]
    if code > 0 or any(FAILED.search(line) for line in lines):
        return _why("\n".join(lines), order.disk)
    if code < 0:
        return f"blktrace was ended by signal {-code} after {passed_s:.0f} of {order.seconds} s"
    if passed_s < order.seconds - SOON_S:
        return f"blktrace ended after {passed_s:.0f} of {order.seconds} s and gave no reason"
    return ""


def _end(process: subprocess.Popen[bytes], disk: Disk) -> None:
    """End blktrace in its own way; failing that, end it and the kernel's tracing."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        subprocess.run([PROGRAM, "-d", disk.path, "-k"], capture_output=True, check=False)


def _why(told: str, disk: Disk) -> str:
    """Say why blktrace failed, and how to mend it."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    mend = ""
    if "not permitted" in told:
        mend = "; the kernel's lockdown may deny it its files: record with --via tracefs"
    elif "Debugfs is not mounted" in told:
        mend = "; mount it: mount -t debugfs none /sys/kernel/debug"
    elif "resource busy" in told:
        mend = f"; somebody traces it already: blktrace -d {disk.path} -k ends that"
    return f"blktrace failed: {' '.join(lines[:3]) or 'it says nothing'}{mend}"
