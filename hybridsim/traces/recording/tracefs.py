"""Recording with the kernel's `blk` tracer, which writes blktrace's records to tracefs.

For kernels whose lockdown denies blktrace its debugfs files.  Only files of tracefs are changed,
and each is restored in all cases.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

from hybridsim.foundation.errors import RecordingError
from hybridsim.traces.formats.files import zstd
from hybridsim.traces.recording import LEVEL, Disk, Host, Order, Tick

PLACES = ("kernel/tracing", "kernel/debug/tracing")
ACTIONS = "queue,issue,complete,requeue"
READ_BYTES = 1 << 16
IDLE_S = 0.02
TICK_S = 0.2
FIRST_BROKEN = (6, 19)  # writes version 8 fields into version 7 records, truncated
IDLE = "nop"
# magic, sequence, time, sector, bytes, action, pid, device, cpu, error, payload bytes
HEADER = struct.Struct("=IIQQIIIIIHH")
MAGIC_7, NOTE_OF_WALL_CLOCK = 0x65617407, 1 << 26 | 1
LOST = re.compile(r"^(?:overrun|dropped events): (\d+)", re.MULTILINE)


def check(disk: Disk, host: Host) -> None:
    """Raise RecordingError if the tracer is missing, broken, or in use by another program."""
    version = tuple(int(word) for word in re.findall(r"\d+", host.release)[:2])
    if version >= FIRST_BROKEN:
        raise RecordingError(
            f"the `blk` tracer of kernel {host.release} writes malformed records (kernels from "
            "6.19 on): record with --via blktrace"
        )
    root = place(host)
    if "blk" not in content(root / "available_tracers").split():
        raise RecordingError("the kernel has no `blk` tracer (CONFIG_BLK_DEV_IO_TRACE)")
    tracer = content(root / "current_tracer")
    if tracer != IDLE:
        raise RecordingError(
            f"the kernel's tracer is in use ({tracer}): stop that first, or "
            f"echo {IDLE} > {root / 'current_tracer'}"
        )
    if content(disk.folder / "trace/enable") != "0":
        raise RecordingError(
            f"{disk.path} is already being traced; stop that with blktrace -d {disk.path} -k"
        )


def place(host: Host) -> Path:
    """Return the mount point of tracefs; raise RecordingError if it is not mounted."""
    for each in PLACES:
        if (host.sys / each / "current_tracer").exists():
            return host.sys / each
    raise RecordingError(
        "tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing (as root; impossible "
        "under the lockdown `confidentiality`)"
    )


def record(order: Order, stop: Event, tick: Tick) -> tuple[int, str]:
    """Record until the time is over or `stop` is set."""
    root = place(order.host)
    cpus = {int(each.name[3:]): each for each in root.glob("per_cpu/cpu[0-9]*")}
    lost_before = _lost(root)
    with settings() as put:
        put(root / "buffer_size_kb", str(max(order.buffer_bytes // 1024, 64)))
        put(root / "trace_clock", "mono")
        put(root / "options/bin", "1")
        put(root / "options/context-info", "0")
        put(root / "tracing_on", "1")
        put(root / "current_tracer", "blk")  # EBUSY while any pipe is open: before and after
        with _pipes(cpus, order.prefix) as pipes:
            first = min(pipes)
            pipes[first][1].write(wall_clock(order.disk.devices[0], first))
            with settings() as put_on:
                put_on(order.disk.folder / "trace/enable", "1")
                _write(order.disk.folder / "trace/act_mask", ACTIONS)
                _watch(pipes, order.seconds, stop, tick)
                failed = _ended_by_others(root, order.disk)
            while _drain(pipes):
                pass
            lost = _lost(root) - lost_before
    return max(lost, 0), failed


@contextlib.contextmanager
def _pipes(cpus: dict[int, Path], prefix: Path) -> Iterator[dict[int, tuple[int, Any]]]:
    """Yield for each CPU its pipe and the file that its events are written to."""
    pipes: dict[int, tuple[int, Any]] = {}
    with ExitStack() as files:
        for cpu, folder in sorted(cpus.items()):
            path = folder / "trace_pipe"
            try:
                pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            except OSError as error:
                raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None
            files.callback(os.close, pipe)
            packed = zstd.ZstdFile(f"{prefix}.blktrace.{cpu}.zst", "wb", level=LEVEL)
            pipes[cpu] = pipe, files.enter_context(packed)
        yield pipes


def _ended_by_others(root: Path, disk: Disk) -> str:
    """Return an error if another program changed the settings, so that requests are missing."""
    enable, tracer, on = disk.folder / "trace/enable", root / "current_tracer", root / "tracing_on"
    for path, wanted in ((enable, "1"), (tracer, "blk"), (on, "1")):
        if (value := chosen(content(path))) != wanted:
            return f"another program ended the kernel's tracing: {path} is {value}, not {wanted}"
    return ""


def _watch(pipes: dict[int, tuple[int, Any]], seconds: int, stop: Event, tick: Tick) -> None:
    begun = ticked = time.monotonic()
    while not stop.is_set() and time.monotonic() - begun < seconds:
        if not _drain(pipes):
            stop.wait(IDLE_S)
        if time.monotonic() - ticked >= TICK_S:
            ticked = time.monotonic()
            tick(ticked - begun)


def _drain(pipes: dict[int, tuple[int, Any]]) -> int:
    """Write the pending events of each CPU to its file, one read each; return the bytes."""
    total = 0
    for pipe, file in pipes.values():
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            continue
        file.write(data)
        total += len(data)
    return total


@contextlib.contextmanager
def settings() -> Iterator[Any]:
    """Yield a function that writes a tracing file; restore all files at the end, last one first.

    A file that cannot be restored does not stop the others; it is reported at the end.
    """
    before: list[tuple[Path, str]] = []

    def put(path: Path, value: str) -> None:
        old = chosen(content(path))
        if old != value:
            before.append((path, old))
            _write(path, value)

    failed = []
    try:
        yield put
    finally:
        for path, old in reversed(before):
            try:
                _write(path, old)
            except RecordingError:
                failed.append(f"echo {old} > {path}")
        if failed:
            raise RecordingError("these settings could not be restored: " + "; ".join(failed))


def chosen(text: str) -> str:
    """Return the value of a tracing file; of a list, the item in brackets."""
    bracketed = re.search(r"\[([\w-]+)\]", text)
    expanded = re.search(r"expanded: (\d+)", text)
    return bracketed[1] if bracketed else expanded[1] if expanded else text


def wall_clock(device: int, cpu: int) -> bytes:
    """Return a note record with the wall-clock time, as blktrace writes one at the start."""
    now_ns, wall_ns = time.monotonic_ns(), time.time_ns()
    seconds, rest_ns = divmod(wall_ns, 10**9)
    header = HEADER.pack(MAGIC_7, 0, now_ns, 0, 0, NOTE_OF_WALL_CLOCK, 0, device, cpu, 0, 8)
    return header + struct.pack("=II", seconds & 0xFFFFFFFF, rest_ns)


def _lost(root: Path) -> int:
    """Return how many events the kernel has overwritten or dropped."""
    texts = (content(each) for each in root.glob("per_cpu/cpu[0-9]*/stats"))
    return sum(int(number) for text in texts for number in LOST.findall(text))


def content(path: Path) -> str:
    """Return the text of a tracing file; raise RecordingError if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from None


def _write(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from None
