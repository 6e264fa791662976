"""Figures for papers and notebooks: one function a figure, each returns a matplotlib Figure.

They take what the verbs return, or the documents that `--json` writes:

    plot.warm_up(replay(trace, site)).savefig("warm-up.pdf")

Figures are one column wide (3.4 inches), with units on their axes, in colours that colour-blind
people tell apart.  Each line has a `gid`, by which its data can be found.  Needs matplotlib, the
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
    "address_map", "cost", "cost_by_size", "disk_time", "latency_cdf", "lines",
    "miss_ratio_curve", "overlay", "panels", "pareto", "policies", "reasons", "reuse_times",
    "warm_up", "ways",
]  # fmt: skip


def warm_up(results: Any) -> Figure:
    """Return the hit ratio over time: of a result with its phases, or of several by their names.

    `results` is a result, or a mapping from names to results.
    """
    return drawn([warm_up_charts.overlaid(_several(results))])


def panels(result: Any) -> Figure:
    """Return hit ratio, latency and occupancy of a result below each other, on one time axis."""
    return drawn(_some(warm_up_charts.warm_up(document_of(result)), "a warm-up"))


def latency_cdf(result: Any, what: str = "read") -> Figure:
    """Return the latencies of reads (or "write"s) of a result: no cache, cold, warm."""
    found = latency_charts.distributions(document_of(result))
    wanted = [each for each in found if each.gid == f"cdf-{what}"]
    return drawn(_some(wanted, f"latencies of 100 {what}s or more"))


def ways(result: Any) -> Figure:
    """Return what hits, misses and bypasses add to the mean latency of a read."""
    return drawn(_some([latency_charts.ways(document_of(result))], "reads by their ways"))


def disk_time(result: Any) -> Figure:
    """Return what the disks of a result are busy with, phase by phase."""
    return drawn(_some([disk_charts.by_phase(document_of(result))], "the disks' time"))


def reasons(result: Any) -> Figure:
    """Return why reads of a result did not come from the SSD, over time."""
    return drawn(_some([reason_charts.over_time(document_of(result))], "reasons"))


def address_map(result: Any, what: str = "reads") -> Figure:
    """Return where the trace of a result reads (or "writes"), over time."""
    found = address_charts.maps(document_of(result))
    wanted = [each for each in found if each.gid == f"map-{what}"]
    return drawn(_some(wanted, what))


def miss_ratio_curve(curves: Any, chosen_bytes: int | None = None) -> Figure:
    """Return a miss-ratio curve with its knee, or several by their names.

    `curves` is what `hybridsim.miss_ratio_curve` returns, its dictionary, or a mapping from names
    to these; `chosen_bytes` marks a size.
    """
    is_one = hasattr(curves, "to_dict") or "curve" in curves
    named = {"": curves} if is_one else curves
    documents = {name: document_of(each) for name, each in named.items()}
    return drawn([curve_charts.overlaid(documents, chosen_bytes)])


def reuse_times(traces: Any, page: str | int = "64KiB") -> Figure:
    """Return what share of the accesses comes back within a time: of a trace, or several by name.

    A trace is read once; pages are of the size `page`.
    """
    named = traces if isinstance(traces, Mapping) else {"": traces}
    found = {name: reuse_charts.reuse_times(each, page) for name, each in named.items()}
    return drawn([reuse_charts.reuse_chart(found)])


def pareto(rows: Any, x: str, y: str, name: str = "", more_is_better: Sequence[str] = ()) -> Figure:
    """Return points and those of which none is better in both: of a frame, or a list of mappings.

    `x` and `y` are columns; a unit is told by the end of a name (`_ns`, `_bytes`).  Less is better,
    but for the columns of `more_is_better`.  The column `name` names the points of the front.
    """
    return drawn([pareto_charts.pareto(records(rows), x, y, name, more_is_better)])


def lines(rows: Any, x: str, y: str, by: str = "") -> Figure:
    """Return one column over another: of a frame, or a list of mappings; a line for each `by`.

    A unit is told by the end of a name (`_ns`, `_bytes`, `_ratio`; `time_ns` is an axis of time).
    """
    found = records(rows)
    if not found:
        raise UsageError(f"nothing to draw: no rows with {x} and {y}")
    return drawn([line_charts.lines(found, x, y, by)])


def cost(advice: Any) -> Figure:
    """Return what money buys: mean latency by cost, of the alternatives that `advise` compared."""
    return drawn([cost_charts.cost(document_of(advice))])


def cost_by_size(advice: Any) -> Figure:
    """Return the mean latency by the cost of SSD caches of the sizes that `advise` tried."""
    return drawn([cost_charts.by_size(document_of(advice))])


def policies(
    rows: Any,
    value: str = "disk_ns",
    policy: str = "policy",
    cell: Sequence[str] = ("trace", "page_bytes", "share"),
    baselines: Sequence[str] = (),
) -> Figure:
    """Return a value of policies over the best one's in each cell; a dot a cell, less is better.

    `rows` is a frame or a list of mappings.  What is the best of `baselines`, by default of all
    policies, is 1; the bar of each policy is its geometric mean, and the names of those that are no
    baselines are bold.
    """
    found = policy_charts.relative(records(rows), value, policy, cell, baselines)
    if not found:
        raise UsageError(f"nothing to draw: no rows with {policy}, {value} and {', '.join(cell)}")
    return drawn([policy_charts.compared(found, baselines)])


def overlay(comparison: Any, curve: str = "") -> Figure:
    """Return a real run and a simulated one over each other.

    `comparison` is what `compare` returns or its document; `curve` a part of the name of the one
    to draw, in capitals or not, by default the first.
    """
    document = comparison
    if not isinstance(comparison, Mapping):
        from hybridsim.show.comparison import document as described

        document = described(comparison)
    every = overlay_charts.overlays(document)
    found = [each for each in every if curve.casefold() in each.title.casefold()]
    known = f", but {', '.join(each.title for each in every)}" if every else ""
    return drawn(_some(found[:1], f"curves {curve}".strip() + known))


def records(rows: Any) -> list[Mapping[str, Any]]:
    """Return the rows of a frame, or of what is a list of rows already."""
    return list(rows.to_dict("records") if hasattr(rows, "to_dict") else rows)


def _several(results: Any) -> dict[str, Mapping[str, Any]]:
    is_one = hasattr(results, "to_dict") or "schema" in results
    named = {"": results} if is_one else results
    return {str(name): document_of(each) for name, each in named.items()}


def _some(charts: Sequence[Any], what: str) -> list[Any]:
    known = [each for each in charts if each is not None]
    if not known:
        raise UsageError(f"nothing to draw: the result does not tell {what}")
    return known
