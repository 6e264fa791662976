"""What a command writes to: nothing of a file, a name or a label steers the terminal.

All text goes through `printable`; what the program itself wants of a terminal goes through `steer`.
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

    @classmethod
    def of(cls, stream: io.TextIOWrapper) -> Terminal:
        """Return the same stream with its gate; the one given is of no use afterwards."""
        how: dict[str, Any] = {
            "encoding": stream.encoding,
            "errors": stream.errors,
            "line_buffering": stream.line_buffering,
            "write_through": stream.write_through,
        }
        stream.flush()
        return cls(stream.detach(), **how)

    def write(self, text: str) -> int:
        """Write a text; keep line breaks and tabs.  Raise TypeError for bytes, as click expects."""
        super().write(printable(text, "\n\t") if isinstance(text, str) else text)
        return len(text)

    def steer(self, text: str) -> int:
        """Write what was made to steer a terminal; nothing that others wrote may be in it."""
        return super().write(text)


class Steered:
    """The same stream for a program that draws, such as rich: it sees to what it draws."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write it as it is."""
        return steer(text, self._stream)


def steer(text: str, stream: TextIO | None = None) -> int:
    """Write a text that may steer the terminal; to standard error unless a stream is given."""
    stream = stream or sys.stderr
    return stream.steer(text) if isinstance(stream, Terminal) else stream.write(text)


def width(stream: TextIO | None = None) -> int:
    """Return how many columns there are: as COLUMNS says, or the terminal; else USUAL.

    Never fewer than NARROWEST: what is narrower wraps.
    """
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return max(int(said), NARROWEST)
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
    """Take the text that `show` showed away."""
    steer(CLEAR)
    sys.stderr.flush()
