"""What an expression is worth while it is translated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


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
