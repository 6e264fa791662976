"""What an expression is worth, and its type: as LLVM names it, what it is made of.

A kind is a numba type.  A leaf is a kind that is one LLVM operand; a tuple is its parts' leaves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numba import types

from hybridsim.jit.internals import cpu_target


class Unsupported(Exception):  # noqa: N818  (numba compiles the method then: not an error)
    """Something that only numba compiles."""


@dataclass(slots=True, frozen=True)
class Number:
    """A number, or the address of an array, a record or a state machine: one LLVM operand."""

    kind: Any  # numba's type
    text: str

    @property
    def constant(self) -> int | None:
        """The value of an integer that is known here."""
        digits = self.text.removeprefix("-")
        return int(self.text) if digits.isdigit() else None


@dataclass(slots=True, frozen=True)
class Parts:
    """A tuple: its parts, one by one."""

    kind: Any
    items: Sequence[Value]


@dataclass(slots=True, frozen=True)
class Known:
    """A Python object: a module, a function, a class, a tuple of constants."""

    item: Any


@dataclass(slots=True, frozen=True)
class Bound:
    """A method of a state machine, before it is called."""

    machine: Number
    function: Callable[..., Any]


Value: TypeAlias = Number | Parts
AnyValue: TypeAlias = Number | Parts | Known | Bound


INT, BOOL, FLOAT, NONE = types.int64, types.boolean, types.float64, types.none
UINT, ADDRESS = types.uint64, types.voidptr
ARRAY_DATA = 32  # bytes into an array's frame: after meminfo, parent, number of items, item size
ARRAY_SHAPE = 40


def is_int(kind: Any) -> bool:
    """Return whether a kind is an integer, not a boolean."""
    return isinstance(kind, types.Integer)


def is_float(kind: Any) -> bool:
    """Return whether a kind is a floating-point number."""
    return isinstance(kind, types.Float)


class View(types.Type):
    """A row of an array, or a plane: its leaves are the address of its data and its shape."""

    def __init__(self, array: Any) -> None:
        """Name it after the kind that numba gives it."""
        self.array = array
        super().__init__(f"view of {array}")


def as_array(kind: Any) -> Any:
    """Return numba's kind of an array or of a view of one; raise Unsupported for others."""
    found = kind.array if isinstance(kind, View) else kind
    if not isinstance(found, types.Array):
        raise Unsupported(f"{kind} for an array")
    return found


def is_number(kind: Any) -> bool:
    """Return whether a kind is a number or a boolean."""
    return is_int(kind) or is_float(kind) or kind is BOOL


def is_tuple(kind: Any) -> bool:
    """Return whether a kind is a tuple, with or without names."""
    return isinstance(kind, types.BaseTuple)


def is_machine(kind: Any) -> bool:
    """Return whether a kind is a state machine."""
    return hasattr(kind, "field_types")


@functools.cache
def llvm(kind: Any) -> str:
    """Return the LLVM type of a leaf as an operand."""
    if kind is BOOL:
        return "i1"
    if is_int(kind):
        return f"i{kind.bitwidth}"
    if is_float(kind):
        return {32: "float", 64: "double"}[kind.bitwidth]
    if is_machine(kind) or isinstance(kind, (types.Array, types.Record)) or kind is ADDRESS:
        return "ptr"
    raise Unsupported(f"values of type {kind}")


def stored(kind: Any) -> str:
    """Return the LLVM type of an item in an array's memory."""
    return "i8" if kind is BOOL else llvm(kind)


@functools.cache
def leaves(kind: Any) -> tuple[Any, ...]:
    """Return the leaves of a kind; none for None."""
    if is_tuple(kind):
        return tuple(leaf for part in kind.types for leaf in leaves(part))
    if kind is NONE:
        return ()
    if isinstance(kind, View):
        return (ADDRESS, *[INT] * kind.array.ndim)
    llvm(kind)
    return (kind,)


@functools.cache
def in_frame(kind: Any) -> str:
    """Return the LLVM type of a field in the frame of a state machine (compiling.py)."""
    if isinstance(kind, types.Array):
        return f"{{ptr, ptr, i64, i64, ptr, [{kind.ndim} x i64], [{kind.ndim} x i64]}}"
    if isinstance(kind, types.UniTuple):
        return f"[{kind.count} x {in_frame(kind.dtype)}]"
    if is_tuple(kind):
        return f"{{{', '.join(map(in_frame, kind.types))}}}"
    if kind is NONE:
        return "ptr"
    return llvm(kind)


def returned(kind: Any) -> str:
    """Return the LLVM type of what a function returns."""
    found = [llvm(leaf) for leaf in leaves(kind)]
    if not found:
        return "void"
    return found[0] if len(found) == 1 else f"{{{', '.join(found)}}}"


def joined(one: Any, other: Any) -> Any:
    """Return the kind that holds both without loss, as numba chooses it.

    Raises Unsupported where numba would keep two versions of a variable apart.
    """
    if one == other:
        return one
    if is_int(one) and is_int(other) and one.signed and other.signed:
        return one if one.bitwidth > other.bitwidth else other
    if is_tuple(one) and is_tuple(other) and len(one) == len(other):
        return types.Tuple(list(map(joined, one.types, other.types)))
    raise Unsupported(f"a variable of {one} and {other}")


def met(one: Any, other: Any) -> Any:
    """Return the kind of a result that is one or the other: numba has one version of it only."""
    if one != other and is_number(one) and is_number(other):
        return unified(one, other)
    if is_tuple(one) and is_tuple(other) and len(one) == len(other):
        return types.Tuple(list(map(met, one.types, other.types)))
    return joined(one, other)


@functools.cache
def operation(operator: Any, *kinds: Any) -> tuple[tuple[Any, ...], Any]:
    """Return to which kinds numba converts operands, and the kind of the result."""
    found = cpu_target.typing_context.resolve_function_type(operator, kinds, {})
    if found is None:
        raise Unsupported(f"{operator} of {kinds}")
    return found.args, found.return_type


@functools.cache
def unified(one: Any, other: Any) -> Any:
    """Return the kind to which numba converts two numbers to choose one of them."""
    found = cpu_target.typing_context.unify_types(one, other)
    if found is None or not is_number(found):
        raise Unsupported(f"{one} with {other}")
    return found
