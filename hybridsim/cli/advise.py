"""`hybridsim advise`: should this application get an SSD cache, and what else could be bought?"""

from __future__ import annotations

import click

from hybridsim.caches import CACHES
from hybridsim.cli.machine_options import (
    cache_option,
    json_option,
    machine,
    machine_options,
    mode_option,
)
from hybridsim.cli.trace_arguments import examples, trace_options
from hybridsim.foundation.errors import UsageError


@click.command(
    epilog=examples(
        "hybridsim advise sda.blktrace.0 --scenario site.toml --compare hybrid --data 2TB",
    )
)
@trace_options
@machine_options
@cache_option(CACHES)
@mode_option("see `hybridsim replay --help`.")
@click.option(
    "--compare",
    default="more-disks,short-stroke,all-ssd,hybrid",
    show_default=True,
    metavar="NAMES",
    help="Alternatives to compare with the disks.",
)
@click.option(
    "--data",
    metavar="SIZE",
    help="Data that each alternative must hold; default: the capacity of the scenario's disks.",
)
@json_option
def advise(
    paths: tuple[str, ...],
    format: str | None,
    device: str | None,
    use_dispatch: bool,
    scenario_file: str | None,
    preset: str | None,
    cache: str | None,
    mode: str | None,
    compare: str,
    data: str | None,
    json_file: str | None,
) -> None:
    """Advise whether an SSD cache is worth buying for the application that TRACE was captured from.

    Answers five questions: would lower latency help; what would be the bottleneck then; how random
    and read-heavy is the load; is there a hot spot; how much SSD is right.  Then replays TRACE on
    the alternatives (more disks, short-stroked disks, SSDs only, and disks with an SSD cache), and
    compares their prices ([price] in the scenario).
    """
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
    site = machine(scenario_file, preset=preset, cache=cache, mode=mode)
    trace = Trace.read(paths, format, device, use_dispatch)
    note_compiling()
    with progress() as report:
        advice = ask(trace, site, compare.split(","), data_bytes, report, stages())
    write_answer(advice, text, json_file)
