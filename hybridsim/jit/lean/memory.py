"""Fields of state machines, items of arrays, and records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import types

from hybridsim.jit.internals import from_dtype
from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.arithmetic import converted
from hybridsim.jit.lean.body import STEADY, Body, leaves_of
from hybridsim.jit.lean.kinds import (
    BOOL,
    INT,
    Number,
    Parts,
    Unsupported,
    Value,
    is_int,
    llvm,
    stored,
)


def field(body: Body, machine: Number, name: str) -> Value:
    """Return a field of a state machine."""
    kind = machine.kind.field_types[name]
    body.machines.add(machine.kind)
    position = list(machine.kind.field_types).index(name)
    whole = frame(machine.kind)
    return _loaded(
        body, kind, f"getelementptr inbounds {whole}, ptr {machine.text}, i32 0, i32 {position}"
    )


def frame(kind: Any) -> str:
    """Return the name of the LLVM type of a state machine's frame."""
    return f'%"{kind.name}"'


def _loaded(body: Body, kind: Any, place: str) -> Value:
    """Return what is in a frame at a place, which is an instruction that computes an address."""
    if kind is kinds.NONE:
        return Number(kind, "")
    address = body.emit(place)
    if isinstance(kind, types.Array):
        return Number(kind, address)
    if kinds.is_tuple(kind):
        whole = kinds.in_frame(kind)
        return Parts(kind, [
            _loaded(body, part, f"getelementptr inbounds {whole}, ptr {address}, i32 0, i32 {n}")
            for n, part in enumerate(kind.types)
        ])  # fmt: skip
    return Number(kind, body.emit(f"load {llvm(kind)}, ptr {address}{STEADY}"))


def _of_array(body: Body, array: Number, offset: int, kind: str = "i64") -> str:
    """Load a word of an array's own frame."""
    address = body.emit(f"getelementptr inbounds i8, ptr {array.text}, i64 {offset}")
    return body.emit(f"load {kind}, ptr {address}{STEADY}")


def length(body: Body, array: Value, axis: int = 0) -> Number:
    """Return the length of an array along an axis."""
    if isinstance(array, Parts):  # a view
        return leaves_of(array)[1 + axis]
    return Number(INT, _of_array(body, array, kinds.ARRAY_SHAPE + 8 * axis))


def _data(body: Body, array: Value) -> str:
    if isinstance(array, Parts):  # a view
        return leaves_of(array)[0].text
    return _of_array(body, array, kinds.ARRAY_DATA, "ptr")


def _index(body: Body, array: Value, axis: int, index: Number) -> str:
    """Return an index as 64 bits; a negative one counts from the end."""
    if not is_int(index.kind):
        raise Unsupported(f"an index of {index.kind}")
    wide = converted(body, index, INT if index.kind.signed else kinds.UINT)
    constant = wide.constant
    if not index.kind.signed or (constant is not None and constant >= 0):
        return wide.text
    size = length(body, array, axis).text
    from_end = body.emit(f"add i64 {wide.text}, {size}")
    negative = body.emit(f"icmp slt i64 {wide.text}, 0")
    return body.emit(f"select i1 {negative}, i64 {from_end}, i64 {wide.text}")


def place(body: Body, array: Value, indices: Sequence[Number]) -> str:
    """Return the address of an item, or of the first item of a view."""
    kind = kinds.as_array(array.kind)
    found = [_index(body, array, axis, each) for axis, each in enumerate(indices)]
    if kind.layout != "C":
        if not isinstance(array, Number) or len(found) != kind.ndim:
            raise Unsupported(f"rows of {kind}")
        at = _strided(body, array, found)
        return body.emit(f"getelementptr inbounds i8, ptr {_data(body, array)}, i64 {at}")
    at = found[0]
    for axis in range(1, kind.ndim):
        at = body.emit(f"mul i64 {at}, {length(body, array, axis).text}")
        if axis < len(found):
            at = body.emit(f"add i64 {at}, {found[axis]}")
    return body.emit(
        f"getelementptr inbounds {_item(kind.dtype)}, ptr {_data(body, array)}, i64 {at}"
    )


def _strided(body: Body, array: Number, indices: Sequence[str]) -> str:
    result = "0"
    for axis, each in enumerate(indices):
        stride = _of_array(body, array, kinds.ARRAY_SHAPE + 8 * (array.kind.ndim + axis))
        part = body.emit(f"mul i64 {each}, {stride}")
        result = body.emit(f"add i64 {result}, {part}")
    return result


def _item(dtype: Any) -> str:
    return f"[{dtype.size} x i8]" if isinstance(dtype, types.Record) else stored(dtype)


