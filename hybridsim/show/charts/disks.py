"""Time of the disks and SSDs by activity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Bars, Chart, Line
from hybridsim.show.charts.documents import Document, bands, end_ns, has_cache, middles, phases

LABELS = {
    "seek": "seek", "rotation": "rotation", "transfer": "transfer", "other": "other",
    "iops_limit": "IOPS limit", "bandwidth_limit": "bandwidth limit", "latency": "latency",
}  # fmt: skip


QUEUE, SSD = "queue of the disk", "SSD"


def per_request(document: Document) -> Bars | None:
    """Return the device time per request in each phase that is not saturated."""
    shown = [each for each in phases(document) if not each.figures["saturated"]]
    rows = [(each.label, _spent(each.figures)) for each in shown]
    rows = [(label, spent) for label, spent in rows if sum(spent.values())]
    if not rows:
        return None
    named = {name for _, spent in rows for name in spent}
    parts = [name for name in (*LABELS.values(), QUEUE, SSD) if name in named]
    note = (
        "All device activity of the phase divided by its number of requests: it includes "
        "background work (fills, write-back) and adds up parallel work, so it can exceed the "
        "latency."
    )
    x = axes.latencies(max(sum(spent.values()) for _, spent in rows), "time per request")
    bars = [(label, [spent.get(name, 0.0) for name in parts]) for label, spent in rows]
    return Bars("device-time", "Device time per request", x, parts, bars, note)


def _spent(figures: Mapping[str, Any]) -> dict[str, float]:
    """Return ns per request by activity."""
    requests = sum(figures[kind]["n"] for kind in ("read", "write", "other")) or 1
    spent = {LABELS[name]: number for name, number in figures["disk_time_ns"].items()}
    spent[QUEUE] = figures["disk_queue_ns"]
    spent[SSD] = figures["ssd_time_ns"]
    return {name: number / requests for name, number in spent.items() if number}


def by_phase(document: Document) -> Bars | None:
    """Return the share of the disks' time by activity in each phase; the rest is idle."""
    rows = []
    shown = [each for each in phases(document) if sum(each.figures["disk_time_ns"].values())]
    parts = [name for name in LABELS if any(name in each.figures["disk_time_ns"] for each in shown)]
    are_disks = "seek" in parts
    for each in shown:
        spent = each.figures["disk_time_ns"]
        busy = each.figures["disk_utilisation"] if are_disks else 1.0
        total = sum(spent.values())
        rows.append((each.label, [(busy or 0.0) * spent.get(name, 0) / total for name in parts]))
    if not rows:
        return None
    title = "Disk time by activity" if are_disks else "Volume requests by cause of waiting"
    x = axes.shares("share of the disks' time" if are_disks else "share of the requests' time")
    note = "In the remaining time the disks are idle." if are_disks else ""
    return Bars("disk-time", title, x, [LABELS[name] for name in parts], rows, note)


def over_time(document: Document) -> Chart | None:
    """Return the disks' activity over time, in the machine with its cache."""
    series = document["series"]
    spent = series.get("disk_time_ns") or {}
    if "seek" not in spent:
        return None
    end = end_ns(document)
    x = middles(series, end)
    totals = [sum(parts) or 1 for parts in zip(*spent.values())]
    of_each = [(busy or 0.0) / total for busy, total in zip(series["disk_utilisation"], totals)]
    lines = [
        Line(f"disk-{name}", LABELS[name], x, [a * b for a, b in zip(spent[name], of_each)], "area")
        for name in spent
    ]
    title = "Disk time by activity over time" + (", with the cache" if has_cache(document) else "")
    return Chart(
        "disk-time-series", title, axes.times(end), axes.shares("disks busy", None), lines,
        bands(document), is_stacked=True, sync="time",
    )  # fmt: skip


def ssds_over_time(document: Document) -> Chart | None:
    """Return the utilisation of the SSDs over time; None if they are unused."""
    series = document["series"]
    busy = series["ssd_utilisation"]
    if not axes.maximum(busy):
        return None
    end = end_ns(document)
    lines = [Line("ssd-busy", "SSD busy", middles(series, end), busy, "area", "real")]
    y = axes.shares("SSD busy", None)
    return Chart(
        "ssd-busy", "SSD utilisation", axes.times(end), y, lines, bands(document), sync="time",
        note="Share of the time with a request outstanding, as iostat's %util.",
    )  # fmt: skip
