"""Results of replays at full detail by the size of the cache."""

from __future__ import annotations

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Chart, Line, Mark
from hybridsim.show.charts.documents import Document


def by_size(document: Document) -> list[Chart]:
    """Return hit ratio and latency by size, from `size --json`."""
    tried = document["tried"]
    sizes = [each["size_bytes"] for each in tried]
    answer = document["answer"]
    marks = [Mark("answer", answer["size_bytes"])] if answer else []
    x = axes.sizes(max(sizes), log=len(sizes) > 2)
    names = list(dict.fromkeys(each["name"] for each in tried))
    if len(names) == 1:
        times = {name: [each[f"{name}_ns"] for each in tried] for name in ("mean", "p99")}
        lines = [Line(f"size-{name}", name, sizes, times[name], "both", name) for name in times]
        y = axes.latencies(axes.maximum(times["p99"]), "read latency", log=True)
    else:
        lines = [_line(document, "mean_ns", name, place) for place, name in enumerate(names)]
        most = axes.maximum([each["mean_ns"] for each in tried])
        y = axes.latencies(most, "mean read latency", log=True)
    hits = [_line(document, "hit", name, place) for place, name in enumerate(names)]
    return [
        Chart("hit-by-size", "Hit ratio, warm", x, axes.shares("hit ratio"), hits, marks=marks),
        Chart("latency-by-size", "Read latency, warm", x, y, lines, marks=marks),
    ]


def _line(document: Document, key: str, name: str, place: int) -> Line:
    """Return a figure of one kind of cache by size."""
    mine = [each for each in document["tried"] if each["name"] == name]
    sizes, values = ([each[one] for each in mine] for one in ("size_bytes", key))
    return Line(f"size-{key}-{place}", name, sizes, values, "both")
