"""The datasheet figures of an SSD, from runs of fio on the bare device.

`hybridsim fit` classifies a device with latencies of milliseconds as a disk, such as an SSD behind
an emulator.  If the device is specified as an SSD, its datasheet gets the measured figures, which
include the path to the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridsim.answers.fitting.fio import Point, read
from hybridsim.foundation.units import format_rate, format_time, parse_rate, parse_time
from validate.twin.record import SECOND, Bare

STREAM_BYTES, PAGE_BYTES = 128 * 1024, 4096


def measured(drive: dict[str, Any], bare: Sequence[Bare]) -> dict[str, Any]:
    """Return an SSD's table with the measured latencies and rates."""
    points = read([str(each.results) for each in bare])
    table = dict(drive)
    for kind in ("read", "write"):
        random = [one for one in points if one.pattern == f"rand{kind}" and one.iops > 0]
        single = [one for one in random if one.depth == 1]
        if single:
            table[f"{kind}_latency"] = format_time(round(SECOND / single[0].iops))
        if random:
            table[f"random_{kind}_iops"] = round(max(one.iops for one in random))
        streamed = [one.bytes_per_s for one in points if one.pattern == kind]
        if streamed:
            table[f"sequential_{kind}"] = format_rate(round(max(streamed)))
    table |= _possible(table, points)
    busiest = max(
        table["random_read_iops"], parse_rate(str(table["sequential_read"])) // PAGE_BYTES
    )
    needed = busiest * parse_time(table["read_latency"]) // SECOND + 2
    return table | {"dies": max(int(table.get("dies", 1)), needed)}


def _possible(table: dict[str, Any], points: Sequence[Point]) -> dict[str, Any]:
    """Return a sequential write rate that does not exceed that of random writes."""
    writes = [one.bytes_per_s for one in points if one.pattern == "write"]
    if not writes:
        return {}
    limit = table["random_write_iops"] * STREAM_BYTES
    return {"sequential_write": format_rate(min(round(max(writes)), limit))}
