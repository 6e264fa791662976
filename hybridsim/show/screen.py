"""Output streams that escape control characters of file contents, names and labels.

All text is written through `printable`; only `steer` writes terminal codes.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import Any, TextIO

from hybridsim.foundation.printable import printable

CLEAR = "\r\x1b[K"  # erases the line
NARROWEST, USUAL = 40, 80  # columns


class Terminal(io.TextIOWrapper):
    """A standard stream that writes control characters as escapes."""

    _owner: io.TextIOWrapper | None = None

    @classmethod
    def of(cls, stream: io.TextIOWrapper) -> Terminal:
        """Return a Terminal on the same file; `stream` still owns the file and closes it."""
        stream.flush()
        gate = cls(
            stream.buffer, stream.encoding, stream.errors, None, stream.line_buffering,
            stream.write_through,
        )  # fmt: skip
        gate._owner = stream  # keeps the file open while this object exists
        return gate

    def close(self) -> None:
        """Write what is buffered, unless the owner has closed the file."""
        if not self.buffer.closed:
            self.flush()

    def write(self, text: str) -> int:
        """Write a text; newlines and tabs stay.  Raises TypeError for bytes, as click requires."""
        if not isinstance(text, str):
            raise TypeError(f"text expected, not {type(text).__name__}")
        super().write(printable(text, "\n\t"))
        return len(text)

    def steer(self, text: str) -> int:
        """Write terminal codes; the text must not contain external input."""
        return super().write(text)


class Steered:
    """A stream for a library that escapes its own input and writes terminal codes: rich."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text unchanged."""
        return steer(text, self._stream)


def steer(text: str, stream: TextIO | None = None) -> int:
    """Write a text that may contain terminal codes; the default stream is standard error."""
    stream = stream or sys.stderr
    return stream.steer(text) if isinstance(stream, Terminal) else stream.write(text)


def width(stream: TextIO | None = None) -> int:
    """Return the number of columns: from COLUMNS, else of the terminal, else USUAL.

    The minimum is NARROWEST: on narrower terminals lines wrap.
    """
    specified = os.environ.get("COLUMNS", "")
    if specified.isdecimal() and int(specified):
        return max(int(specified), NARROWEST)
    if stream is None or not stream.isatty():
        return USUAL
    return max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST)


def show(text: str) -> None:
    """Replace the text shown on standard error; long texts are cut to the width of the screen."""
    room = width(sys.stderr) - 1  # a full line would wrap, and CLEAR would not erase it
    text = printable(text)
    steer(CLEAR + (text if len(text) <= room else text[: room - 3] + "..."))
    sys.stderr.flush()


def clear() -> None:
    """Erase the text that `show` printed."""
    steer(CLEAR)
    sys.stderr.flush()
