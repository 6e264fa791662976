"""Recording with blktrace(8), the usual method."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from threading import Event

from hybridsim.foundation.errors import RecordingError
from hybridsim.foundation.writing import whole_file
from hybridsim.traces.formats.files import per_cpu_files, zstd
from hybridsim.traces.recording import LEVEL, Disk, Host, Order, Tick

PROGRAM = "blktrace"
# Queue, issue, completion, requeue: the events that determine requests and their latencies.
ACTIONS = ("queue", "issue", "complete", "requeue")
BUFFERS = 8
TICK_S = 0.2
PATIENCE_S = 10  # for blktrace to write its last buffers
DROPPED = re.compile(r"You have (\d+) .*dropped events")
# If blktrace cannot open the file of a CPU, it prints a line, continues, and exits with 0.
FAILED = re.compile(
    r"fail|not permitted|denied|cannot|could ?n[o']t|no such|no space|error", re.IGNORECASE
)
PIECE_BYTES = 1 << 20
PACKED = ".zst"
EARLY_S = 1  # blktrace may end this much before its time


def check(disk: Disk, host: Host) -> None:
    """Raise RecordingError if blktrace is not installed, or the kernel denies it its files."""
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
    """Return the command line of blktrace."""
    buffer_kib = max(order.buffer_bytes // BUFFERS // 1024, 4)
    words = [PROGRAM, "-d", order.disk.path, "-D", str(order.prefix.parent)]
    words += ["-o", order.prefix.name, "-w", str(order.seconds)]
    words += ["-b", str(buffer_kib), "-n", str(BUFFERS)]
    return words + [word for action in ACTIONS for word in ("-a", action)]


def record(order: Order, stop: Event, tick: Tick) -> tuple[int, str]:
    """Run blktrace to its end, or until `stop` is set; then compress its files."""
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        # In a session of its own: Ctrl-C is handled here, and passed on.
        process = subprocess.Popen(
            command(order), stdout=output, stderr=output, start_new_session=True
        )
        try:
            while not stop.is_set() and process.poll() is None:
                stop.wait(TICK_S)
                tick(time.monotonic() - begun)
        finally:
            if process.poll() is None:
                _end(process, order.disk)
        passed_s = time.monotonic() - begun
        output.seek(0)
        printed = output.read()
    pack(order.prefix)
    failed = "" if stop.is_set() else failure(printed, process.returncode, passed_s, order)
    return sum(map(int, DROPPED.findall(printed))), failed


def failure(printed: str, code: int, passed_s: float, order: Order) -> str:
    """Return why a recording is incomplete, from the output and the end of blktrace; else ''."""
    lines = [line for line in printed.splitlines() if not DROPPED.search(line)]
    if code > 0 or any(FAILED.search(line) for line in lines):
        return _why("\n".join(lines), order.disk)
    if code < 0:
        return f"blktrace was ended by signal {-code} after {passed_s:.0f} of {order.seconds} s"
    if passed_s < order.seconds - EARLY_S:
        return f"blktrace ended after {passed_s:.0f} of {order.seconds} s without a reason"
    return ""


def _end(process: subprocess.Popen[bytes], disk: Disk) -> None:
    """Stop blktrace by SIGINT; if that fails, kill it and stop the kernel's tracing."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        subprocess.run([PROGRAM, "-d", disk.path, "-k"], capture_output=True, check=False)


def _why(printed: str, disk: Disk) -> str:
    """Return why blktrace failed, and how to fix it."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    fix = ""
    if "not permitted" in printed:
        fix = "; the kernel's lockdown may deny it its files: record with --via tracefs"
    elif "Debugfs is not mounted" in printed:
        fix = "; mount it: mount -t debugfs none /sys/kernel/debug"
    elif "resource busy" in printed:
        fix = f"; it is already being traced: blktrace -d {disk.path} -k stops that"
    return f"blktrace failed: {' '.join(lines[:3]) or 'no message'}{fix}"


def pack(prefix: Path) -> None:
    """Compress each file of a recording to a new file beside it, then remove the original."""
    for plain in per_cpu_files(prefix):
        if plain.suffix == PACKED:
            continue
        packed = plain.with_name(plain.name + PACKED)
        with (
            plain.open("rb") as source,
            whole_file(packed) as raw,
            zstd.ZstdFile(raw, "wb", level=LEVEL) as target,
        ):
            shutil.copyfileobj(source, target, PIECE_BYTES)
        plain.unlink()
