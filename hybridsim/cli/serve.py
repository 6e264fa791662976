"""`hybridsim serve`: a cache on a real SSD, as a block device over NBD."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybridsim.cli import arguments as args
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import counted, percent

if TYPE_CHECKING:
    from hybridsim.studies.serve import Ready

MODES = ("read-only", "write-around", "write-through")
STATE = "~/.local/state/hybridsim/serve"


@args.command(
    "sudo hybridsim serve --slow /dev/sdb --fast /dev/nvme0n1p3 --state /var/lib/hybridsim",
    "sudo hybridsim serve --slow /dev/sdb --fast /dev/nvme0n1p3 --policy larc+arc --page 16KiB",
    "sudo hybridsim serve --slow /dev/sdb --fast /dev/nvme0n1p3 --port 10809 "
    "--listen 127.0.0.1:9101",
    "sudo hybridsim serve --slow nbd://storage:10809/volume --fast /dev/nvme0n1p3",
)
def serve(
    devices: dict[str, Any] = args.joined(
        dict,
        slow=args.option(
            "--slow DEV", "The disk, array, file or NBD export that has the data.", required=True
        ),
        fast=args.option(
            "--fast DEV", "The SSD, partition, file or NBD export for copies.", required=True
        ),
    ),
    policy: str = args.option(
        "--policy NAME",
        "Admission+replacement, or one name: learned, larc, lru, larc+arc.",
        "learned",
    ),
    mode: str = args.option(
        "--mode",
        "What a write does to copies; the disk has it before the answer.",
        "write-through",
        type=args.CacheMode(MODES),
    ),
    page: str = args.option("--page SIZE", "Size of a cached page.", "64KiB"),
    socket_path: str | None = args.option(
        "--socket PATH", "Unix socket for the clients.  Default: hybridsim.sock."
    ),
    port: int | None = args.option(
        "--port", "TCP port on 127.0.0.1 instead.", type=click.IntRange(0, 65535)
    ),
    state: str = args.option(
        "--state FOLDER", "Folder that keeps the list of cached pages over a restart.", STATE
    ),
    how: dict[str, Any] = args.joined(
        dict,
        erase=args.option("--erase DEV", "Name --fast again: what is on it may be overwritten."),
        threads=args.option(
            "--threads",
            "Reads and writes of both devices at a time.",
            16,
            type=click.IntRange(1, 256),
        ),
        direct=args.flag("--direct", "Files past the kernel's page cache, as devices."),
        apart=args.flag(
            "--apart",
            "Send the data of a read after its head: for QEMU 7.2, which delays it otherwise.",
        ),
        record=args.option("--record FILE", "Write the requests as CSV, for replay and hits."),
        json_file=args.option(
            "--json FILE", "Write the figures, each --every and at the end; compare reads it."
        ),
        every_s=args.option("--every TIME", "Interval of --json.", "10s", parse=args.whole_seconds),
    ),
    listen: str | None = args.option(
        "--listen [HOST]:PORT",
        "Serve the figures to Prometheus, at /metrics; without HOST on 127.0.0.1 only.",
    ),
    settings: tuple[str, ...] = args.set_option,
) -> int:
    """Serve the data of --slow over NBD, with copies on --fast that a policy chooses.

    The policies and the page cache are those of the simulation.  Every write is on --slow before it
    is answered, and a flush is one of --slow: --fast can fail, or be lost, at any time.  The cache
    starts empty unless it was closed in order (Ctrl-C, SIGTERM) and nobody has written to --slow
    since.  Neither device may be in use; a --fast that holds other data is refused.  See
    docs/how-to/serve.md for clients.
    """

    from hybridsim.cli.prometheus import address_of, serving
    from hybridsim.studies.serve import Setting, run
    from hybridsim.traces.recording.privileges import on_signals

    if socket_path and port is not None:
        raise UsageError("--socket and --port exclude each other: specify one of them")
    address = address_of(listen) if listen else None
    words = [f"cache.policy={policy}", f"cache.mode={mode}", f"cache.page={page}", *settings]
    socket = None if port is not None else Path(socket_path or "hybridsim.sock").absolute()
    setting = Setting(
        **devices, site=args.machine(None, words), state=Path(state).expanduser(), socket=socket,
        port=port, **how,
    )  # fmt: skip

    def show(ready: Ready) -> None:
        if address:
            serving(address, ready.figures.prometheus)
        click.echo(beginning(ready))

    with on_signals() as stop:
        ready = run(setting, stop, show)
    click.echo(ending(ready))
    return 0


def beginning(ready: Ready) -> str:
    """Return the lines of the start."""
    lines = [
        f"serving {human_size(ready.volume_bytes)} with a cache of "
        f"{human_size(ready.cache_bytes)} at {ready.uri}"
    ]
    if ready.why_empty:
        lines.append(f"the cache starts empty: {ready.why_empty}")
    else:
        lines.append(f"the cache starts with {counted(ready.pages_warm, 'page')} of the last time")
    if ready.fill == "re-read":
        lines.append(
            "each fill reads its page from the disks once more; --set cache.fill=piggyback reads "
            "it with the miss (in eight real loads 5 to 20 % more requests a second)"
        )
    return "\n".join(lines)


def ending(ready: Ready) -> str:
    """Return the lines of the end."""
    figures = ready.figures
    reads, writes = figures.requests[:2]
    lines = [
        f"served {counted(reads, 'read')} and {counted(writes, 'write')}"
        + (f", {percent(figures.read_hits / reads)} of the reads from the SSD" if reads else "")
    ]
    if figures.fast_errors or figures.slow_errors:
        lines.append(f"errors: {figures.fast_errors} of the SSD, {figures.slow_errors} of the disk")
    if figures.is_detached:
        lines.append(f"the SSD was no longer used: {figures.detached_because}")
    if not ready.is_closed:
        lines.append("the next start will be empty")
    return "\n".join(lines)
