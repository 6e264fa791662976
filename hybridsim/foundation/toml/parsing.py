"""From a text to tables, or to the one error that says where it is no TOML."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.toml.problems import Problem

DEEPEST = 64  # tables and lists in each other; no text of ours needs ten
LARGEST = 1 << 24  # characters; no text of ours has a thousandth of it
# What may hold dots that part no keys.  Nothing is tried twice: the text need not be TOML.
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
    """Return a text without what editors on other systems add: a mark in front, other line ends."""
    return text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def parsed(text: str, name: str, error: type[HybridsimError]) -> dict[str, Any]:
    """Return the tables of a text; raise `error` where it has none."""
    if len(text) > LARGEST:
        raise error(f"{printable(name)}: longer than {LARGEST:,} characters: this is another file")
    if _has_long_key(text):  # tomllib takes time by the square of a key's parts
        raise error(_too_deep(name))
    try:
        said = tomllib.loads(text)
    except ValueError as wrong:  # also of a number with more digits than Python takes
        raise error(str(Problem.of_syntax(str(wrong), text, name))) from None
    except RecursionError:
        raise error(_too_deep(name)) from None
    if _is_deep(said):
        raise error(_too_deep(name))
    return said


def _too_deep(name: str) -> str:
    return f"{printable(name)}: brackets or tables are nested too deep"


def _has_long_key(text: str) -> bool:
    """Tell whether dots part a key into more tables than there may be."""
    return text.count(".") > DEEPEST and any(
        part.count(".") > DEEPEST for part in _NEXT.split(_STRING_OR_COMMENT.sub("_", text))
    )


def _is_deep(said: dict[str, Any]) -> bool:
    level: list[Any] = [said]
    for _ in range(DEEPEST):
        inner = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
        level = [each for each in inner if isinstance(each, dict | list)]
    return bool(level)
