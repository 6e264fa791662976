"""Calls of methods, and of the functions that methods may use."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import types

from hybridsim.jit.lean import kinds, memory
from hybridsim.jit.lean.arithmetic import absolute, chosen, converted, truth
from hybridsim.jit.lean.kinds import BOOL, FLOAT, INT, is_float, is_int
from hybridsim.jit.lean.translation import Translation, number
from hybridsim.jit.lean.values import AnyValue, Bound, Known, Number, Parts, Unsupported, Value
from hybridsim.jit.octaves import octave
from hybridsim.jit.prefetch import prefetch

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
