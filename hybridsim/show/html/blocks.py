"""The blocks of a section: key figures, tables, text, code; charts are in hybridsim.show.charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybridsim.show.charts import Bars, Chart, Heat, Ranges

KeyFigure = tuple[str, str, str]  # label, value, comparison or note


@dataclass(frozen=True)
class KeyFigures:
    """The most important figures."""

    figures: Sequence[KeyFigure]


@dataclass(frozen=True)
class Table:
    """Rows of text; the first column is the name of the row, `strong` rows are bold."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: Sequence[int] = ()
    is_folded: bool = False  # collapsed until the reader opens it


@dataclass(frozen=True)
class Prose:
    """Paragraphs; `tone` is yes, no, unsure, note, hint or empty."""

    paragraphs: Sequence[str]
    tone: str = ""


@dataclass(frozen=True)
class Code:
    """Preformatted text to copy."""

    caption: str
    text: str
    is_folded: bool = False


@dataclass(frozen=True)
class Command:
    """A command with a button that copies it."""

    caption: str
    text: str


@dataclass(frozen=True)
class CopyJson:
    """A button that copies the document that `--json` writes."""


@dataclass(frozen=True)
class Row:
    """Charts side by side, if the page is wide enough."""

    blocks: Sequence[Chart]


Block = KeyFigures | Table | Prose | Code | Command | CopyJson | Row | Chart | Bars | Heat | Ranges


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading.  `lead` is its summary in one sentence.

    Blocks that are None, and prose without a paragraph, are left out.
    """

    gid: str
    title: str
    blocks: Sequence[Block | None] = ()
    lead: str = ""

    def __post_init__(self) -> None:
        kept = [each for each in self.blocks if each and getattr(each, "paragraphs", True)]
        object.__setattr__(self, "blocks", kept)


def charts_of(sections: Sequence[Section]) -> list[Chart]:
    """Return all charts that page.js draws, in order."""
    result: list[Chart] = []
    for block in (block for section in sections for block in section.blocks):
        result += [block] if isinstance(block, Chart) else []
        result += block.blocks if isinstance(block, Row) else []
    return result
