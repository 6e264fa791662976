"""From a text to tables, or to the one error that says where it is no TOML."""

from __future__ import annotations

import tomllib
from typing import Any

from hybridsim.foundation.errors import HybridsimError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.toml.problems import Problem

DEEPEST = 64  # tables and lists in each other; no text of ours needs ten
BYTE_ORDER_MARK = "\ufeff"


def cleaned(text: str) -> str:
    """Return a text without what editors on other systems add: a mark in front, other line ends."""
    return text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def parsed(text: str, name: str, error: type[HybridsimError]) -> dict[str, Any]:
    """Return the tables of a text; raise `error` where it has none."""
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


def _is_deep(said: dict[str, Any]) -> bool:
    level: list[Any] = [said]
    for _ in range(DEEPEST):
        inner = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
        level = [each for each in inner if isinstance(each, dict | list)]
    return bool(level)
