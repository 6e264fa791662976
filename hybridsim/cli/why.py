"""`hybridsim why`: why was a page let into the cache, or not?"""

from __future__ import annotations

import click

from hybridsim.cli.hits import page_option
from hybridsim.cli.json_output import echo_document
from hybridsim.cli.trace_arguments import examples, trace_options

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
    help="Where the page lies: 12.5GiB, or bytes; may be said again.  Default: the busiest page.",
)
@click.option(
    "--cache-size",
    default="10%",
    show_default=True,
    metavar="SIZE",
    help="Bytes (64GiB), or a share of the distinct pages (10%).",
)
@page_option("64KiB")
@click.option(
    "--sequential-cutoff",
    default="1MiB",
    show_default=True,
    metavar="SIZE",
    help="Leave longer sequential runs to the disks; 0: none.",
)
@click.option(
    "--write-price",
    type=click.FloatRange(0, 1000),
    default=0.5,
    show_default=True,
    help="What a fill of 64 KiB costs, in reads of the disks.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(
    paths: tuple[str, ...],
    format: str | None,
    device: str | None,
    use_dispatch: bool,
    offsets: tuple[str, ...],
    cache_size: str,
    page: str,
    sequential_cutoff: str,
    write_price: float,
    as_json: bool,
) -> None:
    """Say why the learned policy let a page of TRACE into the cache, or left it out.

    First how high the threshold stood over the trace, then each access to the page: how often it
    was accessed, after how many other accesses, how likely it then seemed to come again in time,
    what that is worth, and what was decided.  As in `hits` there are no devices and no time here.
    """
    import sys

    from hybridsim.show.page import is_ascii
    from hybridsim.show.why import text
    from hybridsim.studies.why import why as weighed
    from hybridsim.traces.trace import Trace

    trace = Trace.read(paths, format, device, use_dispatch)
    found = weighed(trace, offsets, cache_size, page, sequential_cutoff, write_price)
    if as_json:
        echo_document(SCHEMA, {"trace": trace.name, **found.to_dict()})
    else:
        click.echo(text(found, is_ascii(sys.stdout)), nl=False)
