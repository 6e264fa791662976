"""`hybridsim sweep`: simulate many machines and rank them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.running import Line, check_folder, note_compiling, write_answer
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.wording import NONE, span
from hybridsim.show.screen import Steered

if TYPE_CHECKING:
    from hybridsim.studies.sweep.plan import Plan
    from hybridsim.studies.sweep.running import Progress, Report, Settled

DRAWN_EVERY_S = 0.2
BEST_SHOWN = 5


def number_of_volumes(value: str) -> int:
    """Return the value of --fleet: a number of volumes, or 0 for all."""
    if value == "all":
        return 0
    if not value.isdigit() or int(value) < 1:
        raise UsageError(f"--fleet {value}: must be a number of volumes, or all")
    return int(value)


@args.command(
    "hybridsim sweep sda.blktrace.0 --vary cache.size=5%,20% --workers 1",
    "hybridsim sweep grid.toml --workers 1 -o replays.csv --html sweep.html",
)
def sweep(
    what: tuple[str, ...] = args.argument("TRACE...|SWEEP.toml", nargs=-1, required=True),
    options: dict[str, Any] = args.joined(
        dict,
        scenario_file=args.scenario_option("Scenario file: the machine to start from."),
        preset=args.preset_option,
        vary=args.option(
            "--vary KEY=VALUES",
            "A key of the scenario and its values: cache.size=16GiB,64GiB; cache.policy=lru,"
            "learned; or a range: cache.size=1GiB..64GiB:7:log (7 values, spaced by equal "
            "factors).  Repeatable.",
            multiple=True,
        ),
        cache=args.cache_option(),
        cache_mode=args.cache_mode_option,
        settings=args.set_option,
        mode=args.mode_option("see `hybridsim replay --help`."),
        kind=args.option(
            "--kind",
            "grid: every combination; random: a random sample of them; pareto: NSGA-II search "
            "for the Pareto front.",
            type=click.Choice(["grid", "random", "pareto"]),
        ),
        points=args.option(
            "--points N",
            "Number of settings with --kind random or pareto; default: 100.",
            type=click.IntRange(1),
        ),
        seeds=args.seeds_option,
        objectives=args.option(
            "--objective NAMES",
            "Objectives; default: mean,hit,dwpd.  Any measure of `replay --require`, also gain "
            "(of the second half of the requests), gain.whole, forecast, cost and ssd.  "
            "Machines are ranked by the first one.",
        ),
        fleet=args.option(
            "--fleet N|all",
            "Replay each volume of a multi-volume trace separately (the N with most bytes, or "
            "all), and summarise.",
            parse=number_of_volumes,
        ),
    ),
    crew: args.Crew = args.crew_options(),
    output: str | None = args.option(
        "-o --output FILE", "Write all replays as .csv, .jsonl or .parquet."
    ),
    read: dict[str, Any] = args.joined(
        dict,
        use_dispatch=args.flag("--use-dispatch", args.DISPATCH_HELP),
        device=args.device_option,
        format=args.format_option(),
    ),
    out: args.Outputs = args.outputs("json", "html"),
) -> None:
    """Replay TRACE on many machines; rank them, and show which settings matter.

    The variations are specified by options or in a file (SWEEP.toml); each TRACE is replayed
    separately.  Each result is stored before it is reported: the same command resumes an
    interrupted sweep, and several processes may share one folder.
    """
    from hybridsim.studies.sweep import fork_server as nursery
    from hybridsim.studies.sweep.store import FOLDER, has_results

    folder = crew.folder or FOLDER
    if nursery.wanted(crew.workers, crew.scheduler) > 1 and not has_results(folder):
        nursery.begin()  # in parallel with imports and planning; else only if results are missing
    from hybridsim.show.sweep import text
    from hybridsim.studies.sweep import store as files
    from hybridsim.studies.sweep.sweep import sweep as run

    check_folder(output)
    if output:
        files.check_output(output)
    plan = plan_of(what, options | read)
    note_compiling()
    with live_progress(plan) as on_point:
        result = run(plan, folder, crew.workers, crew.scheduler, on_point)
    write_answer(result, text, out)
    if output and result.records:  # none if interrupted early: an older file is kept
        files.write_output(result.records, output)
        click.echo(f"wrote {output}", err=True)
    if result.interrupted:
        raise click.exceptions.Exit(130)
    if result.failed:
        raise click.exceptions.Exit(1)


def plan_of(what: tuple[str, ...], options: dict[str, Any]) -> Plan:
    """Return the plan of a file or of options."""
    from hybridsim.studies.sweep.plan import is_plan, load

    plans = [path for path in what if is_plan(path)]
    if not plans:
        return _of_options(what, options)
    if len(what) > 1:
        raise UsageError(f"{plans[0]} specifies the traces: remove the other arguments")
    specified = [name for name, value in options.items() if value not in (None, False, ())]
    if specified:
        option = (
            specified[0].removesuffix("_file").replace("_", "-").replace("objectives", "objective")
        )
        raise UsageError(f"{plans[0]} specifies the whole sweep: move --{option} into it")
    return load(plans[0])


def _of_options(traces: tuple[str, ...], options: dict[str, Any]) -> Plan:
    from hybridsim.studies.sweep.figures import Objective
    from hybridsim.studies.sweep.named_trace import NamedTrace
    from hybridsim.studies.sweep.plan import OBJECTIVES, TRIALS, Plan, axis_of

    own = ("scenario_file", "settings", "preset", "cache", "cache_mode", "mode")
    site = args.machine(**{name: options[name] for name in own})
    wanted = args.listed(options["objectives"] or ",".join(OBJECTIVES))
    how = (options["format"], options["device"], options["use_dispatch"])
    return Plan(
        tuple(NamedTrace.here((path,), *how) for path in traces),
        site,
        tuple(map(axis_of, options["vary"])),
        options["kind"] or "grid",
        options["seeds"] or 0,
        options["points"] or TRIALS,
        objectives=tuple(map(Objective.parse, wanted)),
        fleet=options["fleet"],
    )


# Progress: a live table at a terminal, otherwise a line now and then.


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
                name = printable(" ".join(f"{key}={value}" for key, value in settled.point.values))
                self._best.append((self._objectives[0].sign * values[0], name, values))
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
        link = progress.crew.link if progress.crew else ""
        return Group(bar, Text(words(progress)), Text(link and f"dashboard {link}"), table)


def words(progress: Progress) -> str:
    """Return the progress as a line."""
    if progress.planned < progress.to_plan:
        return f"{progress.planned:,} of {progress.to_plan:,} settings planned"
    left = NONE if progress.left_s is None else span(round(progress.left_s) * 1e9)
    parts = [
        f"{progress.done:,} of {progress.total:,} replays",
        f"{progress.known:,} reused" if progress.known else "",
        f"{progress.failed:,} failed" if progress.failed else "",
        progress.crew.words if progress.crew else "",
        f"{left} to go" if progress.done < progress.total else "",
    ]
    return " · ".join(part for part in parts if part)


@contextmanager
def progress_line(
    words: Callable[[Any], str] = words,
) -> Iterator[Callable[[Any, Settled | None], None]]:
    """Yield a callback for each settled point, which shows one line; a failure has its own."""
    with Line(in_lines=True) as line:

        def on_point(progress: Any, settled: Settled | None) -> None:
            if settled is not None and settled.row is None:
                line.stays(f"failed: {settled.point.command}: {settled.why}")
            line.update(lambda: words(progress))

        yield on_point
