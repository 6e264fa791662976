"""Ways to write a result.  To add one: a module with `write(result, stream)`, a line in WRITERS."""

from __future__ import annotations

import importlib
from typing import TextIO

from hybridsim.answers.result import Result

WRITERS = {
    "terminal": "hybridsim.show.terminal",
    "json": "hybridsim.show.as_json",
}


def write(result: Result, stream: TextIO, how: str = "terminal") -> None:
    """Write the result to the stream in one of the forms of WRITERS."""
    importlib.import_module(WRITERS[how]).write(result, stream)
