"""Thin requests: of a trace, or of a disk for weeks while they happen, to a file of limited size.

A sample of the regions, counters of all requests, some stretches in full.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from hybridsim.foundation.documents import Document
from hybridsim.foundation.errors import RecordingError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import format_size, format_time, human_size
from hybridsim.requests.pages import SPAN
from hybridsim.requests.rows import Requests, no_requests
from hybridsim.studies.record import prefix_of
from hybridsim.traces.recording import Disk, Host, find
from hybridsim.traces.recording.live import Live
from hybridsim.traces.recording.privileges import on_signals
from hybridsim.traces.thinned.layout import Counter, Counts, rows_as_bytes
from hybridsim.traces.thinned.thinner import HOUR_NS, Settings, Store, Thinner
from hybridsim.traces.trace import Trace

SUFFIX = ".thin"
PAUSE_S = 1.0  # between two readings of the kernel's buffer
COUNTERS_BYTES_A_MINUTE = 600  # at most, of a minute: measured
SECOND_NS = 10**9
CLOCK_NS = 10 * SECOND_NS  # by which a clock may have been set back


@dataclass(frozen=True)
class Result:
    """What was written."""

    path: str
    bytes: int
    requests: int  # of the trace
    rate: float  # at the end: share of the regions
    stretches: int
    written_again: int  # times that the rate or the stretches were reduced


def thin(
    trace: Trace,
    output: str | os.PathLike[str],
    settings: Settings,
    watch: Callable[[Iterator[Requests]], Iterator[Requests]] = iter,
) -> Result:
    """Write the thinned capture of a trace: completely, or not at all.

    Time 0 of the capture is the full hour before the trace, where its clock is known.  Memory does
    not depend on the length of the trace.  Raises UsageError for settings that cannot be met, or a
    file that cannot be written.
    """
    settings.check()
    if getattr(trace, "sample", None) is not None:
        raise UsageError(f"{trace.name} is thinned already: thin the trace it was made from")
    target = Path(output)
    shift_ns = 0
    if trace.origin is not None and trace.origin >= 0:
        shift_ns = trace.origin % HOUR_NS
        settings = replace(settings, origin_unix_ns=trace.origin - shift_ns)
    temporary = target.absolute().with_name(f".hybridsim-{secrets.token_hex(8)}")
    try:
        with closing(Store(temporary)) as store:
            thinner = Thinner(store, settings)
            rows = 0
            for chunk in watch(trace.chunks()):
                thinner.take(chunk.later(shift_ns))
                rows += chunk.rows
            thinner.finish()
            store.flush(is_safe=True)
            size = store.size
        temporary.chmod(0o644)
        os.replace(temporary, target)
    except OSError as error:
        raise UsageError(f"cannot write {printable(target)}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return Result(
        str(output), size, rows, thinner.threshold / SPAN,
        len(thinner.chosen.all()), thinner.written_again,
    )  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """A recording that passed all checks."""

    disk: Disk
    path: Path
    seconds: int  # from the first start
    max_bytes: int
    buffer_bytes: int
    host: Host
    goes_on: bool  # the file exists
    is_on_disk: bool  # the file is written to the recorded disk


@dataclass(frozen=True)
class Recording(Document):
    """The result of a recording."""

    device: str
    file: str
    bytes: int
    requests: int  # of this run
    rate: float
    dropped_events: int  # of this run
    seconds: float  # of this run
    cpu_seconds: float
    complete: bool  # the time is over


def prepare(
    device: str,
    output: str | None,
    seconds: int,
    max_bytes: int,
    buffer_bytes: int = 4 << 20,
    host: Host | None = None,
) -> Prepared:
    """Check that a disk can be recorded; raise RecordingError or UsageError if it cannot."""
    host = host or Host()
    disk = find(device, host)
    path = path_of(output, disk)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise RecordingError(f"{path}: no such folder: {folder}")
    if path.is_dir():
        raise RecordingError(f"{path} is a folder: name a file with -o")
    Settings(max_bytes=max_bytes).check()
    counters = seconds * COUNTERS_BYTES_A_MINUTE // 60
    if counters > max_bytes // 4:
        raise UsageError(
            f"--max {human_size(max_bytes)} is too small: the counters of {seconds / 86_400:.1f} "
            f"days alone take up to {human_size(counters)}; allow {human_size(4 * counters)}"
        )
    disk_free = os.statvfs(folder)
    free = disk_free.f_bavail * disk_free.f_frsize
    there = path.stat().st_size if path.exists() else 0
    if max_bytes - there > free:
        raise RecordingError(
            f"{folder} has room for {human_size(free)}, less than --max {human_size(max_bytes)}: "
            "choose another folder with -o, or a smaller --max"
        )
    return Prepared(
        disk, path, seconds, max_bytes, buffer_bytes, host, path.exists(), disk.holds(folder)
    )


def path_of(output: str | None, disk: Disk) -> Path:
    """Return the path of the file: `output`, with the suffix .thin if it has none."""
    prefix = prefix_of(output, disk)
    return prefix if prefix.suffix == SUFFIX else prefix.with_name(prefix.name + SUFFIX)


def record(
    prepared: Prepared,
    tick: Callable[[float, Recording], None] = lambda left_s, so_far: None,
    live: Live | None = None,
) -> Recording:
    """Record until the time is over; a signal ends it, and the next call goes on.

    Memory does not depend on the length or the load.  Raises RecordingError if the disk cannot be
    traced, or the file is a capture of another disk.
    """
    with on_signals() as stop:
        thinner, begun_ns = _opened(prepared)
        end_ns = begun_ns + prepared.seconds * SECOND_NS
        origin_ns = thinner.settings.origin_unix_ns or 0
        # Times of the capture are those of the monotonic clock, from its wall-clock origin.
        shift_ns = time.time_ns() - time.monotonic_ns() - origin_ns
        requests = dropped = 0
        began_s, cpu_s = time.monotonic(), time.process_time()
        path = thinner.store.path

        def so_far() -> Recording:
            return Recording(
                prepared.disk.path, str(path), thinner.store.size, requests,
                thinner.threshold / SPAN, dropped, time.monotonic() - began_s,
                time.process_time() - cpu_s, time.monotonic_ns() + shift_ns >= end_ns,
            )  # fmt: skip

        def take(rows: Requests) -> None:
            nonlocal requests
            if rows.rows:
                requests += rows.rows
                thinner.take(rows.later(shift_ns))

        try:
            if time.monotonic_ns() + shift_ns >= end_ns:
                return so_far()
            # Compiled before the first event.
            rows_as_bytes(no_requests(1), 0, 0)
            Counter().add(no_requests(1), Counts.none(0, 0))
            with closing(
                live or Live(prepared.disk, prepared.host, prepared.buffer_bytes)
            ) as source:
                thinner.on_slice = thinner.store.flush_aside
                thinner.begin(time.monotonic_ns() + shift_ns)
                while not stop.is_set() and time.monotonic_ns() + shift_ns < end_ns:
                    stop.wait(PAUSE_S)
                    rows, until_ns = source.requests()
                    lost = source.lost()
                    dropped, thinner.lost = dropped + lost, thinner.lost + lost
                    take(rows)
                    thinner.until(until_ns + shift_ns)
                    tick((end_ns - time.monotonic_ns() - shift_ns) / SECOND_NS, so_far())
                take(source.rest())
            thinner.finish()
            thinner.store.flush(is_safe=True)
            return so_far()
        except OSError as error:
            raise RecordingError(f"{path}: {error.strerror or error}") from None
        finally:
            thinner.store.close()


def _opened(prepared: Prepared) -> tuple[Thinner, int]:
    """Return the thinner of a new or an earlier capture, and the time of its first start."""
    path, disk = prepared.path, prepared.disk
    now_ns = time.time_ns()
    if not prepared.goes_on:
        origin_ns = now_ns - now_ns % HOUR_NS
        settings = Settings(
            disk.path, origin_ns, time.localtime().tm_gmtoff, max_bytes=prepared.max_bytes,
            source=f"trace record {disk.path}",
        )  # fmt: skip
        return Thinner(Store(path), settings), now_ns - origin_ns
    try:
        thinner, end_ns = Thinner.resumed(path)
    except UsageError as error:
        raise RecordingError(str(error)) from None
    origin_ns = thinner.settings.origin_unix_ns or 0
    wrong = ""
    if thinner.settings.device != disk.path:
        wrong = f"is a capture of {thinner.settings.device}, not of {disk.path}"
    elif now_ns - origin_ns < thinner.first_ns or now_ns - origin_ns + CLOCK_NS < end_ns:
        wrong = "has requests later than now: set the clock"
    if wrong:
        thinner.store.close()
        raise RecordingError(f"{path} {wrong}: choose another name with -o")
    return thinner, thinner.first_ns


def unit(prepared: Prepared) -> str:
    """Return a systemd unit that records, and goes on after a reboot until the time is over."""
    program = Path(sys.argv[0]).resolve()
    words = [
        str(program), "trace", "record", prepared.disk.path, "--for",
        format_time(prepared.seconds * SECOND_NS), "--max", format_size(prepared.max_bytes),
        "-o", str(prepared.path.absolute()),
    ]  # fmt: skip
    line = " ".join(_quoted(word) for word in words)
    return f"""\
# /etc/systemd/system/hybridsim-record-{prepared.disk.name}.service
# systemctl daemon-reload && systemctl enable --now hybridsim-record-{prepared.disk.name}
[Unit]
Description=Record the requests of {prepared.disk.path} (hybridsim)
RequiresMountsFor={prepared.path.absolute().parent}

[Service]
ExecStart={line}
Restart=on-failure
RestartSec=60
Nice=10
MemoryMax=1G

[Install]
WantedBy=multi-user.target
"""


def _quoted(word: str) -> str:
    """Return a word for ExecStart=: % and $ are special there."""
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"' if set(safe) & set(" \t'\";") else safe
