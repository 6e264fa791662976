"""`validate build`: two devices or new files, and a cache of them for the time of a test."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from validate.errors import ExperimentError

EPILOG = """\
Examples:
  python -m validate build hot.toml --slow /dev/sdb --fast /dev/nvme1n1 --dry-run
  sudo python3 -m validate build hot.toml --slow /dev/sdb --fast /dev/nvme1n1 \\
       --erase /dev/sdb --erase /dev/nvme1n1 -o results/hot
  sudo python3 -m validate build hot.toml --slow /hdd/slow.img --fast /ssd/fast.img -o results/hot
  sudo python3 -m validate build raid.toml --slow /dev/sdb --slow /dev/sdc --slow /dev/sdd \\
       --fast /dev/nvme1n1 --erase /dev/sdb --erase ...

A device must be empty: zeros at both ends and where it is sampled between, no file system,
partitions, RAID, LVM or swap, not in use.  Its ends are zeros again afterwards.  A file must not
exist: it is made, sparse, and removed.
"""


def add_arguments(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "build",
        help="Build a cache on two devices, run fio on it, remove it.",
        description="Build a cache on two devices or new files, run fio on it, remove it all.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_shared(parser)
    parser.add_argument(
        "--slow", action="append", required=True, metavar="DEV",
        help="the slow device, or a new file; repeat it for a RAID",
    )  # fmt: skip
    parser.add_argument("--fast", metavar="DEV", help="the fast device, or a new file")
    parser.add_argument(
        "--erase", action="append", default=[], metavar="DEV",
        help="name each device again: all that is on it will be lost",
    )  # fmt: skip


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Add what `build` and `attach` share."""
    parser.add_argument("experiment", metavar="TOML", help="an experiment; see validate/examples")
    parser.add_argument("-o", "--out", metavar="DIR", help="the result folder [results/NAME]")
    parser.add_argument("-n", "--dry-run", action="store_true", help="show the plan, do nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before it begins")
    add_state(parser)


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add where runs note what they do."""
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="where runs note what they do [/var/lib/hybridsim-validate]",
    )


def system_of(args: argparse.Namespace) -> Any:
    """Return the machine."""
    from pathlib import Path

    from validate.system import System

    return System(state=Path(args.state)) if args.state else System()


def clear_leftovers(args: argparse.Namespace, system: Any) -> None:
    """Undo what a killed run left, and say so: its devices would count as in use."""
    from validate import journal, site
    from validate.progress import to_stderr

    if system.uid != 0 or args.dry_run:
        return
    with journal.alone(system):
        for each in site.clean(system):
            to_stderr(f"left by a run that was killed: {each}")


def agree(args: argparse.Namespace, question: str) -> None:
    """Ask, unless told not to.  Raises ExperimentError where nobody agrees."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise ExperimentError("nobody is there to be asked: add --yes if the plan is right")
    print(f"{question} Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise ExperimentError("not begun; nothing was done")


def run(args: argparse.Namespace) -> int:
    """Show the plan, ask, and do it."""
    from validate import building, devices, experiment
    from validate import request as requests
    from validate.progress import to_stderr

    system, said = system_of(args), experiment.load(args.experiment)
    clear_leftovers(args, system)
    request = requests.BuildRequest(said, args.slow, args.fast, args.erase, args.out, system)
    try:
        notes = requests.check(request)  # and claim
        print(requests.shown(request, notes), file=sys.stderr)
        if args.dry_run:
            return 0
        requests.ready(request)
        agree(args, "Begin?")
        folder = building.build(request, to_stderr)
    finally:
        devices.let_go(system)
    print(f"results: {folder}")
    return 0
