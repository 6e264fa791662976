"""Make text from files or users safe to print in messages."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def printable(text: object, keep: str = "") -> str:
    """Return a text as one line, with line breaks and control characters as escapes.

    Characters in `keep` are not escaped.
    """
    text = str(text)
    plain = text.translate(dict.fromkeys(map(ord, keep), " ")) if keep else text
    if plain.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in text
    )


def shell_word(word: str) -> str:
    """Return a word quoted for a shell; control characters are escaped in bash's $'...' form."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_in_quotes, word)) + "'"


def shell_line(words: Iterable[str]) -> str:
    """Return a command line that a shell splits into these words."""
    return " ".join(map(shell_word, words))


def _in_quotes(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte of a name that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character in "\\'":
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\{code:03o}"
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
