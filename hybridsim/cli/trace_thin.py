"""`hybridsim trace thin`: a trace of any length in a file of limited size."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli.arguments import Chosen, trace_options
from hybridsim.cli.option import echo_document, examples, flag, option, value_of
from hybridsim.foundation.printable import shell_word
from hybridsim.foundation.units import parse_percent, parse_size

if TYPE_CHECKING:
    from hybridsim.studies.thin import Result

SCHEMA = "hybridsim.thinned/1"


@click.command(
    epilog=examples(
        "hybridsim trace thin sda.blktrace.0 -o sda.thin --max 2GB",
        "hybridsim trace thin sda.blktrace.0 -o sda.thin --rate 10% --region 64KiB --json",
    )
)
@trace_options
@option("-o --output OUT", "The file to write.", required=True)
@option(
    "--max SIZE",
    "Maximum size of the file, also while it is written: the rate falls as it fills.",
    to="maximum",
)
@option("--rate SHARE", "Share of the regions to sample at the start.  Default: 100%.")
@option(
    "--region SIZE",
    "Regions that are sampled as a whole.  Smaller ones give smaller errors; a region must be "
    "at least as large as the cache's pages.",
    "1MiB",
)
@option("--seed", "Another seed samples other regions.", 0)
@flag("--json", "Print one JSON object.", to="as_json")
def thin(
    chosen: Chosen,
    output: str,
    maximum: str | None,
    rate: str | None,
    region: str,
    seed: int,
    as_json: bool,
) -> None:
    """Thin TRACE: weeks of requests in a file of limited size.

    OUT keeps every request to a sample of the regions, counters and histograms of all requests by
    minute, and for each hour the requests of its worst minute and of a typical one in full.  mrc
    and hits read it as any other trace and state the error of the sample; with --device worst,
    --device typical or a time, every command reads the requests of that minute.  The same trace and
    options give the same file.
    """
    from hybridsim.cli.trace_convert import with_progress
    from hybridsim.studies.thin import thin as run

    if maximum is None and rate is None:
        raise click.UsageError("specify --max SIZE, --rate SHARE or both")
    if output == "-":
        raise click.UsageError("-o -: a thinned capture is rewritten as it fills: name a file")
    settings = settings_of(maximum, rate, region, seed)
    opened = chosen.read()
    device = next((each.name for each in opened.devices if each.chosen), "")
    settings = replace(settings, device=device, source=opened.name)
    with with_progress(opened) as counted:
        result = run(opened, output, settings, counted)
    if as_json:
        facts = asdict(result)
        echo_document(SCHEMA, {"file": facts.pop("path"), **facts})
    else:
        click.echo(text(result))


def settings_of(maximum: str | None, rate: str | None, region: str, seed: int) -> Any:
    """Return the settings that options specify; raise UsageError for invalid ones."""
    from hybridsim.traces.thinned.thinner import Settings

    values: dict[str, Any] = {"seed": seed}
    for flags, name, specified, parse in (
        ("--max", "max_bytes", maximum, parse_size),
        ("--rate", "rate", rate, lambda text: float(parse_percent(text))),
        ("--region", "region_bytes", region, parse_size),
    ):
        if specified is not None:
            values[name] = value_of(flags, parse, specified)
    settings = Settings(**values)
    settings.check()
    return settings


def text(result: Result) -> str:
    """Return the result and the next commands as text."""
    from hybridsim.cli.trace_text import labelled, size
    from hybridsim.foundation.wording import counted

    name = shell_word(result.path)
    per = f", {result.bytes / result.requests:.2f} bytes a request" if result.requests else ""
    lines = [
        ("thinned", f"{counted(result.requests, 'request')} to {size(result.bytes)}{per}"),
        ("sample", f"{result.rate:.3%} of the regions"),
        ("in full", counted(result.stretches, "minute")),
        ("next", f"hybridsim trace info {name}"),
        ("", f"hybridsim mrc {name}"),
        ("", f"hybridsim replay {name} --device worst"),
    ]
    return labelled(lines)
