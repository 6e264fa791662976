"""The keys of a scenario, from the classes that read it: type, range, default and comment."""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

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
from hybridsim.scenario.backing import Backing
from hybridsim.scenario.caches import CACHE_TABLES
from hybridsim.scenario.controller import ControllerDram
from hybridsim.scenario.event import Event
from hybridsim.scenario.host import Host
from hybridsim.scenario.levels import Rebuild
from hybridsim.scenario.machine import Machine, Price, Replay
from hybridsim.storage.drives import DRIVES

UNITS = {
    parse_size: ("size", format_size),
    parse_time: ("time", format_time),
    parse_rate: ("rate", format_rate),
}
HEAD = """\
# Keys of a scenario

`hybridsim scenario show` prints the whole machine with the source of each value;
`hybridsim scenario check FILE` finds mistakes. A size is a text such as `"64KiB"` or `"8TB"`, a
time `"8.5ms"`, a rate `"255MB/s"`, a share `"10%"`. A drive that names one of the
[catalog](catalog.md), `like = "NAME"`, has its values; keys beside it override them.

"""
SYMBOLS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def pages() -> dict[str, str]:
    """Return the page by its address."""
    tables = [
        ("The scenario itself", Machine),
        ("[backing]", Backing),
        ("[backing.rebuild]", Rebuild),
        ("[backing.controller]", ControllerDram),
        *(
            (f"[cache], kind = {_words(table.model_fields['kind'].annotation, '`')}", table)
            for table in CACHE_TABLES
        ),
        *((f'[backing.drive], [cache.drive], kind = "{kind}"', DRIVES[kind]) for kind in DRIVES),
        ("[host]", Host),
        ("[replay]", Replay),
        ("[price]", Price),
        ("[[event]]", Event),
    ]
    return {"reference/scenario.md": HEAD + "\n".join(_section(*each) for each in tables)}


def _section(title: str, table: type[Part]) -> str:
    comments = _comments(table)
    text = [
        f"## {title}\n",
        inspect.getdoc(table) or "",
        "",
        "| key | value | default | |",
        "|---|---|---|---|",
    ]
    for name, field in table.model_fields.items():
        if _is_table(field):
            continue
        default = _default(field)
        text.append(
            f"| `{field.alias or name}` | {_value(field)} | {default} | {comments.get(name, '')} |"
        )
    return "\n".join(text) + "\n"


def _is_table(field: FieldInfo) -> bool:
    """Whether the field is a table of its own, with its own section."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return any(isinstance(kind, type) and issubclass(kind, Part) for kind in kinds)


def _value(field: FieldInfo) -> str:
    unit, formatted = _unit(field)
    words = _words(field.annotation, "`") or unit or _plain(field.annotation)
    limits = [
        f"{SYMBOLS[name]} {formatted(getattr(each, name))}"
        for each in field.metadata
        for name in SYMBOLS
        if hasattr(each, name) and not (unit == "rate" and name == "gt")
    ]
    return ", ".join([words, *limits]).replace("|", "&#124;")


def _unit(field: FieldInfo) -> tuple[str, Any]:
    for each in [
        *field.metadata,
        *(m for a in get_args(field.annotation) for m in get_args(a)[1:]),
    ]:
        unit = UNITS.get(getattr(each, "func", None))
        if unit:
            return unit
    return "", str


def _words(annotation: Any, quote: str) -> str:
    """Return the words that a Literal accepts, "" if it is none."""
    for each in (annotation, *get_args(annotation)):
        if get_origin(each) is Literal:
            return " or ".join(f'{quote}"{word}"{quote}' for word in get_args(each))
    return ""


def _plain(annotation: Any) -> str:
    names = {int: "whole number", float: "number", bool: "`true` or `false`", str: "text"}
    for each in (annotation, *get_args(annotation)):
        if each in names:
            return names[each]
        if get_origin(each) in (tuple, list):
            return f"list of {_plain(get_args(each)[0])}s"
    return "text"


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is PydanticUndefined:
        return "needed" if field.default_factory is None else ""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    unit, formatted = _unit(field)
    return f'`"{formatted(value)}"`' if unit else f"`{value}`"


def _comments(table: type[Part]) -> dict[str, str]:
    """Return what the comments say of each field: those behind it, else those right above it."""
    found: dict[str, str] = {}
    for cls in reversed(table.__mro__):
        if issubclass(cls, Part) and cls is not Part:
            found |= dict(_comments_of(textwrap.dedent(inspect.getsource(cls))))
    return found


def _comments_of(source: str) -> Iterator[tuple[str, str]]:
    comments: dict[int, str] = {}
    alone: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ")
            if token.line.strip().startswith("#"):
                alone.add(token.start[0])
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
            text = " ".join(comment_lines).replace("|", "&#124;").replace("<", "&lt;")
            yield node.target.id, text
