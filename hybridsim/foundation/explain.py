"""The glossary of printed words and figures, which `hybridsim explain` prints.

The entries are in explain.toml; a key is the word as reports print it.  Its last table has other
words that a user may ask for: ALIASES maps them to the key of the entry that explains them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from hybridsim.foundation.codes import Reason

# How reports print the reasons why a read was not served from the SSD.
REASONS = {
    Reason.COLD: "first touch",
    Reason.NOT_HOT: "not hot enough",
    Reason.BUSY: "fills busy",
    Reason.FILLING: "being filled",
    Reason.EVICTED: "evicted",
    Reason.OVERWRITTEN: "overwritten",
    Reason.SEQUENTIAL: "sequential",
    Reason.NO_CACHE: "no cache",
    Reason.NOT_WRITTEN: "not written lately",
    Reason.CONGESTED: "SSD congested",
}

_ENTRIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_ALIASES: dict[str, list[str]] = _ENTRIES.pop("aliases")
TERMS: dict[str, str] = {word: " ".join(text.split()) for word, text in _ENTRIES.items()}

ALIASES = {alias: word for word, aliases in _ALIASES.items() for alias in aliases}


def explain(word: str) -> tuple[str, str] | None:
    """Return the entry for a word as (name, text), or None if there is none.

    Case, spaces, hyphens and underscores in the word do not matter.
    """
    folded = " ".join(word.replace("_", " ").casefold().split())
    names = {name.casefold(): name for name in TERMS}
    name = names.get(folded) or ALIASES.get(folded)
    if name is None:  # 'warm up' for 'warm-up', 'writethrough' for 'write-through'
        bare = {_bare(known): name for known, name in {**ALIASES, **names}.items()}
        name = bare.get(_bare(folded))
    return None if name is None else (name, TERMS[name])


def _bare(word: str) -> str:
    """Return the letters and digits of a word, in lower case."""
    return "".join(letter for letter in word.casefold() if letter.isalnum())


def known_words() -> list[str]:
    """Return every word that `explain` accepts."""
    return [*TERMS, *ALIASES]
