"""Writes of the cache to its SSDs, and their rated life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.answers.verdict import SHORTEST_NS
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import lasting, ranged_size, span
from hybridsim.show.charts.wear import written
from hybridsim.show.html.blocks import Block, KeyFigures, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the wear over the whole run, and the writes to the SSDs over time."""
    wear = document.get("wear")
    if not wear or not document["inputs"]["scenario"].get("cache_pages", 1):
        return None
    blocks: list[Block] = [KeyFigures(_figures(document, wear))]
    chart = written(document)
    if chart:
        blocks.append(chart)
    return Section("wear", "SSD wear", blocks)


def _figures(document: Mapping[str, Any], wear: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    whole = document["phases"]["whole"]
    judged = whole["end_ns"] - whole["start_ns"]
    result = [("written to the SSD", human_size(wear["bytes_written"]), f"in {span(judged)}")]
    if judged >= SHORTEST_NS:
        known = wear.get("per_day")
        sure = known and ranged_size(known["value"], known["low"], known["high"])
        result.append(("a day, at this rate", sure or human_size(wear["bytes_per_day"]), ""))
        if wear["drive_writes_per_day"] is not None:
            result.append(("drive writes per day", f"{wear['drive_writes_per_day']:.2g}", "DWPD"))
        if wear["years"] is not None:
            result.append(("rated life", lasting(wear["years"]), ""))
    if wear["per_host_write"] is not None:
        often = wear["per_host_write"] > 99
        result.append(("bytes to the SSD per byte written by the host",
                      "over 99" if often else f"{wear['per_host_write']:.2f}", ""))  # fmt: skip
    if wear["read_per_written"] is not None:
        words = "bytes read from the SSD per byte written to it"
        result.append((words, f"{wear['read_per_written']:.2f}", ""))
    if wear["in_flash"] is not None:
        words = "bytes to the flash per byte written to the SSD"
        result.append((words, f"{wear['in_flash']:.2f}", ""))
    return result
