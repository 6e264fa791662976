"""Results of replays at full detail by the size of the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Axis, Chart, Line, Mark, Ranges
from hybridsim.show.charts.documents import Document

NEAR = 4  # sizes on either side of the answer
ENDS = ("low", "value", "high")
SHADED = "Shaded: the interval of 90 % of the mean."


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
        lines[0] = _shaded(lines[0], tried)
        y = axes.latencies(axes.maximum(times["p99"]), "read latency", log=True)
    else:
        lines = [
            _shaded(
                _line(document, "mean_ns", name, place),
                [each for each in tried if each["name"] == name],
            )
            for place, name in enumerate(names)
        ]
        most = axes.maximum([each["mean_ns"] for each in tried])
        y = axes.latencies(most, "mean read latency", log=True)
    hits = [_line(document, "hit", name, place) for place, name in enumerate(names)]
    return [
        Chart("hit-by-size", "Hit ratio, warm", x, axes.shares("hit ratio"), hits, marks=marks),
        Chart("latency-by-size", "Read latency, warm", x, y, lines, marks=marks, note=SHADED),
    ]


def ranges(document: Document) -> list[Ranges]:
    """Return the mean read latency of the answer and of its neighbours, with their intervals."""
    answer = document["answer"]
    if answer is None:
        return []
    others = [each for each in document["tried"] if each["name"] == answer["name"]]
    place = others.index(answer)
    near = [answer, *others[max(place - NEAR, 0) : place], *others[place + 1 : place + 1 + NEAR]]
    rows = [
        (human_size(each["size_bytes"]), *(each["mean"][end] / 1e6 for end in ENDS))
        for each in near
        if each["mean"]
    ]
    if not rows:
        return []
    title = f"Mean read latency with its interval of 90 %, {answer['name']}"
    return [Ranges("mean-ranges", title, Axis("mean read latency", "ms"), rows)]


def _shaded(line: Line, tried: Sequence[Mapping[str, Any]]) -> Line:
    """Return a line of mean latencies with their intervals."""
    low, high = ([each["mean"] and each["mean"][end] for each in tried] for end in ("low", "high"))
    return replace(line, low=low, high=high)


def _line(document: Document, key: str, name: str, place: int) -> Line:
    """Return a figure of one kind of cache by size."""
    mine = [each for each in document["tried"] if each["name"] == name]
    sizes, values = ([each[one] for each in mine] for one in ("size_bytes", key))
    return Line(f"size-{key}-{place}", name, sizes, values, "both")
