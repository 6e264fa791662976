"""Figures for papers and notebooks: each function returns a matplotlib Figure.

They take the results of the studies, or the documents that `--json` writes:

    plot.warm_up(replay(trace, site)).savefig("warm-up.pdf")

`title` states the finding above the figure, as on a slide.  Figures are one column wide (3.4
inches), with units on their axes, in colours that colour-blind
people can distinguish.  Each line has a `gid`, which identifies its data.  Needs matplotlib, the
extra `hybridsim[notebooks]`; without it every function raises UsageError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.errors import UsageError
from hybridsim.show.charts import address as address_charts
from hybridsim.show.charts import cost as cost_charts
from hybridsim.show.charts import curve as curve_charts
from hybridsim.show.charts import disks as disk_charts
from hybridsim.show.charts import latency as latency_charts
from hybridsim.show.charts import lines as line_charts
from hybridsim.show.charts import overlay as overlay_charts
from hybridsim.show.charts import pareto as pareto_charts
from hybridsim.show.charts import policies as policy_charts
from hybridsim.show.charts import reasons as reason_charts
from hybridsim.show.charts import reuse as reuse_charts
from hybridsim.show.charts import warm_up as warm_up_charts
from hybridsim.show.charts.documents import document_of
from hybridsim.show.plot.drawing import drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "address_map", "beside", "cost", "cost_by_size", "disk_time", "latency_cdf", "lines",
    "miss_ratio_curve", "overlay", "panels", "pareto", "policies", "reasons", "reuse_times",
    "warm_up", "ways",
]  # fmt: skip


def warm_up(results: Any, *, title: str = "") -> Figure:
    """Return the hit ratio over time: of one result with its phases, or of several by name.

    `results` is a result, or a mapping from names to results.
    """
    return drawn([warm_up_charts.overlaid(_several(results))], title)


def panels(result: Any, *, title: str = "") -> Figure:
    """Return hit ratio, latency and occupancy of a result, one below the other."""
    return drawn(_some(warm_up_charts.warm_up(document_of(result)), "a warm-up"), title)


def latency_cdf(result: Any, what: str = "read", *, title: str = "") -> Figure:
    """Return the latencies of reads (or "write"s) of a result: no cache, cold, warm."""
    charts = latency_charts.distributions(document_of(result))
    wanted = [each for each in charts if each.gid == f"cdf-{what}"]
    return drawn(_some(wanted, f"latencies of 100 {what}s or more"), title)


def ways(result: Any, *, title: str = "") -> Figure:
    """Return the contributions of hits, misses and bypasses to the mean read latency."""
    return drawn(_some([latency_charts.ways(document_of(result))], "reads by path"), title)


def disk_time(result: Any, *, title: str = "") -> Figure:
    """Return the disks' time by activity, in each phase of a result."""
    return drawn(_some([disk_charts.by_phase(document_of(result))], "the disks' time"), title)


def reasons(result: Any, *, title: str = "") -> Figure:
    """Return the reasons for reads that did not come from the SSD, over time."""
    return drawn(_some([reason_charts.over_time(document_of(result))], "reasons"), title)


def address_map(result: Any, what: str = "reads", *, title: str = "") -> Figure:
    """Return the addresses that the trace of a result reads (or "writes"), over time."""
    maps = address_charts.maps(document_of(result))
    wanted = [each for each in maps if each.gid == f"map-{what}"]
    return drawn(_some(wanted, what), title)


def miss_ratio_curve(curves: Any, chosen_bytes: int | None = None, *, title: str = "") -> Figure:
    """Return a miss-ratio curve with its knee, or several by their names.

    `curves` is the result of `hybridsim.miss_ratio_curve`, its dictionary, or a mapping from names
    to these; `chosen_bytes` marks a size.
    """
    is_one = hasattr(curves, "to_dict") or "curve" in curves
    named = {"": curves} if is_one else curves
    documents = {name: document_of(each) for name, each in named.items()}
    return drawn([curve_charts.overlaid(documents, chosen_bytes)], title)


def reuse_times(traces: Any, page: str | int = "64KiB", *, title: str = "") -> Figure:
    """Return the cumulative share of accesses by reuse time: of one trace, or several by name.

    A trace is read once; pages are of the size `page`.
    """
    named = traces if isinstance(traces, Mapping) else {"": traces}
    times = {name: reuse_charts.reuse_times(each, page) for name, each in named.items()}
    return drawn([reuse_charts.reuse_chart(times)], title)


