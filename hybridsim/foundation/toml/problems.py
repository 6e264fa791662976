"""Parse TOML text; errors in it: the place, the source line, and how to fix it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.suggest import hint, nearest
from hybridsim.foundation.toml.places import Path

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

SHOWN = 200  # characters shown on either side of the error, and of each end of a long message
MESSAGE_MAX = 4000  # characters of a message shown whole: the names of all drives are shorter
PROBLEMS_MAX = 50  # problems that are explained; each costs a pass over the text


class Problem(NamedTuple):
    """One error: its message, its place, and the source line."""

    message: str
    place: str  # file:line:column, or the option
    source: str = ""  # the line with a caret under it
    line: int = 0
    column: int = 0

    @classmethod
    def at(cls, message: str, text: str, name: str, line: int, column: int) -> Problem:
        """Return the problem at a line and column (from 1) of the file `name`."""
        content = text.split("\n")[line - 1] if text else ""
        before, after = content[: column - 1], content[column - 1 :]
        if len(before) > SHOWN:
            before = f"... {before[-SHOWN:]}"
        if len(after) > SHOWN:
            after = f"{after[:SHOWN]} ..."
        under = "".join("\t" if c == "\t" else " " for c in printable(before, "\t"))
        number, shown = str(line), printable(before + after, "\t")
        source = f"  {number} | {shown}\n  {' ' * len(number)} | {under}^"
        return cls(message, f"{printable(name)}:{line}:{column}", source, line, column)

    @classmethod
    def of_syntax(cls, error: str, text: str, name: str) -> Problem:
        """Return the problem that an error message of `tomllib` describes."""
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
        if len(message) > MESSAGE_MAX:
            message = f"{message[:SHOWN]} ... {message[-SHOWN:]}"
        return f"{self.place}: {printable(message)}" + (f"\n{self.source}" if self.source else "")


def _remedy_of_syntax(line: str) -> str:
    """Return the fix for a line that looks like the most common mistake, an unquoted string."""
    key, equals, rest = line.partition("=")
    key, value = key.strip(), rest.partition("#")[0].strip()
    is_bare = bool(equals and value) and not any(mark in value for mark in "\"'[{")
    if not is_bare or value in ("true", "false") or not re.fullmatch(r"[\w-]+", key):
        return ""
    if re.search(r"[^\W\d_]|%|\d-\d", value):
        return f': words and numbers with units need quotes: {key} = "{value}"'
    return ""


class Locates(Protocol):
    """Locates a path of tables and keys in its source, a file or options."""

    def problem(self, path: Path, message: str, of: Literal["key", "value"] = "value") -> Problem:
        """Return a problem at the place of a path."""
        ...


def report(problems: Iterable[Problem], what: str = "scenario") -> str:
    """Return the problems as one text in the order of the file, at most PROBLEMS_MAX of them."""
    ordered = sorted(problems, key=lambda problem: (problem.line, problem.column))
    if len(ordered) == 1:
        return str(ordered[0])
    count = len(ordered) if len(ordered) <= PROBLEMS_MAX else f"more than {PROBLEMS_MAX}"
    return "\n".join([f"{count} problems in the {what}", *map(str, ordered[:PROBLEMS_MAX])])


def explain(
    error: ValidationError,
    origin: Locates,
    tables: Callable[[Path, str], Iterable[type[BaseModel]]],
    path_of: Callable[[Path], Path],
) -> list[Problem]:
    """Return the problems of a failed validation, with the names that the text uses.

    `tables` returns the table with the key of a path, of a kind or ("") of all kinds, `path_of` the
    path in the text for a location of pydantic's, which names the kind too.
    """
    details = [(path_of(detail["loc"]), detail) for detail in error.errors()]
    missed = [one for one in details if one[1]["type"] == "missing"]
    details = missed + [one for one in details if one[1]["type"] != "missing"][: PROBLEMS_MAX + 1]
    missing = {path for path, detail in details if detail["type"] == "missing"}
    problems = []
    for path, detail in details:
        if detail["type"] == "extra_forbidden":
            kind = next((str(part) for part in reversed(detail["loc"]) if part not in path), "")
            known, of_all = keys_of(tables(path, kind)), keys_of(tables(path, ""))
            problems.append(_unknown(path, missing, origin, known, of_all))
        elif detail["type"] != "missing":
            problems += _wrong(path, detail, origin)
    for table in {path[:-1]: None for path, _ in details if path in missing}:
        keys = [str(path[-1]) for path, _ in details if path in missing and path[:-1] == table]
        problems.append(origin.problem(table, f"missing: {', '.join(keys)}", "key"))
    return problems


def keys_of(tables: Iterable[type[BaseModel]]) -> list[str]:
    """Return the keys of tables, each once."""
    facts = [fact for table in tables for fact in table.model_fields.items()]
    return list(dict.fromkeys(fact.alias or name for name, fact in facts))


def _unknown(
    path: Path, missing: set[Path], origin: Locates, known: list[str], of_all_kinds: list[str]
) -> Problem:
    """Explain an unknown key; one similar to a missing key is assumed to be that key, mistyped."""
    key = str(path[-1])
    meant = nearest(key, [str(other[-1]) for other in missing if other[:-1] == path[:-1]])
    if meant:
        missing.discard((*path[:-1], meant))
        return origin.problem(path, f"unknown key {key!r}: did you mean {meant!r}?", "key")
    if key in of_all_kinds:
        table = next(name for name in reversed(path[:-1]) if isinstance(name, str))
        return origin.problem(
            path, f"{key!r} is a key of another kind of {table}: leave it out", "key"
        )
    return origin.problem(path, f"unknown key {key!r}: {hint(key, known)}", "key")


def _wrong(path: Path, detail: ErrorDetails, origin: Locates) -> list[Problem]:
    """Explain an invalid value."""
    from hybridsim.foundation.toml.table import ContradictionError

    context = detail.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, ContradictionError):
        return [origin.problem((*path, key), message) for key, message in cause.contradictions]
    if detail["type"] == "value_error":
        return [origin.problem(path, str(cause))]
    if detail["type"] == "union_tag_invalid":
        path = (*path, "kind")
    return [origin.problem(path, _message(str(path[-1]), detail, context))]


def _message(key: str, detail: ErrorDetails, context: dict[str, Any]) -> str:
    value = repr(detail["input"]) if not isinstance(detail["input"], dict) else "a table"
    kind = detail["type"]
    if kind in ("literal_error", "union_tag_invalid"):
        expected = context.get("expected", context.get("expected_tags", ""))
        choices = re.findall(r"'([^']*)'", str(expected))
        if kind == "union_tag_invalid":
            value = repr(context.get("tag"))
        near = nearest(value.strip("'"), choices)
        meant = f": did you mean {near!r}?" if near else ""
        return f"{key} cannot be {value[:40]}{meant or f': one of {expected}'}"
    if kind in _WANTED:
        return f"{key} must be {_WANTED[kind]}, not {value[:40]}"
    if kind in _BOUNDS:
        (bound,) = context.values()
        return f"{key} must be {_BOUNDS[kind]} {bound}, not {value[:40]}"
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


DEPTH_MAX = 64  # nested tables and lists; no valid text needs ten
LENGTH_MAX = 1 << 24  # characters; valid texts are 1000 times shorter
# Strings and comments: their dots do not separate keys.  No backtracking: any text may be matched.
_STRING_OR_COMMENT = re.compile(
    r"#[^\n]*+"
    r'|"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:""")?'
    r"|'''(?:[^']|'(?!''))*+(?:''')?"
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'[^'\n]*+'?"
)
_NEXT = re.compile(r"[=,{}\[\]\n]")  # one of these ends a key
BYTE_ORDER_MARK = "\ufeff"


