"""An interpreter of what jit/lean compiles: numbers with a type, of as many bits.

Python runs the text itself; each number in it is a Typed, so that operators have the types that
numba gives them, and wrap, round and divide as machine code should.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import from_dtype
from numba.core.registry import cpu_target

from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.kinds import BOOL, FLOAT, INT, UINT


class Typed:
    """A number of a type."""

    def __init__(self, kind: Any, value: Any) -> None:
        self.kind = kind
        self.value = value

    def __bool__(self) -> bool:
        return self.value != 0

    def __index__(self) -> int:
        return int(self.value)

    __hash__ = None  # type: ignore[assignment]


def typed(value: Any) -> Any:
    """Return a Python number with the type of a constant."""
    if isinstance(value, bool | np.bool_):
        return Typed(BOOL, bool(value))
    if isinstance(value, int):
        return Typed(INT, int(value))
    return Typed(FLOAT, value) if isinstance(value, float) else value


def wrapped(kind: Any, value: int) -> int:
    """Return the low bits of a whole number."""
    low = value & ((1 << kind.bitwidth) - 1)
    return low - (1 << kind.bitwidth) if kind.signed and low >> (kind.bitwidth - 1) else low


def as_kind(number: Typed, kind: Any) -> Typed:
    """Return a number as another type."""
    if kind is BOOL:
        return Typed(kind, bool(number))
    if kinds.is_float(kind):
        return Typed(kind, float(number.value))
    if kinds.is_float(number.kind) and not math.isfinite(number.value):
        return Typed(kind, 0)  # undefined: only in the branch of a program that is not taken
    return Typed(kind, wrapped(kind, int(number.value)))


def two(of: Callable[..., Any], left: Any, right: Any) -> Typed:
    """Return the result of an operator with two operands."""
    a, b = typed(left), typed(right)
    (one, other), kind = kinds.operation(of, a.kind, b.kind)
    if of not in COMPARISONS or kinds.is_float(one):
        a, b = as_kind(a, one), as_kind(b, other)  # whole numbers are compared by their values
    if kinds.is_float(one):
        with np.errstate(all="ignore"):
            found = of(np.float64(a.value), np.float64(b.value))
        return Typed(kind, bool(found) if kind is BOOL else float(found))
    x, y = int(a.value), int(b.value)
    if of in (operator.floordiv, operator.mod) and y == 0:
        return Typed(kind, 0)
    if of in (operator.floordiv, operator.mod) and kind.signed and (x, y) == (kind.minval, -1):
        return Typed(kind, 0)
    found = of(x, y)
    if kind is BOOL:
        return Typed(kind, bool(found))
    return Typed(kind, wrapped(kind, found))


def one(of: Callable[..., Any], operand: Any) -> Typed:
    """Return the result of an operator with one operand: in its bits first, as in numpy."""
    (kind,), result = kinds.operation(of, operand.kind)
    number = of(as_kind(operand, kind).value)
    if kinds.is_float(result):
        return Typed(result, number)
    return as_kind(Typed(kind, wrapped(kind, number)), result)


COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)
BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
}  # fmt: skip
for _name, _of in BINARY.items():
    setattr(Typed, f"__{_name}__", lambda a, b, of=_of: two(of, a, b))
    setattr(Typed, f"__r{_name}__", lambda a, b, of=_of: two(of, b, a))
for _of in COMPARISONS:
    setattr(Typed, f"__{_of.__name__}__", lambda a, b, of=_of: two(of, a, b))
for _of in (operator.neg, operator.pos, operator.invert):
    setattr(Typed, f"__{_of.__name__}__", lambda a, of=_of: one(of, a))


def unified(numbers: list[Typed]) -> Any:
    """Return the type of a result that is any of some numbers."""
    return cpu_target.typing_context.unify_types(*[each.kind for each in numbers])


def either(test: Typed, yes: Typed, no: Typed) -> Typed:
    """Return `yes if test else no`; both were computed, which changes nothing."""
    return as_kind(yes if test else no, unified([yes, no]))


def short(is_and: bool, *numbers: Typed) -> Typed:
    """Return the result of `and` or `or`."""
    result = numbers[0]
    for each in numbers[1:]:
        decides = bool(result) is not is_and
        result = as_kind(result if decides else each, unified([result, each]))
    return result


def extreme(is_better: Callable[..., Any], *numbers: Any) -> Typed:
    """Return the least or greatest; the first of equals."""
    best = typed(numbers[0])
    for each in map(typed, numbers[1:]):
        kind = unified([best, each])
        old, new = as_kind(best, kind), as_kind(each, kind)
        best = new if is_better(new.value, old.value) else old
    return best


def absolute(number: Typed) -> Typed:
    """Return the absolute value."""
    return -number if number.value < 0 else number


def exponential(number: Any) -> Typed:
    """Return the exponential, infinite if it is too large."""
    try:
        return Typed(FLOAT, math.exp(number.value))
    except OverflowError:
        return Typed(FLOAT, math.inf)


class Array:
    """An array whose items are Typed."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __getitem__(self, at: Any) -> Any:
        found = self.values[_plain(at)]
        if isinstance(found, np.void):
            return Record(self.values, _plain(at))
        if isinstance(found, np.ndarray):
            return Array(found)
        return Typed(from_dtype(found.dtype), found.item())

    def __setitem__(self, at: Any, value: Any) -> None:
        kind = from_dtype(self.values.dtype)
        self.values[_plain(at)] = as_kind(typed(value), kind).value

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in builtins.range(len(self.values)))

    @property
    def shape(self) -> tuple[Typed, ...]:
        """The lengths of the axes."""
        return tuple(map(typed, self.values.shape))


