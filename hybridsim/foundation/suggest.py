"""Suggest the known word nearest to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, or None if none is close.

    A word that contains it is nearer than one that resembles it, the shortest such word nearest.
    """
    from difflib import get_close_matches

    folded = {name.casefold(): name for name in sorted(known)}  # a set has no order of its own
    word = word.casefold()
    within = sorted((name for name in folded if len(word) > 2 and word in name), key=len)
    match = within[:1] or get_close_matches(word, folded, n=1, cutoff=0.6)
    return folded[match[0]] if match else None


def hint(word: str, known: Iterable[str]) -> str:
    """Return "did you mean ...?", or "choose from" and the list of known words."""
    names = list(known)
    match = nearest(word, names)
    return f"did you mean {match!r}?" if match else f"choose from {', '.join(names)}"
