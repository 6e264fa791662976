"""What a section of the report is made of: figures, tables, words, code; charts are charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hybridsim.show.charts import Bars, Chart, Heat


@dataclass(frozen=True)
class KeyFigures:
    """A few figures that matter most: (label, value, what it is held against)."""

    kind: ClassVar[str] = "key"
    figures: Sequence[tuple[str, str, str]]


@dataclass(frozen=True)
class Table:
    """Rows of words: the first column names them; `strong` rows are set off."""

    kind: ClassVar[str] = "table"
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    strong: Sequence[int] = ()
    is_folded: bool = False  # shown when asked for


@dataclass(frozen=True)
class Prose:
    """Sentences, one paragraph each; `tone` is yes, no, unsure, note, hint or nothing."""

    kind: ClassVar[str] = "prose"
    paragraphs: Sequence[str]
    tone: str = ""


@dataclass(frozen=True)
class Code:
    """Text as it is, to be copied."""

    kind: ClassVar[str] = "code"
    caption: str
    text: str
    is_folded: bool = False


@dataclass(frozen=True)
class CopyJson:
    """A button that copies all that was found, as `--json` writes it."""

    kind: ClassVar[str] = "copy"


@dataclass(frozen=True)
class Row:
    """Charts beside each other where there is room."""

    kind: ClassVar[str] = "row"
    blocks: Sequence[Chart]


Block = KeyFigures | Table | Prose | Code | CopyJson | Row | Chart | Bars | Heat


@dataclass(frozen=True)
class Section:
    """A part of the report with a heading.  `lead` is its summary in one sentence."""

    gid: str
    title: str
    blocks: Sequence[Block] = field(default_factory=list)
    lead: str = ""


def charts_of(sections: Sequence[Section]) -> list[Chart]:
    """Return all charts that a script draws, in order."""
    result: list[Chart] = []
    for block in (block for section in sections for block in section.blocks):
        result += [block] if isinstance(block, Chart) else []
        result += block.blocks if isinstance(block, Row) else []
    return result
