"""Samples of `casadm --stats -o csv` of Open CAS: a header, then uptime in seconds and the values.

The units are those of the header: requests, and blocks of 4 KiB.
"""

from __future__ import annotations

import csv

from hybridsim.answers.measurements.measurement import SECOND, Measurement, sampled
from hybridsim.foundation.errors import MeasurementError

UPTIME, BLOCKS, REQUESTS = "Uptime", "[4KiB Blocks]", "[Requests]"
DIRECTIONS = ("Read", "Write")
KINDS = ("hits", "deferred", "partial misses", "full misses", "total")
# Column of casadm, by the counter's name in the simulation.
COLUMNS = {
    **{name.lower(): f"{name} {BLOCKS}" for name in ("Occupancy", "Free", "Clean", "Dirty")},
    **{
        f"{way} {kind}".lower().replace(" ", "_"): f"{way} {kind} {REQUESTS}"
        for way in DIRECTIONS
        for kind in KINDS
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


def detect(name: str, head: str) -> bool:
    """Return whether a file holds such samples."""
    first = head.splitlines()[0] if head else ""
    return first.startswith(f"{UPTIME},") and f"Occupancy {BLOCKS}" in first


def read(name: str, text: str) -> Measurement:
    """Return the counters over uptime; raise MeasurementError for an invalid line.

    Columns that are absent in a release of casadm are left out.
    """
    header, *lines = list(csv.reader(text.splitlines()))
    at = {counter: header.index(one) for counter, one in COLUMNS.items() if one in header}
    rows = []
    for number, fields in enumerate(lines, 2):
        try:
            values = [int(fields[place]) for place in at.values()]
            rows.append([round(float(fields[0]) * SECOND), *values])
        except (ValueError, IndexError):
            raise MeasurementError(
                f"{name}:{number}: not a line of uptime and the values of its header"
            ) from None
    if not rows:
        raise MeasurementError(f"{name}: no samples below the header")
    return sampled(name, rows, at)
