"""Totals of a fleet by setting, and the distribution of the gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, latency
from hybridsim.show.charts import Chart
from hybridsim.show.charts.chart import Axis, Line
from hybridsim.show.html.blocks import Section, Table

CURVES_MAX = 6


def section(document: Mapping[str, Any]) -> Section | None:
    """Return the totals by setting, and the cumulative distribution of the gains."""
    rows = document["fleet"]
    if not rows:
        return None
    heads = ["setting", "volumes", "yes", "no", "unsure", "SSD", "mean, no cache", "mean, cached",
             "gain"]  # fmt: skip
    table = Table("All volumes; means of all warm reads", heads, [*map(_cells, rows)])
    lead = (
        "Each volume is replayed separately; its gain is its mean read latency without the cache "
    )
    lead += "divided by that with it."
    return Section("fleet", "The fleet", [table, _spread(rows)], lead)


def _cells(row: Mapping[str, Any]) -> list[str]:
    answers = [str(number) for number in row["answers"].values()]
    gain = NONE if row["gain"] is None else f"{row['gain']:.2f}"
    return [
        _name(row), str(row["volumes"]), *answers, human_size(row["ssd_bytes"]),
        latency(row["alone_ns"]), latency(row["mean_ns"]), gain,
    ]  # fmt: skip


def _name(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in row["values"].items()) or "the scenario"


def _spread(rows: list[Mapping[str, Any]]) -> Chart:
    lines = [
        Line(f"gains{number}", _name(row), row["gains"],
             [(place + 1) / len(row["gains"]) * 100 for place in range(len(row["gains"]))], "steps")
        for number, row in enumerate(rows[:CURVES_MAX])
        if row["gains"]
    ]  # fmt: skip
    x, y = Axis("gain", "times"), Axis("volumes", "%", low=0, high=100)
    return Chart("gains", "Share of the volumes with at most this gain", x, y, lines)
