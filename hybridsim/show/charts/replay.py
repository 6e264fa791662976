"""Charts of the document of a replay (the output of `--json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from hybridsim.foundation.codes import Reason
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.explain import REASONS
from hybridsim.show.charts import Axis, Band, Bars, Chart, Heat, Line, Mark, Value, maximum

Document = Mapping[str, Any]

SHADED = "Shaded: the interval of 90 % of the time until 90 % of the steady level."
BEFORE = 0.98  # of the shortest latency: start of the curve, at 0
FEWEST = 100  # minimum number of requests for a distribution
WAYS = {"hits": "from the SSD", "misses": "misses", "bypasses": "past the cache"}
ACTIVITIES = {
    "seek": "seek", "rotation": "rotation", "transfer": "transfer", "other": "other",
    "iops_limit": "IOPS limit", "bandwidth_limit": "bandwidth limit", "latency": "latency",
}  # fmt: skip
QUEUE, SSD = "queue of the disk", "SSD"
BINS_MAX = 64  # of reasons: more would be unreadable


class Phase(NamedTuple):
    """A phase of a run, with its name and the role of its colour."""

    label: str
    role: str
    figures: Document


def has_cache(document: Document) -> bool:
    """Return whether the machine has a cache."""
    return bool(document["inputs"]["scenario"].get("cache_pages", 1))


def _is_open(document: Document) -> bool:
    return bool(document["inputs"]["scenario"].get("mode", "open") == "open")


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


def end_ns(document: Document) -> int:
    """Return the end of the load of the machine with its cache."""
    return int(document["phases"]["whole"]["end_ns"])


def _width_ns(series: Document, end_ns: float) -> float:
    starts = series["start_ns"]
    return float(starts[1] - starts[0]) if len(starts) > 1 else end_ns


def middles(series: Document, end_ns: float) -> list[float]:
    """Return the middles of the time bins."""
    half = _width_ns(series, end_ns) / 2
    return [start + half for start in series["start_ns"]]


def _over_time(
    document: Document, gid: str, title: str, y: Axis, lines: list[Line], **more: Any
) -> Chart:
    """Return a chart over the time of the load, with the phases of the cache if it has several."""
    bands = [
        Band(each.label, each.figures["start_ns"], each.figures["end_ns"], each.role)
        for each in phases(document)[1:]
    ]
    x = Axis.times(end_ns(document))
    return Chart(gid, title, x, y, lines, bands if len(bands) > 1 else [], sync="time", **more)


# The warm-up.


def warm_up(document: Document) -> list[Chart]:
    """Return the panels of a result's warm-up; none for a machine without a cache."""
    if not has_cache(document):
        return []
    return [_hit_ratio(document), *_throughput(document), _latency(document), *_occupancy(document)]


def warm_ups(documents: Mapping[str, Document]) -> Chart:
    """Return the smoothed curves of warm-ups; phases are shown for a single result only."""
    if len(documents) == 1:
        return replace(_hit_ratio(next(iter(documents.values()))), sync="")
    measures = {each["warm_up"]["measure"] for each in documents.values()}
    if len(measures) > 1:
        raise UsageError("hit ratios and IOPS cannot share a chart: replay all results in one mode")
    lines = [
        replace(_smoothed(each, name, ""), gid=f"warm-up-{name}")
        for name, each in documents.items()
    ]
    x = Axis.times(max(end_ns(each) for each in documents.values()))
    y = Axis.shares("hit ratio") if measures == {"hit ratio"} else Axis.counts("IOPS")
    return Chart("warm-up", "Warm-up", x, y, lines)


def _hit_ratio(document: Document) -> Chart:
    """Return the hit ratio of reads over time."""
    title, y = "Hit ratio: reads that came from the SSD", Axis.shares("hit ratio")
    return _judged(document, "hit-ratio", title, y, "hit ratio", "hit", "other")


