"""`hybridsim explore`: what if the cache were larger, the load heavier, the SSD another one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hybridsim.caches import CACHES
from hybridsim.cli import arguments as args
from hybridsim.cli.running import check_folder, note_compiling, write_answer
from hybridsim.cli.sweep import progress_line
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import parse_time
from hybridsim.foundation.wording import percent, span

if TYPE_CHECKING:
    from hybridsim.studies.explore.exploring import Status


def _seconds(text: str) -> float:
    seconds = args.value_of(f"--time {text}", parse_time, text) / 1e9
    if seconds <= 0:
        raise UsageError(f"--time {text}: must be above 0")
    return seconds


@args.command(
    "hybridsim explore sda.blktrace.0 -o what-if.html --points 8 --check 2 --cache page "
    "--ssd samsung-pm883-960gb --workers 1",
    "hybridsim explore sda.blktrace.0 --points 9 --check 0 --cache page --load 1 --workers 1 "
    "--json what-if.json",
)
def explore(
    chosen: args.Chosen = args.trace_options,
    site: args.Scenario = args.machine_options(
        mode="see `hybridsim replay --help`; auto: as `replay` chooses for the scenario."
    ),
    html_file: str | None = args.option(
        "-o --output FILE", "The page to write; default: what-if.html, unless --json is specified."
    ),
    points: int = args.option(
        "--points N",
        "Number of replays.  The first are spread over all machines, later ones mostly go where "
        "the interpolation is least sure.",
        480,
        type=click.IntRange(1, 5000),
    ),
    limit: float = args.option(
        "--time TIME",
        "End after this time, such as 30m, with all that it takes, if the replays are not done by "
        "then: the page is made of those that are.  The same command again goes on from there.",
        "5m",
        parse=_seconds,
    ),
    check: int = args.option(
        "--check N",
        "Number of further replays of machines drawn at random, which the interpolation is "
        "checked with.  The page reports how many it meets.",
        12,
        type=click.IntRange(0, 1000),
    ),
    caches: tuple[str, ...] = args.option(
        "--cache",
        "Kind of cache; repeatable.  Default: those that can be installed, and page.",
        type=click.Choice([each for each in CACHES if each != "none"]),
        multiple=True,
    ),
    policies: tuple[str, ...] = args.option(
        "--policy NAME",
        "Policy of `--cache page`, such as lru or larc+arc; repeatable.  Default: learned, lru.",
        multiple=True,
    ),
    sizes: str | None = args.option(
        "--size LOW..HIGH",
        "Cache sizes, such as 1GiB..64GiB.  Default: 1% to 100% of what the trace touches.",
    ),
    ssds: tuple[str, ...] = args.option(
        "--ssd NAME",
        "SSD model of the catalog; repeatable.  Default: the scenario's, and a SATA drive.",
        multiple=True,
    ),
    members: str | None = args.option(
        "--members N,N", "Numbers of disks.  Default: as many, 1.5 and 2 times as many."
    ),
    loads: str | None = args.option(
        "--load X,X", "Factors of the load: 2 is twice as fast as recorded.  Default: 0.5 to 2."
    ),
    crew: args.Crew = args.crew_options(has_cluster=False),
    out: args.Outputs = args.outputs("json"),
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

    if not (html_file or out.json_file):
        html_file = "what-if.html"
    check_folder(html_file, what="HTML")
    trace = NamedTrace.here(*chosen)
    note_compiling()
    with progress_line(words) as report:
        found = run(
            trace, site, points=points, seconds=limit, check=check,
            folder=crew.folder or FOLDER, workers=crew.workers, report=report, caches=caches,
            policies=policies, sizes=sizes or "", ssds=ssds,
            members=_numbers("members", members, int), loads=_numbers("load", loads, float),
        )  # fmt: skip
    write_answer(found, text, out._replace(html_file=html_file))
    if found.interrupted:
        raise click.exceptions.Exit(130)


def _numbers(option: str, text: str | None, of: Any) -> list[Any]:
    if text is None:
        return []
    try:
        return [of(each) for each in args.listed(text)]
    except ValueError:
        raise UsageError(f"--{option} {text}: must be numbers, such as 4,6,8") from None


def words(status: Status) -> str:
    """Return the progress as a line."""
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
