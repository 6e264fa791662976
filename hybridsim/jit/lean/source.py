"""The syntax tree of a function."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from typing import Any

from hybridsim.jit.lean.values import Unsupported


def tree_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function; raise Unsupported if there is no source."""
    code = function.__code__
    found = _functions(code.co_filename).get(code.co_firstlineno)
    if found is None or found.name != function.__name__:
        raise Unsupported("no source")
    return found


@functools.cache
def _functions(file: str) -> dict[int, ast.FunctionDef]:
    """Return the functions of a file by the line where they begin, decorators included."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError as error:
        raise Unsupported("no source") from error
    return {
        min([each.lineno, *(one.lineno for one in each.decorator_list)]): each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
    }
