"""`validate build`: build a cache on two devices or new files, for one test."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
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

A device must be unused and empty: no file system, partitions, RAID, LVM or swap, and zeros at both
ends and at all sampled places between.  Its ends are zeroed again afterwards.  A file must not
exist: it is created sparse, and removed afterwards.
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
        help="the slow device, or a new file; repeat for a RAID",
    )  # fmt: skip
    parser.add_argument("--fast", metavar="DEV", help="the fast device, or a new file")
    parser.add_argument(
        "--erase", action="append", default=[], metavar="DEV",
        help="name each device again: all data on it will be lost",
    )  # fmt: skip


def add_shared(parser: argparse.ArgumentParser) -> None:
    """Add the options that `build` and `attach` share."""
    parser.add_argument("experiment", metavar="TOML", help="the experiment; see validate/examples")
    parser.add_argument("-o", "--out", metavar="DIR", help="the result folder [results/NAME]")
    parser.add_argument(
        "--open-cas", type=Path, metavar="DIR",
        help="folder of casadm and Open CAS's modules [the experiment's, else those installed]",
    )  # fmt: skip
    parser.add_argument("-n", "--dry-run", action="store_true", help="show the plan, do nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for consent")
    add_state(parser)


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add --state."""
    parser.add_argument(
        "--state",
        metavar="DIR",
        help="folder of the journals of runs [/var/lib/hybridsim-validate]",
    )


def system_of(args: argparse.Namespace) -> Any:
    """Return the machine, with the state folder of the options."""
    from validate.system import System

    return System(state=Path(args.state)) if args.state else System()


def clear_leftovers(args: argparse.Namespace, system: Any) -> None:
    """Undo and report the steps of killed runs: their devices would count as in use."""
    from validate import journal, site
    from validate.progress import to_stderr

    if system.uid != 0 or args.dry_run:
        return
    with journal.exclusive(system):
        for each in site.clean(system):
            to_stderr(f"left by a run that was killed: {each}")


def agree(args: argparse.Namespace, question: str) -> None:
    """Ask for consent unless --yes is set.  Raises ExperimentError without consent."""
    if args.yes:
        return
    if not sys.stdin.isatty():
        raise ExperimentError("standard input is not a terminal: add --yes to accept the plan")
    print(f"{question} Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise ExperimentError("not confirmed: nothing was done")


def run(args: argparse.Namespace) -> int:
    """Show the plan, ask for consent, and build."""
    from validate import building, devices, experiment
    from validate import request as requests
    from validate.progress import to_stderr

    system = system_of(args)
    specified = experiment.with_programs(experiment.load(args.experiment), args.open_cas)
    clear_leftovers(args, system)
    request = requests.BuildRequest(specified, args.slow, args.fast, args.erase, args.out, system)
    try:
        notes = requests.check(request)  # claims the devices
        print(requests.shown(request, notes), file=sys.stderr)
        if args.dry_run:
            return 0
        requests.ready(request)
        agree(args, "Begin?")
        folder = building.build(request, to_stderr)
    finally:
        devices.release_claim(system)
    print(f"results: {folder}")
    return 0
