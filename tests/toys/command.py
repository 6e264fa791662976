"""`hybridsim count`: how many requests does a trace have?"""

from __future__ import annotations

import click

from hybridsim.cli.trace_arguments import examples, trace_options


@click.command(epilog=examples("hybridsim count sda.blktrace.0"))
@trace_options
def count(
    paths: tuple[str, ...], format: str | None, device: str | None, use_dispatch: bool
) -> None:
    """Count the requests of TRACE."""
    from hybridsim.studies.count import requests
    from hybridsim.traces.trace import Trace

    click.echo(f"{requests(Trace.read(paths, format, device, use_dispatch)):,} requests")
