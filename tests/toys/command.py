"""`hybridsim count`: how many requests does a trace have?"""

from __future__ import annotations

import click

from hybridsim.cli.arguments import Chosen, trace_options
from hybridsim.cli.option import examples


@click.command(epilog=examples("hybridsim count sda.blktrace.0"))
@trace_options
def count(chosen: Chosen) -> None:
    """Count the requests of TRACE."""
    from hybridsim.studies.count import requests

    click.echo(f"{requests(chosen.read()):,} requests")