class Record:
    """An item of an array of records."""

    def __init__(self, values: Any, at: Any) -> None:
        self.__dict__.update(values=values, at=at)

    def __getattr__(self, name: str) -> Any:
        return Array(self.values[name])[self.at]

    def __setattr__(self, name: str, value: Any) -> None:
        Array(self.values[name])[self.at] = value


def _plain(at: Any) -> Any:
    if isinstance(at, tuple):
        return tuple(map(_plain, at))
    if isinstance(at, slice):
        return slice(*[None if end is None else int(end) for end in (at.start, at.stop)])
    return int(at)


def shown(item: Any) -> Any:
    """Return a machine, or a part of one, with Typed numbers in it."""
    if hasattr(item, "_fields"):
        return type(item)(*map(shown, item))
    if isinstance(item, np.ndarray):
        return Array(item)
    return tuple(map(typed, item)) if isinstance(item, tuple) else typed(item)


class _Rewritten(ast.NodeTransformer):
    """Functions in which each number is typed, and what has no method of a class is a call."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = []
        node.body = [self.visit(each) for each in node.body]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = []
        node.body = [
            self.visit(each) if isinstance(each, ast.FunctionDef) else each for each in node.body
        ]
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        is_number = isinstance(node.value, bool | int | float)
        return _call("typed_", node) if is_number else node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return _call("either_", *map(self.visit, (node.test, node.body, node.orelse)))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        is_and = ast.Constant(isinstance(node.op, ast.And))
        return _call("short_", is_and, *map(self.visit, node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return _call("not_", operand)
        return ast.UnaryOp(node.op, operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        is_identity = isinstance(node.ops[0], ast.Is | ast.IsNot)
        return _call("typed_", node) if is_identity else node


def _call(name: str, *arguments: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def load(text: str) -> SimpleNamespace:
    """Return a module whose functions compute with Typed numbers."""
    tree = ast.parse(text)
    tree.body = [
        _Rewritten().visit(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else node
        for node in tree.body
    ]
    names: dict[str, Any] = {"__name__": "interpreted"}
    exec(compile(ast.fix_missing_locations(tree), "interpreted", "exec"), names)
    for name, item in list(names.items()):
        if isinstance(item, tuple):
            names[name] = tuple(map(typed, item))
        elif isinstance(item, int | float):
            names[name] = typed(item)
    names.update(INSTEAD)
    return SimpleNamespace(**names)


def _number(kind: Any) -> Callable[[Any], Typed]:
    return lambda number: as_kind(typed(number), kind)


INSTEAD: dict[str, Any] = {
    "typed_": typed,
    "either_": either,
    "short_": short,
    "not_": lambda number: Typed(BOOL, not number),
    "min": lambda *numbers: extreme(operator.lt, *numbers),
    "max": lambda *numbers: extreme(operator.gt, *numbers),
    "abs": absolute,
    "len": lambda item: typed(len(item.values)),
    "range": lambda *ends: map(typed, builtins.range(*map(int, ends))),
    "int": _number(INT),
    "float": _number(FLOAT),
    "bool": _number(BOOL),
    "np": SimpleNamespace(int64=_number(INT), uint64=_number(UINT), float64=_number(FLOAT)),
    "math": SimpleNamespace(
        log=lambda number: Typed(FLOAT, math.log(number.value)), exp=exponential
    ),
}
