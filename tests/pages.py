"""The blocks of the pages of hybridsim/docs: code, commands, and files that a reader writes."""

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "hybridsim" / "docs"
BLOCK = re.compile(r"(?:`([^`\n]+)`:\n\n)?^( *)```(\w*)\n(.*?)^\2```$", re.M | re.S)


class Block(NamedTuple):
    """A block of code; `file` is the name that stands right above it as "`NAME`:"."""

    file: str
    language: str
    text: str

    @property
    def commands(self):
        """The lines after a prompt."""
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(page):
    """Return the blocks of a page, in their order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [
        Block(file, language, textwrap.dedent(body))
        for file, _, language, body in BLOCK.findall(text)
    ]


def edits(page):
    """Return what a page has its reader add to the repository.

    A new file by its text; to a file that is there, the lines to add behind those that a diff
    shows before them.
    """
    found = {}
    for block in blocks(page):
        if block.language == "py":
            found[block.file] = block.text
        elif block.language == "diff":
            added = found.setdefault(block.file, {})
            for part in block.text.split("@@\n"):
                known, new, _ = re.split(r"((?:^\+.*\n)+)", part, flags=re.M)
                added[re.sub(r"^ ", "", known, flags=re.M)] = new.replace("\n+", "\n")[1:]
    return found
