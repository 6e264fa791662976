"""Paragraphs and tables of text reports, at most 80 columns wide or as wide as the screen."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import percent, recorded, span
from hybridsim.show.screen import width

WIDEST, MARGIN = 80, 13
SCREEN = 24  # lines of the first screen
MET, LIKELY, MISSED = "✓", "~", "✗"
GLUE = "\ue000"  # a space at which no line may break
UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|[KMGTP]?i?B|[kMGT]|times)\b)")
ASCII = str.maketrans({"·": "|", "\N{EN DASH}": "-", "✓": "+", "✗": "x", "▲": "^", "×": "x",
                       "±": "~", "≥": ">", "⚠": "!"})  # fmt: skip


def joined(parts: Iterable[str]) -> str:
    """Join parts with dots; lines break only between parts, or within parts of 60 characters."""
    short = (part.replace(" ", GLUE) if len(part) < 60 else part for part in parts if part)
    return f"{GLUE}· ".join(short)


def unbroken(text: str) -> str:
    """Keep each number and its unit on one line."""
    return UNIT.sub(GLUE, text)


def after(time_ns: int) -> str:
    """Return when something was reached: 'after 12m', 'at once'."""
    return f"after {span(time_ns)}" if time_ns else "at once"


def mark(met: bool, sure: bool) -> str:
    """Return a sign: met at both ends of the interval, at the figure only, or not met."""
    return MET if sure else LIKELY if met else MISSED


def columns() -> int:
    """Return the maximum number of columns of a line on standard output."""
    return min(width(sys.stdout), WIDEST)


def paragraph(label: str, text: str) -> list[str]:
    """Return a labelled paragraph as lines; no line breaks between a number and its unit."""
    room = columns() - MARGIN
    lines = textwrap.wrap(
        unbroken(printable(text, GLUE)), room, break_long_words=False, break_on_hyphens=False
    )
    first = [f"{label:<{MARGIN}}"] + [" " * MARGIN] * (len(lines) - 1)
    return [(head + line).replace(GLUE, " ").rstrip() for head, line in zip(first, lines or [""])]


def labelled(label: str, texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return texts with their label, which stands before the first only."""
    return [("" if number else label, text) for number, text in enumerate(texts)]


def paragraphs(label: str, texts: Iterable[str]) -> list[str]:
    """Return a paragraph for each text as lines; the label stands before the first."""
    return [line for each in labelled(label, texts) for line in paragraph(*each)]


def wrapped(text: str, margin: str = "") -> list[str]:
    """Return a text without a label as lines."""
    return textwrap.wrap(
        text, columns(), initial_indent=margin, subsequent_indent=margin, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], gap: str = "  ", room: int | None = None
) -> list[str]:
    """Return a table as lines: the first column left-aligned, the others right-aligned.

    If the table is too wide for `room` columns, the gaps shrink to one space; then rows and columns
    are exchanged; then each row becomes a paragraph.
    """
    cells = [list(heads), *([printable(cell) for cell in row] for row in rows)]
    turned = [list(row) for row in zip(*cells)]
    room = room or columns()
    for shown, between in ((cells, gap), (cells, " "), (turned, gap), (turned, " ")):
        lines = _aligned(shown, between)
        if max(map(len, lines)) <= room:
            return lines
    if room == WIDEST:  # a full-width screen: a wrapped table is better than paragraphs
        return _aligned(cells, " ")
    return _stacked(cells, room)


def _stacked(cells: list[list[str]], room: int) -> list[str]:
    """Return each row as its name, followed by one line per figure."""
    heads, *rows = cells
    longest = max(map(len, heads[1:]), default=0)
    lines = [heads[0]] if heads[0] else []
    for name, *figures in rows:
        lines += textwrap.wrap(name, room, break_on_hyphens=False) or [""]
        for head, figure in zip(heads[1:], figures):
            if figure.strip():
                lines += textwrap.wrap(
                    f"{head:<{longest}}  {figure}", room - 2, initial_indent="  ",
                    subsequent_indent=" " * (longest + 4), break_on_hyphens=False,
                )  # fmt: skip
    return [line.rstrip() for line in lines]


def _aligned(cells: list[list[str]], gap: str) -> list[str]:
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return [
        gap.join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in cells
    ]


def trace_line(trace: Mapping[str, Any]) -> list[str]:
    """Return the description of the trace, as lines."""
    both = trace["reads"] + trace["writes"]
    parts = [
        str(trace["name"]),
        *recorded(trace["requests"], trace["span_ns"]),
        f"{percent(trace['reads'] / both)} reads",
        f"touches {human_size(trace['footprint_bytes'])}",
    ]
    return paragraph("trace", joined(parts))


def is_ascii(stream: TextIO) -> bool:
    """Return whether a stream supports only ASCII."""
    return "utf" not in (getattr(stream, "encoding", None) or "ascii").lower()


def in_ascii(text: str) -> str:
    """Replace all characters that are not ASCII."""
    return text.translate(ASCII).encode("ascii", "replace").decode()


def page(lines: Iterable[str], ascii_only: bool) -> str:
    """Return lines as one text, in ASCII if requested."""
    text = "\n".join(lines) + "\n"
    return in_ascii(text) if ascii_only else text
