"""What is wrong with a text of tables: where, the line itself, and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from hybridsim.foundation.printable import printable
from hybridsim.foundation.suggest import hint, nearest

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]

SHOWN = 200  # characters of a line on either side of what is wrong, and of a long message
LONGEST = 4000  # message that is shown whole: the names of all drives are shorter
MOST = 50  # problems that are explained; each costs a look at the whole text


class Problem(NamedTuple):
    """One thing to mend."""

    message: str
    place: str  # file:line:column, or the option
    source: str = ""  # the line with a caret under it
    line: int = 0
    column: int = 0

    @classmethod
    def at(cls, message: str, text: str, name: str, line: int, column: int) -> Problem:
        """Return a problem at a line and column of a file."""
        content = text.split("\n")[line - 1] if text else ""
        before, behind = content[: column - 1], content[column - 1 :]
        if len(before) > SHOWN:
            before = f"... {before[-SHOWN:]}"
        if len(behind) > SHOWN:
            behind = f"{behind[:SHOWN]} ..."
        under = "".join("\t" if c == "\t" else " " for c in printable(before, "\t"))
        number, shown = str(line), printable(before + behind, "\t")
        source = f"  {number} | {shown}\n  {' ' * len(number)} | {under}^"
        return cls(message, f"{printable(name)}:{line}:{column}", source, line, column)

    @classmethod
    def of_syntax(cls, error: str, text: str, name: str) -> Problem:
        """Return the problem that `tomllib` found."""
        place = re.search(r" \(at line (\d+), column (\d+)\)$", error)
        what = re.sub(r" \(at [^()]*\)$", "", error)
        lines = text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
        if place:
            line, column = int(place[1]), int(place[2])
        message = f"not TOML: {what[:1].lower()}{what[1:]}"
        return cls.at(message + _remedy_of_syntax(lines[line - 1]), text, name, line, column)

    def __str__(self) -> str:
        message = self.message
        if len(message) > LONGEST:
            message = f"{message[:SHOWN]} ... {message[-SHOWN:]}"
        return f"{self.place}: {printable(message)}" + (f"\n{self.source}" if self.source else "")


def _remedy_of_syntax(line: str) -> str:
    """Say what is meant where a line looks like the commonest mistake."""
    key, equals, rest = line.partition("=")
    key, value = key.strip(), rest.partition("#")[0].strip()
    is_bare = bool(equals and value) and not any(mark in value for mark in "\"'[{")
    if not is_bare or value in ("true", "false") or not re.fullmatch(r"[\w-]+", key):
        return ""
    if re.search(r"[^\W\d_]|%|\d-\d", value):
        return f': words and numbers with units stand in quotes: {key} = "{value}"'
    return ""


class Locates(Protocol):
    """Knows where a path of tables and keys was said."""

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem with the place of its path."""
        ...


def report(problems: Iterable[Problem], what: str = "scenario") -> str:
    """Return the problems as one text, in the order of the file: at most MOST of them."""
    ordered = sorted(problems, key=lambda problem: (problem.line, problem.column))
    if len(ordered) == 1:
        return str(ordered[0])
    count = len(ordered) if len(ordered) <= MOST else f"more than {MOST}"
    return "\n".join([f"{count} problems in the {what}", *map(str, ordered[:MOST])])


def explain(
    error: ValidationError,
    origin: Locates,
    known: Callable[[Path], list[str]],
    path_of: Callable[[Path], Path],
) -> list[Problem]:
    """Return the problems of a failed validation, in the text's own words.

    `known` tells the keys of the table that a path lies in, `path_of` where in the text it is.
    """
    details = [(path_of(detail["loc"]), detail) for detail in error.errors()]
    missed = [one for one in details if one[1]["type"] == "missing"]
    details = missed + [one for one in details if one[1]["type"] != "missing"][: MOST + 1]
    missing = {path for path, detail in details if detail["type"] == "missing"}
    problems = []
    for path, detail in details:
        if detail["type"] == "extra_forbidden":
            problems.append(_unknown(path, missing, origin, known(path)))
        elif detail["type"] != "missing":
            problems += _wrong(path, detail, origin)
    for table in {path[:-1]: None for path, _ in details if path in missing}:
        keys = [str(path[-1]) for path, _ in details if path in missing and path[:-1] == table]
        problems.append(origin.problem(table, f"missing: {', '.join(keys)}", "key"))
    return problems


def _unknown(path: Path, missing: set[Path], origin: Locates, known: list[str]) -> Problem:
    """Explain an unknown key; one that is nearly a missing key is that key, mistyped."""
    key = str(path[-1])
    meant = nearest(key, [str(other[-1]) for other in missing if other[:-1] == path[:-1]])
    if meant:
        missing.discard((*path[:-1], meant))
        return origin.problem(path, f"unknown key {key!r}: did you mean {meant!r}?", "key")
    if key in known:
        table = next(name for name in reversed(path[:-1]) if isinstance(name, str))
        return origin.problem(path, f"{key!r} is a key of another kind of {table}", "key")
    return origin.problem(path, f"unknown key {key!r}: {hint(key, known)}", "key")


def _wrong(path: Path, detail: ErrorDetails, origin: Locates) -> list[Problem]:
    """Explain a value that cannot be."""
    from hybridsim.foundation.toml.table import ContradictionError

    context = detail.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ContradictionError):
        return [origin.problem((*path, key), message) for key, message in cause.found]
    if detail["type"] == "value_error":
        return [origin.problem(path, str(cause))]
    if detail["type"] == "union_tag_invalid":
        path = (*path, "kind")
    return [origin.problem(path, _message(str(path[-1]), detail, context))]


def _message(key: str, detail: ErrorDetails, context: dict[str, Any]) -> str:
    given = repr(detail["input"]) if not isinstance(detail["input"], dict) else "a table"
    kind = detail["type"]
    if kind in ("literal_error", "union_tag_invalid"):
        expected = context.get("expected", context.get("expected_tags", ""))
        choices = re.findall(r"'([^']*)'", str(expected))
        if kind == "union_tag_invalid":
            given = repr(context.get("tag"))
        near = nearest(given.strip("'"), choices)
        meant = f": did you mean {near!r}?" if near else ""
        return f"{key} cannot be {given[:40]}{meant or f': one of {expected}'}"
    if kind in _WANTED:
        return f"{key} must be {_WANTED[kind]}, not {given[:40]}"
    if kind in _BOUNDS:
        (bound,) = context.values()
        return f"{key} must be {_BOUNDS[kind]} {bound}, not {given[:40]}"
    return f"{key}: {detail['msg']}"


_WANTED = {
    "int_type": "a whole number without quotes",
    "float_type": "a number without quotes",
    "string_type": "text in quotes",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dict_type": "a table",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": "above",
    "greater_than_equal": "at least",
    "less_than": "below",
    "less_than_equal": "at most",
}
