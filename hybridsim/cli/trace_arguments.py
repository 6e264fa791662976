"""Options shared by commands that read a trace, and the examples at the end of a help text."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from hybridsim.traces.formats import FORMATS, WRITTEN

if TYPE_CHECKING:
    from hybridsim.traces.trace import Trace

Command = TypeVar("Command", bound=Callable[..., Any])

FORMAT_HELP = f"Format of the trace, if it is not detected: {', '.join(FORMATS)}."
COLUMNS_HELP = (
    "Columns of any other table of requests: time=ts:us,offset=lba:sectors,length=bytes, and "
    "optionally op=rw:R/W, device=vol, latency=rt:ms; a column is a name or a number from 1. Or a "
    "TOML file with these keys."
)
DEVICE_HELP = (
    "Device of the trace (`trace info` lists them), or all: all volumes of the trace, "
    "concatenated. Default: the one with most bytes."
)
DISPATCH_HELP = "Use the requests as issued to the device, after merging and scheduling."


class Chosen(NamedTuple):
    """The trace that the arguments select, in the order of the parameters of `Trace.read`."""

    paths: tuple[str, ...]
    format: str | None
    device: str | None
    use_dispatch: bool

    def read(self) -> Trace:
        """Open it."""
        from hybridsim.traces.trace import Trace

        return Trace.read(*self)


def trace_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments that select a trace; the command gets them as `chosen`."""

    @functools.wraps(function)
    def command(**options: Any) -> Any:
        chosen = Chosen(*(options.pop(name) for name in Chosen._fields))
        return function(chosen=chosen, **options)

    added = click.option("--use-dispatch", is_flag=True, help=DISPATCH_HELP)(command)
    added = click.option("--device", metavar="MAJ,MIN", help=DEVICE_HELP)(added)
    added = format_option("format", FORMAT_HELP)(added)
    return click.argument("paths", metavar="TRACE...", nargs=-1, required=True)(added)


def require_option(function: Command) -> Command:
    """Add the option for requirements."""
    text = (
        "Requirement: a measure, one of < <= > >=, a value.  Measures: mean, max, p50, p99.9 ... "
        "(.reads or .writes), hit, busy, iops (each .warm, .cold or .whole); dwpd, years, warmup. "
        "Repeatable: all must be met."
    )
    name = "'p99.warm<8ms'"
    return click.option("--require", multiple=True, metavar=name, help=text)(function)


def format_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return a decorator that adds --format and --columns; both give one value: `columns:SPEC`."""

    def add(function: Command) -> Command:
        function = click.option(
            "--columns", metavar="SPEC", help=COLUMNS_HELP, is_eager=True, expose_value=False,
            callback=_keep_columns,
        )(function)  # fmt: skip
        return click.option(
            "--format", name, metavar="NAME", help=text, callback=_with_columns
        )(function)  # fmt: skip

    return add


COLUMNS_KEY = "hybridsim.columns"


def _keep_columns(ctx: click.Context, parameter: click.Parameter, spec: str | None) -> None:
    ctx.meta[COLUMNS_KEY] = spec


def _with_columns(ctx: click.Context, parameter: click.Parameter, format: str | None) -> str | None:
    spec = ctx.meta.get(COLUMNS_KEY)
    if spec is None:
        return format
    if format not in (None, "columns", "parquet"):
        raise click.UsageError(f"--columns applies to tables only, not to --format {format}")
    return f"{format or 'columns'}:{spec}"


def as_option(function: Command) -> Command:
    """Add the option that chooses the format to write."""
    text = (
        "Output format: csv; fio-iolog (version 3), for fio's read_iolog; msr; spc; "
        "oracle-general, in pages of 4 KiB; parquet.  Default: by the file's suffix (OUT.spc, "
        "OUT.parquet), else csv."
    )
    return click.option("--as", "written", type=click.Choice(WRITTEN), help=text)(function)


def examples(*lines: str) -> str:
    """Return example commands as the end of a help text."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