def view(body: Body, array: Value, indices: Sequence[Number]) -> Parts:
    """Return the part of an array with these first indices."""
    kind = kinds.as_array(array.kind)
    address = Number(kinds.ADDRESS, place(body, array, indices))
    lengths = [length(body, array, axis) for axis in range(len(indices), kind.ndim)]
    return Parts(kinds.View(kind.copy(ndim=len(lengths))), [address, *lengths])


class Item(NamedTuple):
    """An item of an array, or a field of a record, in memory."""

    kind: Any
    address: str
    owner: Any  # the kind of its array or record


def item(body: Body, array: Value, indices: Sequence[Number]) -> Item:
    """Return an item of an array."""
    whole = kinds.as_array(array.kind)
    return Item(whole.dtype, place(body, array, indices), whole)


def member(body: Body, record: Number, name: str) -> Item:
    """Return a field of a record."""
    if name not in record.kind.fields:
        raise Unsupported(f"{record.kind}.{name}")
    offset, kind = record.kind.offset(name), record.kind.typeof(name)
    address = body.emit(f"getelementptr inbounds i8, ptr {record.text}, i64 {offset}")
    return Item(kind, address, record.kind)


def load(body: Body, where: Item) -> Number:
    """Return what is in memory: a number, or a record by its address."""
    kind = where.kind
    if isinstance(kind, types.Record):
        return Number(kind, where.address)
    text = body.emit(f"load {_at(where)}")
    return Number(kind, body.emit(f"icmp ne i8 {text}, 0") if kind is BOOL else text)


def store(body: Body, where: Item, value: Number) -> None:
    """Set what is in memory."""
    text = converted(body, value, where.kind).text
    if where.kind is BOOL:
        text = body.emit(f"zext i1 {text} to i8")
    body.act(f"store {_at(where, f' {text}')}")


def _at(where: Item, text: str = "") -> str:
    if not kinds.is_number(where.kind):
        raise Unsupported(f"items of {where.kind}")
    aligned = "" if where.owner.aligned else ", align 1"
    return f"{stored(where.kind)}{text}, ptr {where.address}{aligned}"


def fill(body: Body, array: Value, first: str, stop: str, value: Number) -> None:
    """Set the items of an array from one index to before another, as if it were flat."""
    kind = kinds.as_array(array.kind)
    if kind.layout != "C":
        raise Unsupported(f"slices of {kind}")
    head, inside, after = body.label(), body.label(), body.label()
    at, base = body.room(INT), _data(body, array)
    value = converted(body, value, kind.dtype)
    body.act(f"store i64 {first}, ptr {at}")
    body.jump(head)
    body.begin(head)
    now = body.emit(f"load i64, ptr {at}")
    body.split(body.emit(f"icmp slt i64 {now}, {stop}"), inside, after)
    body.begin(inside)
    address = body.emit(f"getelementptr inbounds {_item(kind.dtype)}, ptr {base}, i64 {now}")
    store(body, Item(kind.dtype, address, kind), value)
    body.act(f"store i64 {body.emit(f'add i64 {now}, 1')}, ptr {at}")
    body.jump(head)
    body.begin(after)


def items(body: Body, array: Value) -> str:
    """Return the number of items of an array of any shape."""
    result = "1"
    for axis in range(kinds.as_array(array.kind).ndim):
        result = body.emit(f"mul i64 {result}, {length(body, array, axis).text}")
    return result


def end(body: Body, array: Value, axis: int, index: Number) -> str:
    """Return an end of a slice: within the array, counted from its end if negative."""
    size = length(body, array, axis).text
    wide = converted(body, index, INT).text
    from_end = body.emit(f"add i64 {wide}, {size}")
    negative = body.emit(f"icmp slt i64 {wide}, 0")
    at = body.emit(f"select i1 {negative}, i64 {from_end}, i64 {wide}")
    low = body.emit(f"icmp slt i64 {at}, 0")
    at = body.emit(f"select i1 {low}, i64 0, i64 {at}")
    high = body.emit(f"icmp sgt i64 {at}, {size}")
    return body.emit(f"select i1 {high}, i64 {size}, i64 {at}")


def constant_array(body: Body, values: Any) -> Number:
    """Return an array of the module that holds constants."""
    array = np.ascontiguousarray(values)
    dtype = from_dtype(array.dtype)
    if array.ndim != 1 or not is_int(dtype):
        raise Unsupported(f"constants of {array.dtype}")
    kind = types.Array(dtype, 1, "C", readonly=True)
    number, width = len(array), array.dtype.itemsize
    listed = ", ".join(f"{llvm(dtype)} {int(each)}" for each in array)
    data = body.constant(f"[{number} x {llvm(dtype)}]", f"[{listed}]")
    words = f"ptr null, ptr null, i64 {number}, i64 {width}, ptr {data}"
    shape = f"[1 x i64] [i64 {number}], [1 x i64] [i64 {width}]"
    return Number(kind, body.constant(kinds.in_frame(kind), f"{{{words}, {shape}}}"))
