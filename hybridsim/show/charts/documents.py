"""Access to the document of a result (the output of `--json`) for charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hybridsim.show.charts.chart import Band

Document = Mapping[str, Any]


class Phase(NamedTuple):
    """A phase of a run, with its name and the role of its colour."""

    label: str
    role: str
    figures: Mapping[str, Any]


def document_of(result: Any) -> Document:
    """Return the document of a result, or the document itself."""
    if isinstance(result, Mapping):
        return result
    document: Document = result.to_dict()
    return document


def has_cache(document: Document) -> bool:
    """Return whether the machine has a cache."""
    return bool(document["inputs"]["scenario"].get("cache_pages", 1))


def phases(document: Document) -> list[Phase]:
    """Return the disks alone, then the phases of the machine with its cache."""
    phases_of = document["phases"]
    alone = Phase("no cache", "none", phases_of["none"])
    if not has_cache(document):
        return [alone]
    state = document["warm_up"]["state"]
    cold, warm = phases_of["cold"], phases_of["warm"]
    if state == "flat" or cold["end_ns"] <= cold["start_ns"]:
        return [alone, Phase("with cache", "cached", warm)]
    labels = ("cold", "warm") if state == "steady" else ("before", "at the end")
    return [alone, Phase(labels[0], "cold", cold), Phase(labels[1], "warm", warm)]


def bands(document: Document) -> list[Band]:
    """Return the phases of the machine with its cache, if it has several."""
    bands_of = [
        Band(each.label, each.figures["start_ns"], each.figures["end_ns"], each.role)
        for each in phases(document)[1:]
    ]
    return bands_of if len(bands_of) > 1 else []


def width_ns(series: Mapping[str, Any], end_ns: float) -> float:
    """Return the width of a time bin."""
    starts = series["start_ns"]
    return float(starts[1] - starts[0]) if len(starts) > 1 else end_ns


def middles(series: Mapping[str, Any], end_ns: float) -> list[float]:
    """Return the middles of the time bins."""
    half = width_ns(series, end_ns) / 2
    return [start + half for start in series["start_ns"]]


def end_ns(document: Document) -> int:
    """Return the end of the load of the machine with its cache."""
    return int(document["phases"]["whole"]["end_ns"])
