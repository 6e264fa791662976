"""Counters of a running cache: what the kernel or casadm prints, read as the state at one moment.

A snapshot is the output of the command that `hybridsim setup` prints in its section `monitor`:
lines of `uptime`, of `dmsetup table` and `dmsetup status`, of bcache's sysfs (path:value), of
`casadm -P` as text and as CSV, and of the block layer's statistics (`cached` and `ssd`, then the
fields of /sys/block/DEVICE/stat).  Unknown lines are ignored.  A file of samples, one a second, in
a format that `hybridsim compare` reads, is a snapshot at its first and one at its last line.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from operator import sub
from typing import NamedTuple

import numpy as np

from hybridsim.answers.measurements import gather
from hybridsim.answers.measurements.samples import DM_CACHE, OPEN_CAS, WRITECACHE, counted
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS
from hybridsim.foundation.reading import whole_text

SECOND = 10**9
SECTOR, KIB4 = 512, 4096
UPTIME = re.compile(r"(?:uptime )?(\d+\.\d+) \d+\.\d+$")
MAPPED = re.compile(r"(?:(?P<uptime>\d+\.\d+) )?(?:\S+: )?0 \d+ (?P<kind>cache|writecache) \S")
DEVICE = re.compile(r"(?P<role>cached|ssd) +(?P<fields>\d+(?: +\d+){10,})$")
SYSFS = re.compile(r"(?P<name>[^\s:]+):(?P<value>.*)$")  # after the folder of bcache
CASADM = re.compile(r"[A-Z]\w+(?: \w+)*  +\S")  # -P as text
STATS = "stats_total/"
SIZE = re.compile(r"(\d+(?:\.\d+)?)([kMGTPE]?)$")  # as bcache prints bytes
TOTAL_BLOCKS, UNUSED = "total_blocks", "unused_percent"


class Io(NamedTuple):
    """Cumulative statistics of a block device: requests, bytes, and the sum of their times."""

    reads: int = 0
    read_bytes: int = 0
    read_ns: int = 0
    writes: int = 0
    written_bytes: int = 0
    write_ns: int = 0

    @classmethod
    def of(cls, fields: list[int]) -> Io:
        """Return the statistics of the fields of /sys/block/DEVICE/stat."""
        reads, _, read, read_ms, writes, _, written, write_ms = fields[:8]
        return cls(
            reads, read * SECTOR, read_ms * 10**6, writes, written * SECTOR, write_ms * 10**6
        )

    def since(self, before: Io) -> Io:
        """Return the growth since an earlier moment."""
        return Io(*map(sub, self, before))


@dataclass
class Snapshot:
    """The state of a cache at one moment; what was not printed is None or absent."""

    source: str
    kind: str = ""  # as in a scenario
    uptime_ns: int | None = None
    counters: dict[str, int] = field(default_factory=dict)  # by their names in the simulation
    cached: Io | None = None  # the device that is used
    ssds: list[Io] = field(default_factory=list)
    state: str = ""  # lines that show the settings

    def count(self, *names: str) -> int | None:
        """Return the sum of counters; None if one of them is absent."""
        if not all(name in self.counters for name in names):
            return None
        return sum(self.counters[name] for name in names)


def read(files: tuple[str, ...]) -> tuple[Snapshot, Snapshot]:
    """Return the states before and after: of two snapshots, one file of samples, or one snapshot.

    A single snapshot counts from the start of the cache.  Raises MeasurementError for files that
    have no counters, or of which the second is not the later one of the same cache.
    """
    if len(files) == 1:
        sampled = samples(files[0])
        if sampled:
            return sampled
        after = snapshot(whole_text(files[0], MeasurementError), files[0])
        counts = dict.fromkeys(after.counters, 0)
        counts |= {name: each for name, each in after.counters.items() if name == TOTAL_BLOCKS}
        if "free_blocks" in counts and after.count(TOTAL_BLOCKS):
            counts["free_blocks"] = counts[TOTAL_BLOCKS]
        return Snapshot(files[0], after.kind, None, counts), after
    first, last = (snapshot(whole_text(each, MeasurementError), each) for each in files)
    if first.kind != last.kind:
        raise MeasurementError(
            f"{last.source} is of {last.kind}, {first.source} of {first.kind}: specify two "
            "snapshots of one cache"
        )
    fell = [
        name
        for name, value in last.counters.items()
        if name not in LEVELS | {UNUSED} and value < first.counters.get(name, value)
    ]
    if fell or (first.uptime_ns or 0) > (last.uptime_ns or first.uptime_ns or 0):
        what = f"{fell[0]} fell" if fell else "the uptime fell"
        raise MeasurementError(
            f"{last.source}: {what} since {first.source}: specify the earlier snapshot first; "
            "counters also start anew when the cache is activated"
        )
    return first, last


def snapshot(text: str, source: str) -> Snapshot:
    """Parse the output of the command of `monitor`; raise MeasurementError without counters."""
    result = Snapshot(source)
    state = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        line = line.strip()
        try:
            if match := UPTIME.match(line):
                result.uptime_ns = round(float(match[1]) * SECOND)
            elif match := MAPPED.match(line):
                state.append(line)
                _mapped(result, line, match)
            elif match := DEVICE.match(line):
                io = Io.of([int(each) for each in match["fields"].split()])
                if match["role"] == "cached":
                    result.cached = io
                else:
                    result.ssds.append(io)
            elif match := SYSFS.match(line.partition("/bcache/")[2]):
                state.append(line)
                _sysfs(result, match["name"], match["value"])
            elif "Occupancy [4KiB Blocks]" in line and number < len(lines):
                _csv(result, line, lines[number])
            elif CASADM.match(line):
                state.append(line)
        except (ValueError, IndexError):
            raise MeasurementError(
                f"{source}:{number}: damaged or cut off: {line[:60]!r}; save the snapshot again"
            ) from None
    result.state = "\n".join(state)
    if not result.counters:
        raise MeasurementError(
            f"{source}: no counters of a cache: save the output of the command that hybridsim "
            "setup prints in its section monitor (--script monitor)"
        )
    return result


def samples(file: str) -> tuple[Snapshot, Snapshot] | None:
    """Return the first and the last sample of a file; None if it is not one of samples."""
    try:
        measured = gather(file)
    except MeasurementError:
        return None
    if not measured.counters or all(len(each.time_ns) < 2 for each in measured.counters.values()):
        return None
    marks = {"promotions": "dm-cache", "free_blocks": "dm-writecache", "occupancy": "open-cas"}
    kind = next((kind for name, kind in marks.items() if name in measured.counters), "bcache")
    # The load ends when the last count moves: equal samples at the end are idle time.
    moved = [
        int(each.time_ns[at[-1] + 1])
        for name, each in measured.counters.items()
        if name not in LEVELS and len(at := np.flatnonzero(each.value != each.value[-1]))
    ]
    end_ns = max(moved, default=0)
    line = whole_text(file, MeasurementError).splitlines()[-1]
    match = MAPPED.match(line)
    total = _total(line, match) if match else {}
    first, last = (
        Snapshot(file, kind, time_ns, {
            name: int(each.value[row]) for name, each in measured.counters.items()
        } | total)
        for time_ns, row in ((0, 0), (end_ns, -1))
    )  # fmt: skip
    return first, last


def _mapped(result: Snapshot, line: str, match: re.Match[str]) -> None:
    """Read a line of `dmsetup status`; that of a table has the numbers of devices."""
    rest = line[match.end() - 1 :].split()
    if match["uptime"]:
        result.uptime_ns = round(float(match["uptime"]) * SECOND)
    result.kind = "dm-" + match["kind"]
    if ":" in rest[0] or not rest[0].isdigit():
        return
    result.counters |= counted(rest, DM_CACHE if match["kind"] == "cache" else WRITECACHE)
    result.counters |= _total(line, match)


def _total(line: str, match: re.Match[str]) -> dict[str, int]:
    rest = line[match.end() - 1 :].split()
    return {TOTAL_BLOCKS: int(rest[3].split("/")[1] if match["kind"] == "cache" else rest[1])}


def _sysfs(result: Snapshot, path: str, value: str) -> None:
    result.kind = "bcache"
    if path.startswith(STATS):
        name = path.removeprefix(STATS)
        if value.isdigit():
            result.counters[name] = int(value)
    elif path == "dirty_data":
        result.counters["dirty_data"] = human_bytes(value)
    elif path == "cache/cache_available_percent":
        result.counters["cache_available_percent"] = int(value)
    elif path.endswith("/priority_stats") and value.startswith("Unused:"):
        result.counters[UNUSED] = int(value.partition(":")[2].strip().removesuffix("%"))


def human_bytes(text: str) -> int:
    """Return a size as bcache prints it: 1.5M; raise ValueError for another text."""
    match = SIZE.match(text.strip())
    if match is None:
        raise ValueError(text)
    return round(float(match[1]) * 2.0 ** (10 * " kMGTPE".index(match[2] or " ")))


def _csv(result: Snapshot, header: str, values: str) -> None:
    result.kind = "open-cas"
    names, (row,) = next(csv.reader([header])), csv.reader([values])
    for counter, column in OPEN_CAS.items():
        if column in names:
            result.counters[counter] = int(row[names.index(column)])
