"""`hybridsim hits`: the hit ratios of cache sizes and policies on a trace."""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from hybridsim.caches.policies import ADMISSION, OFFLINE, REPLACEMENT
from hybridsim.cli import arguments as args
from hybridsim.foundation.cache_parameters import WRITE_PRICE
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_count, human_size, parse_percent, parse_size
from hybridsim.foundation.wording import counted, percent
from hybridsim.show.page import WIDEST, columns
from hybridsim.show.page import table as aligned

if TYPE_CHECKING:
    from hybridsim.studies.hits import Hits

SCHEMA = "hybridsim.hits/1"
SECTOR_BYTES = 512
SHARE_MIN = 0.005  # of the accesses, to be reported
SAMPLED = "A sample of {} of the regions: counts are estimates; ± is the 95% interval."
SKIPPED = "Requests before these, which filled the caches and are not counted:"
HEADS = ("cache", "pages", "page hits", "request hits", "admitted")
REPLACEMENTS = ", ".join([*REPLACEMENT, *OFFLINE])


def page_option(default: str) -> Any:
    """Return the option for the size of a cache page."""
    text = "Size of a cache page; the default of replay, size and advise is 64KiB."
    return args.option("--page SIZE", text, default, parse=_page)


def _page(value: str) -> str:
    """Return the page size; raise UsageError unless it is a multiple of a sector."""
    from hybridsim.studies.hits import size_bytes

    page_bytes = size_bytes(value)
    if page_bytes < SECTOR_BYTES or page_bytes % SECTOR_BYTES:
        raise UsageError(f"--page {value}: must be a multiple of {SECTOR_BYTES} bytes")
    return value


def price_option(more: str = "", parse: Callable[[float], Any] | None = None) -> Any:
    """Return the option for the price of a write of the learned policy."""
    text = f"Cost of a fill of 64 KiB, in disk reads{more}."
    return args.option(
        "--write-price", text, WRITE_PRICE, type=click.FloatRange(0, 1000), parse=parse
    )


policy_options = args.joined(
    dict,
    touches=args.option(
        "--touches",
        "Number of touches after which --admission touches admits a page.",
        2,
        type=click.IntRange(1, 255),
    ),
    probability_per_million=args.option(
        "--probability SHARE",
        "Share of misses that --admission probabilistic admits.",
        "10%",
        parse=lambda share: int(parse_percent(share) * 1_000_000),
    ),
    request_max_bytes=args.option(
        "--request-max SIZE",
        "Largest request that --admission request-size admits.",
        "64KiB",
        parse=parse_size,
    ),
    seed=args.option(
        "--seed", "Random seed of --admission probabilistic.", 1, show_default=False, type=int
    ),
    write_price_per_thousand=price_option(" (policy learned)", lambda price: round(price * 1000)),
)


@args.command(
    "hybridsim hits sda.blktrace.0",
    "hybridsim hits sda.blktrace.0 --cache-size 5%,10%,1MiB --replacement lru,arc,s3-fifo",
    "hybridsim hits sda.blktrace.0 --admission always,larc --replacement lru,belady --json",
    "hybridsim hits sda.blktrace.0 --cache-size 1000pages,5% --skip 20% --csv",
    "hybridsim hits sda.blktrace.0 --ram 8GiB,16GiB",
    "hybridsim hits sda.blktrace.0 --admission learned --replacement learned --write-budget 5%",
)
def hits(
    chosen: args.Chosen = args.trace_options,
    cache_size: list[str] = args.option(
        "--cache-size SIZES",
        "Cache sizes, separated by commas: bytes (64GiB), 1000pages, or shares of the distinct "
        "pages (10%; replay counts them in units of 64 KiB).",
        "10%",
        parse=args.listed,
    ),
    replacement: list[str] = args.option(
        "--replacement NAMES", f"Replacement policies: {REPLACEMENTS}.", "lru", parse=args.listed
    ),
    admission: list[str] = args.option(
        "--admission NAMES",
        f"Admission policies: {', '.join(ADMISSION)}.",
        "always",
        parse=args.listed,
    ),
    sequential_cutoff: str = args.option(
        "--sequential-cutoff SIZE",
        "Do not cache sequential runs beyond this length; 0: no cutoff.",
        "0",
    ),
    page: str = page_option("4KiB"),
    policy: dict[str, int] = policy_options,
    write_budget: str | None = args.option(
        "--write-budget AMOUNT",
        "Limit of fills: 500GB/day, '1 DWPD' of the cache, or 5% of the page accesses.",
    ),
    skip: str = args.option(
        "--skip N|SHARE",
        "Do not count the first requests, which fill the caches: 100000, or 20%.",
        "0",
        show_default=False,
    ),
    ram: list[str] | None = args.option(
        "--ram SIZES",
        "Also print how many of these reads a larger page cache would have served: by 8GiB,16GiB.",
        parse=args.listed,
    ),
    as_json: bool = args.json_option,
    as_csv: bool = args.flag("--csv", "Print CSV, one line per cache."),
) -> None:
    """Count the hits of TRACE in caches of each size and policy, page by page.

    Every read and write touches its pages; discards and flushes touch none.  A request is a hit if
    all its pages are hits.  No devices and no time are simulated: a page is cached as soon as it is
    admitted.  `replay` reports latencies, and counts hits of reads only: its hits are
    comparable with read_request_hits and read_page_hits of --json and --csv.
    """
    from hybridsim.studies.hits import hits as count
    from hybridsim.studies.hits import more_ram

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other: specify one of them")
    trace = chosen.read()
    results = count(
        trace,
        cache_size,
        replacement,
        admission,
        page,
        sequential_cutoff,
        write_budget,
        skip,
        **policy,
    )
    larger = more_ram(trace, ram) if ram else []
    if as_csv:
        click.echo(comma_separated(results), nl=False)
    elif as_json:
        ram_rows = [
            {
                "size_bytes": each.pages * each.page_bytes,
                "reads": each.read_requests,
                "served_at_least": each.read_request_hits,
            }
            for each in larger
        ]
        rows = [each.to_dict() for each in results]
        args.echo_document(SCHEMA, {"trace": trace.name, "caches": rows, "ram": ram_rows})
    else:
        click.echo(table(results))
        if larger:
            click.echo(in_ram(larger))
        for each in results:
            if each.learning:
                click.echo(lessons(each))


