"""What the disks' time goes into."""

from __future__ import annotations

from hybridsim.charts import axes
from hybridsim.charts.chart import Bars, Chart, Line
from hybridsim.charts.documents import Document, bands, end_ns, has_cache, middles, phases, width_ns

LABELS = {
    "seek": "seek", "rotation": "rotation", "transfer": "transfer", "other": "other",
    "iops_limit": "IOPS limit", "bandwidth_limit": "bandwidth limit", "latency": "latency",
}  # fmt: skip


def by_phase(document: Document) -> Bars | None:
    """Return how the disks' time is spent in each phase; what is left, they are idle."""
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
    title = "What the disks are busy with" if are_disks else "What requests to the volumes wait for"
    x = axes.shares("of the disks' time" if are_disks else "of the requests' time")
    note = "The rest of the time the disks are idle." if are_disks else ""
    return Bars("disk-time", title, x, [LABELS[name] for name in parts], rows, note)


def over_time(document: Document) -> Chart | None:
    """Return what the disks of the machine with its cache are busy with, over time."""
    series = document["series"]
    spent = series.get("disk_time_ns") or {}
    if "seek" not in spent:
        return None
    end = end_ns(document)
    x = middles(series, end)
    whole = _members_ns(document)
    lines = [
        Line(f"disk-{name}", LABELS[name], x, [each / whole for each in spent[name]], "area")
        for name in spent
    ]
    title = "The same over time" + (", with the cache" if has_cache(document) else "")
    return Chart(
        "disk-time-series", title, axes.times(end), axes.shares("disks busy", None), lines,
        bands(document), is_stacked=True, sync="time",
    )  # fmt: skip


def _members_ns(document: Document) -> float:
    """Return how much time the disks together have in a bin."""
    whole = document["phases"]["whole"]
    busy = float(sum(whole["disk_time_ns"].values())) / (whole["disk_utilisation"] or 1.0)
    return busy / (whole["end_ns"] or 1) * width_ns(document["series"], whole["end_ns"])
