"""Operators and conversions of numbers, each as numba defines it under its error model "numpy"."""

from __future__ import annotations

import ast
import operator
import struct
from collections.abc import Callable
from typing import Any

from numba import types

from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.body import Body
from hybridsim.jit.lean.kinds import (
    BOOL,
    FLOAT,
    INT,
    UINT,
    Number,
    Unsupported,
    is_float,
    is_int,
    llvm,
)

BINARY: dict[type[ast.operator], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
UNARY: dict[type[ast.unaryop], Callable[..., Any]] = {
    ast.USub: operator.neg, ast.Invert: operator.invert, ast.UAdd: operator.pos,
}  # fmt: skip
COMPARED: dict[type[ast.cmpop], tuple[Callable[..., Any], str, str]] = {
    ast.Eq: (operator.eq, "eq", "oeq"), ast.NotEq: (operator.ne, "ne", "une"),
    ast.Lt: (operator.lt, "lt", "olt"), ast.LtE: (operator.le, "le", "ole"),
    ast.Gt: (operator.gt, "gt", "ogt"), ast.GtE: (operator.ge, "ge", "oge"),
}  # fmt: skip
PLAIN = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul",
    operator.and_: "and", operator.or_: "or", operator.xor: "xor", operator.lshift: "shl",
}  # fmt: skip
OF_FLOATS = {
    operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul", operator.truediv: "fdiv",
}  # fmt: skip
TRUE, FALSE = Number(BOOL, "true"), Number(BOOL, "false")


