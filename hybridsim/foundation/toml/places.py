"""The positions of the keys and values of a TOML text, which `tomllib` does not report.

The text was accepted by `tomllib`, so this reader only determines where each element begins and
ends: headers, dotted and quoted keys, inline tables, arrays, arrays of tables, all strings.
"""

from __future__ import annotations

import re
import tomllib
from typing import Literal

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_DOT = re.compile(r"(?:[ \t]*+\.[ \t]*+)?")
_KEY = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\[\s\S])*?"{3,5}'
    r"|'''[\s\S]*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\d{4}-\d\d-\d\d \d\d:[^,\]}\s#]*"
    r"|[^,\]}\s#]+"
)


class Places:
    """Offsets of every key and value of a TOML text, by path."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tables: dict[Path, int] = {}  # how often an array of tables has been opened
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}
        self._read()

    def line_column(self, path: Path, of: Literal["key", "value"] = "value") -> tuple[int, int]:
        """Return (line, column) of a path, from 1; if absent, of its innermost table."""
        wanted = self.values if of == "value" else self.keys
        while path and path not in wanted and path not in self.keys:
            path = path[:-1]
        at = wanted.get(path, self.keys.get(path, 0))
        return self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)

    def _read(self) -> None:
        table: Path = ()
        self._blank()
        while self._at < len(self._text):
            if self._text.startswith("[[", self._at):
                table = self._header("[[")
                count = self._tables.get(table, 0)
                self._tables[table] = count + 1
                table = (*table, count)
                self.keys[table] = self._at
                self._skip("]]")
            elif self._text[self._at] == "[":
                table = self._header("[")
                self._skip("]")
            else:
                self._pair(table)
            self._blank()

    def _header(self, bracket: str) -> Path:
        """Read a table header; the name of an array of tables means its last table."""
        self._skip(bracket)
        path: Path = ()
        parts = self._dotted()
        for part, at in parts:
            path = (*path, part)
            self.keys.setdefault(path, at)
            if path in self._tables and (part, at) != parts[-1]:
                path = (*path, self._tables[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        path = table
        for part, at in self._dotted():
            path = (*path, part)
            self.keys.setdefault(path, at)
        self._skip("=")
        self._value(path)

    def _dotted(self) -> list[tuple[str, int]]:
        parts = []
        while True:
            self._blank()
            at = self._at
            parts.append((_plain(self._take(_KEY)), at))
            if not self._take(_DOT):
                return parts

    def _value(self, path: Path) -> None:
        self._blank()
        self.values.setdefault(path, self._at)
        if self._text[self._at] == "{":
            self._items("{", "}", path)
        elif self._text[self._at] == "[":
            self._items("[", "]", path)
        else:
            self._take(_SCALAR)

    def _items(self, opening: str, closing: str, path: Path) -> None:
        self._skip(opening)
        index = 0
        while True:
            self._blank()
            if self._text[self._at] == closing:
                self._skip(closing)
                return
            if opening == "{":
                self._pair(path)
            else:
                self.keys[*path, index] = self._at
                self._value((*path, index))
                index += 1
            self._blank()
            if self._text[self._at] == ",":
                self._skip(",")

    def _skip(self, mark: str) -> None:
        self._blank()
        assert self._text.startswith(mark, self._at), "tomllib has accepted the text"
        self._at += len(mark)

    def _blank(self) -> None:
        self._take(_BLANK)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match, "tomllib has accepted the text"
        self._at = match.end()
        return match[0]


def _plain(key: str) -> str:
    """Return a key without its quotes."""
    if key[0] not in "\"'":
        return key
    plain: str = tomllib.loads(f"key = {key}")["key"]
    return plain
