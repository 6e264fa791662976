"""`hybridsim hits`: what do caches of some sizes and policies hold of a trace?"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hybridsim.caches.policies import ADMISSION, KNOWS_THE_FUTURE, REPLACEMENT
from hybridsim.cli.json_output import echo_document
from hybridsim.cli.trace_arguments import examples, trace_options

if TYPE_CHECKING:
    from hybridsim.studies.hits import Hits

SCHEMA = "hybridsim.hits/1"
Command = TypeVar("Command", bound=Callable[..., Any])
SECTOR_BYTES = 512
LEAST_SHARE = 0.005  # of the accesses, to be told
SKIPPED = "Requests before them, which fill the caches and are not counted:"
REPLACEMENTS = ", ".join([*REPLACEMENT, *KNOWS_THE_FUTURE])


def policy_options(function: Any) -> Any:
    """Add what some admission policies want to know."""
    for option in (
        click.option(
            "--write-price",
            type=click.FloatRange(0, 1000),
            default=0.5,
            help="What a fill of 64 KiB costs, in reads of the disks; of the policy learned.",
        ),
        click.option("--seed", type=int, default=1, help="Of --admission probabilistic."),
        click.option(
            "--request-max", metavar="SIZE", default="64KiB", help="Of --admission request-size."
        ),
        click.option(
            "--probability", metavar="SHARE", default="10%", help="Of --admission probabilistic."
        ),
        click.option(
            "--touches", type=click.IntRange(1, 255), default=2, help="Of --admission touches."
        ),
        page_option("4KiB"),
    ):
        function = option(function)
    return function


def page_option(default: str) -> Callable[[Command], Command]:
    """Return the option of what is cached at a time."""
    return click.option(
        "--page",
        default=default,
        show_default=True,
        help="What is cached at a time; of replay, size and advise it is 64KiB.",
        callback=_page,
    )


def _page(context: click.Context, option: click.Parameter, said: str) -> str:
    """Refuse pages that no machine has either."""
    from hybridsim.foundation.errors import UsageError
    from hybridsim.studies.hits import size_bytes

    page_bytes = size_bytes(said)
    if page_bytes < SECTOR_BYTES or page_bytes % SECTOR_BYTES:
        raise UsageError(f"--page {said}: a page is whole sectors of {SECTOR_BYTES} bytes")
    return said


def parameters(
    touches: int, probability: str, request_max: str, seed: int, write_price: float
) -> dict[str, int]:
    """Return these options by the names that policies have for them."""
    from hybridsim.foundation.errors import UsageError
    from hybridsim.foundation.units import parse_percent
    from hybridsim.studies.hits import size_bytes

    try:
        share = parse_percent(probability)
    except ValueError as error:
        raise UsageError(f"--probability: {error}") from None
    return {
        "touches": touches,
        "probability_per_million": int(share * 1_000_000),
        "request_max_bytes": size_bytes(request_max),
        "seed": seed,
        "write_price_per_thousand": round(write_price * 1000),
    }


@click.command(
    epilog=examples(
        "hybridsim hits sda.blktrace.0",
        "hybridsim hits sda.blktrace.0 --cache-size 5%,10%,1MiB --replacement lru,arc,s3-fifo",
        "hybridsim hits sda.blktrace.0 --admission always,larc --replacement lru,belady --json",
        "hybridsim hits sda.blktrace.0 --cache-size 1000pages,5% --skip 20% --csv",
        "hybridsim hits sda.blktrace.0 --admission learned --replacement learned --write-budget 5%",
    )
)
@trace_options
@click.option(
    "--cache-size",
    default="10%",
    show_default=True,
    metavar="SIZES",
    help="Sizes, separated by commas: bytes (64GiB), 1000pages, or shares of the distinct pages "
    "(10%; of replay: of what is touched in pieces of 64 KiB).",
)
@click.option(
    "--replacement", default="lru", show_default=True, metavar="NAMES", help=f"{REPLACEMENTS}."
)
@click.option(
    "--admission", default="always", show_default=True, metavar="NAMES",
    help=f"{', '.join(ADMISSION)}.",
)  # fmt: skip
@click.option(
    "--sequential-cutoff",
    default="0",
    metavar="SIZE",
    help="Leave longer sequential runs to the disks; 0, the default: none.",
)
@policy_options
@click.option(
    "--write-budget",
    metavar="AMOUNT",
    help="Fill no more than 500GB/day, '1 DWPD' of the cache, or 5% of the page accesses.",
)
@click.option(
    "--skip",
    default="0",
    metavar="N|SHARE",
    help="Let the first requests fill the caches, and count from there on: 100000, or 20%.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--csv", "as_csv", is_flag=True, help="Print one line a cache.")
def hits(
    paths: tuple[str, ...],
    format: str | None,
    device: str | None,
    use_dispatch: bool,
    cache_size: str,
    replacement: str,
    admission: str,
    page: str,
    sequential_cutoff: str,
    write_budget: str | None,
    skip: str,
    as_json: bool,
    as_csv: bool,
    **said: Any,
) -> None:
    """Count what caches of each size and policy would serve of TRACE, page by page.

    Every read and write touches its pages; discards and flushes touch none.  A request is a hit if
    all its pages are.  There are no devices and no time here: a page is in the cache as soon as it
    is admitted.  `replay` tells what that means in milliseconds, and its hits are those of reads
    alone: compare them with read_request_hits and read_page_hits of --json and --csv.
    """
    from hybridsim.studies.hits import hits as count
    from hybridsim.traces.trace import Trace

    if as_json and as_csv:
        raise click.UsageError("--json or --csv: one of them")
    trace = Trace.read(paths, format, device, use_dispatch)
    found = count(
        trace,
        cache_size.split(","),
        replacement.split(","),
        admission.split(","),
        page,
        sequential_cutoff,
        write_budget,
        skip,
        **parameters(**said),
    )
    if as_csv:
        click.echo(comma_separated(found), nl=False)
    elif as_json:
        rows = [each.to_dict() for each in found]
        echo_document(SCHEMA, {"trace": trace.name, "caches": rows})
    else:
        click.echo(table(found))
        for each in found:
            if each.learning:
                click.echo(lessons(each))


def comma_separated(found: list[Hits]) -> str:
    """Return results as a table for programs: the keys of the JSON without what was learned."""
    rows = [each.to_dict() for each in found]
    text = io.StringIO()
    keys = [key for key in rows[0] if key != "learning"]
    lines = csv.DictWriter(text, keys, extrasaction="ignore", lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()


def table(found: list[Hits]) -> str:
    """Return results as text."""
    from hybridsim.foundation.units import human_count, human_size
    from hybridsim.foundation.wording import counted

    first = found[0]
    budget = first.write_budget or ""
    budget += " of the page accesses" if budget.strip().endswith("%") else ""
    lines = [
        f"{counted(first.requests, 'read or write', 'reads and writes')}: "
        f"{counted(first.page_accesses, 'access', 'accesses')} to pages of "
        f"{human_size(first.page_bytes)}.",
        "A page access is a hit or a miss; a request is a hit if all its pages are.",
        *([f"{SKIPPED} {first.skipped_requests:,}."] if first.skipped_requests else []),
        *([f"Filled once, then within {budget}."] if first.write_budget else []),
        "",
        f"{'admission':14}{'replacement':12}{'cache':>9}{'pages':>8}{'page hits':>11}"
        f"{'request hits':>14}{'admitted':>10}",
    ]
    for each in found:
        lines.append(
            f"{each.admission:14}{each.replacement:12}"
            f"{human_size(each.pages * each.page_bytes):>9}{human_count(each.pages):>8}"
            f"{each.page_hit_ratio:>11.2%}{each.request_hit_ratio:>14.2%}"
            f"{human_count(each.admitted):>10}"
        )
    return "\n".join(lines)


def lessons(each: Hits) -> str:
    """Return what a learned policy has learned, as text."""
    from hybridsim.foundation.units import human_size

    known = each.learning
    assert known is not None
    lines = [
        "",
        f"What was learned with {human_size(each.pages * each.page_bytes)}, {each.replacement}:",
        f"a page stays {known.pages_stay:,} accesses after its last; meanwhile its room is",
        f"worth {known.rent_reads:.2f} reads of the disks; a fill costs {known.price_reads:.2f}.",
        f"{'accesses':>8}{'again':>7}{'worth':>7}{'wanted':>8}  to a page",
    ]
    for one in known.lessons:
        if one.share >= LEAST_SHARE:
            lines.append(
                f"{one.share:>8.1%}{one.is_touched_again:>7.0%}{one.worth_reads:>7.2f}"
                f"{one.is_wanted:>8.0%}  {one.accesses}"
            )
    return "\n".join(lines)
