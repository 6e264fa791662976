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
    times = {name: [each[f"{name}_ns"] for each in tried] for name in ("mean", "p99")}
    y = axes.latencies(axes.maximum(times["p99"]), "read latency", log=True)
    lines = [Line(f"size-{name}", name, sizes, times[name], "both", name) for name in times]
    hits = [Line("size-hit", "hit ratio", sizes, [each["hit"] for each in tried], "both", "warm")]
    return [
        Chart("hit-by-size", "Hit ratio, warm", x, axes.shares("hit ratio"), hits, marks=marks),
        Chart("latency-by-size", "Read latency, warm", x, y, lines, marks=marks),
    ]
