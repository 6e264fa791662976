"""What each key of a scenario takes and means, from the class that reads it and its comments."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hybridsim.foundation.toml.table import Part
from hybridsim.foundation.units import (
    format_rate,
    format_size,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
)
from hybridsim.scenario.machine import Table, tables

UNITS: dict[Any, tuple[str, Any]] = {
    parse_size: ("size", format_size),
    parse_time: ("time", format_time),
    parse_rate: ("rate", format_rate),
}
LIMITS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


class Key(NamedTuple):
    """A key of a table."""

    name: str
    value: str  # the type and its limits
    default: str | None  # as in a file; None: the key is needed; "": no value
    text: str  # what it means; "" if the name says it


def keys_of(model: type[Part]) -> list[Key]:
    """Return the keys of a table, without the tables in it."""
    texts = comments(model)
    return [
        Key(field.alias or name, _value(field), _default(field), texts.get(name, ""))
        for name, field in model.model_fields.items()
        if not any(
            isinstance(kind, type) and issubclass(kind, Part)
            for kind in (field.annotation, *get_args(field.annotation))
        )
    ]


def named(word: str) -> list[tuple[list[Table], Key]]:
    """Return the keys with a name, such as `writeback_percent` or `cache.mode`.

    Each comes with the tables that have it in the same class.
    """
    *path, name = word.casefold().replace("-", "_").split(".")
    found: dict[type[Part], tuple[list[Table], Key]] = {}
    for table in tables():
        if path and list(table.path[-len(path) :]) != path:
            continue
        for key in keys_of(table.model):
            if key.name == name:
                found.setdefault(table.model, ([], key))[0].append(table)
    return list(found.values())


def names() -> list[str]:
    """Return the names of all keys, each with its table."""
    keys = [(table.path, key.name) for table in tables() for key in keys_of(table.model)]
    return list(dict.fromkeys(".".join([*map(str, path), name]) for path, name in keys))


def _value(field: FieldInfo) -> str:
    unit, formatted = _unit(field)
    words = unit or _type(field.annotation)
    limits = [
        f"{LIMITS[name]} {formatted(getattr(each, name))}"
        for each in field.metadata
        for name in LIMITS
        if hasattr(each, name) and not (unit == "rate" and name == "gt")
    ]
    return ", ".join([words, *limits])


def _unit(field: FieldInfo) -> tuple[str, Any]:
    for each in [
        *field.metadata,
        *(m for a in get_args(field.annotation) for m in get_args(a)[1:]),
    ]:
        unit = UNITS.get(getattr(each, "func", None))
        if unit:
            return unit
    return "", str


def _type(annotation: Any) -> str:
    """Return the words that a Literal accepts, or the type of what is written."""
    names = {int: "whole number", float: "number", bool: "true or false", str: "text"}
    for each in (annotation, *get_args(annotation)):
        if get_origin(each) is Literal:
            return " or ".join(f'"{word}"' for word in get_args(each))
        if each in names:
            return names[each]
        if get_origin(each) in (tuple, list):
            return f"list of {_type(get_args(each)[0])}s"
    return "text"


def _default(field: FieldInfo) -> str | None:
    value = field.default
    if value is PydanticUndefined:
        return None if field.default_factory is None else ""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    if isinstance(value, str):
        return f'"{value}"'
    unit, formatted = _unit(field)
    return f'"{formatted(value)}"' if unit else str(value)


def comments(model: type[Part]) -> dict[str, str]:
    """Return what the comments say of each field: those behind it, else those right above it.

    Of a field without any they are those of the class that it is inherited from.
    """
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, Part) and cls is not Part:
            own = dict(_comments_of(textwrap.dedent(inspect.getsource(cls))))
            found |= {name: text for name, text in own.items() if text}
    return found


def _comments_of(source: str) -> Iterator[tuple[str, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = {token.start[0]: token for token in tokens if token.type == tokenize.COMMENT}
    comments = {line: token.string.lstrip("# ") for line, token in found.items()}
    alone = {line for line, token in found.items() if token.line.strip().startswith("#")}
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            comment_lines = [comments[line] for line in lines if line in comments]
            above = node.lineno - 1
            while above in alone and not comment_lines:
                above -= 1
            comment_lines = comment_lines or [
                comments[line] for line in range(above + 1, node.lineno) if line in alone
            ]
            yield node.target.id, " ".join(comment_lines)