def literal(value: Any) -> Number:
    """Return a constant; numba's type of it is that of its Python or numpy value."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return TRUE if value else FALSE
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise Unsupported(f"the number {value}")
        kind = INT if value < 2**63 else UINT
        return Number(kind, str(int(value)))
    if isinstance(value, float) and type(value).__name__ != "float32":
        return Number(FLOAT, f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}")
    name = type(value).__name__
    kind = getattr(types, name, None)
    if kind is not None and is_int(kind):
        return Number(kind, str(int(value)))
    raise Unsupported(f"the constant {value!r}")


def converted(body: Body, value: Number, kind: Any) -> Number:
    """Return a number as another kind."""
    old = value.kind
    if old == kind:
        return value
    if not (kinds.is_number(old) and kinds.is_number(kind)):
        raise Unsupported(f"{old} as {kind}")
    if kind is BOOL:
        return truth(body, value)
    constant = value.constant
    if is_int(old) and is_int(kind) and constant is not None:
        low = constant & ((1 << kind.bitwidth) - 1)
        negative = kind.signed and low >> (kind.bitwidth - 1)
        return Number(kind, str(low - (1 << kind.bitwidth) if negative else low))
    word = _conversion(old, kind)
    if not word:
        return Number(kind, value.text)
    return Number(kind, body.emit(f"{word} {llvm(old)} {value.text} to {llvm(kind)}"))


def _conversion(old: Any, new: Any) -> str:
    if old is BOOL:
        return "uitofp" if is_float(new) else "zext"
    if is_float(old) and is_float(new):
        return "fpext" if old.bitwidth < new.bitwidth else "fptrunc"
    if is_float(old):
        return "fptosi" if new.signed else "fptoui"
    if is_float(new):
        return "sitofp" if old.signed else "uitofp"
    if old.bitwidth == new.bitwidth:
        return ""
    if old.bitwidth > new.bitwidth:
        return "trunc"
    return "sext" if old.signed else "zext"


def truth(body: Body, value: Number) -> Number:
    """Return whether a number is not zero."""
    if value.kind is BOOL:
        return value
    if is_int(value.kind):
        return Number(BOOL, body.emit(f"icmp ne {llvm(value.kind)} {value.text}, 0"))
    if is_float(value.kind):
        return Number(BOOL, body.emit(f"fcmp une {llvm(value.kind)} {value.text}, 0.0"))
    raise Unsupported(f"the truth of {value.kind}")


def negated(body: Body, value: Number) -> Number:
    """Return `not` of a boolean."""
    return Number(BOOL, body.emit(f"xor i1 {value.text}, true"))


def binary(body: Body, of: Callable[..., Any], left: Number, right: Number) -> Number:
    """Return the result of an operator with two operands."""
    (one, other), result = kinds.operation(of, left.kind, right.kind)
    a, b = converted(body, left, one), converted(body, right, other)
    if of in OF_FLOATS and is_float(result):
        a, b = converted(body, a, result), converted(body, b, result)
        return Number(result, body.emit(f"{OF_FLOATS[of]} {llvm(result)} {a.text}, {b.text}"))
    if not (is_int(result) or result is BOOL):
        raise Unsupported(f"{of} of {left.kind} and {right.kind}")
    a, b = converted(body, a, result), converted(body, b, result)
    if of in (operator.floordiv, operator.mod):
        return Number(result, _divided(body, of, result, a, b))
    if of is operator.rshift:
        word = "ashr" if result.signed else "lshr"
    else:
        word = PLAIN[of]
    return Number(result, body.emit(f"{word} {llvm(result)} {a.text}, {b.text}"))


def _divided(body: Body, of: Callable[..., Any], kind: Any, a: Number, b: Number) -> str:
    """Return the quotient rounded down, or the rest; 0 if the divisor is 0 or it overflows."""
    whole, wants_quotient, divisor = llvm(kind), of is operator.floordiv, b.constant
    if divisor is not None and divisor > 0 and not divisor & (divisor - 1):
        if not wants_quotient:
            return body.emit(f"and {whole} {a.text}, {divisor - 1}")
        word = "ashr" if kind.signed else "lshr"
        return body.emit(f"{word} {whole} {a.text}, {divisor.bit_length() - 1}")
    by = b.text
    impossible = ""
    if divisor is None or divisor in (0, -1):
        impossible = body.emit(f"icmp eq {whole} {by}, 0")
        if kind.signed:
            least = body.emit(f"icmp eq {whole} {a.text}, {kind.minval}")
            by_minus = body.emit(f"icmp eq {whole} {by}, -1")
            overflow = body.emit(f"and i1 {least}, {by_minus}")
            impossible = body.emit(f"or i1 {impossible}, {overflow}")
        by = body.emit(f"select i1 {impossible}, {whole} 1, {whole} {by}")
    if not kind.signed:
        word = "udiv" if wants_quotient else "urem"
        result = body.emit(f"{word} {whole} {a.text}, {by}")
    else:
        rest = body.emit(f"srem {whole} {a.text}, {by}")
        is_some = body.emit(f"icmp ne {whole} {rest}, 0")
        mixed = body.emit(f"xor {whole} {rest}, {by}")
        differs = body.emit(f"icmp slt {whole} {mixed}, 0")
        wrong = body.emit(f"and i1 {is_some}, {differs}")
        if wants_quotient:
            quotient = body.emit(f"sdiv {whole} {a.text}, {by}")
            less = body.emit(f"sext i1 {wrong} to {whole}")
            result = body.emit(f"add {whole} {quotient}, {less}")
        else:
            more = body.emit(f"select i1 {wrong}, {whole} {by}, {whole} 0")
            result = body.emit(f"add {whole} {rest}, {more}")
    if not impossible:
        return result
    return body.emit(f"select i1 {impossible}, {whole} 0, {whole} {result}")


def unary(body: Body, of: Callable[..., Any], value: Number) -> Number:
    """Return the result of an operator with one operand."""
    constant = value.constant
    if of is operator.neg and constant is not None and value.kind is INT:
        return Number(INT, str(-constant))
    (one,), result = kinds.operation(of, value.kind)
    a = converted(body, value, one)
    if of is operator.pos:
        return converted(body, a, result)
    if of is operator.neg and is_float(one):
        return Number(result, body.emit(f"fneg {llvm(one)} {a.text}"))
    if not is_int(one):
        raise Unsupported(f"{of} of {value.kind}")
    word = f"sub {llvm(one)} 0, {a.text}" if of is operator.neg else f"xor {llvm(one)} {a.text}, -1"
    return converted(body, Number(one, body.emit(word)), result)


def compared(body: Body, how: type[ast.cmpop], left: Number, right: Number) -> Number:
    """Return the result of a comparison."""
    if how not in COMPARED:
        raise Unsupported(how.__name__)
    of, word, of_floats = COMPARED[how]
    (one, other), _ = kinds.operation(of, left.kind, right.kind)
    if one != other:
        if not (is_int(one) and is_int(other)):
            raise Unsupported(f"{one} {word} {other}")
        return _of_signs(body, word, left, right)
    a, b = converted(body, left, one), converted(body, right, other)
    if is_float(one):
        return Number(BOOL, body.emit(f"fcmp {of_floats} {llvm(one)} {a.text}, {b.text}"))
    if word not in ("eq", "ne"):
        word = ("s" if is_int(one) and one.signed else "u") + word
    return Number(BOOL, body.emit(f"icmp {word} {llvm(one)} {a.text}, {b.text}"))


def _of_signs(body: Body, word: str, left: Number, right: Number) -> Number:
    """Compare a signed number with an unsigned one by their values."""
    signed = left if left.kind.signed else right
    a, b = converted(body, left, INT), converted(body, right, INT)
    order = word if word in ("eq", "ne") else "u" + word
    both = body.emit(f"icmp {order} i64 {a.text}, {b.text}")
    number = a if signed is left else b
    negative = body.emit(f"icmp slt i64 {number.text}, 0")
    is_less = word in ("lt", "le", "ne") if signed is left else word in ("gt", "ge", "ne")
    constant = "true" if is_less else "false"
    return Number(BOOL, body.emit(f"select i1 {negative}, i1 {constant}, i1 {both}"))


def chosen(body: Body, values: list[Number], wants_less: bool) -> Number:
    """Return the least or greatest; the first of equals, as in Python."""
    result = values[0]
    for each in values[1:]:
        kind = kinds.unified(result.kind, each.kind)
        old, new = converted(body, result, kind), converted(body, each, kind)
        if is_float(kind):
            order = f"fcmp {'olt' if wants_less else 'ogt'}"
        elif is_int(kind):
            order = f"icmp {'s' if kind.signed else 'u'}{'lt' if wants_less else 'gt'}"
        else:
            raise Unsupported(f"min or max of {kind}")
        is_new = body.emit(f"{order} {llvm(kind)} {new.text}, {old.text}")
        text = body.emit(f"select i1 {is_new}, {llvm(kind)} {new.text}, {llvm(kind)} {old.text}")
        result = Number(kind, text)
    return result


def absolute(body: Body, value: Number) -> Number:
    """Return the absolute value."""
    _, result = kinds.operation(abs, value.kind)
    number = converted(body, value, result)
    if not (is_int(result) and result.signed):
        raise Unsupported(f"abs of {value.kind}")
    less = body.emit(f"sub {llvm(result)} 0, {number.text}")
    negative = body.emit(f"icmp slt {llvm(result)} {number.text}, 0")
    text = body.emit(f"select i1 {negative}, {llvm(result)} {less}, {llvm(result)} {number.text}")
    return Number(result, text)
