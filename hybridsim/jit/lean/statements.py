"""Statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from numba import types

from hybridsim.jit.instructions import along
from hybridsim.jit.lean import kinds, memory
from hybridsim.jit.lean.arithmetic import BINARY, binary, converted
from hybridsim.jit.lean.expressions import (
    Translation,
    anything,
    branch,
    indices,
    is_certain,
    number,
    value,
)
from hybridsim.jit.lean.kinds import INT, Known, Number, Parts, Unsupported, Value

RESULT = ""  # the variable that holds what the function returns


def block(t: Translation, nodes: Sequence[ast.stmt]) -> None:
    """Translate statements, up to one that does not go on."""
    for node in nodes:
        if not t.body.is_open:
            return
        how = KINDS.get(type(node))
        if how is None:
            raise Unsupported(type(node).__name__)
        how(t, node)


def _expression(t: Translation, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):  # a docstring
        value(t, node.value)


def _assign(t: Translation, node: ast.Assign) -> None:
    found = value(t, node.value)
    for target in node.targets:
        _set(t, target, found)


def _annotated(t: Translation, node: ast.AnnAssign) -> None:
    if node.value is not None:
        _set(t, node.target, value(t, node.value))


def _set(t: Translation, target: ast.expr, found: Value) -> None:
    if isinstance(target, ast.Name):
        t.assign(target.id, found)
    elif isinstance(target, ast.Tuple):
        if not isinstance(found, Parts) or len(found.items) != len(target.elts):
            raise Unsupported("parts of other than a tuple")
        for each, part in zip(target.elts, found.items):
            _set(t, each, part)
    elif isinstance(target, ast.Subscript):
        _set_item(t, target, number(found))
    elif isinstance(target, ast.Attribute):
        memory.store(t.body, _member(t, target), number(found))
    else:
        raise Unsupported(type(target).__name__)


def _member(t: Translation, target: ast.Attribute) -> memory.Item:
    record = number(value(t, target.value))
    if not isinstance(record.kind, types.Record):
        raise Unsupported(f"setting {record.kind}.{target.attr}")
    return memory.member(t.body, record, target.attr)


def _set_item(t: Translation, target: ast.Subscript, found: Number) -> None:
    if isinstance(target.slice, ast.Slice):
        _fill(t, _array(t, target), target.slice, found)
    else:
        memory.store(t.body, _item(t, target), found)


def _item(t: Translation, target: ast.Subscript) -> memory.Item:
    array = _array(t, target)
    found = indices(t, target.slice)
    if len(found) != kinds.as_array(array.kind).ndim:
        raise Unsupported("setting a row")
    return memory.item(t.body, array, found)


def _array(t: Translation, target: ast.Subscript) -> Value:
    array = value(t, target.value)
    if not kinds.as_array(array.kind).mutable:
        raise Unsupported(f"setting items of {array.kind}")
    return array


def _fill(t: Translation, array: Value, cut: ast.Slice, found: Number) -> None:
    if cut.step is not None or not kinds.is_number(found.kind):
        raise Unsupported("a slice with a step")
    is_whole = cut.lower is None and cut.upper is None
    if not is_whole and kinds.as_array(array.kind).ndim != 1:
        raise Unsupported("a slice of several axes")
    first, stop = "0", memory.items(t.body, array)
    if cut.lower is not None:
        first = memory.end(t.body, array, 0, number(value(t, cut.lower)))
    if cut.upper is not None:
        stop = memory.end(t.body, array, 0, number(value(t, cut.upper)))
    memory.fill(t.body, array, first, stop, found)


def _changed(t: Translation, node: ast.AugAssign) -> None:
    if type(node.op) not in BINARY:
        raise Unsupported(type(node.op).__name__)
    of, target = BINARY[type(node.op)], node.target
    if isinstance(target, ast.Name):
        old = number(value(t, ast.Name(target.id, ast.Load())))
        t.assign(target.id, binary(t.body, of, old, number(value(t, node.value))))
        return
    where = _item(t, target) if isinstance(target, ast.Subscript) else _member(t, target)
    old = memory.load(t.body, where)
    memory.store(t.body, where, binary(t.body, of, old, number(value(t, node.value))))


def _return(t: Translation, node: ast.Return) -> None:
    leave(t, Number(kinds.NONE, "") if node.value is None else value(t, node.value))


def leave(t: Translation, found: Value) -> None:
    """Return from the function."""
    found = t.held(RESULT, found, kinds.met)
    operands = t.body.operands(found)
    if not operands:
        t.body.leave("ret void")
    elif len(operands) == 1:
        t.body.leave(f"ret {operands[0]}")
    else:
        whole, result = kinds.returned(found.kind), "poison"
        for n, each in enumerate(operands):
            result = t.body.emit(f"insertvalue {whole} {result}, {each}, {n}")
        t.body.leave(f"ret {whole} {result}")


def _if(t: Translation, node: ast.If) -> None:
    certain = is_certain(t, node.test)
    if certain is not None:
        block(t, node.body if certain else node.orelse)
        return
    yes, after = t.body.label(), t.body.label()
    no = t.body.label() if node.orelse else after
    branch(t, node.test, yes, no)
    goes_on = not node.orelse
    for label, nodes in ((yes, node.body), (no, node.orelse)):
        if nodes:
            t.body.begin(label)
            block(t, nodes)
            goes_on |= t.body.is_open
            t.body.jump(after)
    if goes_on:
        t.body.begin(after)


def _while(t: Translation, node: ast.While) -> None:
    head, inside, after = t.body.label(), t.body.label(), t.body.label()
    no = t.body.label() if node.orelse else after
    t.body.jump(head)
    t.body.begin(head)
    is_endless = is_certain(t, node.test) is True
    branch(t, node.test, inside, no)
    breaks = _inside(t, node.body, inside, head, after)
    _otherwise(t, node.orelse, no, after)
    if breaks or not is_endless:
        t.body.begin(after)


def _inside(t: Translation, nodes: Sequence[ast.stmt], label: str, on: str, after: str) -> bool:
    """Translate the statements of a loop; return whether one of them leaves it."""
    t.loops.append((on, after))
    t.body.begin(label)
    block(t, nodes)
    t.body.jump(on)
    t.loops.pop()
    return any(_breaks(each) for each in nodes)


def _breaks(node: ast.stmt) -> bool:
    """Return whether a statement contains a `break` of the loop around it."""
    if isinstance(node, (ast.For, ast.While)):
        return any(map(_breaks, node.orelse))
    if isinstance(node, ast.If):
        return any(map(_breaks, (*node.body, *node.orelse)))
    return isinstance(node, ast.Break)


def _otherwise(t: Translation, nodes: Sequence[ast.stmt], label: str, after: str) -> None:
    """Translate the `else` of a loop."""
    if nodes:
        t.body.begin(label)
        block(t, nodes)
        t.body.jump(after)


def _for(t: Translation, node: ast.For) -> None:
    over = node.iter
    if isinstance(over, ast.Call) and anything(t, over.func) == Known(range):
        _count(t, node, [number(value(t, each)) for each in over.args])
        return
    if isinstance(over, ast.Call) and anything(t, over.func) == Known(along):
        _follow(t, node, *over.args)
        return
    found = value(t, over)
    if isinstance(found.kind, types.Array):
        _walk(t, node, found)
        return
    if not isinstance(found, Parts) or not kinds.is_tuple(found.kind):
        raise Unsupported(f"a loop over {found.kind}")
    _each(t, node, found.items)


def _each(t: Translation, node: ast.For, items: Sequence[Value]) -> None:
    """Repeat the statements of a loop over a tuple for each of its parts."""
    after = t.body.label()
    no = t.body.label() if node.orelse else after
    for n, each in enumerate(items):
        inside = t.body.label()
        on = no if n == len(items) - 1 else t.body.label()
        t.body.jump(inside)
        t.body.begin(inside)
        _set(t, node.target, each)
        start = t.body.label()
        t.body.jump(start)
        _inside(t, node.body, start, on, after)
        if on not in (no, after):
            t.body.begin(on)
    _otherwise(t, node.orelse, no, after)
    t.body.begin(after)


def _walk(t: Translation, node: ast.For, array: Value) -> None:
    """Repeat the statements of a loop for each item of an array."""
    if kinds.as_array(array.kind).ndim != 1:
        raise Unsupported("a loop over rows")

    def item(now: str) -> Value:
        return memory.load(t.body, memory.item(t.body, array, [Number(kinds.UINT, now)]))

    _repeat(t, node, "0", memory.length(t.body, array).text, 1, item)


def _follow(t: Translation, node: ast.For, first: ast.expr, links: ast.expr) -> None:
    """Repeat the statements of a loop for an entry and those linked after it: by a `while`."""
    name = t.new_name()
    now, later = ast.Name(name, ast.Load()), ast.Name(name, ast.Store())
    t.assign(name, converted(t.body, number(value(t, first)), INT))
    is_one = ast.Compare(now, [ast.GtE()], [ast.Constant(0)])
    link = ast.Subscript(links, now, ast.Load())
    steps = [ast.Assign([node.target], now), ast.Assign([later], link), *node.body]
    _while(t, ast.While(is_one, steps, node.orelse))


def _count(t: Translation, node: ast.For, ends: list[Number]) -> None:
    """Count from an end to before another."""
    if len(ends) == 1:
        ends.insert(0, Number(INT, "0"))
    step = ends[2].constant if len(ends) > 2 else 1
    if step not in (1, -1) or any(not kinds.is_int(e.kind) or not e.kind.signed for e in ends):
        raise Unsupported("a range of other than single steps")
    first, stop = (converted(t.body, each, INT).text for each in ends[:2])
    _repeat(t, node, first, stop, step, lambda now: Number(INT, now))


def _repeat(
    t: Translation, node: ast.For, first: str, stop: str, step: int, item: Callable[[str], Value]
) -> None:
    """Repeat the statements of a loop for numbers from the first to before another."""
    head, inside, on, after = (t.body.label() for _ in range(4))
    no = t.body.label() if node.orelse else after
    at = t.body.room(INT)
    t.body.act(f"store i64 {first}, ptr {at}")
    t.body.jump(head)
    t.body.begin(head)
    now = t.body.emit(f"load i64, ptr {at}")
    order = "slt" if step > 0 else "sgt"
    t.body.split(t.body.emit(f"icmp {order} i64 {now}, {stop}"), inside, no)
    t.body.begin(inside)
    _set(t, node.target, item(now))
    start = t.body.label()
    t.body.jump(start)
    _inside(t, node.body, start, on, after)
    t.body.begin(on)
    t.body.act(f"store i64 {t.body.emit(f'add nsw i64 {now}, {step}')}, ptr {at}")
    t.body.jump(head)
    _otherwise(t, node.orelse, no, after)
    t.body.begin(after)


KINDS: dict[type[ast.stmt], Callable[[Translation, Any], None]] = {
    ast.Expr: _expression, ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _changed,
    ast.Return: _return, ast.If: _if, ast.While: _while, ast.For: _for,
    ast.Continue: lambda t, node: t.body.jump(t.loops[-1][0]),
    ast.Break: lambda t, node: t.body.jump(t.loops[-1][1]),
    ast.Pass: lambda t, node: None,
}  # fmt: skip