def pareto(
    rows: Any,
    x: str,
    y: str,
    name: str = "",
    more_is_better: Sequence[str] = (),
    *,
    title: str = "",
) -> Figure:
    """Return points and their Pareto front: of a data frame, or a list of mappings.

    `x` and `y` are columns; the suffix of a name is its unit (`_ns`, `_bytes`).  Less is better,
    but for the columns of `more_is_better`.  The column `name` names the points of the front.
    """
    return drawn([pareto_charts.pareto(records(rows), x, y, name, more_is_better)], title)


def lines(rows: Any, x: str, y: str, by: str | Sequence[str] = "", *, title: str = "") -> Figure:
    """Return one column over another: of a data frame, or a list of mappings; one line per `by`.

    `by` is a column, or several: one line for each combination of their values.

    The unit is the suffix of a name (`_ns`, `_bytes`, `_ratio`; `time_ns` is an axis of time).
    """
    listed = records(rows)
    if not listed:
        raise UsageError(f"nothing to draw: no rows with {x} and {y}")
    return drawn([line_charts.lines(listed, x, y, by)], title)


def beside(
    rows: Any,
    name: str,
    figures: str | Sequence[str],
    bold: Sequence[str] = (),
    log: bool = False,
    *,
    title: str = "",
) -> Figure:
    """Return columns of a data frame by row: bars of one column, dots of several.

    `name` is the column that names the rows, `figures` are one or more columns of one unit, which
    is the suffix of their names as in `lines`; rows of `bold` are highlighted.
    """
    columns = [figures] if isinstance(figures, str) else list(figures)
    chart = line_charts.beside(records(rows), name, columns, bold, log)
    if not chart.rows:
        raise UsageError(f"nothing to draw: no rows with {name} and {', '.join(columns)}")
    return drawn([chart], title)


def cost(advice: Any, *, title: str = "") -> Figure:
    """Return the mean latency by cost of the alternatives that `advise` compared."""
    return drawn([cost_charts.cost(document_of(advice))], title)


def cost_by_size(advice: Any, *, title: str = "") -> Figure:
    """Return the mean latency by the cost of SSD caches of the sizes that `advise` tried."""
    return drawn([cost_charts.by_size(document_of(advice))], title)


def policies(
    rows: Any,
    value: str = "disk_ns",
    policy: str = "policy",
    cell: Sequence[str] = ("trace", "page_bytes", "share"),
    baselines: Sequence[str] = (),
    *,
    title: str = "",
) -> Figure:
    """Return policies relative to the best one in each cell; one dot per cell, less is better.

    `rows` is a data frame or a list of mappings.  The best of `baselines` (default: of all
    policies) is 1; the bar of each policy is its geometric mean, and the names of policies that are
    not baselines are bold.
    """
    ratios = policy_charts.relative(records(rows), value, policy, cell, baselines)
    if not ratios:
        raise UsageError(f"nothing to draw: no rows with {policy}, {value} and {', '.join(cell)}")
    return drawn([policy_charts.compared(ratios, baselines)], title)


def overlay(comparison: Any, curve: str = "", *, title: str = "") -> Figure:
    """Return an overlay of a real and a simulated run.

    `comparison` is the result of `compare` or its document; `curve` is a part of the name of the
    curve to draw (case-insensitive, default: the first).
    """
    document = comparison
    if not isinstance(comparison, Mapping):
        from hybridsim.show.comparison import document as described

        document = described(comparison)
    every = overlay_charts.overlays(document)
    matches = [each for each in every if curve.casefold() in each.title.casefold()]
    names = f", but {', '.join(each.title for each in every)}" if every else ""
    return drawn(_some(matches[:1], f"curves {curve}".strip() + names), title)


def records(rows: Any) -> list[Mapping[str, Any]]:
    """Return the rows of a data frame, or of a list of rows."""
    return list(rows.to_dict("records") if hasattr(rows, "to_dict") else rows)


def _several(results: Any) -> dict[str, Mapping[str, Any]]:
    is_one = hasattr(results, "to_dict") or "schema" in results
    named = {"": results} if is_one else results
    return {str(name): document_of(each) for name, each in named.items()}


def _some(charts: Sequence[Any], what: str) -> list[Any]:
    existing = [each for each in charts if each is not None]
    if not existing:
        raise UsageError(f"nothing to draw: the result has no {what}")
    return existing
