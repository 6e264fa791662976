"""`hybridsim explore`: what if the cache were larger, the load heavier, the SSD another one?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hybridsim.caches import CACHES
from hybridsim.cli.arguments import (
    Chosen,
    Outputs,
    crew_options,
    machine_options,
    outputs,
    trace_options,
)
from hybridsim.cli.option import examples, listed, value_of
from hybridsim.cli.running import Line, check_folder, note_compiling, write_answer
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_time

if TYPE_CHECKING:
    from hybridsim.scenario import Scenario
    from hybridsim.studies.explore.exploring import Status


@click.command(
    epilog=examples(
        "hybridsim explore sda.blktrace.0 -o what-if.html --points 8 --check 2 --cache page "
        "--ssd samsung-pm883-960gb --workers 1",
        "hybridsim explore sda.blktrace.0 --points 9 --check 0 --cache page --load 1 --workers 1 "
        "--json what-if.json",
    )
)
@trace_options
@machine_options(mode="see `hybridsim replay --help`; auto: as `replay` chooses for the scenario.")
@click.option(
    "-o", "--output", "html_file", metavar="FILE",
    help="The page to write; default: what-if.html, unless --json is specified.",
)  # fmt: skip
@click.option(
    "--points", type=click.IntRange(1, 5000), metavar="N", default=480, show_default=True,
    help="Number of replays.  The first are spread over all machines, later ones mostly go where "
    "the interpolation is least sure.",
)  # fmt: skip
@click.option(
    "--time", "limit", metavar="TIME", default="5m", show_default=True,
    help="End after this time, such as 30m, with all that it takes, if the replays are not done by "
    "then: the page is made of those that are.  The same command again goes on from there.",
)  # fmt: skip
@click.option(
    "--check", type=click.IntRange(0, 1000), metavar="N", default=12, show_default=True,
    help="Number of further replays of machines drawn at random, which the interpolation is "
    "checked with.  The page reports how many it meets.",
)  # fmt: skip
@click.option(
    "--cache", "caches", type=click.Choice([each for each in CACHES if each != "none"]),
    multiple=True, help="Kind of cache; repeatable.  Default: those that can be installed, and "
    "page.",
)  # fmt: skip
@click.option(
    "--policy", "policies", metavar="NAME", multiple=True,
    help="Policy of `--cache page`, such as lru or larc+arc; repeatable.  Default: learned, lru.",
)  # fmt: skip
@click.option(
    "--size", "sizes", metavar="LOW..HIGH",
    help="Cache sizes, such as 1GiB..64GiB.  Default: 1% to 100% of what the trace touches.",
)  # fmt: skip
@click.option(
    "--ssd", "ssds", metavar="NAME", multiple=True,
    help="SSD model of the catalog; repeatable.  Default: the scenario's, and a SATA drive.",
)  # fmt: skip
@click.option(
    "--members", metavar="N,N", help="Numbers of disks.  Default: as many, 1.5 and 2 times as many."
)
@click.option(
    "--load", "loads", metavar="X,X",
    help="Factors of the load: 2 is twice as fast as recorded.  Default: 0.5 to 2.",
)  # fmt: skip
@crew_options(has_cluster=False)
@outputs("json")
def explore(
    chosen: Chosen,
    site_of: Callable[[], Scenario],
    points: int,
    limit: str | None,
    check: int,
    caches: tuple[str, ...],
    policies: tuple[str, ...],
    sizes: str | None,
    ssds: tuple[str, ...],
    members: str | None,
    loads: str | None,
    workers: int | None,
    folder: str | None,
    out: Outputs,
) -> None:
    """What if?  Write a page with sliders that answers at once, for TRACE.

    Replays a planned set of machines, with other caches, sizes, SSDs, numbers of disks and loads,
    and interpolates between them; the error of the interpolation is shown as a band.  The page is
    one file that loads nothing.  Results are stored: the same command again takes seconds, and one
    with more --points adds to them.  Ctrl-C makes the page of the replays that are done.
    """
    from hybridsim.show.explore import text
    from hybridsim.studies.explore.exploring import explore as run
    from hybridsim.studies.sweep.named_trace import NamedTrace
    from hybridsim.studies.sweep.store import FOLDER

    if not (out.html_file or out.json_file):
        out = out._replace(html_file="what-if.html")
        check_folder(out.html_file, what="HTML")
    site = site_of()
    trace = NamedTrace.here(*chosen)
    note_compiling()
    with Line(in_lines=True) as line:

        def report(status: Status) -> None:
            if status.settled is not None and status.settled.row is None:
                line.stays(f"failed: {status.settled.point.command}: {status.settled.why}")
            line.update(lambda: words(status))

        found = run(
            trace, site, points=points, seconds=_seconds(limit), check=check,
            folder=folder or FOLDER, workers=workers, report=report, caches=caches,
            policies=policies, sizes=sizes or "", ssds=ssds,
            members=_numbers("members", members, int), loads=_numbers("load", loads, float),
        )  # fmt: skip
    write_answer(found, text, out)
    if found.interrupted:
        raise click.exceptions.Exit(130)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = value_of(f"--time {text}", parse_time, text) / 1e9
    if seconds <= 0:
        raise UsageError(f"--time {text}: must be above 0")
    return seconds


def _numbers(option: str, text: str | None, of: Any) -> list[Any]:
    if text is None:
        return []
    try:
        return [of(each) for each in listed(text)]
    except ValueError:
        raise UsageError(f"--{option} {text}: must be numbers, such as 4,6,8") from None


def words(status: Status) -> str:
    """Return the progress as a line."""
    from hybridsim.foundation.wording import percent, span

    if status.stage:
        return status.stage
    parts = [f"{status.done:,} of {status.of:,} replays"]
    if status.in_time is not None:
        parts[0] += f", some {status.in_time:,} in the time"
    if status.known:
        parts.append(f"{status.known:,} reused")
    if status.band is not None:
        parts.append(f"gain known to {percent(status.band)}")
    if status.left_s:
        parts.append(f"{span(round(status.left_s) * 1e9)} to go")
    return " · ".join(parts)
