"""All machines that `advise` replayed, on the same requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.show import advice as words
from hybridsim.show.advise import alone, machine
from hybridsim.show.charts import Axis, Ranges
from hybridsim.show.html.blocks import Block, Prose, Section, Table

WIDE = 10  # times between the ends of all intervals: from here on the axis is logarithmic


def section(document: Mapping[str, Any]) -> Section:
    """Return the gains with their intervals, and the table of all machines."""
    rows = document["rows"]
    heads = ["machine", "SSD", "gain", words.range_head(document), "warm", "whole", "read",
             "write", "p99", "hit", "cost"]  # fmt: skip
    cells = [machine(document, each) for each in rows]
    table = Table("All replayed machines", heads, [alone(document), *cells], [1])
    reasons = [[words.label(each), human_size(each["size_bytes"]), each["loses"]]
               for each in rows[1:]]  # fmt: skip
    blocks: list[Block] = [*_ranges(document), table, Prose([words.same_requests(document)])]
    if reasons:
        heads = ["machine", "SSD", "why not"]
        blocks.append(Table("Why the others are not recommended", heads, reasons))
    lead = "Each machine serves the same requests; the first row is the recommended one."
    return Section("machines", "What else was tried", blocks, lead)


def _ranges(document: Mapping[str, Any]) -> list[Ranges]:
    known = [each for each in document["rows"] if each["low"] and each["high"]]
    if not known:
        return []
    ends = [each[name] for each in known for name in ("low", "high")]
    axis = Axis("gain", "times", log=max(ends) >= WIDE * min(ends))
    rows = [
        (f"{words.label(each)}, {human_size(each['size_bytes'])}", each["low"],
         each["forecast"] or each["gain"], each["high"])
        for each in known
    ]  # fmt: skip
    title = "Gain of each machine, with its interval of 90 %"
    if document["recommended"]["is_forecast"]:
        title = "Forecast gain of each machine, with its interval of 90 %"
    return [Ranges("machines", title, axis, rows, [("no gain", 1.0)])]