def _throughput(document: Document) -> Iterator[Chart]:
    """Return IOPS, if they are a result and not specified by the trace."""
    if not _is_open(document):
        y = Axis.counts("IOPS")
        yield _judged(document, "iops", "Requests per second", y, "IOPS", "iops", "real")


def _judged(
    document: Document, gid: str, title: str, y: Axis, measure: str, key: str, role: str
) -> Chart:
    """Return a series; with the smoothed curve and its marks, if the warm-up is judged by it."""
    series, curve = document["series"], document["warm_up"]
    is_judged = curve["measure"] == measure
    x = middles(series, end_ns(document))
    lines = [Line(key, "each bin", x, series[key], role="other" if is_judged else role)]
    marks = []
    if is_judged:
        lines.append(_smoothed(document, "smoothed", "warm"))
        for share in (50, 90):
            time_ns, known = curve[f"t{share}_ns"], curve.get(f"t{share}") or {}
            if time_ns:
                ends = {end: known.get(end) for end in ("low", "high")}
                marks.append(Mark(f"{share}%", time_ns, **ends))
    note = SHADED if any(mark.low is not None for mark in marks) else ""
    return _over_time(document, gid, title, y, lines, marks=marks, note=note)


def _smoothed(document: Document, label: str, role: str) -> Line:
    """Return the smoothed curve from which the warm-up is determined."""
    warm_up = document["warm_up"]
    x = [start + warm_up["bin_ns"] / 2 for start in warm_up["curve"]["t_ns"]]
    return Line("smooth", label, x, warm_up["curve"]["x"], role=role)


def _latency(document: Document) -> Chart:
    """Return mean, median and p99 latency of the reads over time."""
    series, end = document["series"], end_ns(document)
    x = middles(series, end)
    lines = [Line(key, key, x, series[f"{key}_ns"], role=key) for key in ("mean", "p50", "p99")]
    note = ""
    if _is_open(document):
        alone = series["none"]
        middle = middles(alone, document["phases"]["none_whole"]["end_ns"])
        shown = [(at, value) for at, value in zip(middle, alone["mean_ns"]) if at <= end]
        xs, ys = [at for at, _ in shown], [value for _, value in shown]
        lines.append(Line("mean-none", "mean, no cache", xs, ys, role="none", dashed=True))
    else:
        note = (
            "The disks alone take longer for the same requests, so their latencies do not fit this "
            "time axis: see the distributions below."
        )
    y = Axis.latencies(0, "read latency", log=True)
    return _over_time(document, "latency", "Read latency", y, lines, note=note)


def _occupancy(document: Document) -> Iterator[Chart]:
    """Return the occupancy of the cache over time, if the document has it."""
    scenario, series = document["inputs"]["scenario"], document["series"]
    pages, size = scenario.get("cache_pages"), scenario.get("cache_bytes")
    present = series["occupancy_pages"]
    if not pages or not size or not any(each is not None for each in present):
        return
    width = _width_ns(series, end_ns(document))
    ends = [start + width for start in series["start_ns"]]
    held: list[Value] = [None if each is None else each * (size / pages) for each in present]
    largest = max(size, maximum(held))
    y = replace(Axis.sizes(largest, "data on the SSD"), high=largest)
    lines = [Line("occupancy", "occupancy", ends, held, "area", "real")]
    yield _over_time(document, "occupancy", "Occupancy", y, lines)


# Latencies.


def distributions(document: Document) -> Iterator[Chart]:
    """Return the cumulative distributions of read and write latency, by phase."""
    for what in ("read", "write"):
        lines = [
            Line(f"cdf-{what}-{each.role}", each.label, *_cumulative(each.figures[what]["bins"]),
                 "steps", each.role)
            for each in phases(document)
            if each.figures[what]["n"] >= FEWEST
        ]  # fmt: skip
        if lines:
            x, y = Axis.latencies(0, log=True), Axis.shares(f"share of the {what}s")
            yield Chart(f"cdf-{what}", f"Latency of {what}s", x, y, lines)


