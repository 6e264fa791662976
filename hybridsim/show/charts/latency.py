"""Distributions of latencies, and the parts of a read's mean latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Bars, Chart, Line
from hybridsim.show.charts.documents import Document, phases

BEFORE = 0.98  # of the shortest latency: start of the curve, at 0
FEWEST = 100  # minimum number of requests for a distribution
WAYS = {"hits": "from the SSD", "misses": "misses", "bypasses": "past the cache"}
ALONE = "disks alone"
WORDS = {"read": "reads", "write": "writes"}


def distributions(document: Document) -> Iterator[Chart]:
    """Return the cumulative distributions of read and write latency, by phase."""
    for what in WORDS:
        shown = [each for each in phases(document) if each.figures[what]["n"] >= FEWEST]
        if not shown:
            continue
        lines = []
        for each in shown:
            x, y = cumulative(each.figures[what]["bins"])
            gid = f"cdf-{what}-{each.role}"
            lines.append(Line(gid, each.label, x, y, "steps", each.role))
        yield Chart(
            f"cdf-{what}", f"Latency of {WORDS[what]}", axes.latencies(0, log=True),
            axes.shares(f"share of the {WORDS[what]}"), lines,
        )  # fmt: skip


def cumulative(bins: Mapping[str, int]) -> tuple[list[float], list[float]]:
    """Return latencies in ns and the shares of requests that took no longer.

    A bin is drawn at its middle, which its key is: a step is off by 1/128 of its latency at most.
    """
    values = sorted((float(value), number) for value, number in bins.items())
    total, so_far = sum(number for _, number in values), 0
    x, y = [], []
    for value, number in values:
        so_far += number
        x.append(value)
        y.append(so_far / total)
    return [BEFORE * x[0], *x], [0.0, *y]


def ways(document: Document) -> Bars | None:
    """Return the contributions of hits, misses and bypasses to the mean read latency."""
    rows = []
    for each in phases(document):
        read = each.figures["read"]
        if read["n"] and not each.figures["saturated"]:
            parts = [_share(read[way], read["n"]) for way in WAYS]
            is_alone = each.role == "none"
            rows.append((each.label, [0.0, 0.0, 0.0, sum(parts)] if is_alone else [*parts, 0.0]))
    if len(rows) < 2:
        return None
    note = (
        "Each part is the share of reads that take that path times their mean latency; the parts "
        "add up to the mean latency of a read."
    )
    longest = max(sum(values) for _, values in rows)
    x = axes.latencies(longest, "mean read latency")
    return Bars(
        "ways", "Mean read latency by path", x, [*WAYS.values(), ALONE], rows, note,
        ["", "", "", "none"],
    )  # fmt: skip


def _share(way: Mapping[str, Any], reads: int) -> float:
    return float(way["mean_ns"] or 0.0) * int(way["n"]) / reads
