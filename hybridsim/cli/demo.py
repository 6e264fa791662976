"""`hybridsim demo`: a replay of a real capture that ships with hybridsim."""

from __future__ import annotations

import click

from hybridsim.cli.machine_options import details_option, html_option
from hybridsim.cli.option import option

EXAMPLES = """\b
Examples:
  hybridsim demo
  hybridsim demo --json demo.json --html demo.html
"""


@click.command(epilog=EXAMPLES)
@option(
    "--json FILE",
    "Write the result as JSON too; -: JSON on standard output instead of the report.",
    to="json_file",
)
@html_option
@details_option
def demo(json_file: str | None, html_file: str | None, details: bool) -> None:
    """Replay a real capture of a database with an SSD cache and without.

    The capture is from a key-value store (RocksDB) with random reads around a hot spot; see
    traces/README.md.  It is replayed with its recorded think times.
    """
    from hybridsim.cli.running import run
    from hybridsim.scenario import Scenario
    from hybridsim.traces.example import CAPTURE, SITE, demo_file
    from hybridsim.traces.trace import Trace

    run(
        Trace.read(demo_file(CAPTURE)),
        Scenario.load(demo_file(SITE)),
        json_file,
        html_file,
        details=details,
    )
