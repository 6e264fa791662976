"""Output streams: no text from a file, a name or a label controls the terminal.

All text goes through `printable`; terminal codes of the program go through `steer`.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from typing import Any, TextIO

from hybridsim.foundation.printable import printable

CLEAR = "\r\x1b[K"  # the line
NARROWEST, USUAL = 40, 80  # columns


class Terminal(io.TextIOWrapper):
    """A standard stream: control characters of a text are written as escapes."""

    _owner: io.TextIOWrapper | None = None

    @classmethod
    def of(cls, stream: io.TextIOWrapper) -> Terminal:
        """Return a gate to the same file; the stream stays its owner, who closes it."""
        options: dict[str, Any] = {
            "encoding": stream.encoding,
            "errors": stream.errors,
            "line_buffering": stream.line_buffering,
            "write_through": stream.write_through,
        }
        stream.flush()
        gate = cls(stream.buffer, **options)
        gate._owner = stream  # or it would be closed once nobody else refers to it
        return gate

    def close(self) -> None:
        """Write what is buffered, unless the owner has closed the file."""
        if not self.buffer.closed:
            self.flush()

    def write(self, text: str) -> int:
        """Write a text; lines and tabs stay.  Raise TypeError for bytes, as click requires."""
        if not isinstance(text, str):
            raise TypeError(f"text expected, not {type(text).__name__}")
        super().write(printable(text, "\n\t"))
        return len(text)

    def steer(self, text: str) -> int:
        """Write terminal codes; the text must not contain external input."""
        return super().write(text)


class Steered:
    """The same stream for a library that draws, such as rich, and escapes its own input."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write it unchanged."""
        return steer(text, self._stream)


def steer(text: str, stream: TextIO | None = None) -> int:
    """Write a text that may contain terminal codes; default: to standard error."""
    stream = stream or sys.stderr
    return stream.steer(text) if isinstance(stream, Terminal) else stream.write(text)


def width(stream: TextIO | None = None) -> int:
    """Return the number of columns: of COLUMNS, or of the terminal; else USUAL.

    Never fewer than NARROWEST: narrower terminals wrap.
    """
    specified = os.environ.get("COLUMNS", "")
    if specified.isdecimal() and int(specified):
        return max(int(specified), NARROWEST)
    if stream is None or not stream.isatty():
        return USUAL
    return max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST)


def show(text: str) -> None:
    """Show a text on standard error in place of the one before; it is cut to the width."""
    room = width(sys.stderr) - 1  # a full line would wrap, and could not be cleared
    text = printable(text)
    steer(CLEAR + (text if len(text) <= room else text[: room - 3] + "..."))
    sys.stderr.flush()


def clear() -> None:
    """Erase the text that `show` printed."""
    steer(CLEAR)
    sys.stderr.flush()
