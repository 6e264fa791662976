"""The columns of the table of all runs, and the format of their cells.

A run with several jobs or directions has several values of one figure: the cell has the one with
the largest error relative to its bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hybridsim.answers.comparison import Comparison, Row
from hybridsim.answers.measurements.measurement import HIT_RATIO, IOPS
from hybridsim.answers.warmup import State
from hybridsim.foundation.wording import NONE
from validate.report.bounds import COUNTERS
from validate.report.chance import LIKELY
from validate.report.holding import Held

BEYOND, BY_CHANCE = "*", "~"
UNSTEADY, FLAT, UNLIKE = "not yet", "flat", "unlike"


class Column(NamedTuple):
    """A column: the measures that it shows (the first one that exists), and its format."""

    head: str
    measures: Sequence[str]
    form: Callable[[float], str]
    needs_steady: bool = False


def _percent(error: float) -> str:
    return f"{100 * error:+.1f}%" if abs(error) < 0.0995 else f"{100 * error:+.0f}%"


def _points(error: float) -> str:
    return f"{100 * error:+.1f}"


def _distance(error: float) -> str:
    return f"{error:.3f}"


# Of Open CAS, dm-writecache and serve; those that are not checked of a kind of cache are not shown.
MISSES = (
    "misses",
    "fills_done",
    "read_full_misses",
    "write_full_misses",
    "writes_allocated",
    "writes_around",
)
HITS = ("hits", "evictions", "read_hits", "write_hits", "pass_through_writes", "cleaned_blocks")
COLUMNS = (
    Column("promo", ("promotions", "cache_misses", *MISSES), _percent),
    Column("demo", ("demotions", "cache_hits", *HITS), _percent),
    Column("hit", (f"{HIT_RATIO} each 10 s",), _points),
    Column("IOPS", (IOPS,), _percent),
    Column("steady", (f"{IOPS} level",), _percent, True),
    Column("t50", (f"{IOPS} t50",), _percent, True),
    Column("t90", (f"{IOPS} t90",), _percent, True),
    Column("curve", (f"{IOPS} curve",), _distance),
)
HEADS = ("run", *(column.head for column in COLUMNS), "met")
LEGEND = (
    "Errors of the simulated twin.  promo, demo: promotions and demotions of dm-cache; misses and "
    "hits of bcache; of Open CAS the worse one of reads and writes, with pass-through and cleaning "
    "under demo; of serve misses and fills, hits and evictions; of dm-writecache blocks written "
    "and read hits: the largest error at any multiple of 10 s, over the last value.  hit: the "
    "largest error of the hit ratio in any 10 s, in percentage points.  IOPS: of the whole run, "
    "not checked.  steady: IOPS in the steady state of both.  t50, t90: warm-up times.  curve: "
    "mean distance of the warm-up curves.  met: figures within their bounds, of those that are "
    f"checked.  {BEYOND} beyond its bound; {UNSTEADY}: the real run is not steady; {FLAT}: it does "
    f"not warm up; {UNLIKE}: the twin does not become steady."
)
LEGEND_OF_CHANCE = (
    f" {BY_CHANCE} beyond its bound, as is the difference of {LIKELY:.0%} of the pairs of twins of "
    "this run that begin at other moments, or more."
)


def legend(runs: Sequence[Held]) -> str:
    """Return the legend of the table of these runs."""
    return LEGEND + (LEGEND_OF_CHANCE if any(run.chance for run in runs) else "")


def cells(run: Held) -> list[str]:
    """Return the cells of a run."""
    comparison = run.found
    judged, failed = len(comparison.judged), len(comparison.failed)
    checked = COUNTERS.get(str(run.record.cache.get("kind")), ())
    values = (_cell(run, column, checked) for column in COLUMNS)
    return [run.record.name, *values, f"{judged - failed}/{judged}"]


def _cell(run: Held, column: Column, checked: Sequence[str]) -> str:
    comparison = run.found
    rows = [
        row
        for measure in column.measures
        if measure in checked or measure not in (*MISSES, *HITS)
        for row in comparison.rows
        if row.name.measure == measure and (row.is_met is not None or not column.needs_steady)
    ]
    if not rows:
        return _why_none(comparison) if column.needs_steady else NONE
    worst = max(rows, key=_excess)
    mark = BY_CHANCE if run.chance.get(worst.name, 0) >= LIKELY else BEYOND
    if worst.error is None:
        return UNLIKE + mark
    return column.form(worst.error) + (mark if worst.is_met is False else "")


def _why_none(comparison: Comparison) -> str:
    """Return why a run has no steady state or warm-up time."""
    states = {each.real.state for each in comparison.curves if each.name.measure == IOPS}
    if not states:
        return NONE
    return FLAT if states == {State.FLAT} else UNSTEADY


def _excess(row: Row) -> float:
    """Return the error of a row relative to its bound."""
    if row.error is None:
        return float("inf")
    return abs(row.error) / (row.tolerance or 1.0)
