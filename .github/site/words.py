"""The glossary: the words that reports print, with the texts of `hybridsim explain`."""

from __future__ import annotations

from hybridsim.foundation.explain import TERMS


def pages() -> dict[str, str]:
    """Return the page by its address."""
    entries = "\n".join(f"## {word}\n\n{meaning}\n" for word, meaning in sorted(TERMS.items()))
    return {
        "reference/words.md": (
            "# Words of the reports\n\nWhat `hybridsim explain WORD` prints for each word.\n\n"
            f"{entries}"
        )
    }
