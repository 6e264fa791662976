"""Expressions, and the state of a function while it is translated."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from hybridsim.jit.instructions import octave, prefetch
from hybridsim.jit.lean import kinds, memory
from hybridsim.jit.lean.arithmetic import (
    BINARY,
    FALSE,
    TRUE,
    UNARY,
    absolute,
    binary,
    chosen,
    compared,
    converted,
    literal,
    negated,
    truth,
    unary,
)
from hybridsim.jit.lean.body import Body, assembled, leaves_of
from hybridsim.jit.lean.kinds import (
    BOOL,
    FLOAT,
    INT,
    AnyValue,
    Bound,
    Known,
    Number,
    Parts,
    Unsupported,
    Value,
    is_float,
    is_int,
)


class AgainError(Exception):
    """A variable has a wider kind than was assumed: translate again from the start."""


@dataclass
class Translation:
    """A function while it is translated: its text so far, its variables, what it calls."""

    function: Callable[..., Any]
    variable_kinds: dict[str, Any]  # kept when it is translated again
    compile: Callable[[Any, tuple[Any, ...]], Any]  # of another function and kinds: a Compiled
    body: Body
    rooms: dict[str, Sequence[str]] = field(default_factory=dict)  # by variable: its leaves
    callees: list[Any] = field(default_factory=list)
    loops: list[tuple[str, str]] = field(default_factory=list)  # labels of continue and break
    _choices: int = 0  # expressions so far whose value has several ways

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

    def assign(
        self, name: str, value: Value, join: Callable[[Any, Any], Any] = kinds.joined
    ) -> None:
        """Assign to a variable."""
        value = self.held(name, value, join)
        if name not in self.rooms:
            self.rooms[name] = [self.body.room(leaf) for leaf in kinds.leaves(value.kind)]
        for leaf, room in zip(leaves_of(value), self.rooms[name], strict=True):
            self.body.act(f"store {kinds.llvm(leaf.kind)} {leaf.text}, ptr {room}")

    def new_name(self) -> str:
        """Return a name for a value that has several ways: the same when translated again."""
        self._choices += 1
        return f"choice {self._choices}"

    def held(self, name: str, value: Value, join: Callable[[Any, Any], Any]) -> Value:
        """Return a value as the kind that a variable has; the variable's kind may grow."""
        kind = self.variable_kinds.setdefault(name, value.kind)
        wider = join(kind, value.kind)
        if wider != kind:
            self.variable_kinds[name] = wider
            raise AgainError
        return as_kind(self.body, value, kind)


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


NUMBERS = {np.int64: INT, np.uint64: kinds.UINT, np.int32: types.int32, np.float64: FLOAT}
INTRINSICS = {math.log: "llvm.log", math.exp: "llvm.exp", np.log2: "llvm.log2"}


def called(t: Translation, target: AnyValue, arguments: Sequence[AnyValue]) -> Value:
    """Return the result of a call."""
    if isinstance(target, Bound):
        return _method(t, target.function, [target.machine, *map(_value, arguments)])
    if not isinstance(target, Known):
        raise Unsupported(f"a call of {target}")
    function = target.item
    if hasattr(function, "function") and not isinstance(function, type):  # a Method
        return _method(t, function.function, list(map(_value, arguments)))
    if function in (builtins.min, builtins.max) and len(arguments) > 1:
        return chosen(t.body, list(map(number, arguments)), function is builtins.min)
    if function is builtins.len and len(arguments) == 1:
        return _length(t, arguments[0])
    if function in NUMBERS or function in (int, float, bool):
        return _as_number(t, function, number(*arguments))
    if function is builtins.abs:
        return absolute(t.body, number(*arguments))
    if function in INTRINSICS and len(arguments) == 1:
        value = converted(t.body, number(*arguments), FLOAT)
        return _intrinsic(t, INTRINSICS[function], [value])
    if function is math.pow and len(arguments) == 2:
        values = [number(each) for each in arguments]
        if any(not is_float(each.kind) for each in values[1:]):
            raise Unsupported("a power of a whole number")
        return _intrinsic(t, "llvm.pow", [converted(t.body, each, FLOAT) for each in values])
    if function is prefetch:
        found = _value(arguments[0])
        for each in found.items if isinstance(found, Parts) else [found]:
            _prefetch(t, number(each), number(arguments[1]))
        return Number(kinds.NONE, "")
    if function is octave:
        return _octave(t, converted(t.body, number(*arguments), INT))
    raise Unsupported(f"a call of {function}")