def _cumulative(bins: Mapping[str, int]) -> tuple[list[float], list[float]]:
    """Return latencies in ns and the shares of requests that took no longer.

    A bin is drawn at its middle, which its key is: a step is off by 1/128 of its latency at most.
    """
    values = sorted((float(value), number) for value, number in bins.items())
    total, so_far = sum(number for _, number in values), 0
    x, y = [BEFORE * values[0][0]], [0.0]
    for value, number in values:
        so_far += number
        x.append(value)
        y.append(so_far / total)
    return x, y


def ways(document: Document) -> Bars | None:
    """Return the contributions of hits, misses and bypasses to the mean read latency."""
    rows = []
    for each in phases(document):
        read = each.figures["read"]
        if read["n"] and not each.figures["saturated"]:
            parts = [float(read[way]["mean_ns"] or 0.0) * int(read[way]["n"]) / read["n"]
                     for way in WAYS]  # fmt: skip
            is_alone = each.role == "none"
            rows.append((each.label, [0.0, 0.0, 0.0, sum(parts)] if is_alone else [*parts, 0.0]))
    if len(rows) < 2:
        return None
    note = (
        "Each part is the share of reads that take that path times their mean latency; the parts "
        "add up to the mean latency of a read."
    )
    x = Axis.latencies(max(sum(values) for _, values in rows), "mean read latency")
    named, roles = [*WAYS.values(), "disks alone"], ["", "", "", "none"]
    return Bars("ways", "Mean read latency by path", x, named, rows, roles, note=note)


# Time of the disks and SSDs by activity.


def device_time(document: Document) -> Bars | None:
    """Return the device time per request in each phase that is not saturated."""
    shown = [each for each in phases(document) if not each.figures["saturated"]]
    rows = [(each.label, spent) for each in shown if (spent := _spent(each.figures))]
    if not rows:
        return None
    named = {name for _, spent in rows for name in spent}
    parts = [name for name in (*ACTIVITIES.values(), QUEUE, SSD) if name in named]
    note = (
        "All device activity of the phase divided by its number of requests: it includes "
        "background work (fills, write-back) and adds up parallel work, so it can exceed the "
        "latency."
    )
    x = Axis.latencies(max(sum(spent.values()) for _, spent in rows), "time per request")
    bars = [(label, [spent.get(name, 0.0) for name in parts]) for label, spent in rows]
    return Bars("device-time", "Device time per request", x, parts, bars, note=note)


def _spent(figures: Document) -> dict[str, float]:
    """Return ns per request by activity."""
    requests = sum(figures[kind]["n"] for kind in ("read", "write", "other")) or 1
    spent = {ACTIVITIES[name]: number for name, number in figures["disk_time_ns"].items()}
    spent |= {QUEUE: figures["disk_queue_ns"], SSD: figures["ssd_time_ns"]}
    return {name: number / requests for name, number in spent.items() if number}


def disk_time(document: Document) -> Bars | None:
    """Return the share of the disks' time by activity in each phase; the rest is idle."""
    shown = [each for each in phases(document) if sum(each.figures["disk_time_ns"].values())]
    if not shown:
        return None
    parts = [
        name for name in ACTIVITIES if any(name in each.figures["disk_time_ns"] for each in shown)
    ]
    are_disks = "seek" in parts
    rows = []
    for each in shown:
        spent = each.figures["disk_time_ns"]
        busy = each.figures["disk_utilisation"] if are_disks else 1.0
        total = sum(spent.values())
        rows.append((each.label, [(busy or 0.0) * spent.get(name, 0) / total for name in parts]))
    title = "Disk time by activity" if are_disks else "Volume requests by cause of waiting"
    x = Axis.shares("share of the disks' time" if are_disks else "share of the requests' time")
    note = "In the remaining time the disks are idle." if are_disks else ""
    return Bars("disk-time", title, x, [ACTIVITIES[name] for name in parts], rows, note=note)


