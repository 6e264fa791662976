"""The syntax tree of a function."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from hybridsim.jit.lean.values import Unsupported

OF_CLASS = getattr(inspect, "CO_METHOD", 0)


def tree_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function.

    Raises Unsupported if there is no source, or if it is not what the function was made from, as
    after a file was edited.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    whole, functions = _parsed(text)
    tree = functions.get(code.co_firstlineno)
    if tree is None:
        raise Unsupported("no source")
    # To compile only the function saves most of the time.  Its code depends on what is imported,
    # and on the variables of a function around it.
    imports = [each for each in whole.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    part = whole if code.co_freevars else ast.Module([*imports, tree], [])
    future = code.co_flags & __future__.annotations.compiler_flag
    made = compile(part, code.co_filename, "exec", future, dont_inherit=True)
    if _plain(code) not in map(_plain, _inside(made)):
        raise Unsupported("other source")
    return tree


@functools.cache
def _parsed(text: str) -> tuple[ast.Module, dict[int, ast.FunctionDef]]:
    """Return a file's tree, and its functions by the line where they begin, decorators included."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise Unsupported("no source") from error
    return tree, {
        min([each.lineno, *(one.lineno for one in each.decorator_list)]): each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
    }


def _plain(code: CodeType) -> CodeType:
    """Return code without the flag that Python 3.14 gives to what is defined in a class."""
    return code.replace(co_flags=code.co_flags & ~OF_CLASS)


def _inside(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of everything that is defined in a piece of code."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)
