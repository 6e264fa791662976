"""`hybridsim fio`: what would fio measure on this machine?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hybridsim.cli.trace_arguments import examples
from hybridsim.foundation.errors import RequirementError, UsageError

if TYPE_CHECKING:
    from hybridsim.workloads.fio.results import FioResult

FORMS = ("normal", "json", "json+")


@click.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": True,
        "help_option_names": ["--help"],  # -h would be looked for in -thread
    },
    epilog=examples(
        "hybridsim fio --preset digitalocean-volume --name=a --rw=randread --direct=1 "
        "--ioengine=libaio --iodepth=4 --size=1G --runtime=1s",
        "hybridsim fio job.fio --preset digitalocean-volume --runs 2",
        "hybridsim fio job.fio --preset digitalocean-volume --output-format=json+",
    ),
)
@click.argument(
    "arguments", nargs=-1, type=click.UNPROCESSED, metavar="[JOBFILE | --OPTION=...]..."
)
@click.option(
    "--scenario", "scenario_file", metavar="FILE", help="The machine: see `scenario show`."
)
@click.option("--preset", metavar="NAME", help="Begin from a system of the catalog.")
@click.option(
    "--runs", type=click.IntRange(1), default=1, show_default=True, metavar="N",
    help="All jobs so many times in a row; the cache stays warm.",
)  # fmt: skip
@click.option(
    "--seeding", default="3.33", show_default=True, metavar="VERSION",
    help="Whose offsets: those of fio 3.33, or newer: of releases since its seeds are chained.",
)  # fmt: skip
def fio(
    arguments: tuple[str, ...],
    scenario_file: str | None,
    preset: str | None,
    runs: int,
    seeding: str,
) -> None:
    """Run fio's jobs on a simulated machine, and print what fio would print.

    Takes fio's job files and fio's own command line as they are: --name=... and the options of
    jobs, --output=FILE, --output-format=normal, json or json+.  Offsets are those of fio 3.33.
    Files lie one after the other from the beginning of the volume.  An option that means nothing
    here is named once; one that would change the load and is not supported is an error.
    With latency_target it tells the greatest queue depth that meets it.  Exit code 4: a job ended
    because a request took longer than max_latency, or than a latency_target that all must meet.
    """
    from hybridsim.cli.running import progress_of_jobs
    from hybridsim.scenario import Scenario
    from hybridsim.studies.fio import fio as run
    from hybridsim.workloads.fio.job import jobs_of
    from hybridsim.workloads.fio.jobfile import read

    written = read(arguments)
    forms = written.program.get("output-format", "normal").split(",")
    if not set(forms) <= set(FORMS):
        raise UsageError(f"--output-format={','.join(forms)}: {', '.join(FORMS)} are supported")
    if "minimal" in written.program:
        raise UsageError("--minimal: terse output is not supported; use --output-format=json")
    if "status-interval" in written.program:
        click.echo("note: --status-interval: only the results at the end are printed", err=True)
    site = Scenario.load(scenario_file) if scenario_file else Scenario.default()
    if "parse-only" in written.program:
        jobs_of(written)
        return
    unsized = sorted({job.files[0] for job in jobs_of(written) if job.lacks_size})
    if unsized:  # before the run, which may be long
        names = ", ".join(unsized)
        click.echo(f"note: no size= for {names}: all of the volume is used", err=True)
    with progress_of_jobs() as tell:
        result = run(written, site.with_options(preset=preset), runs, tell, seeding=seeding)
    _write(result, forms, written.program.get("output"))
    if any(each.error for each in result.of_jobs):
        raise SystemExit(RequirementError.exit_code)


def _write(result: FioResult, forms: list[str], output: str | None) -> None:
    from hybridsim.foundation.writing import write_text
    from hybridsim.show import fio_json, fio_logs, fio_text

    text = "".join(
        fio_text.text(result) if form == "normal" else fio_json.text(result, form == "json+")
        for form in FORMS
        if form in forms
    )
    if output:
        write_text(output, text)
    else:
        click.echo(text, nl=False)
    for name in fio_logs.write(result):
        click.echo(f"wrote {name}", err=True)
    if "normal" not in forms:
        for note in result.notes:
            print(f"note: {note}", file=sys.stderr)
