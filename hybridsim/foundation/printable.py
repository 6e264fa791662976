"""Make text from files or users safe to print in messages."""

from __future__ import annotations


def printable(text: object, keep: str = "") -> str:
    """Return a text as one line, with line breaks and control characters as escapes.

    Characters in `keep` are not escaped.
    """
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in str(text)
    )
