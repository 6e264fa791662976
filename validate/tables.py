"""Read a table of TOML key by key; all problems are reported at once, each with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from validate.errors import ExperimentError
from validate.sizes import human, microseconds_of, seconds_of, size_of

T = TypeVar("T")
NEEDED: Any = object()


class Problems:
    """The problems of a file."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self._lines = text.splitlines()
        self._found: list[str] = []

    def add(self, message: str) -> None:
        """Add a problem whose message contains its place."""
        self._found.append(message)

    def at(self, section: str, key: str, message: str) -> None:
        """Add a problem at a key."""
        line = self._line(section, key)
        where = f"{self.name}:{line}" if line else self.name
        path = f"[{section}] {key}" if section else key
        self._found.append(f"{where}: {path}: {message}")

    def raise_if_any(self) -> None:
        """Raise ExperimentError with all problems, if there are any."""
        if self._found:
            raise ExperimentError("\n".join(dict.fromkeys(self._found)))

    def _line(self, section: str, key: str) -> int:
        inside = ""
        for number, line in enumerate(self._lines, 1):
            header = re.match(r"\s*\[([\w.-]+)\]", line)
            inside = header[1] if header else inside
            if inside == section and re.match(rf"\s*{re.escape(key)}\s*=", line):
                return number
            if header and inside == key and not section:
                return number
        return 0


class Table:
    """A table of the file; keys that are never read are problems."""

    def __init__(self, values: Mapping[str, Any], section: str, problems: Problems) -> None:
        self.problems = problems
        self._values = values
        self._section = section
        self._asked: set[str] = set()

    def refuse(self, key: str, message: str) -> None:
        """Add a problem at a key of this table."""
        self.problems.at(self._section, key, message)

    def finish(self) -> None:
        """Add a problem for each unknown key."""
        for key in self._values.keys() - self._asked:
            like = get_close_matches(key, self._asked, 1)
            remedy = (
                f"did you mean {like[0]}?"
                if like
                else f"supported: {', '.join(sorted(self._asked))}"
            )
            self.refuse(key, f"unknown key; {remedy}")

    def table(self, key: str, default: Any = NEEDED) -> Table:
        """Return a table inside this one."""
        value = self._value(key, default)
        if not isinstance(value, dict):
            if value is not None:
                self.refuse(key, f"must be a table: write [{key}] on a line of its own")
            value = {}
        return Table(value, key, self.problems)

    def text(self, key: str, default: Any = NEEDED) -> str:
        """Return a text."""
        return self._of(key, default, _text, "")

    def matching(self, key: str, pattern: re.Pattern[str], words: str) -> str:
        """Return a text that matches a pattern; `words` describes it."""
        value = self.text(key)
        if value and not pattern.fullmatch(value):
            self.refuse(key, f"{value!r} is invalid: use {words}")
        return value

    def choice(self, key: str, choices: Iterable[str], default: Any = NEEDED) -> str:
        """Return one of some words."""
        value, words = self.text(key, default), tuple(choices)
        if value and words and value not in words:
            like = get_close_matches(value, words, 1)
            remedy = f"did you mean {like[0]}? " if like else ""
            self.refuse(key, f"{value!r} is unknown: {remedy}supported: {', '.join(words)}")
        return value

    def plain(self, key: str) -> str | None:
        """Return a text, number or truth value as hybridsim's --set takes it; None without it."""
        value = self._value(key, None)
        if isinstance(value, bool):
            return str(value).lower()
        if value is not None and not isinstance(value, str | int | float):
            self.refuse(key, f"{value!r} is neither a text nor a number")
        return None if value is None else str(value)

    def boolean(self, key: str, default: bool) -> bool:
        """Return true or false."""
        return self._of(key, default, _boolean, default)

    def integer(self, key: str, default: Any, minimum: int = 0, maximum: int = 1 << 62) -> Any:
        """Return a whole number in bounds, or the default."""
        value = self._of(key, default, _integer, default)
        if value is not None and not minimum <= value <= maximum:
            self.refuse(key, f"{value} is not from {minimum} to {maximum}")
        return value

    def size(
        self,
        key: str,
        default: Any = NEEDED,
        *,
        minimum: int = 0,
        maximum: int = 1 << 62,
        of: int = 512,
    ) -> Any:
        """Return bytes in bounds that are a multiple of `of`, or the default."""
        value = self._of(key, default, size_of, minimum)
        if value is None or key not in self._values:
            return value
        if not minimum <= value <= maximum:
            self.refuse(key, f"{human(value)} is not from {human(minimum)} to {human(maximum)}")
        if value % of:
            self.refuse(key, f"{value} is not a multiple of {human(of)}")
        return value

    def seconds(self, key: str, default: Any = NEEDED) -> int:
        """Return whole seconds."""
        return self._of(key, default, seconds_of, 1)

    def microseconds(self, key: str, default: Any) -> Any:
        """Return microseconds."""
        return self._of(key, default, microseconds_of, default)

    def _value(self, key: str, default: Any) -> Any:
        self._asked.add(key)
        if key in self._values:
            return self._values[key]
        if default is NEEDED:
            self.refuse(key, "is required")
            return None
        return default

    def _of(self, key: str, default: Any, read: Any, instead: T) -> T:
        """Return the parsed value, the default if it is missing, or `instead` if it is invalid."""
        value = self._value(key, default)
        if key not in self._values:
            return instead if default is NEEDED else default
        try:
            return read(value)  # type: ignore[no-any-return]
        except ValueError as error:
            self.refuse(key, str(error))
            return instead


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text: write it in quotes")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not a whole number")
    return value
