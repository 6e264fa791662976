"""Record the requests to a disk: the checks before, the recording, and its result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hybridsim.foundation.errors import RecordingError, TraceError
from hybridsim.traces.formats.blktrace import device_name
from hybridsim.traces.formats.files import per_cpu_files
from hybridsim.traces.recording import WAYS, Disk, Estimate, Host, Order, Tick, estimate, find, way
from hybridsim.traces.recording.privileges import on_signals
from hybridsim.traces.trace import Summary, Trace

AUTO = "auto"
WAYS_LOCKED = ("tracefs",)  # under kernel lockdown, where blktrace cannot record
ROOM = 0.9  # share of the free space that a recording may take


@dataclass(frozen=True)
class Prepared(Order):
    """A recording that passed all checks."""

    via: str
    estimate: Estimate
    is_on_disk: bool  # the recording is written to the recorded disk
    others: tuple[str, ...] = ()  # ways to try if this one fails


@dataclass(frozen=True)
class Recording:
    """The result of a recording; no summary if there were no requests."""

    files: list[Path]
    bytes: int
    dropped: int  # events lost because the kernel's buffers were full
    was_stopped: bool
    summary: Summary | None
    via: str = "blktrace"  # the way that recorded it
    failed: str = ""  # why it ended early, unless it was stopped
    instead_of: str = ""  # why the first way failed


def prepare(
    device: str,
    output: str | None,
    seconds: int,
    via: str = AUTO,
    buffer_bytes: int = 4 << 20,
    host: Host | None = None,
) -> Prepared:
    """Check that a disk can be recorded for `seconds`; raise RecordingError if it cannot."""
    host = host or Host()
    disk = find(device, host)
    prefix = prefix_of(output, disk)
    folder = prefix.absolute().parent
    if not folder.is_dir():
        raise RecordingError(f"{prefix}: no such folder: {folder}")
    if there := per_cpu_files(prefix):
        raise RecordingError(f"{there[0]} exists already: choose another name with -o")
    if host.uid != 0:
        raise RecordingError("only root may record a disk: run this with sudo")
    ways = (via,) if via != AUTO else WAYS_LOCKED if host.is_locked_down else tuple(WAYS)
    via, others = _first_that_works(ways, disk, host)
    expected = estimate(disk, seconds, folder, host)
    if expected.bytes > ROOM * expected.free_bytes:
        raise RecordingError(
            f"{folder} has room for {expected.free_bytes >> 20:,} MiB, but at the present "
            f"{expected.requests_per_second:,.0f} requests per second {expected.bytes >> 20:,} MiB "
            "are expected: record for a shorter time, or in another folder with -o"
        )
    return Prepared(
        disk, prefix, seconds, buffer_bytes, host, via, expected, disk.holds(folder), others
    )  # fmt: skip


def prefix_of(output: str | None, disk: Disk) -> Path:
    """Return the prefix of the files: `output`, or the disk's name in the folder `output`."""
    prefix = Path(output or disk.name)
    if prefix.is_dir():
        return prefix / disk.name
    return prefix.with_name(prefix.name.split(".blktrace")[0] or disk.name)


def _first_that_works(ways: tuple[str, ...], disk: Disk, host: Host) -> tuple[str, tuple[str, ...]]:
    """Return the first way whose check passes, and those after it.

    Raises the error of the first way if none passes.
    """
    first: RecordingError | None = None
    for place, each in enumerate(ways):
        try:
            way(each).check(disk, host)
        except RecordingError as error:
            first = first or error
        else:
            return each, ways[place + 1 :]
    assert first is not None
    raise first


def record(prepared: Prepared, tick: Tick = lambda passed_s: None) -> Recording:
    """Record a disk.  A signal ends the recording early; what was recorded is kept.

    If a way fails before it has recorded a request, the next one is tried.  Raises RecordingError
    if no way recorded anything.
    """
    done = _record(prepared, tick)
    if not done.failed or done.summary is not None:
        return done
    for each in done.files:  # they contain no requests
        each.unlink()
    for place, other in enumerate(prepared.others):
        try:
            way(other).check(prepared.disk, prepared.host)
        except RecordingError:
            continue
        later = replace(prepared, via=other, others=prepared.others[place + 1 :])
        return replace(record(later, tick), instead_of=done.failed)
    raise RecordingError(done.failed)


def _record(prepared: Prepared, tick: Tick) -> Recording:
    with on_signals() as stop:
        try:
            dropped, failed = way(prepared.via).record(prepared, stop, tick)
        except OSError as error:
            raise RecordingError(f"{prepared.prefix}: {error.strerror or error}") from None
    files = per_cpu_files(prepared.prefix)
    size = sum(each.stat().st_size for each in files)
    return Recording(
        files, size, dropped, stop.is_set(), summary_of(prepared), prepared.via, failed
    )


def summary_of(prepared: Prepared) -> Summary | None:
    """Return the summary of a recording; None if it has no requests."""
    number = device_name(prepared.disk.devices[0])
    try:
        trace = Trace.read(prepared.prefix)
        if number in [each.name for each in trace.devices]:
            trace = Trace.read(prepared.prefix, device=number)
        return trace.summary()
    except TraceError:
        return None
