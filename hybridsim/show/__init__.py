"""Write answers as text, JSON, HTML and figures.

terminal, ...  one file for each kind of document that the terminal prints
labels, page   what these files share
fio_*          the output of fio, in its own forms
html           the report as one HTML file, one file a section
charts         figures as data; html and plot draw the same figures
plot           figures by matplotlib, for papers and notebooks
schemas        the JSON Schemas of all documents

To add a way to write a result: a module with `write(result, stream)`, a line in WRITERS.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from hybridsim.answers.result import Result

WRITERS = {
    "terminal": "hybridsim.show.terminal",
    "json": "hybridsim.show.as_json",
}


def write(result: Result, stream: TextIO, how: str = "terminal", **options: bool) -> None:
    """Write the result to the stream.

    `how` is a key of WRITERS; the options go to that writer.
    """
    importlib.import_module(WRITERS[how]).write(result, stream, **options)
