"""How objects look in notebooks: a small table, escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def table_html(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return rows of names and values as an HTML table with a caption."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return (
        f'<table><caption style="text-align:left;font-weight:bold">{escape(caption)}</caption>'
        f"<tbody>{cells}</tbody></table>"
    )