def _value(value: AnyValue) -> Value:
    if not isinstance(value, (Number, Parts)):
        raise Unsupported(f"{value} as an argument")
    return value


def _method(t: Translation, function: Callable[..., Any], arguments: list[Value]) -> Value:
    """Call a method or a kernel: it takes every integer as 64 bits."""
    plain = [
        converted(t.body, each, INT) if isinstance(each, Number) and is_int(each.kind) else each
        for each in arguments
    ]
    callee = t.compile(function, tuple(each.kind for each in plain))
    t.callees.append(callee)
    operands = ", ".join(operand for each in plain for operand in t.body.operands(each))
    result = kinds.returned(callee.returns)
    call = f'call {result} @"{callee.symbol}"({operands})'
    if result == "void":
        t.body.act(call)
        return Number(kinds.NONE, "")
    return t.body.whole(callee.returns, t.body.emit(call))


def _length(t: Translation, value: AnyValue) -> Number:
    if isinstance(value, Parts) and kinds.is_tuple(value.kind):
        return Number(INT, str(len(value.items)))
    if isinstance(value, Known):
        return Number(INT, str(len(value.item)))
    found = _value(value)
    kinds.as_array(found.kind)
    return memory.length(t.body, found)


def _as_number(t: Translation, function: Any, value: Number) -> Number:
    if function is bool:
        return truth(t.body, value)
    kind = NUMBERS.get(function) or (FLOAT if function is float else None)
    if kind is None:
        _, kind = kinds.operation(int, value.kind)
    return converted(t.body, value, kind)


def _intrinsic(t: Translation, name: str, values: Sequence[Number]) -> Number:
    parameters = ", ".join("double" for _ in values)
    t.body.intrinsic(f"{name}.f64", "double", parameters)
    operands = ", ".join(f"double {each.text}" for each in values)
    return Number(FLOAT, t.body.emit(f"call double @{name}.f64({operands})"))


def _prefetch(t: Translation, array: Number, index: Number) -> None:
    """Fetch an item into all levels of the data cache, to read it."""
    if not isinstance(array.kind, types.Array) or array.kind.ndim != 1 or index.kind is BOOL:
        raise Unsupported("prefetch")
    # Any index is harmless, so a negative one does not count from the end.
    at = converted(t.body, index, kinds.UINT)
    address = memory.place(t.body, array, [at])
    t.body.intrinsic("llvm.prefetch.p0", "void", "ptr, i32, i32, i32")
    t.body.act(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 3, i32 1)")


def _octave(t: Translation, value: Number) -> Number:
    """Count the zeros before the first bit that is set."""
    odd = t.body.emit(f"or i64 {value.text}, 1")
    t.body.intrinsic("llvm.ctlz.i64", "i64", "i64, i1")
    zeros = t.body.emit(f"call i64 @llvm.ctlz.i64(i64 {odd}, i1 true)")
    return Number(INT, t.body.emit(f"sub i64 63, {zeros}"))


def value(t: Translation, node: ast.expr) -> Value:
    """Return the value of an expression."""
    found = anything(t, node)
    if isinstance(found, Known):
        return _constant(t, found.item)
    if isinstance(found, Bound):
        raise Unsupported("a method as a value")
    return found


def anything(t: Translation, node: ast.expr) -> AnyValue:
    """Return what an expression is: a value, or a Python object that is known here."""
    how = KINDS.get(type(node))
    if how is None:
        raise Unsupported(type(node).__name__)
    return how(t, node)


def _constant(t: Translation, item: Any) -> Value:
    if item is None:
        return Number(kinds.NONE, "")
    if isinstance(item, tuple):
        parts = [_constant(t, each) for each in item]
        return Parts(types.Tuple([each.kind for each in parts]), parts)
    if isinstance(item, np.ndarray):
        return memory.constant_array(t.body, item)
    return literal(item)


def _name(t: Translation, node: ast.Name) -> AnyValue:
    if node.id in t.rooms:
        return t.variable(node.id)
    if node.id in t.function.__code__.co_varnames:
        raise Unsupported(f"{node.id} before it is set")
    return _found(t.known(node.id))


def _found(item: Any) -> AnyValue:
    """Return a Python object, as a constant if it is a number."""
    return literal(item) if isinstance(item, (int, float, np.generic)) else Known(item)


