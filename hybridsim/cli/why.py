"""`hybridsim why`: why was a page admitted to the cache, or rejected?"""

from __future__ import annotations

import click

from hybridsim.cli.hits import page_option
from hybridsim.cli.json_output import echo_document
from hybridsim.cli.trace_arguments import Chosen, examples, trace_options

SCHEMA = "hybridsim.why/1"


@click.command(
    epilog=examples(
        "hybridsim why sda.blktrace.0",
        "hybridsim why sda.blktrace.0 --at 0 --cache-size 5% --write-price 1",
        "hybridsim why traces/demo/rocksdb_mixgraph.blktrace.0.zst --json",
    )
)
@trace_options
@click.option(
    "--at",
    "offsets",
    multiple=True,
    metavar="OFFSET",
    help="Offset of the page: 12.5GiB, or bytes; repeatable.  Default: the most accessed page.",
)
@click.option(
    "--cache-size",
    default="10%",
    show_default=True,
    metavar="SIZE",
    help="Cache size: bytes (64GiB), or a share of the distinct pages (10%).",
)
@page_option("64KiB")
@click.option(
    "--sequential-cutoff",
    default="1MiB",
    show_default=True,
    metavar="SIZE",
    help="Do not cache sequential runs beyond this length; 0: no cutoff.",
)
@click.option(
    "--write-price",
    type=click.FloatRange(0, 1000),
    default=0.5,
    show_default=True,
    help="Cost of a fill of 64 KiB, in disk reads.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(
    chosen: Chosen,
    offsets: tuple[str, ...],
    cache_size: str,
    page: str,
    sequential_cutoff: str,
    write_price: float,
    as_json: bool,
) -> None:
    """Explain why the learned policy admitted a page of TRACE to the cache, or rejected it.

    Prints how much saving the policy required to admit a page, over the trace; then each access to
    the page: the number of other accesses since the last one, the estimated chance that the page
    is used again before its eviction, the expected saving, and the decision.  As in `hits`, no
    devices and no time are simulated.
    """
    import sys

    from hybridsim.show.page import is_ascii
    from hybridsim.show.why import text
    from hybridsim.studies.why import why as explained

    trace = chosen.read()
    answer = explained(trace, offsets, cache_size, page, sequential_cutoff, write_price)
    if as_json:
        echo_document(SCHEMA, {"trace": trace.name, **answer.to_dict()})
    else:
        click.echo(text(answer, is_ascii(sys.stdout)), nl=False)
