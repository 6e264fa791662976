"""The text of a function as it grows: instructions, blocks, variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba import types

from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.kinds import Number, Parts, Unsupported, Value

STEADY = ", !invariant.load !0"  # what a frame holds does not change while a loop runs


class Body:
    """Instructions of one function.

    A block ends with `jump`, `split` or `leave`; what follows until `begin` cannot be reached, and
    must not be emitted (`is_open`).
    """

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol  # of the function
        self.lines: list[str] = []
        self.entry: list[str] = []  # room for variables
        self.constants: list[str] = []  # of the module
        self.declared: set[str] = set()
        self.machines: set[Any] = set()  # kinds whose frames are used
        self.is_open = True
        self._names = 0

    def label(self) -> str:
        """Return a name for a block."""
        self._names += 1
        return f"b{self._names}"

    def emit(self, instruction: str) -> str:
        """Add an instruction that has a result; return its name."""
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def act(self, instruction: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(instruction)

    def begin(self, label: str) -> None:
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.is_open = True

    def jump(self, label: str) -> None:
        """End the block: go on at another one."""
        if self.is_open:
            self.lines.append(f"br label %{label}")
        self.is_open = False

    def split(self, condition: str, yes: str, no: str) -> None:
        """End the block: go on at one of two."""
        self.lines.append(f"br i1 {condition}, label %{yes}, label %{no}")
        self.is_open = False

    def leave(self, instruction: str) -> None:
        """End the block: return."""
        self.lines.append(instruction)
        self.is_open = False

    def room(self, kind: Any) -> str:
        """Return the address of room for a leaf, in the frame of this function."""
        self._names += 1
        name = f"%r{self._names}"
        self.entry.append(f"{name} = alloca {kinds.llvm(kind)}")
        return name

    def constant(self, kind: str, value: str) -> str:
        """Return the address of a constant of the module."""
        self._names += 1
        name = f'@"{self.symbol}.{self._names}"'
        self.constants.append(f"{name} = private unnamed_addr constant {kind} {value}")
        return name

    def intrinsic(self, name: str, result: str, parameters: str) -> None:
        """Declare a function of LLVM."""
        self.declared.add(f"declare {result} @{name}({parameters})")

    # Values as leaves, and back.

    def operands(self, value: Value) -> list[str]:
        """Return the operands of a value's leaves, each with its type."""
        return [f"{kinds.llvm(each.kind)} {each.text}" for each in leaves_of(value)]

    def whole(self, kind: Any, result: str) -> Value:
        """Return what a function returned as a value."""
        found = kinds.leaves(kind)
        if len(found) == 1:
            return assembled(kind, [result])
        type_ = kinds.returned(kind)
        each = [self.emit(f"extractvalue {type_} {result}, {n}") for n in range(len(found))]
        return assembled(kind, each)


def leaves_of(value: Value) -> list[Number]:
    """Return the leaves of a value."""
    if isinstance(value, Parts):
        return [leaf for item in value.items for leaf in leaves_of(item)]
    if not isinstance(value, Number):
        raise Unsupported(f"{value} as a value")
    return [] if value.kind is kinds.NONE else [value]


def assembled(kind: Any, operands: Iterable[str]) -> Value:
    """Return a value of the operands of its leaves."""
    rest = iter(operands)
    if isinstance(kind, types.BaseTuple):
        return Parts(kind, [assembled(part, rest) for part in kind.types])
    if isinstance(kind, kinds.View):
        return Parts(kind, [Number(leaf, next(rest)) for leaf in kinds.leaves(kind)])
    return Number(kind, "" if kind is kinds.NONE else next(rest))