def _attribute(t: Translation, node: ast.Attribute) -> AnyValue:
    base = anything(t, node.value)
    if isinstance(base, Known):
        if isinstance(base.item, (ModuleType, type)):
            return _found(getattr(base.item, node.attr))
        raise Unsupported(f"an attribute of {base.item}")
    if isinstance(base, Parts) and kinds.is_tuple(base.kind):
        fields = getattr(base.kind, "fields", ())
        if node.attr not in fields:
            raise Unsupported(f"{base.kind}.{node.attr}")
        return base.items[fields.index(node.attr)]
    owner = number(base)
    if kinds.is_machine(owner.kind):
        return _of_machine(t, owner, node.attr)
    if isinstance(owner.kind, types.Record):
        return memory.load(t.body, memory.member(t.body, owner, node.attr))
    if isinstance(owner.kind, types.Array) and node.attr == "shape":
        parts = [memory.length(t.body, owner, axis) for axis in range(owner.kind.ndim)]
        return Parts(types.UniTuple(INT, owner.kind.ndim), parts)
    raise Unsupported(f"{owner.kind}.{node.attr}")


def _of_machine(t: Translation, machine: Number, name: str) -> AnyValue:
    if name in machine.kind.field_types:
        return memory.field(t.body, machine, name)
    method: Any = getattr(machine.kind.instance_class, name, None)
    if not hasattr(method, "function"):
        raise Unsupported(f"{machine.kind}.{name}")
    return Bound(machine, method.function)


def _subscript(t: Translation, node: ast.Subscript) -> AnyValue:
    base = anything(t, node.value)
    if isinstance(base, Known):
        base = _table(t, base.item)
    if isinstance(base, Bound):
        raise Unsupported("a part of a method")
    if kinds.is_tuple(base.kind) and isinstance(base, Parts):
        return _part(base, number(value(t, node.slice)).constant)
    found = indices(t, node.slice)
    if len(found) < kinds.as_array(base.kind).ndim:
        return memory.view(t.body, base, found)
    return memory.load(t.body, memory.item(t.body, base, found))


def _table(t: Translation, item: Any) -> Value:
    """Return constants that are indexed: an array of the module."""
    if isinstance(item, (tuple, list)) and all(type(each) is int for each in item):
        return memory.constant_array(t.body, np.array(item, np.int64))
    return _constant(t, item)


def _part(base: Parts, constant: int | None) -> Value:
    if constant is None:
        raise Unsupported("a part by a number that is not a constant")
    if not -len(base.items) <= constant < len(base.items):
        raise Unsupported("no such part")
    return base.items[constant]


def indices(t: Translation, index: ast.expr) -> list[Number]:
    """Return the indices of an item or a view."""
    nodes = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(each, ast.Slice) for each in nodes):
        raise Unsupported("a slice as a value")
    return [number(value(t, each)) for each in nodes]


