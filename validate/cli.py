"""`python -m validate`: parse the arguments, run the command, print errors as one message."""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence

from validate.errors import ValidateError

# name: (module with add_arguments(subparsers) and run(args) -> exit code, one line of help)
COMMANDS = {
    "build": ("validate.commands.build", "Build a cache on two devices, run fio on it, remove it."),
    "attach": (
        "validate.commands.attach",
        "Run fio on a cache that exists; reads only by default.",
    ),
    "clean": ("validate.commands.clean", "Undo the steps of a run that was killed."),
    "lab": ("validate.lab.cli", "Run `build` in a QEMU guest: no root, no spare devices."),
    "served": ("validate.commands.served", "Within the lab: run fio on a served cache."),
    "report": ("validate.report.cli", "Compare results with the simulation: text, JSON, HTML."),
}
EPILOG = """\
Examples:
  python -m validate build hot.toml --slow /dev/sdb --fast /dev/nvme1n1 --dry-run
  sudo python3 -m validate build hot.toml --slow /dev/sdb --fast /dev/nvme1n1 \\
       --erase /dev/sdb --erase /dev/nvme1n1 -o results/hot
  sudo python3 -m validate attach hot.toml --device /dev/bcache0 -o results/mine
  sudo python3 -m validate clean

Exit codes: 0 done, 2 wrong usage or experiment file, 3 a device that must not be touched,
4 something is missing, 5 a step failed, 130 interrupted.  See validate/README.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = parser_for(words)
        args = parser.parse_args(words)
        module = importlib.import_module(COMMANDS[args.command][0])
        return int(module.run(args))
    except ValidateError as error:
        print(f"validate: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("validate: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        full = "the disk of the results is full: " if error.errno == errno.ENOSPC else ""
        print(f"validate: {full}{error}", file=sys.stderr)
        return 4 if full else 5


def parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the module of the requested command is imported."""
    parser = argparse.ArgumentParser(
        prog="python -m validate",
        description="Measure real fio on a real kernel cache, and compare a simulation with it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        if not _is_there(module):
            continue
        if words and words[0] == name:
            importlib.import_module(module).add_arguments(commands)
        else:
            commands.add_parser(name, help=text, add_help=False)
    return parser


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
