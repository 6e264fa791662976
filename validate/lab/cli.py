"""`validate lab`: the commands of the lab."""

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
  python -m validate lab run validate/examples/bcache-hot.toml --kernel 6.12
  python -m validate lab exec -- fio --version
  python -m validate lab exec --disk slow=8G --disk fast=1G -- sh -c 'lsblk; echo $SLOW $FAST'
"""


def add_arguments(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `lab` and its commands."""
    lab = subparsers.add_parser(
        "lab",
        help="run a real kernel cache on simulated disks in a QEMU guest, without root",
        description="Run a real kernel cache on simulated disks in a QEMU guest, without root.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = lab.add_subparsers(dest="lab_command", metavar="COMMAND", required=True)
    setup = commands.add_parser("setup", help="fetch packages and build the guest")
    setup.add_argument("--refresh", action="store_true", help="fetch newer packages")
    setup.add_argument(
        "--fetch-qemu", action="store_true", help="use Debian's QEMU even if this system has one"
    )
    _add_kernel(setup)
    execute = commands.add_parser("exec", help="run a command as root in a guest")
    execute.add_argument(
        "--disk", action="append", metavar="NAME=SIZE",
        help="an empty disk; $NAME is its device in the guest (default: slow=1G fast=256M)",
    )  # fmt: skip
    execute.add_argument(
        "-o", "--out", type=Path, default=Path("lab-out"), help="result folder [lab-out]"
    )
    execute.add_argument(
        "--memory", type=int, default=1024, metavar="MB", help="memory of the guest [1024]"
    )
    execute.add_argument("--limit", type=float, default=600, metavar="S", help="time limit [600]")
    _add_kernel(execute)
    execute.add_argument("words", nargs="+", metavar="-- COMMAND")
    one = commands.add_parser("run", help="run an experiment in a guest")
    one.add_argument("experiment", type=Path, help="TOML file; see validate/examples")
    one.add_argument("-o", "--out", type=Path, metavar="DIR", help="result folder [results/NAME]")
    one.add_argument(
        "--scenario",
        type=Path,
        metavar="TOML",
        help="scenario of the disks [machine.toml beside the experiment, else the lab's own]",
    )
    _add_kernel(one)
    _add_open_cas(one)

    several = commands.add_parser(
        "suite", help="run all experiments of a folder; skip those that are done"
    )
    several.add_argument("folder", type=Path, help="folder of experiments")
    several.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="parent of the result folders [results/FOLDER]",
    )
    several.add_argument(
        "--scenario",
        type=Path,
        metavar="TOML",
        help="scenario of the disks [machine.toml in the folder, else the lab's own]",
    )
    several.add_argument(
        "-v", "--verbose", action="store_true", help="print the progress of each run"
    )
    _add_kernel(several)
    _add_open_cas(several)


def _add_open_cas(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--open-cas",
        type=Path,
        metavar="DIR",
        help="folder of casadm and Open CAS's modules, built for the guest's kernel",
    )


def _add_kernel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kernel",
        default="",
        metavar="RELEASE",
        help="release of the guest's kernel, for example 6.12 [this Debian's own]",
    )


def run(args: argparse.Namespace) -> int:
    """Run the requested command; return the exit code."""
    from validate.lab.processes import signals_raise

    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "setup": _setup,
        "exec": _exec,
        "run": _run,
        "suite": _suite,
    }
    with signals_raise():
        return commands[args.lab_command](args)


def _progress(line: str) -> None:
    print(f"lab: {line}", file=sys.stderr, flush=True)


def _setup(args: argparse.Namespace) -> int:
    from validate.lab.guest import accelerator
    from validate.lab.setup import set_up

    lab = set_up(
        _progress, args.kernel, refresh=args.refresh or args.fetch_qemu, fetch_qemu=args.fetch_qemu
    )
    is_kvm = accelerator(lab, _progress) == "kvm"
    _progress("guests run with KVM" if is_kvm else "guests run under software emulation")
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
        kernel=args.kernel,
        on_output=print,
        progress=_progress,
    )
    return done.codes[-1]


def _run(args: argparse.Namespace) -> int:
    from validate.lab import running

    out = args.out or _results(args.experiment.stem, args.kernel)
    scenario = running.machine_for(args.experiment.parent, args.scenario)
    running.run(args.experiment, out, scenario, _progress, args.kernel, args.open_cas)
    print(f"results: {out}")
    return 0


def _suite(args: argparse.Namespace) -> int:
    from validate.lab import guest, running, suite

    todo = suite.items(args.folder, args.out or _results(args.folder.name, args.kernel))
    progress = _progress if args.verbose else guest.ignore
    scenario = running.machine_for(args.folder, args.scenario)
    failed = suite.run(todo, scenario, print, progress, args.kernel, args.open_cas)
    return 5 if failed else 0


def _results(name: str, kernel: str) -> Path:
    """Return the default folder of results; runs on a named kernel have their own."""
    return Path("results") / (f"{name}-{kernel}" if kernel else name)


def _disk(text: str) -> Disk:
    from validate.lab.machine import Disk

    name, _, size = text.partition("=")
    match = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", size, re.IGNORECASE)
    if not NAME.fullmatch(name) or not match or not int(match[1]):
        raise ExperimentError(
            f"--disk {text}: write NAME=SIZE, for example slow=1G; a name has at most 12 "
            "lower-case letters, digits and hyphens"
        )
    return Disk(name, int(match[1]) * UNITS[match[2].upper()])
