"""`hybridsim watch`: what caches would do beside a running disk, or beside a real cache."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pwd import struct_passwd
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli import arguments as args
from hybridsim.cli.prometheus import address_of, serving
from hybridsim.cli.running import note_compiling
from hybridsim.cli.trace_record import buffer_option
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_count, human_size, parse_size
from hybridsim.foundation.version import PACKAGE
from hybridsim.foundation.wording import latency, percent, span

if TYPE_CHECKING:
    from hybridsim.studies.watch.pieces import Piece
    from hybridsim.studies.watch.watching import Real, Simulated, Snapshot
    from hybridsim.traces.recording import Disk, Host
    from hybridsim.traces.recording.live import Live

SCHEMA = "hybridsim.watch/1"
KINDS = ("page", "dm-cache", "bcache", "none")
SIZES = "4GiB,16GiB,64GiB"
OF_CACHE = (  # keys of a simulated cache in JSON
    "kind", "policy", "size_bytes", "page_bytes", "hit_ratio", "hit_ratio_since_start", "mean_ns",
    "ssd_written_bytes", "disk_busy_ns",
)  # fmt: skip


def _sizes(text: str) -> list[int]:
    return [parse_size(each) for each in args.listed(text)]


@args.command(
    "sudo hybridsim watch /dev/sdb",
    "sudo hybridsim watch /dev/sdb --cache-size 64GiB,256GiB --policy lru,arc --every 1m",
    "sudo hybridsim watch /dev/sdb --cache none,dm-cache --cache-size 64GiB",
    "sudo hybridsim watch /dev/mapper/cached --state cached.npz --listen 127.0.0.1:9100",
    "cat events.txt | hybridsim watch - --cache-size 64MiB,1GiB --json",
)
def watch(
    device: str = args.argument("DEV|-"),
    cache_size: list[int] | None = args.option(
        "--cache-size SIZES",
        f"Sizes of the simulated caches, separated by commas.  Default: {SIZES}; beside a "
        "dm-cache only its own.",
        parse=_sizes,
    ),
    kinds: list[str] = args.option(
        "--cache KINDS",
        "Kinds of caches: page, and on simulated devices, with latencies: dm-cache, bcache, none "
        "(the disks alone).",
        "page",
        parse=args.listed,
    ),
    policy: list[str] = args.option(
        "--policy NAMES", "Replacement policies of page caches.", "lru", parse=args.listed
    ),
    page_bytes: int = args.option(
        "--page SIZE", "Size of a page of page caches.", "64KiB", parse=parse_size
    ),
    every_s: int = args.option(
        "--every TIME", "Interval of a line.", "10s", parse=args.whole_seconds
    ),
    limit_s: int | None = args.option(
        "--for TIME", "End after this time.  Default: Ctrl-C.", parse=args.whole_seconds
    ),
    state_file: str | None = args.option(
        "--state FILE",
        "Save the caches, and go on from FILE if it exists, also after a kill.",
    ),
    listen: str | None = args.option(
        "--listen [HOST]:PORT",
        "Also serve the figures to Prometheus, at /metrics; without HOST on 127.0.0.1 only.",
    ),
    user: str | None = args.option(
        "--user NAME",
        "Become this user once tracing is set up; root: remain root.  Default: who called sudo.",
    ),
    buffer: int = buffer_option,
    volume_bytes: int | None = args.option(
        "--volume SIZE",
        "Size of the disk, for simulated devices; only needed for a stream.",
        parse=parse_size,
    ),
    site: args.Scenario = args.machine_options(),
    as_json: bool = args.flag("--json", "Print a JSON object per line."),
) -> None:
    """Simulate caches beside the running disk DEV, and print their hit ratios.

    DEV needs root, as `trace record` does, but only until tracing is set up: then the user who
    called sudo goes on, and a child process remains root to end tracing.  - reads block events as
    text from standard input (trace_pipe, `perf script`) while they come.  Nothing is stored, and
    memory stays bounded: large page caches are scaled down to a sample of the pages.  The hit ratio
    of the last interval comes first, then that since the start; a cache is empty at the start.

    If DEV is a dm-cache or a bcache, its own counters stand beside, and a dm-cache is simulated
    with its settings.  A stream has counters where `dmsetup status` is written to `trace_marker`.
    """
    from hybridsim.studies.watch import watching as study
    from hybridsim.studies.watch.kept import Kept
    from hybridsim.studies.watch.pieces import of_disk, of_stream
    from hybridsim.traces.recording import Host, find
    from hybridsim.traces.recording.privileges import user_to_become

    if unknown := [each for each in kinds if each not in KINDS]:
        raise UsageError(f"--cache {unknown[0]}: write one or more of {', '.join(KINDS)}")
    sizes = cache_size or _sizes(SIZES)
    if page_bytes < 512 or min(sizes) < page_bytes:
        raise UsageError("--page must be at least 512 bytes, and a cache at least a page")
    if "page" in kinds:
        study.PageCaches(sizes, policy, page_bytes)  # refuses what cannot be sampled
    address = address_of(listen) if listen else None
    served: list[Snapshot | None] = [None]
    person = user_to_become(user)
    if device == "-":
        name, pieces, counters = "standard input", of_stream(sys.stdin.fileno()), None
    else:
        host = Host()
        disk = find(device, host)
        name, volume_bytes = disk.path, volume_bytes or disk.size_bytes
        counters, give_up_root = _without_root(
            person, disk, host, study.counters_of(disk, host), state_file
        )
        pieces = of_disk(
            disk, host, buffer, min(every_s, 1.0), every_s, counters,
            goes_on=state_file is not None, once_set_up=give_up_root,
        )  # fmt: skip
    server = serving(address, lambda: study.prometheus(served[0])) if address else None
    if device == "-" and person is not None:
        _become(person, state_file)

    def show(state: Snapshot) -> None:
        is_first = served[0] is None
        served[0] = state
        if as_json:
            click.echo(json.dumps({"schema": SCHEMA, **as_object(state)}))
        else:
            click.echo((head(state) + "\n" if is_first else "") + line(state))
        sys.stdout.flush()

    def caches_from(begun: Piece) -> list[Simulated]:
        """Return the caches, empty, for requests from a piece on."""
        caches: list[Simulated] = []
        real = study.settings(begun.state or kept.status())
        size = volume_bytes or 0
        if real is not None:  # as it runs
            values, size = real
            kind = site.with_options(cache=values.pop("cache.kind"))
            caches.append(study.KernelCache(kind.with_values(values), size, _origin_ns(begun)))
        if "page" in kinds and (real is None or cache_size):
            caches.append(study.PageCaches(sizes, policy, page_bytes))
        return caches + _on_devices(site, kinds, sizes, size, begun)

    try:
        kept = Kept(state_file or "")
        if device != "-":
            note_compiling()
            study.compile_for(caches_from(study.unseen(counters() if counters else "")))
        pieces, begun = _begun(pieces)
        caches = caches_from(begun) if begun is not None else []
        last = study.watch(pieces, name, caches, every_s, show, limit_s, kept)
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()
    if last is None:
        click.echo(f"no request to {name} in this time", err=True)


def _without_root(
    user: struct_passwd | None, disk: Disk, host: Host, counters: Callable[[], str] | None,
    state_file: str | None,
) -> tuple[Callable[[], str] | None, Callable[[Live], None]]:  # fmt: skip
    """Return what reads the counters, and what gives up root once tracing is set up."""
    from hybridsim.traces.recording.live import instance_of, remove
    from hybridsim.traces.recording.privileges import Keeper

    if user is None:
        return counters, lambda live: None
    instance = instance_of(disk, host)

    def end() -> str:
        remove(instance)
        return ""

    tasks = {"remove": end}
    keeper = Keeper(tasks if counters is None else tasks | {"counters": counters})

    def give_up(live: Live) -> None:
        live.hand_over(lambda: keeper.ask("remove"))
        _become(user, state_file)

    return counters and (lambda: keeper.ask("counters")), give_up


def _become(user: struct_passwd, state_file: str | None) -> None:
    """Give up root; raise UsageError if the user cannot read the program or write the state."""
    from hybridsim.studies.watch.kept import Kept
    from hybridsim.traces.recording.privileges import become

    become(user)
    if not os.access(PACKAGE / "__init__.py", os.R_OK):
        raise UsageError(
            f"{user.pw_name} cannot read the program in {PACKAGE}: install it where all can, or "
            "specify --user root"
        )
    wrong = Kept(state_file).not_usable() if state_file else None
    if wrong:
        raise UsageError(
            f"--state: {user.pw_name} cannot write {printable(wrong)}: change its owner (chown), "
            "name another file, or specify --user root"
        )


def _begun(pieces: Iterator[Piece]) -> tuple[Iterator[Piece], Piece | None]:
    """Return pieces from the first one with requests or counters on, and that one."""
    rest = itertools.dropwhile(lambda each: not (each.rows.rows or each.state), pieces)
    begun = next(rest, None)
    return itertools.chain([begun] if begun else [], rest), begun


def _origin_ns(piece: Piece) -> int:
    """Return when the watch begins: with the first request, or when the counters were read."""
    return int(min([piece.now_ns, *piece.rows.arrival_ns[:1]]))


def _on_devices(
    site: args.Scenario, kinds: Sequence[str], sizes: Sequence[int], volume_bytes: int, begun: Piece
) -> list[Simulated]:
    """Return the caches that are simulated with their devices."""
    from hybridsim.studies.watch.watching import KernelCache

    wanted = [each for each in kinds if each != "page"]
    if wanted and not volume_bytes:
        raise UsageError("the size of the disk is not in a stream: specify --volume SIZE")
    out: list[Simulated] = []
    for kind in wanted:
        for size in sizes if kind != "none" else sizes[:1]:
            one = site if kind == site.cache.kind else site.with_options(cache=kind)
            if kind != "none":
                one = one.with_options(cache_size=f"{size}B")
            out.append(KernelCache(one, volume_bytes, _origin_ns(begun)))
    return out


def head(state: Snapshot) -> str:
    """Return the heads of the columns."""
    share = "" if state.rate == 1 else f"; simulated on a sample of {percent(state.rate)} of pages"
    return (
        f"hits of caches beside {state.device}: in the interval, (since the start){share}\n"
        + "".join(f"{title:>{width}}" for width, title, _ in _columns(state))
    )


def line(state: Snapshot) -> str:
    """Return a state as a line."""
    cells = "".join(f"{cell:>{width}}" for width, _, cell in _columns(state))
    return cells + (f"  dropped {state.lost:,} events" if state.lost else "")


def _columns(state: Snapshot) -> Iterator[tuple[int, str, str]]:
    """Yield the width, the head and the value of each column."""
    recent = state.recent
    yield 8, "time", span(round(state.seconds) * 10**9)
    yield 12, "requests/s", human_count(recent.requests / max(state.interval_s, 1e-9))
    yield 9, "mean", latency(recent.mean_latency_ns)
    yield 9, "p99", latency(recent.percentile(99))
    if state.real:
        yield 18, f"real {state.real.kind}", _ratios(state.real)
    for each in state.shadows:
        title, mean = f"{each.name} {human_size(each.size_bytes)}", latency(each.mean_ns)
        if each.kind == "page":
            yield 18, title, _ratios(each)
        elif each.kind == "none":
            yield 26, "no cache", mean
        else:
            yield 26, title, f"{_ratios(each)} {mean}"


def _ratios(each: Real) -> str:
    return f"{percent(each.hit_ratio)} ({percent(each.hit_ratio_since_start)})"


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
        "caches": [{key: getattr(each, key) for key in OF_CACHE} for each in state.shadows],
        "real": state.real and state.real.to_dict(),
    }
