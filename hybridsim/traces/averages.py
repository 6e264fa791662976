"""Averages of a device over intervals, as iostat, sar and fio print them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.reading import objects, whole_text
from hybridsim.foundation.suggest import hint

MS = 1e6  # nanoseconds
SECTOR_BYTES = 512
NAMES = ("Device", "DEV")  # of the column of devices
COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of S_COLORS=always
HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kMGTP%])")  # of iostat -h and sar -h
UNITS = {"kB": 1024, "MB": 1024**2, "sec": SECTOR_BYTES}  # of the columns, in bytes


@dataclass(frozen=True)
class Interval:
    """Averages of one device over one interval; sar has one rate and one wait of all requests."""

    device: str
    at: str  # the end of the interval, as printed; empty: not printed
    requests_per_s: float
    reads_per_s: float | None  # None: not separated from writes
    read_bytes_per_s: float
    write_bytes_per_s: float
    wait_ns: float  # mean of all requests, in the queue and in service
    read_wait_ns: float | None
    write_wait_ns: float | None
    busy: float | None  # share of the interval in which the device had a request

    @property
    def writes_per_s(self) -> float | None:
        """Writes per second; None: not separated from reads."""
        return None if self.reads_per_s is None else self.requests_per_s - self.reads_per_s


def read(name: str, device: str | None = None) -> list[Interval]:
    """Return the intervals of one device that a file of iostat -x, sar -d or fio's JSON holds.

    Without `device` the file must hold one device with requests.  The first report of iostat, of
    the time since boot, is left out where others follow.  Raises TraceError for a file that is
    none of these, or that leaves the device open.
    """
    text = whole_text(name, TraceError)
    if text.lstrip().startswith("{") or '"fio version"' in text:
        try:
            document = objects(text)[-1]
        except (ValueError, LookupError, RecursionError):
            raise TraceError(f"{printable(name)} begins like JSON, but is not") from None
        found = [*_of_json(document)]
    else:
        found = [*_of_tables(name, text)]
    if not found:
        raise TraceError(
            f"{printable(name)} has no averages of a device: save the output of `iostat -x 10`, "
            "`iostat -x -o JSON`, `sar -d` or `fio --output-format=json`"
        )
    active = [one.device for one in found if one.requests_per_s > 0]
    names = list(dict.fromkeys(one.device for one in found))
    if device is None:
        devices = list(dict.fromkeys(active)) or names
        if len(devices) > 1:
            listed = ", ".join(map(printable, devices))
            raise TraceError(
                f"{printable(name)} has {len(devices)} devices, {listed}: choose one with --device"
            )
        device = devices[0]
    chosen = [one for one in found if one.device == device]
    if not chosen:
        raise TraceError(f"{printable(name)} has no device {device!r}: {hint(device, names)}")
    return chosen


# --- tables of iostat and sar -------------------------------------------------------------------


def _of_tables(name: str, text: str) -> Iterator[Interval]:
    heads: list[str] = []
    reports: list[list[Interval]] = []
    is_iostat = False
    for number, line in enumerate(COLOUR.sub("", text).splitlines(), 1):
        words = line.replace(",", ".").split()
        columns = [word.rstrip(":") for word in words]
        if "Device" in (*columns[:1], *columns[-1:]) or "DEV" in (*columns[:3], *columns[-1:]):
            is_iostat = "Device" in columns
            heads = _heads(columns)
            reports.append([])
            continue
        if not words or not heads or columns[0] == "Average":
            heads = heads if words else []
            continue
        before, values = words[: -len(heads)], words[-len(heads) :]
        if len(values) < len(heads):
            continue
        cells = dict(zip(heads, values))
        device = cells.pop("Device" if is_iostat else "DEV")
        try:
            row = {head: _number(head, cell) for head, cell in cells.items()}
        except ValueError:
            raise TraceError(
                f"{printable(name)}:{number}: a table of {len(heads)} columns has a row that is "
                "not of numbers: save the output unchanged"
            ) from None
        if not all(math.isfinite(value) and value >= 0 for value in row.values()):
            raise TraceError(f"{printable(name)}:{number}: a value is negative or not finite")
        one = _of_row(device, " ".join(before), row)
        if one is None:
            raise TraceError(
                f"{printable(name)}:{number}: the table has no waiting times: "
                "use `iostat -x` or `sar -d`"
            )
        reports[-1].append(one)
    yield from chain.from_iterable(reports[is_iostat and len(reports) > 1 :])


def _heads(columns: list[str]) -> list[str]:
    """Return the names of a table's columns; of `--pretty` and `-h` the last is the device's."""
    if columns[-1] not in NAMES:
        return columns[next(i for i, name in enumerate(columns) if name in NAMES) :]
    first = next((i for i, name in enumerate(columns) if name in ("r/s", "tps")), 0)
    return columns[first:]


def _number(head: str, cell: str) -> float:
    """Return a figure in the unit of its column; `-h` prints 1.5M for 1536 in a column of kB."""
    human = HUMAN.fullmatch(cell)
    if human is None:
        return float(cell)
    if human[2] == "%":
        return float(human[1])
    unit = next((size for name, size in UNITS.items() if name in head), 1)
    return float(human[1]) * 1024.0 ** ("kMGTP".index(human[2]) + 1) / unit


def _of_row(device: str, at: str, row: dict[str, float]) -> Interval | None:
    """Return the interval of a row of a table or of iostat's JSON; None: without waiting times."""
    read_bytes, write_bytes = _bytes(row, "r"), _bytes(row, "w")
    both = row.get("await")
    reads: float | None
    if "r/s" in row:
        reads, writes = row["r/s"], row.get("w/s", 0.0)
        read_ms, write_ms = row.get("r_await"), row.get("w_await")
        if read_ms is None or write_ms is None:
            read_ms = write_ms = both
        if read_ms is None or write_ms is None:
            return None
        count = reads + writes
        wait_ms = (reads * read_ms + writes * write_ms) / count if count else 0.0
    elif "tps" in row and both is not None:
        count = row["tps"]
        wait_ms = both
        reads = count if write_bytes == 0 else 0.0 if read_bytes == 0 else None
        read_ms = write_ms = None if reads is None else both  # known if of one direction
    else:
        return None
    read_ns, write_ns = (None if each is None else each * MS for each in (read_ms, write_ms))
    util = row.get("%util", row.get("util"))
    busy = None if util is None else min(util / 100, 1.0)
    return Interval(
        device, at, count, reads, read_bytes, write_bytes, wait_ms * MS, read_ns, write_ns, busy
    )


