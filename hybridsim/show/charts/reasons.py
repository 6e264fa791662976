"""Reasons for reads that did not come from the SSD, over time."""

from __future__ import annotations

from hybridsim.foundation.codes import Reason
from hybridsim.foundation.explain import REASONS
from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Chart, Line
from hybridsim.show.charts.documents import Document, bands, end_ns, has_cache, middles

BINS_MAX = 64  # more would be unreadable


def reason_in_words(key: str) -> str:
    """Return the words of reports for a reason of the document."""
    return REASONS.get(Reason[key.upper()], key.replace("_", " "))


def over_time(document: Document) -> Chart | None:
    """Return the share of reads that missed the SSD, by reason."""
    series = document["series"]
    by_reason = series.get("reasons") or {}
    if not by_reason or not has_cache(document):
        return None
    totals = {name: sum(numbers) for name, numbers in by_reason.items()}
    order = sorted((name for name in by_reason if totals[name]), key=lambda name: -totals[name])
    if not order:
        return None
    end = end_ns(document)
    step = -(-len(series["reads"]) // BINS_MAX)
    x = _means(middles(series, end), step)
    reads = _sums(series["reads"], step)
    lines = [
        Line(
            f"reason-{name}", reason_in_words(name), x,
            [a / b if b else None for a, b in zip(_sums(by_reason[name], step), reads)], "area",
        )
        for name in order
    ]  # fmt: skip
    return Chart(
        "reasons", "Reads that did not come from the SSD, by reason", axes.times(end),
        axes.shares("share of the reads"), lines, bands(document), is_stacked=True, sync="time",
    )  # fmt: skip


def _sums(values: list[int], step: int) -> list[int]:
    return [sum(values[at : at + step]) for at in range(0, len(values), step)]


def _means(values: list[float], step: int) -> list[float]:
    parts = [values[at : at + step] for at in range(0, len(values), step)]
    return [sum(part) / len(part) for part in parts]