def comma_separated(results: list[Hits]) -> str:
    """Return results as CSV: the keys of the JSON except `learning`."""
    rows = [each.to_dict() for each in results]
    text = io.StringIO()
    keys = [key for key in rows[0] if key != "learning"]
    lines = csv.DictWriter(text, keys, extrasaction="ignore", lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows)
    return text.getvalue()


def table(results: list[Hits]) -> str:
    """Return results as a table of text."""
    first = results[0]
    budget = first.write_budget or ""
    budget += " of the page accesses" if budget.strip().endswith("%") else ""
    about = [
        f"{counted(first.requests, 'read or write', 'reads and writes')}: "
        f"{counted(first.page_accesses, 'access', 'accesses')} to pages of "
        f"{human_size(first.page_bytes)}.",
        "A page access is a hit or a miss; a request is a hit if all its pages are hits.",
        *([SAMPLED.format(percent(first.rate))] if first.rate < 1 else []),
        *([f"{SKIPPED} {first.skipped_requests:,}."] if first.skipped_requests else []),
        *([f"Fills: the whole cache once, then at most {budget}."] if first.write_budget else []),
    ]
    longest = max(len("replacement"), *(len(each.replacement) for each in results))
    second = "replacement".ljust(longest)
    heads = ["admission", second, *HEADS, *(["page hits"] if first.rate < 1 else [])]
    rows = [[each.admission, each.replacement.ljust(longest), *_figures(each)] for each in results]
    if columns() < WIDEST:
        heads = ["policies", *heads[2:]]
        rows = [[", ".join(row[:2]).rstrip(), *row[2:]] for row in rows]
        about = [part for line in about for part in textwrap.wrap(line, columns())]
    return "\n".join([*about, "", *aligned(heads, rows)])


def _figures(each: Hits) -> list[str]:
    error = [f"±{each.page_hit_error:.2%}"] if each.rate < 1 else []
    return [
        human_size(each.pages * each.page_bytes), human_count(each.pages),
        f"{each.page_hit_ratio:.2%}", f"{each.request_hit_ratio:.2%}", human_count(each.admitted),
        *error,
    ]  # fmt: skip


def in_ram(larger: list[Hits]) -> str:
    """Return the lower bounds of larger page caches as text."""
    if not larger[0].read_requests:
        return "\nMore RAM: there are no reads that it could serve."
    lines = ["", "More RAM instead of an SSD, a lower bound:"]
    for each in larger:
        share = each.read_request_hits / each.read_requests
        lines.append(
            f"a page cache larger by {human_size(each.pages * each.page_bytes)} serves at least "
            f"{share:.1%} of these reads"
        )
    return "\n".join(lines)


def lessons(each: Hits) -> str:
    """Return the lessons of a learned policy as text."""
    learning = each.learning
    assert learning is not None
    lines = [
        "",
        f"Policy learned, cache of {human_size(each.pages * each.page_bytes)}, {each.replacement}:",
        f"a page stays {learning.pages_stay:,} accesses after its last use; its space costs",
        f"{learning.rent_reads:.2f} disk reads in that time; "
        f"a fill costs {learning.price_reads:.2f}.",
        f"{'accesses':>8}{'again':>7}{'worth':>7}{'wanted':>8}  kind of access",
    ]
    for one in learning.lessons:
        if one.share >= SHARE_MIN:
            lines.append(
                f"{one.share:>8.1%}{one.is_touched_again:>7.0%}{one.worth_reads:>7.2f}"
                f"{one.is_wanted:>8.0%}  {one.accesses}"
            )
    lines.append("again: used before its eviction; worth: disk reads saved; wanted: worth a fill")
    return "\n".join(lines)