def _bytes(row: dict[str, float], way: str) -> float:
    """Return bytes per second: kB and MB are 1024 and 1024^2 bytes, as sysstat counts them."""
    columns = {f"{way}{unit}/s": size for unit, size in UNITS.items()}
    columns["rd_sec/s" if way == "r" else "wr_sec/s"] = SECTOR_BYTES
    return next((row[name] * size for name, size in columns.items() if name in row), 0.0)


# --- JSON of iostat and fio ---------------------------------------------------------------------


def _of_json(document: Any) -> Iterator[Interval]:
    try:
        if "sysstat" in document:
            yield from _of_sysstat(document["sysstat"]["hosts"])
        elif "jobs" in document:
            yield from _of_fio(document["jobs"])
    except (KeyError, TypeError, AttributeError, ValueError):
        raise TraceError(
            "the JSON is of iostat or fio, but keys are missing or have other types: "
            "save the output unchanged"
        ) from None


def _of_sysstat(hosts: Iterable[Any]) -> Iterator[Interval]:
    for host in hosts:
        reports = [one for one in host["statistics"] if "disk" in one]
        for report in reports[len(reports) > 1 :]:
            for disk in report["disk"]:
                row = {k: float(v) for k, v in disk.items() if k != "disk_device"}
                one = _of_row(str(disk["disk_device"]), str(report.get("timestamp", "")), row)
                if one is not None:
                    yield one


def _of_fio(jobs: Iterable[Any]) -> Iterator[Interval]:
    """Yield one interval: all jobs, as if they ran at the same time, over the longest runtime."""
    sums, longest_ms = {way: [0.0, 0.0, 0.0] for way in ("read", "write")}, 0.0
    for job in jobs:
        for way, before in sums.items():
            part = job[way]
            count = float(part["total_ios"])
            longest_ms = max(longest_ms, float(part["runtime"]))
            waited = count * float(part.get("lat_ns", part.get("clat_ns"))["mean"])
            more = count, float(part["io_bytes"]), waited
            sums[way] = [old + new for old, new in zip(before, more)]
    (reads, read_bytes, read_ns), (writes, write_bytes, write_ns) = sums.values()
    if not longest_ms or not reads + writes:
        return
    seconds, count = longest_ms / 1000, reads + writes
    yield Interval(
        "fio", "", count / seconds, reads / seconds, read_bytes / seconds, write_bytes / seconds,
        (read_ns + write_ns) / count, read_ns / reads if reads else 0.0,
        write_ns / writes if writes else 0.0, None,
    )  # fmt: skip
