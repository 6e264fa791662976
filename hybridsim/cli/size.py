"""`hybridsim size`: how large must the SSD be?"""

from __future__ import annotations

from functools import partial

from hybridsim.caches import CACHES
from hybridsim.cli import arguments as args
from hybridsim.cli.running import Line, estimated, progress, refuse, write_answer
from hybridsim.foundation.errors import RequirementError


@args.command(
    "hybridsim size sda.blktrace.0 --require 'mean<1s' --require 'dwpd<50' --json size.json"
)
def size(
    chosen: args.Chosen = args.trace_options,
    require: tuple[str, ...] = args.require_option,
    site: args.Scenario = args.machine_options(CACHES, "see `hybridsim replay --help`."),
    out: args.Outputs = args.outputs("details", "json", "html"),
) -> None:
    """Find the smallest SSD with which the machine meets all requirements, by replaying TRACE.

    Tries the caches that can be installed, write-through and write-back, unless options or the
    scenario narrow the search.  The miss-ratio curve gives the first sizes to try; full replays,
    compared on the same requests, decide.  It tries four sizes per factor of two.  Exit code 4: no
    size meets the requirements.
    """
    from hybridsim.answers.requirements import parse_all
    from hybridsim.show.size import text
    from hybridsim.studies.size import size as smallest

    required = parse_all(require)
    trace = chosen.read()
    if trace.sample is not None:
        from hybridsim.studies.estimate.estimate import size_sample

        refuse(trace, html=out.html_file, details=out.details)
        estimated(lambda report: size_sample(trace, site, required, report), out)
        return
    with progress(line := Line(in_lines=True)) as report:
        sizing = smallest(trace, site, require, report, line.stage)
    write_answer(sizing, partial(text, details=out.details), out)
    if sizing.answer is None and not sizing.needs_no_ssd:
        raise RequirementError(
            "no size meets " + " and ".join(each.text for each in sizing.require)
        )
