"""`hybridsim advise`: which SSD cache should this application get, if any?"""

from __future__ import annotations

import click

from hybridsim.answers.goals import GOALS
from hybridsim.caches import CACHES
from hybridsim.cli.machine_options import (
    cache_mode_option,
    cache_option,
    details_option,
    json_option,
    machine,
    machine_options,
    mode_option,
    set_option,
)
from hybridsim.cli.trace_arguments import examples, trace_options
from hybridsim.foundation.errors import UsageError


@click.command(
    epilog=examples(
        "hybridsim advise sda.blktrace.0",
        "hybridsim advise sda.blktrace.0 --cache dm-cache --cache-mode write-back --details",
        "hybridsim advise sda.blktrace.0 --scenario site.toml --compare hybrid --data 2TB",
    )
)
@trace_options
@machine_options
@cache_option(CACHES)
@cache_mode_option
@set_option
@mode_option("see `hybridsim replay --help`.")
@click.option(
    "--goal",
    type=click.Choice(GOALS),
    default="time",
    help="Figure that decides the verdict; see `hybridsim replay --help`.",
)
@click.option(
    "--compare",
    default="more-disks,short-stroke,all-ssd,hybrid",
    show_default=True,
    metavar="NAMES",
    help="Alternatives to compare with the disks (--details shows them); disks: none.",
)
@click.option(
    "--data",
    metavar="SIZE",
    help="Data that each alternative must hold; default: the capacity of the scenario's disks.",
)
@details_option
@json_option
def advise(
    paths: tuple[str, ...],
    format: str | None,
    device: str | None,
    use_dispatch: bool,
    scenario_file: str | None,
    preset: str | None,
    cache: str | None,
    cache_mode: str | None,
    settings: tuple[str, ...],
    mode: str | None,
    goal: str,
    compare: str,
    data: str | None,
    details: bool,
    json_file: str | None,
) -> None:
    """Recommend an SSD cache for the application that TRACE was captured from, or none.

    Replays TRACE with the caches that can be installed (bcache, dm-cache, dm-writecache, Open CAS),
    write-through and write-back, at several sizes.  The first half of the requests chooses one; the
    second half gives its gain.  Options and the scenario narrow the search.  --details: the
    questions of the guide (is the load I/O-bound, random, has it a hot spot), and more disks,
    short-stroked disks and all SSD for comparison, with prices ([price] in the scenario).
    """
    from functools import partial

    from hybridsim.cli.running import check_folder, note_compiling, progress, stages, write_answer
    from hybridsim.foundation.units import parse_size
    from hybridsim.show.advise import text
    from hybridsim.studies.advise import advise as ask
    from hybridsim.traces.trace import Trace

    try:
        data_bytes = parse_size(data) if data else None
    except ValueError as error:
        raise UsageError(f"--data: {error}") from None
    check_folder(json_file)
    site = machine(
        scenario_file, settings, preset=preset, cache=cache, cache_mode=cache_mode, mode=mode
    )
    trace = Trace.read(paths, format, device, use_dispatch)
    note_compiling()
    with progress() as report:
        advice = ask(trace, site, compare.split(","), data_bytes, report, stages(), goal)
    write_answer(advice, partial(text, details=details), json_file)
