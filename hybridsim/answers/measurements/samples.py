"""Samples of the counters of a running cache: lines of uptime in seconds and values."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hybridsim.answers.measurements.measurement import SECOND, Measurement, Samples, sampled
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import MeasurementError

# Position after the word `cache`, by the counter's name in the simulation.
DM_CACHE = {
    "used_blocks": 3, "read_hits": 4, "read_misses": 5, "write_hits": 6, "write_misses": 7,
    "demotions": 8, "promotions": 9, "dirty_blocks": 10,
}  # fmt: skip
# The same after `writecache`: an error indicator and the number of blocks are before.
WRITECACHE = {
    name: at for at, name in enumerate((
        "free_blocks", "blocks_under_writeback", "reads", "read_hits", "writes",
        "write_hits_uncommitted", "write_hits_committed", "writes_around", "writes_allocated",
        "writes_blocked", "flushes", "discards",
    ), 2)
}  # fmt: skip
BLOCKS, REQUESTS = "[4KiB Blocks]", "[Requests]"
# Column of casadm, by the counter's name in the simulation.
OPEN_CAS = {
    **{name.lower(): f"{name} {BLOCKS}" for name in ("Occupancy", "Free", "Clean", "Dirty")},
    **{
        f"{way} {kind}".lower().replace(" ", "_"): f"{way} {kind} {REQUESTS}"
        for way in ("Read", "Write")
        for kind in ("hits", "deferred", "partial misses", "full misses", "total")
    },
    "pass_through_reads": f"Pass-Through reads {REQUESTS}",
    "pass_through_writes": f"Pass-Through writes {REQUESTS}",
    "serviced_requests": f"Serviced requests {REQUESTS}",
    "reads_from_core": f"Reads from core {BLOCKS}",
    "writes_to_core": f"Writes to core {BLOCKS}",
    "reads_from_cache": f"Reads from cache {BLOCKS}",
    "writes_to_cache": f"Writes to cache {BLOCKS}",
    "cleaned_blocks": f"Cleaner core writes {BLOCKS}",
}
BCACHE = (
    "cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses",
    "cache_miss_collisions",
)  # fmt: skip
UPDATED_EVERY_NS = 3409 * 4_000_000  # Linux 6.1's stats.c: 300 s / 22, in jiffies of 4 ms


class Lines:
    """A format of samples, a line each; the first line tells which it is."""

    first: re.Pattern[str]

    def detect(self, name: str, head: str) -> bool:
        """Return whether a file holds such samples."""
        return self.first.match(head.partition("\n")[0]) is not None


class Status(Lines):
    """Samples of `dmsetup status`: lines of uptime in seconds and the status itself."""

    fields: Mapping[str, int]

    def read(self, name: str, text: str) -> Measurement:
        """Return the counters over uptime; raise MeasurementError for an invalid line."""
        rows = []
        for number, line in enumerate(text.splitlines(), 1):
            match = self.first.match(line)
            if match is None:
                raise MeasurementError(
                    f"{name}:{number}: not a line of uptime and `dmsetup status`"
                )
            values = counted(match["rest"].split(), self.fields).values()
            rows.append([round(float(match["uptime"]) * SECOND), *values])
        return sampled(name, rows, self.fields)


def counted(status: Sequence[str], fields: Mapping[str, int]) -> dict[str, int]:
    """Return the counters of the words of a status; of those as used/total the first."""
    return {name: int(status[at].split("/")[0]) for name, at in fields.items()}


class DmCache(Status):
    """Samples of `dmsetup status` of a dm-cache: lines of uptime in seconds and the status itself.

    The fields are those of the kernel's Documentation/admin-guide/device-mapper/cache.rst.
    """

    first = re.compile(
        r"(?P<uptime>\d+\.\d+) (?:\S+: )?\d+ \d+ cache (?P<rest>\d+ \d+/\d+ \d+ \d+/\d+ .*)"
    )
    fields = DM_CACHE


class Writecache(Status):
    """Samples of `dmsetup status` of a dm-writecache: lines of uptime and the status itself.

    The fields are those of the kernel's Documentation/admin-guide/device-mapper/writecache.rst.
    """

    first = re.compile(
        r"(?P<uptime>\d+\.\d+) (?:\S+: )?\d+ \d+ writecache (?P<rest>\d+ \d+(?: \d+){12})\s*$"
    )
    fields = WRITECACHE


class OpenCas(Lines):
    """Samples of `casadm --stats -o csv` of Open CAS: a header, then uptime in seconds and values.

    The units are those of the header: requests, and blocks of 4 KiB.
    """

    first = re.compile(rf"Uptime,.*Occupancy {re.escape(BLOCKS)}")

    def read(self, name: str, text: str) -> Measurement:
        """Return the counters over uptime; raise MeasurementError for an invalid line.

        Columns that are absent in a release of casadm are left out.
        """
        header, *rows = csv.reader(text.splitlines())
        columns = {counter: one for counter, one in OPEN_CAS.items() if one in header}
        return sampled(name, _values(name, header, rows, columns.values()), columns)


class Bcache(Lines):
    """Samples of bcache's `stats_total` in sysfs: a line of names, then one of uptime and values.

    The kernel updates these counters only every 13.6 s.  An update shows the exact count of its
    moment (if it grew by less than 65,536: in between the counters are 16 bits wide), so only
    updates are kept.  Each update lies between two samples, and all are whole intervals apart.
    Counters in the same format that are updated continuously are kept as sampled.
    """

    first = re.compile(r"uptime(\s+\w+)*\s+cache_hits\s+cache_misses")

    def read(self, name: str, text: str) -> Measurement:
        """Return the counters over uptime; raise MeasurementError for a line unlike the header."""
        header, *rows = (line.split() for line in text.splitlines())
        chosen = [
            each
            for at, each in enumerate(header)
            if each in BCACHE and any(row and row[at : at + 1] != ["-"] for row in rows)
        ]
        time_ns, *columns = _values(name, header, rows, chosen).T
        result = Measurement([name])
        for counter, values in zip(chosen, columns):
            moved = np.append(True, np.diff(values) != 0)
            result.counters[counter] = Samples(_moments(time_ns, moved), values[moved])
        ignored = [each for each in header[1:] if each not in result.counters]
        if ignored:
            result.notes.append(f"{name}: ignored: {', '.join(ignored)}")
        return result


def _moments(time_ns: Ints, moved: npt.NDArray[np.bool_]) -> Ints:
    """Return the time of the first sample and the times of updates, in ns.

    Updates that are whole intervals apart are located more precisely than the samples; otherwise
    the times of the samples are returned.
    """
    at = np.flatnonzero(moved)[1:]
    if len(at) < 2 or np.median(np.diff(time_ns[at])) < UPDATED_EVERY_NS / 2:
        return time_ns[moved]
    passed = np.rint((time_ns[at] - time_ns[at[0]]) / UPDATED_EVERY_NS).astype(np.int64)
    earliest = int((time_ns[at - 1] - passed * UPDATED_EVERY_NS).max())
    latest = int((time_ns[at] - passed * UPDATED_EVERY_NS).min())
    if earliest > latest:
        return time_ns[moved]
    first = (earliest + latest) // 2
    return np.append(time_ns[0], first + passed * UPDATED_EVERY_NS)


class OfServe(Lines):
    """Samples of the counters of `hybridsim serve`: a line of names, then uptime and values."""

    first = re.compile("uptime hits misses ")

    def read(self, name: str, text: str) -> Measurement:
        """Return the counters over uptime; raise MeasurementError for a line unlike the header."""
        header, *rows = (line.split() for line in text.splitlines())
        return sampled(name, _values(name, header, rows, header[1:], strict=True), header[1:])


def _values(
    name: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    chosen: Iterable[str],
    strict: bool = False,
) -> Ints:
    """Return the uptime in ns and the chosen columns of each line below a header.

    A line may be longer than the header, unless `strict`.
    """
    chosen, table = list(chosen), []
    for number, row in enumerate(rows, 2):
        try:
            values = dict(zip(header, row, strict=strict)) if row else None
            if values:
                uptime_ns = round(float(row[0]) * SECOND)
                table.append([uptime_ns, *(int(values[each]) for each in chosen)])
        except (ValueError, KeyError):
            raise MeasurementError(
                f"{name}:{number}: not a line of uptime and the values of its header"
            ) from None
    if not table:
        raise MeasurementError(f"{name}: no samples below the header")
    return np.array(table, np.int64)


class Uptime:
    """The start of the load on the clock of the samples: a file with the uptime at that moment."""

    def detect(self, name: str, head: str) -> bool:
        """Return whether the file has the name of such a file."""
        return Path(name).name == "workload-start-uptime.txt"

    def read(self, name: str, text: str) -> Measurement:
        """Return a measurement that has only this time; raise MeasurementError if there is none."""
        try:
            return Measurement([name], begin_s=float(text.split()[0]))
        except (ValueError, IndexError) as error:
            raise MeasurementError(f"{name}: contains no uptime in seconds ({error})") from error
