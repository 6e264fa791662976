"""Expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numba import types

from hybridsim.jit.lean import kinds, memory
from hybridsim.jit.lean.arithmetic import (
    BINARY,
    FALSE,
    TRUE,
    UNARY,
    binary,
    compared,
    literal,
    negated,
    truth,
    unary,
)
from hybridsim.jit.lean.body import assembled, leaves_of
from hybridsim.jit.lean.calls import called
from hybridsim.jit.lean.kinds import BOOL, INT
from hybridsim.jit.lean.translation import Translation, as_kind, number
from hybridsim.jit.lean.values import AnyValue, Bound, Known, Number, Parts, Unsupported, Value


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
    if t.has(node.id):
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
        return memory.member_value(t.body, owner, node.attr)
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
        return _part(t, base, number(value(t, node.slice)))
    found = indices(t, node.slice)
    if len(found) < kinds.as_array(base.kind).ndim:
        return memory.view(t.body, base, found)
    return memory.item(t.body, base, memory.place(t.body, base, found))


def _table(t: Translation, item: Any) -> Value:
    """Return constants that are indexed: an array of the module."""
    if isinstance(item, (tuple, list)) and all(type(each) is int for each in item):
        return memory.constant_array(t.body, np.array(item, np.int64))
    return _constant(t, item)


def _part(t: Translation, base: Parts, index: Number) -> Value:
    constant = index.constant
    if constant is not None:
        if not -len(base.items) <= constant < len(base.items):
            raise Unsupported("no such part")
        return base.items[constant]
    raise Unsupported("a part by a number that is not a constant")


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
    wants_true = isinstance(node.op, ast.And)
    after = t.body.label()
    arms: list[_Arm] = []
    for n, operand in enumerate(node.values):
        arm = _arm(t, operand)
        arms.append(arm)
        if n < len(node.values) - 1:
            outside = t.body.lines
            t.body.lines = arm.ending
            condition = truth(t.body, number(arm.value)).text
            on = t.body.label()
            yes, no = (on, after) if wants_true else (after, on)
            t.body.split(condition, yes, no)
            t.body.lines = outside
            t.body.block, t.body.is_open = on, True
            arm.next = on
    return _met(t, arms, after)


def _choice(t: Translation, node: ast.IfExp) -> Value:
    yes, no, after = t.body.label(), t.body.label(), t.body.label()
    branch(t, node.test, yes, no)
    arms = []
    for label, each in ((yes, node.body), (no, node.orelse)):
        arm = _arm(t, each, label)
        arm.ending.append(f"br label %{after}")
        arms.append(arm)
    return _met(t, arms, after)


class _Arm:
    """One of several computations of a value: its text is added when the kind of all is known."""

    def __init__(self, begin: str) -> None:
        self.start = begin  # label; empty if the block is open already
        self.lines: list[str] = []
        self.value: Value = Number(kinds.NONE, "")
        self.block = ""  # in which it ends
        self.ending: list[str] = []  # instructions that leave the block
        self.next = ""


def _arm(t: Translation, node: ast.expr, label: str = "") -> _Arm:
    arm = _Arm(label)
    outside, t.body.lines = t.body.lines, arm.lines
    if label:
        t.body.begin(label)
    arm.value = value(t, node)
    arm.block = t.body.block
    t.body.lines = outside
    return arm


def _met(t: Translation, arms: Sequence[_Arm], after: str) -> Value:
    """Add the arms; return the value of the one that was taken."""
    kind = arms[0].value.kind
    for each in arms[1:]:
        kind = kinds.met(kind, each.value.kind)
    found = []
    for arm in arms:
        t.body.lines += arm.lines
        found.append(leaves_of(as_kind(t.body, arm.value, kind)))
        t.body.lines += arm.ending or [f"br label %{after}"]
        if arm.next:
            t.body.lines.append(f"{arm.next}:")
    t.body.begin(after)
    operands = []
    for n, leaf in enumerate(kinds.leaves(kind)):
        ways = ", ".join(f"[{each[n].text}, %{arm.block}]" for each, arm in zip(found, arms))
        operands.append(t.body.emit(f"phi {kinds.llvm(leaf)} {ways}"))
    return assembled(kind, operands)


def _tuple(t: Translation, node: ast.Tuple) -> Value:
    parts = [value(t, each) for each in node.elts]
    return Parts(types.Tuple([each.kind for each in parts]), parts)


def _call(t: Translation, node: ast.Call) -> Value:
    if node.keywords:
        raise Unsupported("an argument with a name")
    target = anything(t, node.func)
    return called(t, target, [anything(t, each) for each in node.args])


def _literal(t: Translation, node: ast.Constant) -> Value:
    return _constant(t, node.value)


KINDS: dict[type[ast.expr], Callable[[Translation, Any], AnyValue]] = {
    ast.Name: _name, ast.Attribute: _attribute, ast.Subscript: _subscript, ast.BinOp: _binary,
    ast.UnaryOp: _unary, ast.Compare: _compare, ast.BoolOp: _either, ast.IfExp: _choice,
    ast.Tuple: _tuple, ast.Call: _call, ast.Constant: _literal,
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
