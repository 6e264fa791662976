"""`hybridsim size`: how large must the SSD be?"""

from __future__ import annotations

import click

from hybridsim.caches import CACHES
from hybridsim.cli.machine_options import (
    cache_mode_option,
    cache_option,
    details_option,
    html_option,
    json_option,
    machine,
    machine_options,
    mode_option,
    set_option,
)
from hybridsim.cli.progress import Line
from hybridsim.cli.trace_arguments import examples, require_option, trace_options
from hybridsim.foundation.errors import RequirementError


@click.command(
    epilog=examples(
        "hybridsim size sda.blktrace.0 --require 'mean<1s' --require 'dwpd<50' --json size.json",
    )
)
@trace_options
@require_option
@machine_options
@cache_option(CACHES)
@cache_mode_option
@set_option
@mode_option("see `hybridsim replay --help`.")
@details_option
@json_option
@html_option
def size(
    paths: tuple[str, ...],
    format: str | None,
    device: str | None,
    use_dispatch: bool,
    require: tuple[str, ...],
    scenario_file: str | None,
    preset: str | None,
    cache: str | None,
    cache_mode: str | None,
    settings: tuple[str, ...],
    mode: str | None,
    details: bool,
    json_file: str | None,
    html_file: str | None,
) -> None:
    """Find the smallest SSD with which the machine meets all requirements, by replaying TRACE.

    Tries the caches that can be installed, write-through and write-back, unless options or the
    scenario narrow the search.  The miss-ratio curve gives the first sizes to try; full replays,
    compared on the same requests, decide.  It tries four sizes per factor of two.  Exit code 4: no
    size meets the requirements.
    """
    from functools import partial

    from hybridsim.answers.requirements import parse_all
    from hybridsim.cli.running import check_folder, note_compiling, progress, write_answer
    from hybridsim.show.size import text
    from hybridsim.studies.size import size as smallest
    from hybridsim.traces.trace import Trace

    required = parse_all(require)
    check_folder(json_file)
    check_folder(html_file)
    site = machine(
        scenario_file, settings, preset=preset, cache=cache, cache_mode=cache_mode, mode=mode
    )
    trace = Trace.read(paths, format, device, use_dispatch)
    if trace.sample is not None:
        from hybridsim.cli.estimate import estimated, refuse
        from hybridsim.studies.estimate.answer import size_sample

        refuse(trace, html=html_file, details=details)
        estimated(lambda report: size_sample(trace, site, required, report), json_file)
        return
    note_compiling()
    with progress(line := Line(in_lines=True)) as report:
        sizing = smallest(trace, site, require, report, line.stage)
    write_answer(sizing, partial(text, details=details), json_file, html_file)
    if sizing.answer is None and not sizing.needs_no_ssd:
        raise RequirementError(
            "no size meets " + " and ".join(each.text for each in sizing.require)
        )
