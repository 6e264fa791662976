"""`hybridsim watch`: the hit ratios of caches that a running disk does not have."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli.prometheus import serving
from hybridsim.cli.trace_arguments import examples

if TYPE_CHECKING:
    from hybridsim.studies.watch import Snapshot

SCHEMA = "hybridsim.watch/1"


@click.command(
    epilog=examples(
        "sudo hybridsim watch /dev/sdb",
        "sudo hybridsim watch /dev/sdb --cache-size 64GiB,256GiB --policy lru,arc --every 1m",
        "sudo hybridsim watch /dev/sdb --listen 127.0.0.1:9100",
        "cat events.txt | hybridsim watch - --cache-size 64MiB,1GiB --json",
    )
)
@click.argument("device", metavar="DEV|-")
@click.option(
    "--cache-size",
    default="4GiB,16GiB,64GiB",
    show_default=True,
    metavar="SIZES",
    help="Sizes of the simulated caches, separated by commas.",
)
@click.option(
    "--policy", default="lru", show_default=True, metavar="NAMES", help="Replacement policies."
)
@click.option("--page", default="64KiB", show_default=True, metavar="SIZE", help="Size of a page.")
@click.option(
    "--every", default="10s", show_default=True, metavar="TIME", help="Interval of a line."
)
@click.option("--for", "duration", metavar="TIME", help="End after this time.  Default: Ctrl-C.")
@click.option(
    "--listen",
    metavar="[HOST]:PORT",
    help="Also serve the figures to Prometheus, at /metrics; without HOST on 127.0.0.1 only.",
)
@click.option(
    "--buffer", default="4MiB", show_default=True, metavar="SIZE",
    help="Size of the trace buffer of each CPU.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def watch(
    device: str,
    cache_size: str,
    policy: str,
    page: str,
    every: str,
    duration: str | None,
    listen: str | None,
    buffer: str,
    as_json: bool,
) -> None:
    """Simulate caches beside the running disk DEV, and print their hit ratios.

    DEV needs root, as `trace record` does; - reads block events as text from standard input
    (trace_pipe, `perf script`) while they come.  Nothing is stored, and memory stays bounded:
    large caches are scaled down to a sample of the pages.  The hit ratio of the last interval comes
    first, then that since the start; a cache is empty at the start.
    """
    from hybridsim.cli.trace_record import bytes_of, seconds_of
    from hybridsim.foundation.errors import UsageError
    from hybridsim.studies import watch as study
    from hybridsim.traces.recording.disk import Host, find

    page_bytes = bytes_of(page, "--page")
    sizes = [bytes_of(each, "--cache-size") for each in cache_size.split(",")]
    if page_bytes < 512 or min(sizes) < page_bytes:
        raise UsageError("--page must be at least 512 bytes, and a cache at least a page")
    shadows = study.Shadows(sizes, policy.split(","), page_bytes)
    every_s = seconds_of(every, "--every")
    limit_s = seconds_of(duration, "--for") if duration else None
    served: list[Snapshot | None] = [None]
    server = serving(listen, lambda: study.prometheus(served[0])) if listen else None
    if device == "-":
        name, batches = "standard input", study.of_stream(sys.stdin.fileno())
    else:
        disk = find(device, Host())
        name = disk.path
        batches = study.of_disk(disk, Host(), bytes_of(buffer), min(every_s, 1.0))
    first = True

    def show(state: Snapshot) -> None:
        nonlocal first
        served[0] = state
        if as_json:
            click.echo(json.dumps({"schema": SCHEMA, **as_object(state)}))
        else:
            click.echo((head(state) + "\n" if first else "") + line(state))
        first = False
        sys.stdout.flush()

    try:
        last = study.watch(batches, name, shadows, every_s, show, limit_s)
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()
    if last is None:
        click.echo(f"no request to {name} in this time", err=True)


def head(state: Snapshot) -> str:
    """Return the heads of the columns."""
    from hybridsim.foundation.units import human_size
    from hybridsim.foundation.wording import percent

    names = "".join(
        f"{each.policy + ' ' + human_size(each.size_bytes):>18}" for each in state.shadows
    )
    share = "" if state.rate == 1 else f"; simulated on a sample of {percent(state.rate)} of pages"
    return (
        f"page hits of caches beside {state.device}: in the interval, (since the start){share}\n"
        f"{'time':>8}{'requests/s':>12}{'mean':>9}{'p99':>9}{names}"
    )


def line(state: Snapshot) -> str:
    """Return a state as a line."""
    from hybridsim.foundation.units import human_count
    from hybridsim.foundation.wording import latency, percent, span

    cells = "".join(
        f"{f'{percent(each.recent)} ({percent(each.ratio)})':>18}" for each in state.shadows
    )
    rate = human_count(state.recent.requests / max(state.interval_s, 1e-9))
    return (
        f"{span(round(state.seconds) * 10**9):>8}{rate:>12}"
        f"{latency(state.recent.mean_latency_ns):>9}{latency(state.recent.percentile(99)):>9}{cells}"
        + (f"  dropped {state.lost:,} events" if state.lost else "")
    )


def as_object(state: Snapshot) -> dict[str, Any]:
    """Return a state as a JSON object."""
    return {
        "device": state.device,
        "seconds": state.seconds,
        "interval_s": state.interval_s,
        "requests": state.recent.requests,
        "mean_ns": state.recent.mean_latency_ns,
        "p99_ns": state.recent.percentile(99),
        "dropped_events": state.lost,
        "rate": state.rate,
        "page_bytes": state.page_bytes,
        "caches": [
            {
                "policy": each.policy,
                "size_bytes": each.size_bytes,
                "hit_ratio": each.recent,
                "hit_ratio_since_start": each.ratio,
            }
            for each in state.shadows
        ],
    }
