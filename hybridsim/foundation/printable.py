"""Texts that others wrote, as file names or lines of a file, in messages of one's own."""

from __future__ import annotations


def printable(text: object, keep: str = "") -> str:
    """Return a text in one line: what would break it or steer a terminal stands as an escape.

    What is in `keep` stays as it is.
    """
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in str(text)
    )
