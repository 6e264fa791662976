"""Links from the numbers of sections, such as 2.14.1, to the pages of the design."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "hybridsim" / "docs"
HEADING = re.compile(r"^#+ ((\d+(?:\.\d+)+) .*)$", re.M)
# three numbers, or two that cannot be a figure: behind "DESIGN.md" or alone in parentheses
NUMBER = re.compile(
    r"(?<![\d.\w])2\.\d+\.\d+(?![\d.]*\d)|(?<=DESIGN\.md )\d\.\d+|(?<=\()2\.\d+(?=\))"
)
KEPT = re.compile(  # code, links and headings
    r"(^```.*?^```|`[^`\n]+`|\[[^\]\n]*\]\([^)\n]*\)|^#[^\n]*)", re.M | re.S
)


@cache
def anchors() -> dict[str, str]:
    """Return the address of each section, by its number."""
    found = {}
    for page in sorted(DOCS.rglob("*.md")):
        for title, number in HEADING.findall(page.read_text(encoding="utf-8")):
            slug = re.sub(r"[^\w\s-]", "", title.lower()).strip().replace(" ", "-")
            found[number] = f"{page.relative_to(DOCS).as_posix()}#{slug}"
    return found


def linked(text: str, place: str) -> str:
    """Return the text of a page of hybridsim/docs with links from the numbers of sections.

    Code, links and headings stay as they are, and so do pages from elsewhere.
    """
    if not place.startswith("hybridsim/docs/"):
        return text
    here = posixpath.dirname(place.removeprefix("hybridsim/docs/"))

    def link(match: re.Match[str]) -> str:
        address = anchors().get(match[0])
        return f"[{match[0]}]({posixpath.relpath(address, here or '.')})" if address else match[0]

    parts = KEPT.split(text)
    parts[::2] = [NUMBER.sub(link, part) for part in parts[::2]]
    return "".join(parts)
