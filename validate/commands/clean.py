"""`validate clean`: undo the steps of runs that were killed."""

from __future__ import annotations

import argparse
from typing import Any

from validate.commands.build import add_state, system_of
from validate.errors import MissingError


def add_arguments(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "clean",
        help="Undo the steps of a run that was killed.",
        description="Undo the steps of killed runs, from their journals. Only content with the "
        "tokens, names and UUIDs of those runs is removed. Each new run does the same first.",
        epilog="Example:\n  sudo python3 -m validate clean",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Undo the steps, and print what was undone."""
    from validate import journal, leftovers
    from validate.site import clean

    system = system_of(args)
    if system.uid != 0:
        raise MissingError("needs root: run it with sudo")
    with journal.exclusive(system):
        undone = clean(system) + leftovers.remove(system)
    for each in undone:
        print(each)
    if not undone:
        print("nothing to undo")
    return 0
