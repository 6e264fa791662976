"""The guide's five questions about an application, and what else could be bought."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridsim.show import advice as words
from hybridsim.show.html.blocks import Block, Prose, Section, Table


def section(document: Mapping[str, Any]) -> Section:
    """Return the answers, and the table of alternatives with their prices."""
    heads, rows = words.alternatives(document)
    blocks: list[Block] = [
        Table("The application", ["", ""], words.questions(document)),
        Table("Other purchases", heads, rows, [len(rows) - 1]),
        Prose([f"Prices: {words.prices(document)}",
               f"Compared by {words.compared_by(document)}"]),
    ]  # fmt: skip
    return Section("questions", "The application, and other purchases", blocks)
