"""`validate attach`: run fio on an existing cache."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from validate.commands.build import add_shared, agree, clear_leftovers, system_of

EPILOG = """\
Examples:
  sudo python3 -m validate attach hot.toml --device /dev/bcache0 --dry-run
  sudo python3 -m validate attach hot.toml --device /dev/bcache0 -o results/mine
  sudo python3 -m validate attach hot.toml --device /dev/mapper/vg-data --in-use -o results/mine

Only the kind in [cache] is checked; the other settings are read from the cache.  During a load that
only reads, the device is set read-only in the kernel.  A load that writes needs an empty device,
named again with --erase DEV.
"""


def add_arguments(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "attach",
        help="Run fio on a cache that exists; reads only by default.",
        description="Run fio on an existing cache (bcache, dm-cache, dm-writecache, Open CAS) and "
        "sample it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_shared(parser)
    parser.add_argument("--device", required=True, metavar="DEV", help="the cached device")
    parser.add_argument(
        "--in-use", action="store_true", help="read the device although it is mounted or open"
    )
    parser.add_argument(
        "--erase", action="append", default=[], metavar="DEV",
        help="name the device again if the load writes: all data on it will be lost",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Show the plan, ask for consent, and measure."""
    from validate import attaching, devices, experiment
    from validate.progress import to_stderr

    system = system_of(args)
    specified = experiment.with_programs(experiment.load(args.experiment), args.open_cas)
    clear_leftovers(args, system)
    request = attaching.AttachRequest(
        specified, args.device, args.erase, args.in_use, args.out, system
    )
    try:
        attached, is_used, notes = attaching.check(request)  # claims it if the load writes
        print(attaching.shown(request, attached, is_used, notes), file=sys.stderr)
        if args.dry_run:
            return 0
        attaching.ready(request)
        agree(args, "Begin?")
        folder = attaching.attach(request, attached, is_used, to_stderr)
    finally:
        devices.release_claim(system)
    print(f"results: {folder}")
    return 0
