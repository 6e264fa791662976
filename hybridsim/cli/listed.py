"""Lists in options: 'lru,arc', with or without blanks."""

from __future__ import annotations


def listed(text: str) -> list[str]:
    """Return the parts of a list that commas separate."""
    return [part.strip() for part in text.split(",")]
