"""`hybridsim fio`: run fio jobs on a simulated machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.running import progress_of_jobs
from hybridsim.foundation.errors import RequirementError, UsageError

if TYPE_CHECKING:
    from hybridsim.workloads.fio.results import FioResult, Moment

FORMS = ("normal", "json", "json+", "terse")


@args.command(
    "hybridsim fio --preset digitalocean-volume --name=a --rw=randread --direct=1 "
    "--ioengine=libaio --iodepth=4 --size=1G --runtime=1s",
    "hybridsim fio job.fio --preset digitalocean-volume --runs 2",
    "hybridsim fio job.fio --preset digitalocean-volume --output-format=json+",
    "hybridsim fio job.fio --set cache.kind=bcache --set cache.size=16GiB",
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": True,
        "help_option_names": ["--help"],  # -h would be looked for in -thread
    },
)
def fio(
    arguments: tuple[str, ...] = args.argument(
        "[JOBFILE | --OPTION=...]...", nargs=-1, type=click.UNPROCESSED
    ),
    site: args.Scenario = args.machine_options(),
    runs: int = args.option(
        "--runs N",
        "Run all jobs N times in succession; the cache stays warm.",
        1,
        type=click.IntRange(1),
    ),
    seeding: str = args.option(
        "--seeding VERSION",
        "Version of fio whose random offsets to generate: 3.33, or newer (later "
        "releases seed their random streams differently).",
        "3.33",
    ),
    max_runtime: str = args.option(
        "--max-runtime TIME",
        "End each process after this simulated time (10s) at the latest, as if its runtime were "
        "no longer: for jobs that are written for hours.",
        "",
        show_default=False,
    ),
) -> None:
    """Run fio jobs on a simulated machine, and print the output that fio would print.

    Accepts fio's job files and command line unchanged: --name=... and the options of jobs,
    --output=FILE, --output-format=normal, json, json+, terse or several of them, --terse-version,
    --minimal, --section, --status-interval, --eta=always, --eta-interval, --eta-newline (in
    simulated time; only with the normal form).  The requests have the same offsets
    as those of fio 3.33.  Files are placed one after another from the start of the volume.  Options
    without effect here are reported once; unsupported options that would change the load are
    errors.  With latency_target, the maximum queue depth that meets it is reported.  Exit code 4: a
    job ended because a request took longer than max_latency, or (with latency_percentile=100, the
    default) than latency_target at queue depth 1.
    """
    from hybridsim.show import fio_text
    from hybridsim.show.fio_json import VERSIONS
    from hybridsim.studies.fio import fio as run
    from hybridsim.workloads.fio.job import MILLISECOND, SECOND, jobs_of
    from hybridsim.workloads.fio.jobfile import read
    from hybridsim.workloads.fio.options import time_ns

    parsed = read(arguments)
    forms = args.listed(parsed.program.get("output-format", "normal"))
    if "minimal" in parsed.program:
        forms = ["terse"]
    if not set(forms) <= set(FORMS):
        raise UsageError(f"--output-format={','.join(forms)}: {', '.join(FORMS)} are supported")
    version = parsed.program.get("terse-version", "3")
    if version not in VERSIONS:
        raise UsageError(f"--terse-version={version}: {', '.join(VERSIONS)} are supported")

    def interval_of(name: str, unit_ns: int = SECOND, specified: str = "") -> int:
        text = specified or parsed.program.get(name, "")
        try:
            each_ns = time_ns(text, unit_ns) if text else 0
        except ValueError as error:
            raise UsageError(f"--{name}={error}") from error
        if text and not each_ns:
            raise UsageError(f"--{name}={text}: must be greater than 0")
        return each_ns

    interval_ns = interval_of("status-interval")
    eta = parsed.program.get("eta", "auto")
    if eta not in ("always", "never", "auto"):
        raise UsageError(f"--eta={eta}: must be always, never or auto")
    eta_ns = interval_of("eta-interval", MILLISECOND) or SECOND
    lines = fio_text.Eta(interval_of("eta-newline"))
    limit_ns = interval_of("max-runtime", SECOND, max_runtime)
    has_eta = eta == "always" and "normal" in forms
    output = parsed.program.get("output")
    texts: list[str] = []
    begun: list[bool] = []  # whether the heading was printed before the first line of --eta
    if "parse-only" in parsed.program:
        jobs_of(parsed)
        return
    unsized = sorted({file for job in jobs_of(parsed) if job.lacks_size for file in job.files})
    if unsized:  # before the run, which may be long
        names = ", ".join(unsized)
        click.echo(f"note: no size= for {names}: all of the volume is used", err=True)

    def report(result: FioResult) -> None:
        """Print the results so far; to a file they are written at the end."""
        text = _results(result, forms, version)
        texts.append(text)
        if not output:
            if begun and begun.pop():
                text = text.removeprefix(fio_text.heading(result.jobs).rstrip("\n") + "\n")
            click.echo(text, nl=False)

    def show_eta(moment: Moment) -> None:
        """Print fio's line about the running jobs; as in fio on standard output."""
        if not begun and not output:
            begun.append(True)
            click.echo(fio_text.heading(moment.jobs).rstrip("\n"))
        click.echo(lines.line(moment), nl=False)

    with progress_of_jobs() as progress:
        result = run(
            parsed, site, runs, progress, seeding=seeding,
            interval_ns=interval_ns, report=report, eta_ns=eta_ns if has_eta else 0, eta=show_eta,
            limit_ns=limit_ns,
        )  # fmt: skip
    report(result)
    _finish(result, forms, output, "".join(texts))
    if any(each.error for each in result.of_jobs):
        raise SystemExit(RequirementError.exit_code)


def _results(result: FioResult, forms: list[str], version: str) -> str:
    """Return the results in all forms, in fio's order."""
    from hybridsim.show import fio_json, fio_text

    text = fio_text.heading(result.jobs) if "normal" in forms else ""
    if "terse" in forms:
        text += fio_json.terse(result, version)
    if "json" in forms or "json+" in forms:
        text += fio_json.text(result, "json+" in forms)
    return text + (fio_text.results(result) if "normal" in forms else "")


def _finish(result: FioResult, forms: list[str], output: str | None, text: str) -> None:
    """Write the output file and the logs; print the notes."""
    from hybridsim.foundation.writing import write_text
    from hybridsim.show import fio_logs

    if output:
        write_text(output, text)
    for name in fio_logs.write(result):
        click.echo(f"wrote {name}", err=True)
    if "normal" not in forms:
        for note in result.notes:
            print(f"note: {note}", file=sys.stderr)
