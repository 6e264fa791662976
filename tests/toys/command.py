"""`hybridsim count`: how many requests does a trace have?"""

from __future__ import annotations

import click

from hybridsim.cli.arguments import Chosen, command, trace_options


@command("hybridsim count sda.blktrace.0")
def count(chosen: Chosen = trace_options) -> None:
    """Count the requests of TRACE."""
    from hybridsim.studies.count import requests

    click.echo(f"{requests(chosen.read()):,} requests")
