"""`hybridsim bounds`: what averages of iostat, sar or fio allow an SSD cache to do."""

from __future__ import annotations

import sys

import click

from hybridsim.cli import arguments as args
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.show.page import is_ascii

SCHEMA = "hybridsim.bounds/1"


@args.command(
    "hybridsim bounds iostat.txt",
    "hybridsim bounds sar.txt --device sdb",
    "hybridsim bounds fio.json --set cache.drive.like=micron-7450-pro-3840gb",
    "hybridsim bounds iostat.json --json",
)
def bounds(
    file: str = args.argument("FILE"),
    device: str | None = args.option(
        "--device NAME", "Device in FILE, as printed there: sda, dm-0."
    ),
    site: args.Scenario = args.machine_options(),
    as_json: bool = args.json_option,
) -> None:
    """Print the best and the worst that an SSD cache could do, from averages alone.

    FILE is the output of `iostat -x`, `iostat -x -o JSON`, `sar -d` or `fio --output-format=json`
    of the device in use today.  Averages do not show which data is read again, so the bounds are
    wide; no cache does better than the best case, so that a "no" is final.  For an answer record a
    trace.
    """
    from hybridsim.answers.bounds import bounds as bounded
    from hybridsim.show.bounds import text
    from hybridsim.storage.drives import SolidState
    from hybridsim.traces.averages import read

    drive = getattr(site.cache, "drive", None)
    if not isinstance(drive, SolidState):
        raise UsageError("bounds needs a cache on an SSD: choose one with --set cache.drive.like=")
    result = bounded(read(file, device), drive, file)
    if result is None:
        raise TraceError(f"{printable(file)}: the device had no request: there is nothing to bound")
    if as_json:
        args.echo_document(SCHEMA, result.to_dict())
    else:
        click.echo(text(result, is_ascii(sys.stdout)))
