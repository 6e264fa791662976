"""Latency against cost."""

from __future__ import annotations

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Axis, Chart, Line
from hybridsim.show.charts.documents import Document
from hybridsim.show.charts.pareto import front


def cost(document: Document) -> Chart:
    """Return the mean latency by cost of the alternatives in `advise --json`.

    Alternatives without a price or a latency are left out.
    """
    priced = [one for one in document["compared"]
             if one["cost"] is not None and one["mean_ns"] is not None]  # fmt: skip
    xs, ys = ([one[key] for one in priced] for key in ("cost", "mean_ns"))
    best = front(xs, ys)
    money = document["price"].get("currency", "")
    lines = [
        Line("alternatives", "alternatives", xs, ys, "points", "real",
             names=[one["name"] for one in priced]),
        Line("front", "Pareto front", [xs[at] for at in best], [ys[at] for at in best],
             "line", "warm"),
    ]  # fmt: skip
    x = Axis("cost", money, low=0)
    y = axes.latencies(axes.maximum(ys), "mean latency")
    return Chart("cost", "Latency by cost", x, y, lines)


def by_size(document: Document) -> Chart:
    """Return the mean latency by the cost of caches of several sizes, from `advise --json`."""
    priced = [one for one in document["sizes"]
             if one["cost"] is not None and one["mean_ns"] is not None]  # fmt: skip
    priced.sort(key=lambda one: float(one["cost"]))
    names = [one["what"] for one in priced]
    lines = [Line("sizes", "SSD cache", [one["cost"] for one in priced],
                  [one["mean_ns"] for one in priced], "both", "warm", names=names)]  # fmt: skip
    y = axes.latencies(axes.maximum([one["mean_ns"] for one in priced]), "mean latency")
    return Chart(
        "cost-by-size", "Latency by cost of the SSD", Axis("cost of the SSD", low=0), y, lines
    )