def _folded(node: ast.expr) -> Any:
    """Return the value of an expression of constants alone, which Python computes without limit.

    None if there is none.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    try:
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            left, right = _folded(node.left), _folded(node.right)
            if left is not None and right is not None:
                return BINARY[type(node.op)](left, right)
        elif isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
            operand = _folded(node.operand)
            return None if operand is None else UNARY[type(node.op)](operand)
    except (ArithmeticError, TypeError, ValueError):
        return None  # what happens while it runs
    return None


def _binary(t: Translation, node: ast.BinOp) -> Value:
    constant = _folded(node)
    if constant is not None:
        return literal(constant)
    if type(node.op) not in BINARY:
        raise Unsupported(type(node.op).__name__)
    left, right = number(value(t, node.left)), number(value(t, node.right))
    return binary(t.body, BINARY[type(node.op)], left, right)


def _unary(t: Translation, node: ast.UnaryOp) -> Value:
    constant = _folded(node)
    if constant is not None:
        return literal(constant)
    operand = number(value(t, node.operand))
    if isinstance(node.op, ast.Not):
        return negated(t.body, truth(t.body, operand))
    return unary(t.body, UNARY[type(node.op)], operand)


def _compare(t: Translation, node: ast.Compare) -> Value:
    certain = is_certain(t, node)
    if certain is not None:
        return TRUE if certain else FALSE
    if len(node.ops) > 1:
        return _by_branches(t, node)
    left, right = number(value(t, node.left)), number(value(t, node.comparators[0]))
    return compared(t.body, type(node.ops[0]), left, right)


def _by_branches(t: Translation, node: ast.expr) -> Number:
    """Return the truth of an expression whose parts may be skipped."""
    yes, no, after = t.body.label(), t.body.label(), t.body.label()
    branch(t, node, yes, no)
    for label in (yes, no):
        t.body.begin(label)
        t.body.jump(after)
    t.body.begin(after)
    return Number(BOOL, t.body.emit(f"phi i1 [true, %{yes}], [false, %{no}]"))


def _either(t: Translation, node: ast.BoolOp) -> Value:
    """Return the value of `and` or `or`: that of the operand that decides."""
    wants_true, after = isinstance(node.op, ast.And), t.body.label()
    name = t.new_name()
    for operand in node.values[:-1]:
        found, on = value(t, operand), t.body.label()
        t.assign(name, found, kinds.met)
        yes, no = (on, after) if wants_true else (after, on)
        t.body.split(truth(t.body, number(found)).text, yes, no)
        t.body.begin(on)
    t.assign(name, value(t, node.values[-1]), kinds.met)
    t.body.jump(after)
    t.body.begin(after)
    return t.variable(name)


def _choice(t: Translation, node: ast.IfExp) -> Value:
    yes, no, after = t.body.label(), t.body.label(), t.body.label()
    name = t.new_name()
    branch(t, node.test, yes, no)
    for label, each in ((yes, node.body), (no, node.orelse)):
        t.body.begin(label)
        t.assign(name, value(t, each), kinds.met)
        t.body.jump(after)
    t.body.begin(after)
    return t.variable(name)


def _tuple(t: Translation, node: ast.Tuple) -> Value:
    parts = [value(t, each) for each in node.elts]
    return Parts(types.Tuple([each.kind for each in parts]), parts)


def _call(t: Translation, node: ast.Call) -> Value:
    if node.keywords:
        raise Unsupported("an argument with a name")
    target = anything(t, node.func)
    return called(t, target, [anything(t, each) for each in node.args])


KINDS: dict[type[ast.expr], Callable[[Translation, Any], AnyValue]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.Subscript: _subscript, ast.BinOp: _binary,
    ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _either, ast.IfExp: _choice,
    ast.Tuple: _tuple, ast.Call: _call, ast.Constant: lambda t, node: _constant(t, node.value),
}  # fmt: skip


def branch(t: Translation, node: ast.expr, yes: str, no: str) -> None:
    """End the block: go on at `yes` or `no`, as the expression decides."""
    certain = is_certain(t, node)
    if certain is not None:
        t.body.jump(yes if certain else no)
    elif isinstance(node, ast.BoolOp):
        is_and = isinstance(node.op, ast.And)
        for each in node.values[:-1]:
            on = t.body.label()
            branch(t, each, on if is_and else yes, no if is_and else on)
            t.body.begin(on)
        branch(t, node.values[-1], yes, no)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        branch(t, node.operand, no, yes)
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        _chain(t, node, yes, no)
    else:
        t.body.split(truth(t.body, number(value(t, node))).text, yes, no)


def _chain(t: Translation, node: ast.Compare, yes: str, no: str) -> None:
    """Compare neighbours one after the other, until one comparison fails."""
    left = number(value(t, node.left))
    for n, (how, each) in enumerate(zip(node.ops, node.comparators)):
        right = number(value(t, each))
        condition = compared(t.body, type(how), left, right).text
        is_last = n == len(node.ops) - 1
        on = yes if is_last else t.body.label()
        t.body.split(condition, on, no)
        if not is_last:
            t.body.begin(on)
        left = right


def is_certain(t: Translation, node: ast.expr) -> bool | None:
    """Return the truth of an expression that the types alone decide; None if it is open."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = is_certain(t, node.operand)
        return None if found is None else not found
    if isinstance(node, ast.BoolOp):
        decides = isinstance(node.op, ast.Or)
        known = [is_certain(t, each) for each in node.values]
        if known[0] is decides:
            return decides
        return not decides if all(each is (not decides) for each in known) else None
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return None
    right = node.comparators[0]
    if len(node.ops) > 1 or not (isinstance(right, ast.Constant) and right.value is None):
        raise Unsupported("`is`, of other than None")
    is_none = value(t, node.left).kind is kinds.NONE
    return is_none == isinstance(node.ops[0], ast.Is)
