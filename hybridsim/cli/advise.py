"""`hybridsim advise`: which SSD cache should an application get, if any?  Or a fleet of them?"""

from __future__ import annotations

from functools import partial

import click

from hybridsim.answers.goals import GOALS
from hybridsim.caches import CACHES
from hybridsim.cli import arguments as args
from hybridsim.cli.running import Line, estimated, note_compiling, progress, refuse, write_answer
from hybridsim.cli.sweep import number_of_volumes, progress_line
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_size


@args.command(
    "hybridsim advise sda.blktrace.0",
    "hybridsim advise sda.blktrace.0 --cache dm-cache --cache-mode write-back --details",
    "hybridsim advise sda.blktrace.0 --scenario site.toml --compare hybrid --data 2TB",
    "hybridsim advise web1/sda web2/sda db1/sda --fleet all --html fleet.html",
)
def advise(
    chosen: args.Chosen = args.trace_options,
    site: args.Scenario = args.machine_options(CACHES, "see `hybridsim replay --help`."),
    goal: str = args.option(
        "--goal",
        "Figure that decides the verdict; see `hybridsim replay --help`.",
        "time",
        show_default=False,
        type=click.Choice(GOALS),
    ),
    compare: str = args.option(
        "--compare NAMES",
        "Alternatives to compare with the disks (--details shows them); disks: none.",
        "more-disks,short-stroke,all-ssd,hybrid",
    ),
    data: int | None = args.option(
        "--data SIZE",
        "Data that each alternative must hold; default: the capacity of the scenario's disks.",
        parse=parse_size,
    ),
    fleet: int | None = args.option(
        "--fleet N|all",
        "Each TRACE is a server of its own: answer for each, or for each volume of a multi-volume "
        "trace (the N with most bytes, or all), and for the purchase as a whole.",
        parse=number_of_volumes,
    ),
    crew: args.Crew = args.crew_options("With --fleet: "),
    out: args.Outputs = args.outputs("details", "json", "html"),
) -> None:
    """Recommend an SSD cache for the application that TRACE was captured from, or none.

    With --fleet: for many servers or volumes, and what to buy for all of them.

    Replays TRACE with the caches that can be installed (bcache, dm-cache, dm-writecache, Open CAS),
    write-through and write-back, at several sizes: some dozens of replays, which take minutes for a
    large capture. Chosen is what gains most as the load goes on; Open CAS, which must be built from
    source, only where it gains a tenth more. Options and the scenario narrow the search. --details:
    the questions of the guide (is the load I/O-bound, random, has it a hot spot), and more disks,
    short-stroked disks and all SSD for comparison, with prices ([price] in the scenario).
    """
    from hybridsim.show.advice import text
    from hybridsim.studies.advise import advise as ask
    from hybridsim.traces.trace import captures_of

    if fleet is not None:
        if data:
            raise UsageError("--data: the alternatives are not compared for a fleet: remove it")
        _fleet(chosen, site, fleet, goal, crew, out)
        return
    for name, value in crew._asdict().items():
        if value is not None:
            raise UsageError(f"--{name} is for a fleet: specify --fleet all")
    number = captures_of(chosen.paths)
    if number > 1:
        click.echo(
            f"note: {number} captures are replayed together, as one load on the same disks; "
            "--fleet all answers for each",
            err=True,
        )
    trace = chosen.read()
    if trace.sample is not None:
        from hybridsim.studies.estimate.estimate import advise_sample

        refuse(trace, html=out.html_file, details=out.details, data=data, goal=goal != "time")
        estimated(lambda report: advise_sample(trace, site, report), out)
        return
    with progress(line := Line(in_lines=True)) as report:
        advice = ask(trace, site, args.listed(compare), data, report, line.stage, goal)
    write_answer(advice, partial(text, details=out.details), out)


def _fleet(
    chosen: args.Chosen,
    site: args.Scenario,
    fleet: int,
    goal: str,
    crew: args.Crew,
    out: args.Outputs,
) -> None:
    """Advise for each trace, and for the purchase."""
    from hybridsim.show.fleet_advice import text
    from hybridsim.studies.advise_fleet import advise_fleet
    from hybridsim.studies.sweep.named_trace import NamedTrace

    traces = [NamedTrace.here((path,), *chosen[1:]) for path in chosen.paths]
    note_compiling()
    specified = {name: value for name, value in crew._asdict().items() if value is not None}
    with progress_line() as report:
        advice = advise_fleet(traces, site, fleet, goal, report=report, **specified)
    write_answer(advice, partial(text, details=out.details), out)
    if advice.interrupted:
        raise click.exceptions.Exit(130)
    if advice.failed:
        raise click.exceptions.Exit(1)
