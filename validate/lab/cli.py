"""`validate lab`: what can be asked of the lab."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from validate.errors import ExperimentError

if TYPE_CHECKING:
    from validate.lab.machine import Disk

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
NAME = re.compile(r"[a-z][a-z0-9-]{0,11}")
DISKS = ["slow=1G", "fast=256M"]
EXAMPLES = """examples:
  python -m validate lab setup
  python -m validate lab run validate/examples/dmcache-hot.toml -o results/dmcache-hot
  python -m validate lab suite validate/experiments -o results
  python -m validate lab exec -- fio --version
  python -m validate lab exec --disk slow=8G --disk fast=1G -- sh -c 'lsblk; echo $SLOW $FAST'
"""


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `lab` and its commands."""
    lab = subparsers.add_parser(
        "lab",
        help="a guest of our own: a real kernel cache on simulated disks, without root",
        description="A guest of our own: a real kernel cache on simulated disks, without root.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = lab.add_subparsers(dest="lab_command", metavar="COMMAND", required=True)
    setup = commands.add_parser("setup", help="fetch and build what a guest needs")
    setup.add_argument("--refresh", action="store_true", help="ask for newer packages")
    setup.add_argument(
        "--fetch-qemu", action="store_true", help="use Debian's QEMU even if there is one here"
    )
    execute = commands.add_parser("exec", help="run a command as root in a guest")
    execute.add_argument(
        "--disk", action="append", metavar="NAME=SIZE",
        help="an empty disk; $NAME is its device in the guest (default: slow=1G fast=256M)",
    )  # fmt: skip
    execute.add_argument(
        "-o", "--out", type=Path, default=Path("lab-out"), help="folder of the results"
    )
    execute.add_argument("--memory", type=int, default=1024, metavar="MB")
    execute.add_argument("--limit", type=float, default=600, metavar="S", help="give up after this")
    execute.add_argument("words", nargs="+", metavar="-- COMMAND")
    one = commands.add_parser("run", help="run an experiment in a guest")
    one.add_argument("experiment", type=Path, help="TOML file; see validate/examples")
    one.add_argument("-o", "--out", type=Path, metavar="DIR", help="folder of the results")
    one.add_argument(
        "--scenario",
        type=Path,
        metavar="TOML",
        help="the machine that the disks are [machine.toml beside it, else the lab's own]",
    )

    several = commands.add_parser("suite", help="run all experiments of a folder, or go on")
    several.add_argument("folder", type=Path, help="folder of experiments")
    several.add_argument("-o", "--out", type=Path, metavar="DIR", help="folder of all results")
    several.add_argument(
        "--scenario",
        type=Path,
        metavar="TOML",
        help="the machine that the disks are [machine.toml in it, else the lab's own]",
    )
    several.add_argument("-v", "--verbose", action="store_true", help="tell what each run does")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    from validate.lab.processes import signals_raise

    done: dict[str, Callable[[argparse.Namespace], int]] = {
        "setup": _setup,
        "exec": _exec,
        "run": _run,
        "suite": _suite,
    }
    with signals_raise():
        return done[args.lab_command](args)


def _say(line: str) -> None:
    print(f"lab: {line}", file=sys.stderr, flush=True)


def _setup(args: argparse.Namespace) -> int:
    from validate.lab.guest import accelerator
    from validate.lab.setup import set_up

    lab = set_up(_say, refresh=args.refresh or args.fetch_qemu, fetch_qemu=args.fetch_qemu)
    _say("guests run with KVM" if accelerator(lab, _say) == "kvm" else "guests are emulated")
    return 0


def _exec(args: argparse.Namespace) -> int:
    from validate.lab import guest

    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"--out {args.out}: {error.strerror}") from None
    done = guest.run(
        [args.words],
        [_disk(text) for text in args.disk or DISKS],
        args.out,
        memory_mb=args.memory,
        limit_s=args.limit,
        hear=print,
        say=_say,
    )
    return done.codes[-1]


def _run(args: argparse.Namespace) -> int:
    from validate.lab import running

    out = args.out or Path("results") / args.experiment.stem
    scenario = running.machine_for(args.experiment.parent, args.scenario)
    running.run(args.experiment, out, scenario, _say)
    print(f"results: {out}")
    return 0


def _suite(args: argparse.Namespace) -> int:
    from validate.lab import guest, running, suite

    todo = suite.items(args.folder, args.out or Path("results") / args.folder.name)
    progress = _say if args.verbose else guest.unheard
    scenario = running.machine_for(args.folder, args.scenario)
    failed = suite.run(todo, scenario, print, progress)
    return 5 if failed else 0


def _disk(text: str) -> Disk:
    from validate.lab.machine import Disk

    name, _, size = text.partition("=")
    found = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", size, re.IGNORECASE)
    if not NAME.fullmatch(name) or not found or not int(found[1]):
        raise ExperimentError(
            f"--disk {text}: say NAME=SIZE, as in slow=1G; a name is up to 12 small letters"
        )
    return Disk(name, int(found[1]) * UNITS[found[2].upper()])
