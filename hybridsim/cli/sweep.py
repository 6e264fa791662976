"""`hybridsim sweep`: simulate many machines and rank them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hybridsim.caches import CACHES
from hybridsim.cli.listed import listed
from hybridsim.cli.machine_options import (
    PRESET_HELP,
    cache_mode_option,
    cache_option,
    crew_options,
    html_option,
    json_option,
    machine,
    mode_option,
    seeds_option,
    set_option,
)
from hybridsim.cli.option import flag, option
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
        "hybridsim sweep grid.toml --workers 1 -o replays.csv --html sweep.html",
    )
)
@click.argument("what", metavar="TRACE...|SWEEP.toml", nargs=-1, required=True)
@option("--scenario FILE", "Scenario file: the machine to start from.", to="scenario_file")
@option("--preset NAME", PRESET_HELP)
@option(
    "--vary KEY=VALUES",
    "A key of the scenario and its values: cache.size=16GiB,64GiB; cache.policy=lru,learned; "
    "or a range: cache.size=1GiB..64GiB:7:log (7 values, spaced by equal factors).  Repeatable.",
    multiple=True,
)
@cache_option([*CACHES, "none"])
@cache_mode_option
@set_option
@mode_option("see `hybridsim replay --help`.")
@option(
    "--kind",
    "grid: every combination; random: a random sample of them; pareto: NSGA-II search "
    "for the Pareto front.",
    type=click.Choice(["grid", "random", "pareto"]),
)
@option(
    "--points N",
    "Number of settings with --kind random or pareto; default: 100.",
    type=click.IntRange(1),
)
@seeds_option
@option(
    "--objective NAMES",
    "Objectives; default: mean,hit,dwpd.  Any measure of `replay --require`, "
    "also gain (of the second half of the requests), gain.whole, forecast, cost and ssd.  Machines "
    "are ranked by the first one.",
    to="objectives",
)
@option(
    "--fleet N|all",
    "Replay each volume of a multi-volume trace separately (the N with most bytes, or all), "
    "and summarise.",
)
@crew_options()
@option("-o --output FILE", "Write all replays as .csv, .jsonl or .parquet.")
@flag("--use-dispatch", DISPATCH_HELP)
@option("--device MAJ,MIN", DEVICE_HELP)
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
    **options: Any,
) -> None:
    """Replay TRACE on many machines; rank them, and show which settings matter.

    The variations are specified by options or in a file (SWEEP.toml); each TRACE is replayed
    separately.  Each result is stored before it is reported: the same command resumes an
    interrupted sweep, and several processes may share one folder.
    """
    from hybridsim.studies.sweep import fork_server as nursery
    from hybridsim.studies.sweep.store import FOLDER, has_results

    folder = folder or FOLDER
    if nursery.wanted(workers, scheduler) > 1 and not has_results(folder):
        nursery.begin()  # in parallel with imports and planning; else only if results are missing
    from hybridsim.cli.running import check_folder, note_compiling, write_answer
    from hybridsim.cli.sweep_live import live_progress
    from hybridsim.show.sweep import text
    from hybridsim.studies.sweep import output as files
    from hybridsim.studies.sweep.sweep import sweep as run

    for file in (json_file, html_file, output):
        check_folder(file)
    if output:
        files.check(output)
    plan = plan_of(what, options)
    note_compiling()
    with live_progress(plan) as on_point:
        result = run(plan, folder, workers, scheduler, on_point)
    write_answer(result, text, json_file, html_file)
    if output and result.records:  # none if interrupted early: an older file is kept
        files.write(result.records, output)
        click.echo(f"wrote {output}", err=True)
    _exit(result)


def _exit(result: SweepResult) -> None:
    if result.interrupted:
        raise click.exceptions.Exit(130)
    if result.failed:
        raise click.exceptions.Exit(1)


def plan_of(what: tuple[str, ...], options: dict[str, Any]) -> Plan:
    """Return the plan of a file or of options."""
    from hybridsim.studies.sweep import plan_file

    plans = [path for path in what if plan_file.is_plan(path)]
    if not plans:
        return _of_options(what, options)
    if len(what) > 1:
        raise UsageError(f"{plans[0]} specifies the traces: remove the other arguments")
    specified = [name for name, value in options.items() if value]
    if specified:
        option = (
            specified[0].removesuffix("_file").replace("_", "-").replace("objectives", "objective")
        )
        raise UsageError(f"{plans[0]} specifies the whole sweep: move --{option} into it")
    return plan_file.load(plans[0])


def _of_options(traces: tuple[str, ...], options: dict[str, Any]) -> Plan:
    from hybridsim.studies.sweep.named_trace import NamedTrace
    from hybridsim.studies.sweep.objectives import Objective
    from hybridsim.studies.sweep.plan import OBJECTIVES, TRIALS, Plan, axes_of

    site = machine(
        options["scenario_file"],
        options["settings"],
        preset=options["preset"],
        cache=options["cache"],
        cache_mode=options["cache_mode"],
        mode=options["mode"],
    )
    wanted = listed(options["objectives"] or ",".join(OBJECTIVES))
    how = (options["format"], options["device"], options["use_dispatch"])
    return Plan(
        tuple(NamedTrace.here((path,), *how) for path in traces),
        site,
        axes_of(options["vary"]),
        options["kind"] or "grid",
        options["seeds"] or 0,
        options["points"] or TRIALS,
        objectives=tuple(map(Objective.parse, wanted)),
        fleet=None if options["fleet"] is None else number_of_volumes(options["fleet"]),
    )


def number_of_volumes(value: str) -> int:
    """Return the value of --fleet: a number of volumes, or 0 for all."""
    if value == "all":
        return 0
    if not value.isdigit() or int(value) < 1:
        raise UsageError(f"--fleet {value}: must be a number of volumes, or all")
    return int(value)
