"""The arguments that name a trace, and how examples stand in a help text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FORMAT_HELP = "Force a format: blktrace, blkparse, fio-iolog, csv, lis, vscsi or workload."
DEVICE_HELP = "Which device of the trace, as `info` lists them; default: most bytes."
DISPATCH_HELP = "Take requests as issued to the device, after merging and scheduling."


def trace_options(function: Command) -> Command:
    """Add the arguments that name a trace."""
    function = click.option("--use-dispatch", is_flag=True, help=DISPATCH_HELP)(function)
    function = click.option("--device", metavar="MAJ,MIN", help=DEVICE_HELP)(function)
    function = click.option("--format", metavar="NAME", help=FORMAT_HELP)(function)
    return click.argument("paths", metavar="TRACE...", nargs=-1, required=True)(function)


def require_option(function: Command) -> Command:
    """Add the option that says what must be reached."""
    text = (
        "What must be reached: mean, max, p50, p99.9 ... (of .reads or .writes), hit, busy, iops, "
        "each .warm, .cold or .whole; dwpd, years, warmup. Several make all of them."
    )
    name = "'p99.warm<8ms'"
    return click.option("--require", multiple=True, metavar=name, help=text)(function)


def as_option(function: Command) -> Command:
    """Add the option that chooses the format to write."""
    text = "Format to write: csv or fio-iolog (version 3), which fio's read_iolog takes."
    choice = click.Choice(["csv", "fio-iolog"])
    return click.option("--as", "written", type=choice, default="csv", help=text)(function)


def examples(*lines: str) -> str:
    """Return the end of a help text."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
