"""The five I/O parameters of a machine by queue depth."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Axis, Chart, Line
from hybridsim.show.charts.documents import Document

PARAMETERS = (
    "sequential write", "sequential read", "random write", "cold random read", "hot random read",
)  # fmt: skip
STATES = {"without": "without cache", "cold": "empty cache", "warm": "warm cache"}
ROLES = {"without": "none", "cold": "cold", "warm": "warm"}


def by_depth(document: Document) -> Iterator[Chart]:
    """Return one chart per parameter: bytes per second if sequential, else IOPS."""
    for name in PARAMETERS:
        is_sequential = name.startswith("sequential")
        key = "bytes_per_s" if is_sequential else "iops"
        lines = _lines(document, name, key)
        most = axes.maximum(value for line in lines for value in line.y)
        y = axes.rates(most, "bandwidth") if is_sequential else axes.counts("IOPS", log=True)
        gid = name.replace(" ", "-")
        yield Chart(f"bench-{gid}", name.capitalize(), _depths(), y, lines)


def latency_by_depth(document: Document) -> Iterator[Chart]:
    """Return one chart per parameter: the p99 latency."""
    for name in PARAMETERS:
        lines = _lines(document, name, "p99_ns")
        y = axes.latencies(0, "p99 latency", log=True)
        gid = name.replace(" ", "-")
        yield Chart(f"bench-p99-{gid}", f"{name.capitalize()}: p99", _depths(), y, lines)


def _depths() -> Axis:
    return axes.counts("queue depth", log=True, base=2)


def _lines(document: Document, name: str, key: str) -> list[Line]:
    lines = []
    for state, label in STATES.items():
        points = [one for one in document["points"]
                  if (one["state"], one["parameter"]) == (state, name)]  # fmt: skip
        points.sort(key=lambda one: int(one["depth"]))
        if points:
            gid = f"{name.replace(' ', '-')}-{state}-{key}"
            x, y = [one["depth"] for one in points], [one[key] for one in points]
            lines.append(Line(gid, label, x, y, "both", ROLES[state]))
    return lines
