"""What runs of fio on a bare fast device say of it, the way to it included.

`hybridsim fit` takes what answers in milliseconds for a disk; an SSD behind an emulator does so.
Where the device is known to be an SSD, the figures of its datasheet are those that were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybridsim.answers.fitting.fio_results import Point, read
from hybridsim.foundation.units import format_rate, format_time, parse_rate, parse_time
from validate.twin.record import SECOND, Bare

STREAM_BYTES, PAGE_BYTES = 128 * 1024, 4096


def measured(drive: dict[str, Any], bare: Sequence[Bare]) -> dict[str, Any]:
    """Return an SSD's table with the latencies and rates that were measured."""
    points = read([str(each.results) for each in bare])
    found = dict(drive)
    for kind in ("read", "write"):
        random = [one for one in points if one.pattern == f"rand{kind}" and one.iops > 0]
        alone = [one for one in random if one.depth == 1]
        if alone:
            found[f"{kind}_latency"] = format_time(round(SECOND / alone[0].iops))
        if random:
            found[f"random_{kind}_iops"] = round(max(one.iops for one in random))
        streamed = [one.bytes_per_s for one in points if one.pattern == kind]
        if streamed:
            found[f"sequential_{kind}"] = format_rate(round(max(streamed)))
    found |= _possible(found, points)
    busiest = max(
        found["random_read_iops"], parse_rate(str(found["sequential_read"])) // PAGE_BYTES
    )
    needed = busiest * parse_time(found["read_latency"]) // SECOND + 2
    return found | {"dies": max(int(found.get("dies", 1)), needed)}


def _possible(found: dict[str, Any], points: Sequence[Point]) -> dict[str, Any]:
    """Return rates that go together: random writes are no fewer than those of whole streams."""
    writes = [one.bytes_per_s for one in points if one.pattern == "write"]
    if not writes:
        return {}
    most = found["random_write_iops"] * STREAM_BYTES
    return {"sequential_write": format_rate(min(round(max(writes)), most))}
