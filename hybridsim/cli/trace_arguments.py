"""The arguments that name a trace, and how examples stand in a help text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from hybridsim.traces.formats import FORMATS, WRITTEN

Command = TypeVar("Command", bound=Callable[..., Any])

FORMAT_HELP = f"Force a format: {', '.join(FORMATS)}."
COLUMNS_HELP = (
    "Of any other table, which column means what: time=ts:us,offset=lba:sectors,length=bytes "
    "and so on: op=rw:R/W, device=vol, latency=rt:ms; a column is a name, or a number from 1; "
    "or a TOML file that says so."
)
DEVICE_HELP = (
    "Which device of the trace, as `info` lists them; default: most bytes; of traces of many "
    "volumes also all: one behind the other."
)
DISPATCH_HELP = "Take requests as issued to the device, after merging and scheduling."


def trace_options(function: Command) -> Command:
    """Add the arguments that name a trace."""
    function = click.option("--use-dispatch", is_flag=True, help=DISPATCH_HELP)(function)
    function = click.option("--device", metavar="MAJ,MIN", help=DEVICE_HELP)(function)
    function = format_option("format", FORMAT_HELP)(function)
    return click.argument("paths", metavar="TRACE...", nargs=-1, required=True)(function)


def require_option(function: Command) -> Command:
    """Add the option that says what must be reached."""
    text = (
        "What must be reached: mean, max, p50, p99.9 ... (of .reads or .writes), hit, busy, iops, "
        "each .warm, .cold or .whole; dwpd, years, warmup. Several make all of them."
    )
    name = "'p99.warm<8ms'"
    return click.option("--require", multiple=True, metavar=name, help=text)(function)


def format_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return what adds --format, and --columns, which is said of a format: `columns:SAID`."""

    def add(function: Command) -> Command:
        function = click.option(
            "--columns", metavar="SAID", help=COLUMNS_HELP, is_eager=True, expose_value=False,
            callback=_keep_columns,
        )(function)  # fmt: skip
        return click.option(
            "--format", name, metavar="NAME", help=text, callback=_with_columns
        )(function)  # fmt: skip

    return add


COLUMNS_KEY = "hybridsim.columns"


def _keep_columns(ctx: click.Context, parameter: click.Parameter, said: str | None) -> None:
    ctx.meta[COLUMNS_KEY] = said


def _with_columns(ctx: click.Context, parameter: click.Parameter, format: str | None) -> str | None:
    said = ctx.meta.get(COLUMNS_KEY)
    if said is None:
        return format
    if format not in (None, "columns", "parquet"):
        raise click.UsageError(f"--columns says what a table means; {format} needs no columns")
    return f"{format or 'columns'}:{said}"


def as_option(function: Command) -> Command:
    """Add the option that chooses the format to write."""
    text = (
        "Format to write: csv; fio-iolog (version 3), which fio's read_iolog takes; msr; spc; "
        "oracle-general, of 4 KiB pages; parquet.  Default: as the name ends (OUT.spc, "
        "OUT.parquet), else csv."
    )
    return click.option("--as", "written", type=click.Choice(WRITTEN), help=text)(function)


def examples(*lines: str) -> str:
    """Return the end of a help text."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
