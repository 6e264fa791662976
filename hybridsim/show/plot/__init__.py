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
from hybridsim.show.charts import answers, replay, reuse, tables
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
    return drawn([replay.warm_ups(_several(results, "schema"))], title)


def panels(result: Any, *, title: str = "") -> Figure:
    """Return hit ratio, latency and occupancy of a result, one below the other."""
    return _drawn(replay.warm_up(_document(result)), "a warm-up", title)


def latency_cdf(result: Any, what: str = "read", *, title: str = "") -> Figure:
    """Return the latencies of reads (or "write"s) of a result: no cache, cold, warm."""
    charts = replay.distributions(_document(result))
    wanted = [each for each in charts if each.gid == f"cdf-{what}"]
    return _drawn(wanted, f"latencies of 100 {what}s or more", title)


def ways(result: Any, *, title: str = "") -> Figure:
    """Return the contributions of hits, misses and bypasses to the mean read latency."""
    return _drawn([replay.ways(_document(result))], "reads by path", title)


def disk_time(result: Any, *, title: str = "") -> Figure:
    """Return the disks' time by activity, in each phase of a result."""
    return _drawn([replay.disk_time(_document(result))], "the disks' time", title)


def reasons(result: Any, *, title: str = "") -> Figure:
    """Return the reasons for reads that did not come from the SSD, over time."""
    return _drawn([replay.reasons(_document(result))], "reasons", title)


def address_map(result: Any, what: str = "reads", *, title: str = "") -> Figure:
    """Return the addresses that the trace of a result reads (or "writes"), over time."""
    maps = replay.address_maps(_document(result))
    wanted = [each for each in maps if each.gid == f"map-{what}"]
    return _drawn(wanted, what, title)


def miss_ratio_curve(curves: Any, chosen_bytes: int | None = None, *, title: str = "") -> Figure:
    """Return a miss-ratio curve with its knee, or several by their names.

    `curves` is the result of `hybridsim.miss_ratio_curve`, its dictionary, or a mapping from names
    to these; `chosen_bytes` marks a size.
    """
    return drawn([answers.miss_ratios(_several(curves, "curve"), chosen_bytes)], title)


def reuse_times(traces: Any, page: str | int = "64KiB", *, title: str = "") -> Figure:
    """Return the cumulative share of accesses by reuse time: of one trace, or several by name.

    A trace is read once; pages are of the size `page`.
    """
    named = traces if isinstance(traces, Mapping) else {"": traces}
    times = {name: reuse.reuse_times(each, page) for name, each in named.items()}
    return drawn([reuse.reuse_chart(times)], title)


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
    return drawn([tables.pareto(records(rows), x, y, name, more_is_better)], title)


def lines(rows: Any, x: str, y: str, by: str | Sequence[str] = "", *, title: str = "") -> Figure:
    """Return one column over another: of a data frame, or a list of mappings; one line per `by`.

    `by` is a column, or several: one line for each combination of their values.

    The unit is the suffix of a name (`_ns`, `_bytes`, `_ratio`; `time_ns` is an axis of time).
    """
    listed = records(rows)
    if not listed:
        raise UsageError(f"nothing to draw: no rows with {x} and {y}")
    return drawn([tables.lines(listed, x, y, by)], title)


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
    chart = tables.beside(records(rows), name, columns, bold, log)
    if not chart.rows:
        raise UsageError(f"nothing to draw: no rows with {name} and {', '.join(columns)}")
    return drawn([chart], title)


def cost(advice: Any, *, title: str = "") -> Figure:
    """Return the mean latency by cost of the alternatives that `advise` compared."""
    return drawn([answers.cost(_document(advice))], title)


def cost_by_size(advice: Any, *, title: str = "") -> Figure:
    """Return the mean latency by the cost of SSD caches of the sizes that `advise` tried."""
    return drawn([answers.cost_by_size(_document(advice))], title)


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
    ratios = tables.relative(records(rows), value, policy, cell, baselines)
    if not ratios:
        raise UsageError(f"nothing to draw: no rows with {policy}, {value} and {', '.join(cell)}")
    return drawn([tables.compared(ratios, baselines)], title)


def overlay(comparison: Any, curve: str = "", *, title: str = "") -> Figure:
    """Return an overlay of a real and a simulated run.

    `comparison` is the result of `compare` or its document; `curve` is a part of the name of the
    curve to draw (case-insensitive, default: the first).
    """
    every = answers.overlays(_document(comparison))
    matches = [each for each in every if curve.casefold() in each.title.casefold()]
    names = f", but {', '.join(each.title for each in every)}" if every else ""
    return _drawn(matches[:1], f"curves {curve}".strip() + names, title)


def records(rows: Any) -> list[Mapping[str, Any]]:
    """Return the rows of a data frame, or of a list of rows."""
    return list(rows.to_dict("records") if hasattr(rows, "to_dict") else rows)


def _document(result: Any) -> Mapping[str, Any]:
    """Return the document of a result, or the document itself."""
    document: Mapping[str, Any] = result if isinstance(result, Mapping) else result.to_dict()
    return document


def _several(results: Any, key: str) -> dict[str, Mapping[str, Any]]:
    """Return the documents by name; `key` is in the document of a single result, without a name."""
    is_one = hasattr(results, "to_dict") or key in results
    named = {"": results} if is_one else results
    return {str(name): _document(each) for name, each in named.items()}


def _drawn(charts: Sequence[Any], what: str, title: str) -> Figure:
    existing = [each for each in charts if each is not None]
    if not existing:
        raise UsageError(f"nothing to draw: the result has no {what}")
    return drawn(existing, title)