def cleaned(text: str) -> str:
    """Return a text without a byte order mark and with line feeds as line ends."""
    return text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def parsed(text: str, name: str, error: type[HybridsimError]) -> dict[str, Any]:
    """Return the tables of a TOML text; raise `error` with the place if it is not valid TOML."""
    if len(text) > LENGTH_MAX:
        raise error(
            f"{printable(name)}: longer than {LENGTH_MAX:,} characters: not a file of this kind"
        )
    if _has_long_key(text):  # tomllib takes quadratic time in the parts of a key
        raise error(_too_deep(name))
    try:
        tables = tomllib.loads(text)
    except ValueError as wrong:  # also raised for a number with more digits than Python accepts
        raise error(str(Problem.of_syntax(str(wrong), text, name))) from None
    except RecursionError:
        raise error(_too_deep(name)) from None
    if _is_deep(tables):
        raise error(_too_deep(name))
    return tables


def _too_deep(name: str) -> str:
    return f"{printable(name)}: brackets or tables are nested too deep"


def _has_long_key(text: str) -> bool:
    """Return whether a dotted key has more parts than DEPTH_MAX."""
    return text.count(".") > DEPTH_MAX and any(
        part.count(".") > DEPTH_MAX for part in _NEXT.split(_STRING_OR_COMMENT.sub("_", text))
    )


def _is_deep(tables: dict[str, Any]) -> bool:
    level: list[Any] = [tables]
    for _ in range(DEPTH_MAX):
        inner = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
        level = [each for each in inner if isinstance(each, dict | list)]
    return bool(level)
