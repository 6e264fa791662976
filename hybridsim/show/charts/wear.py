"""Bytes written to the SSDs over time."""

from __future__ import annotations

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Chart, Line
from hybridsim.show.charts.documents import Document, bands, end_ns, middles


def written(document: Document) -> Chart | None:
    """Return the bytes per second written to the SSDs; None if they are not counted."""
    series = document["series"]
    rates = series["ssd_write_bytes_per_s"]
    if not any(rates):
        return None
    end = end_ns(document)
    lines = [Line("ssd-writes", "written", middles(series, end), rates, "area", "real")]
    return Chart(
        "ssd-writes", "Written to the SSD", axes.times(end),
        axes.rates(axes.maximum(rates), "written"), lines, bands(document), sync="time",
    )  # fmt: skip
