"""`hybridsim why`: why was a page admitted to the cache, or rejected?"""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.hits import page_option, price_option
from hybridsim.show.page import is_ascii

SCHEMA = "hybridsim.why/1"


@args.command(
    "hybridsim why sda.blktrace.0",
    "hybridsim why sda.blktrace.0 --at 0 --cache-size 5% --write-price 1",
    "hybridsim why traces/demo/rocksdb_mixgraph.blktrace.0.zst --json",
)
def why(
    chosen: args.Chosen = args.trace_options,
    offsets: tuple[str, ...] = args.option(
        "--at OFFSET",
        "Offset of the page: 12.5GiB, or bytes; repeatable.  Default: the most accessed page.",
        multiple=True,
    ),
    cache_size: str = args.option(
        "--cache-size SIZE",
        "Cache size: bytes (64GiB), or a share of the distinct pages (10%).",
        "10%",
    ),
    page: str = page_option("64KiB"),
    sequential_cutoff: str = args.option(
        "--sequential-cutoff SIZE",
        "Do not cache sequential runs beyond this length; 0: no cutoff.",
        "1MiB",
    ),
    write_price: float = price_option(),
    as_json: bool = args.json_option,
) -> None:
    """Explain why the learned policy admitted a page of TRACE to the cache, or rejected it.

    Prints how much saving the policy required to admit a page, over the trace; then each access to
    the page: the number of other accesses since the last one, the estimated chance that the page
    is used again before its eviction, the expected saving, and the decision.  As in `hits`, no
    devices and no time are simulated.
    """

    from hybridsim.show.why import text
    from hybridsim.studies.why import why as explained

    trace = chosen.read()
    answer = explained(trace, offsets, cache_size, page, sequential_cutoff, write_price)
    if as_json:
        args.echo_document(SCHEMA, {"trace": trace.name, **asdict(answer)})
    else:
        click.echo(text(answer, is_ascii(sys.stdout)), nl=False)
