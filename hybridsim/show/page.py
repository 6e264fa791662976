"""What short reports have in common: labelled paragraphs, tables and curves within 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import percent, span
from hybridsim.show.labels import GLUE, joined, unbroken

WIDTH, MARGIN = 80, 13
ASCII = str.maketrans({"·": "|", "\N{EN DASH}": "-", "✓": "+", "✗": "x", "▲": "^", "×": "x",
                       "±": "~", "≥": ">", "⚠": "!"})  # fmt: skip


def paragraph(label: str, text: str) -> list[str]:
    """Return a labelled paragraph as lines; a number's unit stays with it."""
    lines = textwrap.wrap(
        unbroken(text), WIDTH - MARGIN, break_long_words=False, break_on_hyphens=False
    )
    first = [f"{label:<{MARGIN}}"] + [" " * MARGIN] * (len(lines) - 1)
    return [(head + line).replace(GLUE, " ").rstrip() for head, line in zip(first, lines or [""])]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], gap: str = "  ") -> list[str]:
    """Return a table as lines: the first column to the left, all others to the right.

    Columns move together where it would be too wide.
    """
    cells = [list(heads), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    if sum(widths) + len(gap) * (len(widths) - 1) > WIDTH:
        gap = " "
    return [
        gap.join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in cells
    ]


def trace_line(trace: Mapping[str, Any]) -> list[str]:
    """Return what trace it is, as lines."""
    both = trace["reads"] + trace["writes"]
    parts = [
        str(trace["name"]),
        f"{human_count(trace['requests'])} request{'s' * (trace['requests'] != 1)}",
        span(trace["span_ns"]),
        f"{percent(trace['reads'] / both)} reads",
        f"touches {human_size(trace['footprint_bytes'])}",
    ]
    return paragraph("trace", joined(parts))


def is_ascii(stream: TextIO) -> bool:
    """Tell whether a stream can show nothing but ASCII."""
    return "utf" not in (getattr(stream, "encoding", None) or "ascii").lower()


def in_ascii(text: str) -> str:
    """Return a text in which signs that ASCII lacks are such as it has."""
    return text.translate(ASCII).encode("ascii", "replace").decode()


def page(lines: Iterable[str], ascii_only: bool) -> str:
    """Return lines as text that can be shown."""
    text = "\n".join(lines) + "\n"
    return in_ascii(text) if ascii_only else text
