"""Progress of long work on standard error: in place at a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from hybridsim.show.screen import clear, show

QUIET_S = 1.0  # shorter work shows no progress
REDRAW_S = 0.1  # at a terminal, between two states of the line
LINE_EVERY_S = 10.0  # elsewhere, between two lines


class Line:
    """A line of progress, erased at the end; not shown where there is no terminal, or in lines."""

    def __init__(self, in_lines: bool = False) -> None:
        self._is_terminal = sys.stderr.isatty()
        self.is_wanted = self._is_terminal or in_lines
        self.begun_s = time.monotonic()
        self._last_s = self.begun_s
        self._is_shown = False
        self._stage = ""

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            clear()

    def update(self, words: Callable[[], str]) -> None:
        """Show these words, if it is time."""
        now_s = time.monotonic()
        every_s = REDRAW_S if self._is_terminal else LINE_EVERY_S
        if now_s - self.begun_s <= QUIET_S or now_s - self._last_s <= every_s:
            return
        if self._is_terminal:
            self._is_shown, self._last_s = True, now_s
            show(words())
        elif self.is_wanted:
            self._last_s = now_s
            click.echo(f"{self._stage}{words()}", err=True)

    def stage(self, text: str) -> None:
        """Begin a stage of the work: a line of its own at a terminal, else the head of others."""
        if self._is_terminal:
            show(f"{text} ...")
            click.echo(err=True)
        else:
            self._stage = f"{text}: "

    def stays(self, text: str) -> None:
        """Write a line that stays, such as an error of a part of the work."""
        if self._is_shown:
            clear()
        click.echo(text, err=True)
