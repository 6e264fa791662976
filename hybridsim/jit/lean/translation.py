"""A function while it is translated: its text so far, its variables, what it calls."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.arithmetic import converted
from hybridsim.jit.lean.body import Body, assembled, leaves_of
from hybridsim.jit.lean.values import AnyValue, Number, Parts, Unsupported, Value


class AgainError(Exception):
    """A variable has a wider kind than was assumed: translate again from the start."""


@dataclass
class Translation:
    """A function while it is translated."""

    function: Callable[..., Any]
    variable_kinds: dict[str, Any]  # kept when it is translated again
    compile: Callable[[Any, tuple[Any, ...]], Any]  # of another function and kinds: a Compiled
    body: Body
    rooms: dict[str, Sequence[str]] = field(default_factory=dict)  # by variable: its leaves
    callees: list[Any] = field(default_factory=list)
    loops: list[tuple[str, str]] = field(default_factory=list)  # labels of continue and break

    def known(self, name: str) -> Any:
        """Return the Python object of a name that is not a variable."""
        free = self.function.__code__.co_freevars
        if name in free:
            return (self.function.__closure__ or ())[free.index(name)].cell_contents
        names: Mapping[str, Any] = self.function.__globals__
        if name in names:
            return names[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise Unsupported(f"the name {name}")

    def variable(self, name: str) -> Value:
        """Return the value of a variable."""
        kind = self.variable_kinds[name]
        operands = [
            self.body.emit(f"load {kinds.llvm(leaf)}, ptr {room}")
            for leaf, room in zip(kinds.leaves(kind), self.rooms[name], strict=True)
        ]
        return assembled(kind, operands)

    def assign(self, name: str, value: Value) -> None:
        """Assign to a variable."""
        value = self.held(name, value, kinds.joined)
        if name not in self.rooms:
            self.rooms[name] = [self.body.room(leaf) for leaf in kinds.leaves(value.kind)]
        for leaf, room in zip(leaves_of(value), self.rooms[name], strict=True):
            self.body.act(f"store {kinds.llvm(leaf.kind)} {leaf.text}, ptr {room}")

    def held(self, name: str, value: Value, join: Callable[[Any, Any], Any]) -> Value:
        """Return a value as the kind that a variable has; the variable's kind may grow."""
        kind = self.variable_kinds.setdefault(name, value.kind)
        wider = join(kind, value.kind)
        if wider != kind:
            self.variable_kinds[name] = wider
            raise AgainError
        return as_kind(self.body, value, kind)

    def has(self, name: str) -> bool:
        """Return whether a name is a variable that was assigned to."""
        return name in self.rooms


def as_kind(body: Body, value: Value, kind: Any) -> Value:
    """Return a value as a wider kind."""
    if value.kind == kind:
        return value
    if isinstance(value, Parts):
        parts = [as_kind(body, item, part) for item, part in zip(value.items, kind.types)]
        return Parts(kind, parts)
    return converted(body, value, kind)


def number(value: AnyValue) -> Number:
    """Return a value that must be a number or an address."""
    if not isinstance(value, Number) or value.kind is kinds.NONE:
        raise Unsupported(f"{value} for a number")
    return value
