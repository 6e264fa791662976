"""Recording a disk: what it will take, the recording itself, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hybridsim.foundation.errors import RecordingError
from hybridsim.traces.recording import WAYS, Order, Tick, way
from hybridsim.traces.recording.disk import Disk, Estimate, Host, estimate, find
from hybridsim.traces.recording.packing import files_of
from hybridsim.traces.recording.stopping import on_signals
from hybridsim.traces.trace import Summary, Trace

AUTO = "auto"
ROOM = 0.9  # of the free space may be taken


@dataclass(frozen=True)
class Prepared:
    """A recording that could begin."""

    disk: Disk
    via: str
    prefix: Path
    seconds: int
    buffer_bytes: int
    host: Host
    estimate: Estimate
    is_on_disk: bool  # the recording will itself be written to the disk


@dataclass(frozen=True)
class Recording:
    """What came of it; no summary where no request came."""

    files: list[Path]
    bytes: int
    dropped: int  # events that the kernel had no room for
    was_stopped: bool
    summary: Summary | None


def prepare(
    device: str,
    output: str | None,
    seconds: int,
    via: str = AUTO,
    buffer_bytes: int = 4 << 20,
    host: Host | None = None,
) -> Prepared:
    """See what it takes to record a disk.  Raises RecordingError where it cannot be done."""
    host = host or Host()
    disk = find(device, host)
    prefix = prefix_of(output, disk)
    folder = prefix.absolute().parent
    if not folder.is_dir():
        raise RecordingError(f"{prefix}: there is no folder {folder}")
    if there := files_of(prefix):
        raise RecordingError(f"{there[0]} exists already: choose another name with -o")
    if host.uid != 0:
        raise RecordingError("only root may record what a disk does: run this with sudo")
    if via == AUTO:
        via = "tracefs" if host.is_locked_down else "blktrace"
    way(via).check(disk, host)
    expected = estimate(disk, seconds, folder, host)
    if expected.bytes > ROOM * expected.free_bytes:
        raise RecordingError(
            f"{folder} has room for {expected.free_bytes >> 20:,} MiB, but at the present "
            f"{expected.requests_per_second:,.0f} requests a second {expected.bytes >> 20:,} MiB "
            "may come: record for a shorter time, or elsewhere with -o"
        )
    return Prepared(
        disk, via, prefix, seconds, buffer_bytes, host, expected, disk.holds(folder)
    )  # fmt: skip


def prefix_of(output: str | None, disk: Disk) -> Path:
    """Return what the files' names begin with: as said, in the folder said, or the disk's name."""
    prefix = Path(output or disk.name)
    if prefix.is_dir():
        return prefix / disk.name
    return prefix.with_name(prefix.name.split(".blktrace")[0] or disk.name)


def record(prepared: Prepared, tick: Tick = lambda passed_s: None) -> Recording:
    """Record.  A signal ends it early, and what there is, is kept."""
    with on_signals() as stop:
        try:
            dropped = way(prepared.via).record(
                Order(
                    prepared.disk,
                    prepared.prefix,
                    prepared.seconds,
                    prepared.buffer_bytes,
                    prepared.host,
                    stop,
                    tick,
                )
            )
        except OSError as error:
            raise RecordingError(f"{prepared.prefix}: {error.strerror or error}") from None
    files = files_of(prepared.prefix)
    size = sum(each.stat().st_size for each in files)
    return Recording(files, size, dropped, stop.is_set(), summary_of(prepared))


def summary_of(prepared: Prepared) -> Summary | None:
    """Read a recording; None if no request came."""
    from hybridsim.foundation.errors import TraceError

    number = prepared.disk.number.replace(":", ",")
    try:
        trace = Trace.read(prepared.prefix)
        if number in [each.name for each in trace.devices]:
            trace = Trace.read(prepared.prefix, device=number)
        return trace.summary()
    except TraceError:
        return None


__all__ = ["AUTO", "WAYS", "Prepared", "Recording", "prepare", "record"]
