"""`hybridsim trace`: inspect a trace before using it, convert, record or generate one."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli.arguments import Chosen, as_option, trace_options
from hybridsim.cli.option import echo_document, examples, flag, option
from hybridsim.cli.trace_fit import fit
from hybridsim.cli.trace_gen import gen
from hybridsim.cli.trace_record import record
from hybridsim.cli.trace_thin import thin
from hybridsim.foundation.errors import TraceError

if TYPE_CHECKING:
    from hybridsim.traces.trace import Summary, Trace

SCHEMA = "hybridsim.trace/1"
DOCTOR = "hybridsim.doctor/1"


@click.group(
    epilog=examples(
        "sudo hybridsim trace record /dev/sda -o sda --time 10m",
        "hybridsim trace info sda.blktrace.0",
        "hybridsim trace doctor traces/blktrace/loop_errors",
        "hybridsim trace convert sda.blktrace.0 sda.csv.zst",
    )
)
def trace() -> None:
    """Inspect, check or convert a trace; record or generate one.

    TRACE is a file (.gz, .zst, .xz and .bz2 too), any one of blktrace's per-CPU files, their
    prefix or directory, or - for standard input; or a workload to generate, as in `trace gen`.
    """


trace.add_command(gen)
trace.add_command(fit)
trace.add_command(record)
trace.add_command(thin)


@trace.command(
    epilog=examples(
        "hybridsim trace info sda.blktrace.0",
        "hybridsim trace info --json traces/blktrace/loop_errors",
        "blktrace -d /dev/sda -o - | hybridsim trace info -",
    )
)
@trace_options
@flag("--json", "Print one JSON object.", to="as_json")
def info(chosen: Chosen, as_json: bool) -> None:
    """Show a summary of a trace: requests, bytes, time span, devices.

    Of a thinned capture: totals of all requests, and load, p99 and hit ratio by hour and weekday.
    """
    from hybridsim.cli.trace_convert import with_progress
    from hybridsim.cli.trace_text import info_text
    from hybridsim.show import thinned as shown
    from hybridsim.show.page import is_ascii
    from hybridsim.studies.week import PASSES

    opened = chosen.read()  # once: standard input can be read once
    if not as_json and opened.sample is not None:
        with with_progress(opened, PASSES):
            text = shown.text(opened, is_ascii(sys.stdout))
        click.echo(text)
        return
    summary = counted_summary(opened)
    if as_json:
        from hybridsim.studies.week import document

        with with_progress(opened, PASSES):
            thinned = document(opened)
        echo_document(SCHEMA, as_object(opened, summary) | {"thinned": thinned})
    else:
        click.echo(info_text(opened, summary))


@trace.command(
    epilog=examples(
        "hybridsim trace doctor sda.blktrace.0",
        "hybridsim trace doctor --json traces/blktrace/loop_errors",
    )
)
@trace_options
@flag("--json", "Print one JSON object.", to="as_json")
def doctor(chosen: Chosen, as_json: bool) -> None:
    """Check a trace, and report how to fix its problems.

    Exit code 0: usable, possibly with reservations; 3: it contains nothing that can be replayed.
    """
    from hybridsim.cli.trace_text import diagnose, doctor_text

    try:
        opened = chosen.read()
        summary = counted_summary(opened)
    except TraceError as error:
        if as_json:
            echo_document(DOCTOR, {"verdict": "unusable", "reason": str(error)})
        else:
            click.echo(f"unusable  {error}")
        sys.exit(TraceError.exit_code)
    verdict = diagnose(summary)
    if as_json:
        echo_document(DOCTOR, {"verdict": verdict, **as_object(opened, summary)})
    else:
        click.echo(doctor_text(opened, summary))
    if verdict == "unusable":
        sys.exit(TraceError.exit_code)


@trace.command(
    epilog=examples(
        "hybridsim trace head sda.blktrace.0",
        "hybridsim trace head -n 3 traces/blktrace/loop_errors",
    )
)
@trace_options
@option("-n", "Number of requests.", 10, to="rows", type=click.IntRange(1))
def head(chosen: Chosen, rows: int) -> None:
    """Show the first requests of a trace."""
    from hybridsim.cli.trace_text import head_text

    first = next(iter(chosen.read().recorded(rows)), None)
    if first is not None:
        click.echo(head_text(first.between(0, rows)))


@trace.command(
    epilog=examples(
        "hybridsim trace convert sda.blktrace.0 sda.csv.zst",
        "hybridsim trace convert --as fio-iolog sda.blktrace.0 sda.iolog",
        "hybridsim trace convert --columns time=1:ns,offset=3:B,length=4,op=2 sda.csv.zst -",
        "hybridsim trace convert traces/blktrace/loop_errors - | head",
    )
)
@trace_options
@as_option
def convert(chosen: Chosen, written: str | None) -> None:
    """Write the requests of a trace in another format.

    The last path is the output file, compressed if it ends with .gz, .zst, .xz or .bz2; - is
    standard output.

    Columns of CSV: arrival_ns,op,offset,length,dispatch_ns,complete_ns.  op is R, W, D (discard),
    F (flush) or Z (write zeroes); times are in ns since the first event, empty if unknown.
    Process ids are dropped, so think times computed from the CSV treat all requests as those of one
    process.  Other formats (--as) keep less: msr and spc keep reads and writes only;
    spc has no completion times; oracle-general has neither these nor a distinction of reads and
    writes.
    """
    from hybridsim.cli.trace_convert import convert_to
    from hybridsim.foundation.wording import counted

    *inputs, output = chosen.paths
    if not inputs:
        raise click.UsageError("specify a trace and the output file, or - for standard output")
    opened = chosen._replace(paths=tuple(inputs)).read()
    rows = convert_to(opened, inputs, output, written)
    if output != "-":
        click.echo(f"{output}: {counted(rows, 'request')}")


def counted_summary(opened: Trace) -> Summary:
    """Read a trace once, with its progress, and return its summary."""
    from hybridsim.cli.trace_convert import with_progress

    with with_progress(opened) as counted:
        return opened.summary_of_recorded(counted)


def as_object(opened: Trace, summary: Summary) -> dict[str, Any]:
    """Return the facts of a trace as a JSON object; null where the trace has none."""
    about = {"name": opened.name, "format": opened.format, "origin_unix_ns": opened.origin}
    figures = asdict(summary)
    del figures["address_map"]  # a grid for the HTML report, not a figure
    return about | figures
