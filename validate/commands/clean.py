"""`validate clean`: what a killed run left is removed."""

from __future__ import annotations

import argparse
from typing import Any

from validate.commands.build import add_state, system_of
from validate.errors import MissingError


def add_arguments(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "clean",
        help="Remove what a killed run left.",
        description="Undo, from its journal, what a run did that was killed before it could. "
        "Only what bears its names and UUIDs is touched. The next run does the same first.",
        epilog="Example:\n  sudo python3 -m validate clean",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_state(parser)


def run(args: argparse.Namespace) -> int:
    """Do it, and say what was undone."""
    from validate import journal, leftovers
    from validate.site import clean

    system = system_of(args)
    if system.uid != 0:
        raise MissingError("needs root: run it with sudo")
    with journal.alone(system):
        undone = clean(system) + leftovers.remove(system)
    for each in undone:
        print(each)
    if not undone:
        print("nothing was left")
    return 0
