"""Links and lists of a document of the repository, as the site needs them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\])\(([^()\s]+)\)")
ITEM = re.compile(r"\s*(?:[*+-]|\d+\.) ")


def for_site(text: str, place: str, sources: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the text with the site's links, and the files that it links to with their addresses.

    `place` is where the document stands in the repository, `sources` maps the places of all pages
    to their addresses.  A file that is no page is copied to files/; a folder without a page has no
    link.  Raises ValueError for a link to nothing.
    """
    files: dict[str, str] = {}
    here = posixpath.dirname(sources[place])

    def moved(match: re.Match[str]) -> str:
        target, _, anchor = match[1].partition("#")
        if not target or ":" in target:
            return match[0]
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        path = ROOT / meant
        if not path.exists():
            raise ValueError(f"{place}: a link to {target}, which does not exist")
        if path.is_dir() and f"{meant}/README.md" in sources:
            meant += "/README.md"
        elif path.is_dir():
            return ""
        if meant in sources:
            address = sources[meant]
        else:
            address = files[meant] = f"files/{meant.lstrip('.')}"
        return f"({posixpath.relpath(address, here)}{'#' if anchor else ''}{anchor})"

    parts = re.split(r"(^```.*?^```\n|`[^`\n]+`)", text, flags=re.M | re.S)
    parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
    return _lists_apart("".join(parts)), files


def _lists_apart(text: str) -> str:
    """Put an empty line before a list that follows a paragraph, which Python-Markdown needs."""
    out: list[str] = []
    listed = fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        item = not fenced and ITEM.match(line)
        if item and not listed and out and out[-1].strip():
            out.append("")
        listed = not fenced and (bool(item) or (listed and bool(line.strip())))
        out.append(line)
    return "\n".join(out) + "\n"
