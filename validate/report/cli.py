"""`validate report`: compare real runs with their simulated twins."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validate.report.holding import Held

DIFFERS = 4
EPILOG = """\
DIR is a result folder, or a folder of result folders.  The twin of each run is simulated: the same
requests on devices that are calibrated to the runs on the bare devices.

Examples:
  python -m validate report results/hot
  python -m validate report results/ --html report.html
  python -m validate report validate/results --json > errors.json
  python -m validate report results/ --chance 5

The exit code is 4 if a figure is beyond its bound.
"""


def add_arguments(commands: Any) -> None:
    """Add the command to a parser's commands."""
    parser = commands.add_parser(
        "report",
        help="Compare results with the simulation: text, JSON, HTML.",
        description="Compare real runs with their simulated twins.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", metavar="DIR", help="result folders, or folders of them")
    parser.add_argument("--details", action="store_true", help="print the details of each run too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--chance",
        type=_number,
        default=0,
        metavar="N",
        help="simulate N more twins of each run that begin at other moments [0], and say how many "
        "figures of two such twins are beyond the bounds",
    )
    parser.add_argument("--html", metavar="FILE", help="write one HTML file with the curves")


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of twins: write for example 5")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Simulate, compare and print; return the exit code."""
    try:
        from hybridsim.foundation.errors import HybridsimError
    except ImportError as error:
        print(
            f"validate: the report needs hybridsim: {error}; pip install -e . in its folder",
            file=sys.stderr,
        )
        return 4
    from validate.report.holding import held
    from validate.twin.folders import runs

    try:
        comparisons = held(list(runs(args.runs, _skipped)), _progress, args.chance)
        _write(comparisons, args)
    except HybridsimError as error:
        print(f"validate: {error}", file=sys.stderr)
        return error.exit_code
    return 0 if all(each.is_met for each in comparisons) else DIFFERS


def _write(comparisons: Sequence[Held], args: argparse.Namespace) -> None:
    from hybridsim.foundation.writing import write_text
    from hybridsim.show.page import is_ascii
    from validate.report.as_json import to_json
    from validate.report.text import text

    if args.html:
        from validate.report.html import page

        write_text(args.html, page(comparisons))
        print(f"wrote {args.html}", file=sys.stderr)
    if args.json:
        print(to_json(comparisons), end="")
    else:
        print(text(comparisons, args.details, is_ascii(sys.stdout)), end="")


def _skipped(error: Exception) -> None:
    print(f"validate: skipped: {error}", file=sys.stderr)


def _progress(done: int, of: int, name: str) -> None:
    if sys.stderr.isatty():
        line = f"simulating {name} ({done + 1} of {of})" if done < of else ""
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
