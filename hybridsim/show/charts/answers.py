"""Charts of the documents of `size`, `mrc`, `advise`, `bench` and `compare`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hybridsim.foundation.units import human_size
from hybridsim.show.charts import ENDS, Axis, Chart, Line, Mark, Ranges, maximum
from hybridsim.show.charts.replay import Document
from hybridsim.show.charts.tables import front
from hybridsim.show.curve import no_knee

NEAR = 4  # sizes on either side of the answer
SHADED = "Shaded: the interval of 90 % of the mean."
PARAMETERS = (
    "sequential write", "sequential read", "random write", "cold random read", "hot random read",
)  # fmt: skip
STATES = {"without": "without cache", "cold": "empty cache", "warm": "warm cache"}
ROLES = {"without": "none", "cold": "cold", "warm": "warm"}
FEWEST = 4  # bins of an overlaid curve; there are more


# size: replays at full detail by the size of the cache.


def by_size(document: Document) -> list[Chart]:
    """Return hit ratio and latency by size, from `size --json`."""
    kinds: dict[str, list[Document]] = {}
    for each in document["tried"]:
        kinds.setdefault(each["name"], []).append(each)
    sizes = [each["size_bytes"] for each in document["tried"]]
    answer = document["answer"]
    marks = [Mark("answer", answer["size_bytes"])] if answer else []
    x = Axis.sizes(max(sizes), log=len(sizes) > 2)
    if len(kinds) == 1:
        lines = [
            _line(document["tried"], f"{name}_ns", f"size-{name}", name, name)
            for name in ("mean", "p99")
        ]
    else:
        lines = [_line(tried, "mean_ns", f"size-mean_ns-{place}", name)
                 for place, (name, tried) in enumerate(kinds.items())]  # fmt: skip
    for place, tried in enumerate(kinds.values()):
        low, high = ([each["mean"] and each["mean"][end] for each in tried]
                     for end in ("low", "high"))  # fmt: skip
        lines[place] = replace(lines[place], low=low, high=high)
    label = "read latency" if len(kinds) == 1 else "mean read latency"
    y = Axis.latencies(0, label, log=True)
    hits = [_line(tried, "hit", f"size-hit-{place}", name)
            for place, (name, tried) in enumerate(kinds.items())]  # fmt: skip
    return [
        Chart("hit-by-size", "Hit ratio, warm", x, Axis.shares("hit ratio"), hits, marks=marks),
        Chart("latency-by-size", "Read latency, warm", x, y, lines, marks=marks, note=SHADED),
    ]


def _line(tried: list[Document], key: str, gid: str, label: str, role: str = "") -> Line:
    sizes, values = ([each[one] for each in tried] for one in ("size_bytes", key))
    return Line(gid, label, sizes, values, "both", role)


def mean_ranges(document: Document) -> list[Ranges]:
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
    title = f"Mean read latency with its interval of 90 %, {answer['name']}"
    return [Ranges("mean-ranges", title, Axis("mean read latency", "ms"), rows)] if rows else []


# mrc: the miss-ratio curve with its knee and the chosen size.


def miss_ratios(curves: Mapping[str, Document], chosen_bytes: int | None = None) -> Chart:
    """Return a curve with its knee, or several named curves, each with its knee."""
    charts = {name: miss_ratio(each, chosen_bytes) for name, each in curves.items()}
    first = next(iter(charts.values()))
    if len(charts) == 1:
        return first
    lines = [
        replace(chart.lines[0], gid=f"miss-ratio-{name}", label=name, role="")
        for name, chart in charts.items()
    ]
    marks = {
        replace(mark, label=f"{mark.label}, {name}") if mark.y is not None else mark: None
        for name, chart in charts.items()
        for mark in chart.marks
    }
    x = Axis.sizes(max(maximum(line.x) for line in lines))
    return replace(first, lines=lines, marks=list(marks), x=x)


def miss_ratio(curve: Document, chosen_bytes: int | None = None) -> Chart:
    """Return a curve of `mrc --json` or `size --json`."""
    page = curve["page_bytes"]
    sizes = [each["pages"] * page for each in curve["curve"]]
    ratios = [each["miss_ratio"] for each in curve["curve"]]
    errors = [each["error"] for each in curve["curve"]]
    line = Line("miss-ratio", f"{curve['policy'].upper()}", sizes, ratios, role="real")
    note = ""
    if any(errors):
        line = replace(
            line,
            low=[max(ratio - error, 0.0) for ratio, error in zip(ratios, errors)],
            high=[min(ratio + error, 1.0) for ratio, error in zip(ratios, errors)],
        )
        note = "Shaded: the interval of 95 % of a sampled curve."
    marks = []
    if no_knee(ratios[0], ratios[-1]) is None:
        knee = curve["knee_pages"] * page
        near = min(range(len(sizes)), key=lambda at: abs(sizes[at] - knee))
        marks.append(Mark("knee", sizes[near], ratios[near]))
    if chosen_bytes is not None:
        marks.append(Mark("chosen", chosen_bytes))
    x, y = Axis.sizes(sizes[-1]), Axis.shares("miss ratio")
    title = "Miss ratio by cache size"
    return Chart("miss-ratio-curve", title, x, y, [line], marks=marks, note=note)


# advise: latency against cost.


def cost(document: Document) -> Chart:
    """Return the mean latency by cost of the alternatives in `advise --json`.

    Alternatives without a price or a latency are left out.
    """
    priced = _priced(document["compared"])
    xs, ys = ([one[key] for one in priced] for key in ("cost", "mean_ns"))
    best = front(xs, ys)
    on_front = [xs[at] for at in best], [ys[at] for at in best]
    lines = [
        Line("alternatives", "alternatives", xs, ys, "points", "real",
             names=[one["name"] for one in priced]),
        Line("front", "Pareto front", *on_front, "line", "warm"),
    ]  # fmt: skip
    x = Axis("cost", document["price"].get("currency", ""), low=0)
    y = Axis.latencies(maximum(ys), "mean latency")
    return Chart("cost", "Latency by cost", x, y, lines)


def cost_by_size(document: Document) -> Chart:
    """Return the mean latency by the cost of caches of several sizes, from `advise --json`."""
    priced = sorted(_priced(document["sizes"]), key=lambda one: float(one["cost"]))
    xs, ys, names = ([one[key] for one in priced] for key in ("cost", "mean_ns", "what"))
    lines = [Line("sizes", "SSD cache", xs, ys, "both", "warm", names=names)]
    x, y = Axis("cost of the SSD", low=0), Axis.latencies(maximum(ys), "mean latency")
    return Chart("cost-by-size", "Latency by cost of the SSD", x, y, lines)


def _priced(rows: list[Document]) -> list[Document]:
    return [one for one in rows if one["cost"] is not None and one["mean_ns"] is not None]


# bench: the five I/O parameters of a machine.


def by_depth(document: Document) -> Iterator[Chart]:
    """Return two charts per parameter by queue depth: bandwidth if sequential, else IOPS; p99."""
    for name in PARAMETERS:
        is_sequential = name.startswith("sequential")
        title, gid = name.capitalize(), name.replace(" ", "-")
        x = Axis.counts("queue depth", log=True, base=2)
        lines = _by_depth(document, name, "bytes_per_s" if is_sequential else "iops")
        most = maximum(value for line in lines for value in line.y)
        y = Axis.rates(most, "bandwidth") if is_sequential else Axis.counts("IOPS", log=True)
        yield Chart(f"bench-{gid}", title, x, y, lines)
        lines, y = _by_depth(document, name, "p99_ns"), Axis.latencies(0, "p99 latency", log=True)
        yield Chart(f"bench-p99-{gid}", f"{title}: p99", x, y, lines)


def _by_depth(document: Document, name: str, key: str) -> list[Line]:
    lines = []
    for state, label in STATES.items():
        points = [one for one in document["points"]
                  if (one["state"], one["parameter"]) == (state, name)]  # fmt: skip
        points.sort(key=lambda one: int(one["depth"]))
        if points:
            gid = f"{name.replace(' ', '-')}-{state}-{key}"
            x, y = [one["depth"] for one in points], [one[key] for one in points]
            lines.append(Line(gid, label, x, y, "both", ROLES[state]))
    return lines


# compare: a real and a simulated run.


def overlays(document: Document) -> list[Chart]:
    """Return one chart for each curve that both runs have, from `compare --json`."""
    return [
        _overlay(number, each)
        for number, each in enumerate(document["curves"])
        if len(each["time_ns"]) > FEWEST
    ]


def _overlay(number: int, curve: Document) -> Chart:
    width, name = curve["width_ns"], str(curve["name"])
    x = [start + width / 2 for start in curve["time_ns"]]
    lines = [
        Line(f"{side}-{number}", side, x, curve[side]["x"], role=side)
        for side in ("real", "simulated")
    ]
    highest = maximum(value for line in lines for value in line.y)
    end = curve["time_ns"][-1] + width
    return Chart(f"overlay-{number}", name, Axis.times(end), _measure(name, highest), lines,
                 sync="time")  # fmt: skip


def _measure(name: str, highest: float) -> Axis:
    """Return the axis of a measure by its name."""
    last = name.rpartition(" ")[2]
    if "hit ratio" in name:
        return Axis.shares("hit ratio")
    if "bandwidth" in name:
        return Axis.rates(highest, "bandwidth")
    return Axis.latencies(highest) if "lat" in last else Axis.counts(last)
