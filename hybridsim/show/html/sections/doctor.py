"""The trace: its figures, its warnings, and the addresses that it accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import percent, recorded
from hybridsim.show.charts.address import maps
from hybridsim.show.html.blocks import Block, KeyFigures, Prose, Section


def section(document: Mapping[str, Any]) -> Section | None:
    """Return figures of the trace, its warnings, and heat maps of its addresses."""
    trace = document.get("inputs", {}).get("trace")
    if not trace:
        return None
    warnings = document.get("warnings")
    texts = [f"{each['text']} {each['fix'] and '(' + each['fix'] + ')'}".strip()
            for each in warnings or []]  # fmt: skip
    sound = "No faults: no dropped events, all events in order."
    blocks: list[Block] = [
        KeyFigures(list(_figures(trace))),
        *([Prose(texts, "note") if texts else Prose([sound])] if warnings is not None else []),
        *maps(document),
    ]
    lead = f"{trace.get('name', '')}, read as {trace.get('format', 'requests')}."
    return Section("trace", "The trace", blocks, lead)


def _figures(trace: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    known = {name: trace.get(name) for name in ("requests", "reads", "writes", "span_ns")}
    if known["requests"] is not None:
        yield "requests", human_count(known["requests"]), ""
    if known["reads"] is not None and known["writes"] is not None:
        both = known["reads"] + known["writes"]
        yield "reads", percent(known["reads"] / both if both else None), ""
    if known["span_ns"] is not None:
        yield "duration", recorded(known["requests"] or 0, known["span_ns"])[1], ""
    for name, label in (
        ("footprint_bytes", "distinct data"), ("bytes_read", "read"), ("bytes_written", "written"),
        ("volume_bytes", "highest address"),
    ):  # fmt: skip
        if trace.get(name):
            yield label, human_size(trace[name]), ""
    if trace.get("incomplete") and trace["incomplete"] == trace.get("requests"):
        yield "completions", "none", "latencies unknown"
    elif trace.get("incomplete"):
        yield "without completion", human_count(trace["incomplete"]), "latency unknown"
