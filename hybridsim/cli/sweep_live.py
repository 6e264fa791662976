"""Progress of a sweep: a live table at a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from hybridsim.cli.progress import Line
from hybridsim.foundation.printable import printable
from hybridsim.foundation.wording import NONE, span
from hybridsim.show.screen import Steered

if TYPE_CHECKING:
    from hybridsim.studies.sweep.plan import Plan
    from hybridsim.studies.sweep.running import Progress, Report
    from hybridsim.studies.sweep.workers import Settled

DRAWN_EVERY_S = 0.2
BEST_SHOWN = 5


@contextmanager
def live_progress(plan: Plan) -> Iterator[Report]:
    """Yield a callback for each settled point, which shows the progress on standard error."""
    if not sys.stderr.isatty():
        with progress_line() as report:
            yield report
        return
    from rich.console import Console
    from rich.live import Live

    table = BestSoFar(plan)
    console = Console(file=cast("TextIO", Steered(sys.stderr)))
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def on_point(progress: Progress, settled: Settled | None) -> None:
            if table.on_point(settled) or progress.done == progress.total > 0:
                live.update(table.drawn(progress), refresh=True)

        yield on_point


@contextmanager
def progress_line() -> Iterator[Report]:
    """Yield a callback for each settled point, which shows one line; a failure has its own."""
    with Line(in_lines=True) as line:

        def on_point(progress: Progress, settled: Settled | None) -> None:
            if settled is not None and settled.row is None:
                line.stays(f"failed: {settled.point.command}: {settled.why}")
            line.update(lambda: words(progress))

        yield on_point


class BestSoFar:
    """The live table: the best points so far by the first objective."""

    def __init__(self, plan: Plan) -> None:
        """Rank by the first objective of a plan."""
        self._objectives = plan.objectives
        self._best: list[tuple[float, str, list[float | None]]] = []
        self._drawn = 0.0

    def on_point(self, settled: Settled | None) -> bool:
        """Add a point; return whether the table is due to be drawn."""
        if settled is not None and settled.row is not None:
            figures, site = settled.row["figures"], settled.point.scenario
            values = [each.value(figures, site) for each in self._objectives]
            if values[0] is not None:
                sign = 1 if self._objectives[0].wants_less else -1
                name = printable(" ".join(f"{key}={value}" for key, value in settled.point.values))
                self._best.append((sign * values[0], name, values))
                self._best = sorted(self._best, key=lambda each: each[0])[:BEST_SHOWN]
        now = time.monotonic()
        is_due = now - self._drawn >= DRAWN_EVERY_S
        self._drawn = now if is_due else self._drawn
        return is_due

    def drawn(self, progress: Progress) -> Any:
        """Return the bar and the table for rich."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), title_justify="left")
        table.add_column("best so far", no_wrap=True, overflow="ellipsis")
        for objective in self._objectives:
            table.add_column(objective.text, justify="right")
        for _, name, values in self._best:
            cells = (each.worded(value) for each, value in zip(self._objectives, values))
            table.add_row(name, *cells)
        bar = ProgressBar(total=max(progress.total, 1), completed=progress.done, width=60)
        link = Text(f"dashboard {progress.link}" if progress.link else "")
        return Group(bar, Text(words(progress)), link, table)


def words(progress: Progress) -> str:
    """Return the progress as a line."""
    if progress.planned < progress.to_plan:
        return f"{progress.planned:,} of {progress.to_plan:,} settings planned"
    left = NONE if progress.left_s is None else span(round(progress.left_s) * 1e9)
    parts = [
        f"{progress.done:,} of {progress.total:,} replays",
        f"{progress.known:,} reused" if progress.known else "",
        f"{progress.failed:,} failed" if progress.failed else "",
        progress.crew,
        f"{left} to go" if progress.done < progress.total else "",
    ]
    return " · ".join(part for part in parts if part)
