"""The glossary: the words that reports print, with the texts of `hybridsim explain`."""

from __future__ import annotations

import tomllib
from importlib import resources


def pages() -> dict[str, str]:
    """Return the page by its address."""
    text = (resources.files("hybridsim.foundation") / "explain.toml").read_text(encoding="utf-8")
    meanings: dict[str, str] = tomllib.loads(text)
    entries = "\n".join(
        f"## {word}\n\n{meaning.strip()}\n" for word, meaning in sorted(meanings.items())
    )
    return {
        "reference/words.md": (
            "# Words of the reports\n\nWhat `hybridsim explain WORD` prints for each word.\n\n"
            f"{entries}"
        )
    }
