"""Parse TOML text into tables, or raise one error that names the place of the mistake."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.toml.problems import Problem

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