def disks_over_time(document: Document) -> Chart | None:
    """Return the disks' activity over time, in the machine with its cache."""
    series = document["series"]
    spent = series.get("disk_time_ns") or {}
    if "seek" not in spent:
        return None
    x = middles(series, end_ns(document))
    totals = [sum(parts) or 1 for parts in zip(*spent.values())]
    of_each = [(busy or 0.0) / total for busy, total in zip(series["disk_utilisation"], totals)]
    lines = [
        Line(f"disk-{name}", ACTIVITIES[name], x, [a * b for a, b in zip(times, of_each)], "area")
        for name, times in spent.items()
    ]
    title = "Disk time by activity over time" + (", with the cache" if has_cache(document) else "")
    y = Axis.shares("disks busy", None)
    return _over_time(document, "disk-time-series", title, y, lines, is_stacked=True)


def ssds_over_time(document: Document) -> Chart | None:
    """Return the utilisation of the SSDs over time; None if they are unused."""
    note = "Share of the time with a request outstanding, as iostat's %util."
    y, busy = Axis.shares("SSD busy", None), document["series"]["ssd_utilisation"]
    return _area(document, "ssd-busy", "SSD utilisation", y, busy, note)


def written(document: Document) -> Chart | None:
    """Return the bytes per second written to the SSDs; None if they are not counted."""
    rates = document["series"]["ssd_write_bytes_per_s"]
    y = Axis.rates(maximum(rates), "written")
    return _area(document, "ssd-writes", "Written to the SSD", y, rates)


def _area(
    document: Document, gid: str, title: str, y: Axis, values: list[Value], note: str = ""
) -> Chart | None:
    """Return a series as an area, with the name of its axis; None if there is nothing of it."""
    if not maximum(values):
        return None
    x = middles(document["series"], end_ns(document))
    lines = [Line(gid, y.label, x, values, "area", "real")]
    return _over_time(document, gid, title, y, lines, note=note)


# Why reads did not come from the SSD, and where the trace reads and writes.


def reason_in_words(key: str) -> str:
    """Return the words of reports for a reason of the document."""
    return REASONS.get(Reason[key.upper()], key.replace("_", " "))


def reasons(document: Document) -> Chart | None:
    """Return the share of reads that missed the SSD over time, by reason."""
    series = document["series"]
    by_reason = {name: each for name, each in (series.get("reasons") or {}).items() if any(each)}
    if not by_reason or not has_cache(document):
        return None
    step = -(-len(series["reads"]) // BINS_MAX)
    x = [sum(part) / len(part) for part in _parts(middles(series, end_ns(document)), step)]
    reads = [sum(part) for part in _parts(series["reads"], step)]
    lines = [
        Line(
            f"reason-{name}", reason_in_words(name), x,
            [sum(part) / n if n else None for part, n in zip(_parts(numbers, step), reads)], "area",
        )
        for name, numbers in sorted(by_reason.items(), key=lambda each: -sum(each[1]))
    ]  # fmt: skip
    title, y = "Reads that did not come from the SSD, by reason", Axis.shares("share of the reads")
    return _over_time(document, "reasons", title, y, lines, is_stacked=True)


def _parts(values: list[Any], step: int) -> list[list[Any]]:
    return [values[at : at + step] for at in range(0, len(values), step)]


def address_maps(document: Document) -> Iterator[Heat]:
    """Return heat maps of the read and written addresses; none if the document has no map."""
    result = document["inputs"]["trace"].get("address_map")
    if not result:
        return
    for what in ("reads", "writes"):
        counts = [[int(each) for each in column.split()] for column in result[what]]
        if not any(any(column) for column in counts):
            continue
        wide, high = result["width_ns"] * len(counts), result["height_bytes"] * len(counts[0])
        yield Heat(
            f"map-{what}", f"Where it {what}", Axis.times(wide, "time in the trace"),
            Axis.sizes(high, "address"), result["width_ns"], result["height_bytes"], counts,
            note=f"Darker cells have more {what}; empty cells are not accessed.",
        )  # fmt: skip
