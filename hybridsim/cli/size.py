"""`hybridsim size`: how large must the SSD be?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from hybridsim.caches import CACHES
from hybridsim.cli.machine_options import details_option, html_option, json_option, machine_options
from hybridsim.cli.progress import Line
from hybridsim.cli.trace_arguments import Chosen, examples, require_option, trace_options
from hybridsim.foundation.errors import RequirementError

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario


@click.command(
    epilog=examples(
        "hybridsim size sda.blktrace.0 --require 'mean<1s' --require 'dwpd<50' --json size.json",
    )
)
@trace_options
@require_option
@machine_options(CACHES, "see `hybridsim replay --help`.")
@details_option
@json_option
@html_option
def size(
    chosen: Chosen,
    require: tuple[str, ...],
    site_of: Callable[[], Scenario],
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

    required = parse_all(require)
    check_folder(json_file)
    check_folder(html_file)
    site = site_of()
    trace = chosen.read()
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
