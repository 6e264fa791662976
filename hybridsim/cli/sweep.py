"""`hybridsim sweep`: which of all these machines?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli.machine_options import (
    html_option,
    json_option,
    machine,
    mode_option,
    seeds_option,
    set_option,
)
from hybridsim.cli.trace_arguments import (
    DEVICE_HELP,
    DISPATCH_HELP,
    FORMAT_HELP,
    examples,
    format_option,
)
from hybridsim.foundation.errors import UsageError

if TYPE_CHECKING:
    from hybridsim.studies.sweep.answer import SweepResult
    from hybridsim.studies.sweep.plan import Plan


@click.command(
    epilog=examples(
        "hybridsim sweep sda.blktrace.0 --vary cache.size=5%,20% --workers 1",
        "hybridsim sweep grid.toml --workers 1 -o found.csv --html found.html",
    )
)
@click.argument("what", metavar="TRACE...|SWEEP.toml", nargs=-1, required=True)
@click.option("--scenario", "scenario_file", metavar="FILE", help="The machine to begin from.")
@click.option("--preset", metavar="NAME", help="Begin from a system of the catalog.")
@click.option(
    "--vary", multiple=True, metavar="KEY=VALUES",
    help="A key of the scenario and its values: cache.size=16GiB,64GiB; cache.policy=lru,learned; "
    "or a range: cache.size=1GiB..64GiB:7:log (7 steps, by equal factors).  Repeat it.",
)  # fmt: skip
@set_option
@mode_option("see `replay --help`.")
@click.option(
    "--kind", type=click.Choice(["grid", "random", "pareto"]),
    help="Every combination (grid); some at random; or NSGA-II towards the Pareto front.",
)  # fmt: skip
@click.option("--points", type=click.IntRange(1), metavar="N", help="How many, if not grid: 100.")
@seeds_option
@click.option(
    "--objective", "objectives", metavar="NAMES",
    help="What is wanted: mean,hit,dwpd by default; any measure of `replay --require`, also gain, "
    "cost and ssd.  The first one ranks.",
)  # fmt: skip
@click.option(
    "--fleet", metavar="N|all",
    help="Of a trace of many volumes replay each by itself, the N with most bytes, and sum up.",
)  # fmt: skip
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Processes; one a core.")
@click.option("--scheduler", metavar="ADDRESS", help="Use a dask cluster: tcp://host:8786.")
@click.option(
    "--folder", metavar="DIR", help="Where results are kept and looked up: hybridsim-sweep."
)
@click.option("-o", "--output", metavar="FILE", help="All replays as .csv, .jsonl or .parquet.")
@click.option("--use-dispatch", is_flag=True, help=DISPATCH_HELP)
@click.option("--device", metavar="MAJ,MIN", help=DEVICE_HELP)
@format_option("format", FORMAT_HELP)
@json_option
@html_option
def sweep(
    what: tuple[str, ...],
    workers: int | None,
    scheduler: str | None,
    folder: str | None,
    output: str | None,
    json_file: str | None,
    html_file: str | None,
    **said: Any,
) -> None:
    """Replay TRACE on many machines: which is best, and what matters?

    What is varied is said by options, or by a file (SWEEP.toml); each TRACE is one of its own.
    Each result is on disk before it is told: the same command goes on where it was stopped, and
    several may work on one folder.
    """
    from hybridsim.studies.sweep import fork_server as nursery
    from hybridsim.studies.sweep.store import FOLDER, has_results

    folder = folder or FOLDER
    if nursery.wanted(workers, scheduler) > 1 and not has_results(folder):
        nursery.begin()  # while this process imports, and plans; else when something is missing
    from hybridsim.cli.running import check_folder, say_if_compiling, write_answer
    from hybridsim.cli.sweep_live import telling
    from hybridsim.show.sweep import text
    from hybridsim.studies.sweep import output as files
    from hybridsim.studies.sweep.sweep import sweep as find

    for file in (json_file, html_file, output):
        check_folder(file)
    if output:
        files.check(output)
    plan = plan_of(what, said)
    say_if_compiling()
    with telling(plan) as tell:
        found = find(plan, folder, workers, scheduler, tell)
    write_answer(found, text, json_file, html_file)
    if output and found.records:  # none yet, if it was interrupted: an older file stays
        files.write(found.records, output)
        click.echo(f"wrote {output}", err=True)
    _leave(found)


def _leave(found: SweepResult) -> None:
    if found.interrupted:
        raise click.exceptions.Exit(130)
    if found.failed:
        raise click.exceptions.Exit(1)


def plan_of(what: tuple[str, ...], said: dict[str, Any]) -> Plan:
    """Return the plan of a file or of options."""
    from hybridsim.studies.sweep import plan_file

    plans = [path for path in what if plan_file.is_plan(path)]
    if not plans:
        return _of_options(what, said)
    if len(what) > 1:
        raise UsageError(f"{plans[0]} says what the traces are: leave the others out")
    given = [name for name, value in said.items() if value]
    if given:
        option = given[0].removesuffix("_file").replace("_", "-").replace("objectives", "objective")
        raise UsageError(f"{plans[0]} says all of the sweep: --{option} belongs into it")
    return plan_file.load(plans[0])


def _of_options(traces: tuple[str, ...], said: dict[str, Any]) -> Plan:
    from hybridsim.studies.sweep.named_trace import NamedTrace
    from hybridsim.studies.sweep.objectives import Objective
    from hybridsim.studies.sweep.plan import OBJECTIVES, TRIALS, Plan, axes_of

    site = machine(
        said["scenario_file"], said["settings"], preset=said["preset"], mode=said["mode"]
    )
    wanted = (said["objectives"] or ",".join(OBJECTIVES)).split(",")
    how = (said["format"], said["device"], said["use_dispatch"])
    return Plan(
        tuple(NamedTrace.here((path,), *how) for path in traces),
        site,
        axes_of(said["vary"]),
        said["kind"] or "grid",
        said["seeds"] or 0,
        said["points"] or TRIALS,
        objectives=tuple(map(Objective.parse, wanted)),
        fleet=_fleet(said["fleet"]),
    )


def _fleet(said: str | None) -> int | None:
    if said is None or said == "all":
        return None if said is None else 0
    if not said.isdigit() or int(said) < 1:
        raise UsageError(f"--fleet {said}: a number of volumes, or all")
    return int(said)
