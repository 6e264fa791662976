"""`validate attach`: fio on a cache that exists."""

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

Of [cache] only its kind is asked: the rest is what is there.  A load that only reads is run with
the kernel refusing writes to the device.  One that writes needs a device that holds nothing, and
its name again: --erase DEV.
"""


def add_arguments(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "attach",
        help="Run fio on a cache that exists; reads only by default.",
        description="Run fio on a cache that exists (bcache, dm-cache, lvmcache), and collect.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_shared(parser)
    parser.add_argument("--device", required=True, metavar="DEV", help="the cached device")
    parser.add_argument(
        "--in-use", action="store_true", help="read it though it is mounted or open elsewhere"
    )
    parser.add_argument(
        "--erase", action="append", default=[], metavar="DEV",
        help="name it again, if the load writes: all that is on it will be lost",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Show the plan, ask, and do it."""
    from validate import attaching, devices, experiment
    from validate.progress import to_stderr

    system, said = system_of(args), experiment.load(args.experiment)
    clear_leftovers(args, system)
    request = attaching.AttachRequest(said, args.device, args.erase, args.in_use, args.out, system)
    try:
        found, is_used, notes = attaching.check(request)  # and claim, if it is to be written to
        print(attaching.shown(request, found, is_used, notes), file=sys.stderr)
        if args.dry_run:
            return 0
        attaching.ready(request)
        agree(args, "Begin?")
        folder = attaching.attach(request, found, is_used, to_stderr)
    finally:
        devices.let_go(system)
    print(f"results: {folder}")
    return 0
