"""The addresses that a trace reads and writes, over time."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Heat
from hybridsim.show.charts.documents import Document


def maps(document: Document) -> Iterator[Heat]:
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
            f"map-{what}", f"Where it {what}", axes.times(wide, "time in the trace"),
            axes.sizes(high, "address"), result["width_ns"], result["height_bytes"], counts,
            f"Darker cells have more {what}; empty cells are not accessed.",
        )  # fmt: skip
