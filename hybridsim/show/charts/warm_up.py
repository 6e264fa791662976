"""Warm-up of a cache: hit ratio, latency and occupancy over one time axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.foundation.errors import UsageError
from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Chart, Line, Mark, Value
from hybridsim.show.charts.documents import Document, bands, end_ns, has_cache, middles, width_ns

SYNC = "time"
SHADED = "Shaded: the interval of 90 % of the time until 90 % of the steady level."


def warm_up(document: Document) -> list[Chart]:
    """Return the panels of a result's warm-up; none for a machine without a cache."""
    if not has_cache(document):
        return []
    return [
        hit_ratio(document), *_throughput(document), latency(document), *_occupancy(document)
    ]  # fmt: skip


def overlaid(documents: Mapping[str, Document]) -> Chart:
    """Return the smoothed curves of warm-ups; phases are shown for a single result only."""
    if len(documents) == 1:
        chart = hit_ratio(next(iter(documents.values())))
        return replace(chart, sync="")
    measures = {each["warm_up"]["measure"] for each in documents.values()}
    is_ratio = measures == {"hit ratio"}
    if len(measures) > 1:
        raise UsageError("hit ratios and IOPS cannot share a chart: replay all results in one mode")
    lines = []
    for name, each in documents.items():
        line = _smoothed(each, name, "")
        lines.append(replace(line, gid=f"warm-up-{name}"))
    x = axes.times(max(end_ns(each) for each in documents.values()))
    y = axes.shares("hit ratio") if is_ratio else axes.counts("IOPS")
    return Chart("warm-up", "Warm-up", x, y, lines)


def _panel(
    document: Document, gid: str, title: str, y: Any, lines: list[Line], **more: Any
) -> Chart:
    x = axes.times(end_ns(document))
    return Chart(gid, title, x, y, lines, bands(document), sync=SYNC, **more)


def hit_ratio(document: Document) -> Chart:
    """Return the hit ratio of reads over time."""
    series, curve = document["series"], document["warm_up"]
    lines = [
        Line("hit", "each bin", middles(series, end_ns(document)), series["hit"], role="other")
    ]
    marks = []
    if curve["measure"] == "hit ratio":
        lines.append(_smoothed(document, "smoothed", "warm"))
        marks = _reached(curve)
    title = "Hit ratio: reads that came from the SSD"
    y = axes.shares("hit ratio")
    return _panel(document, "hit-ratio", title, y, lines, marks=marks, note=_note(marks))


def _smoothed(document: Document, label: str, role: str) -> Line:
    """Return the smoothed curve from which the warm-up is determined."""
    warm_up = document["warm_up"]
    x = [start + warm_up["bin_ns"] / 2 for start in warm_up["curve"]["t_ns"]]
    return Line("smooth", label, x, warm_up["curve"]["x"], role=role)


def _note(marks: Sequence[Mark]) -> str:
    return SHADED if any(mark.low is not None for mark in marks) else ""


def _reached(warm_up: Mapping[str, Any]) -> list[Mark]:
    result = []
    for share in (50, 90):
        time_ns, known = warm_up[f"t{share}_ns"], warm_up.get(f"t{share}") or {}
        if time_ns:
            result.append(Mark(f"{share}%", time_ns, low=known.get("low"), high=known.get("high")))
    return result


def _throughput(document: Document) -> Iterator[Chart]:
    """Return IOPS, if they are a result and not specified by the trace."""
    if document["inputs"]["scenario"].get("mode", "open") == "open":
        return
    series = document["series"]
    x = middles(series, end_ns(document))
    warm_up = document["warm_up"]
    is_judged = warm_up["measure"] == "IOPS"
    lines = [Line("iops", "each bin", x, series["iops"], role="other" if is_judged else "real")]
    if is_judged:
        lines.append(_smoothed(document, "smoothed", "warm"))
    marks = _reached(warm_up) if is_judged else []
    title = "Requests per second"
    y = axes.counts("IOPS")
    yield _panel(document, "iops", title, y, lines, marks=marks, note=_note(marks))


def latency(document: Document) -> Chart:
    """Return mean, median and p99 latency of the reads over time."""
    series = document["series"]
    x = middles(series, end_ns(document))
    names = {"mean": "mean", "p50": "p50", "p99": "p99"}
    lines = [Line(key, label, x, series[f"{key}_ns"], role=key) for key, label in names.items()]
    note = ""
    if document["inputs"]["scenario"].get("mode", "open") == "open":
        alone = series["none"]
        y = alone["mean_ns"]
        middle = middles(alone, document["phases"]["none_whole"]["end_ns"])
        end = end_ns(document)
        shown = [(a, b) for a, b in zip(middle, y) if a <= end]
        lines.append(
            Line("mean-none", "mean, no cache", [a for a, _ in shown], [b for _, b in shown],
                 role="none", dashed=True)
        )  # fmt: skip
    else:
        note = (
            "The disks alone take longer for the same requests, so their latencies do not fit this "
            "time axis: see the distributions below."
        )
    longest = axes.maximum(value for line in lines for value in line.y)
    y_axis = axes.latencies(longest, "read latency", log=True)
    return _panel(document, "latency", "Read latency", y_axis, lines, note=note)


def _occupancy(document: Document) -> Iterator[Chart]:
    """Return the occupancy of the cache over time, if the document has it."""
    scenario, series = document["inputs"]["scenario"], document["series"]
    pages, size = scenario.get("cache_pages"), scenario.get("cache_bytes")
    present = series["occupancy_pages"]
    if not pages or not size or not any(each is not None for each in present):
        return
    width = width_ns(series, end_ns(document))
    ends = [start + width for start in series["start_ns"]]
    held: list[Value] = [None if each is None else each * (size / pages) for each in present]
    largest = max(size, axes.maximum(held))
    y = replace(axes.sizes(largest, "data on the SSD"), high=largest)
    lines = [Line("occupancy", "occupancy", ends, held, style="area", role="real")]
    yield _panel(document, "occupancy", "Occupancy", y, lines)
