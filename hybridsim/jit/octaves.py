"""The octave of a number: an LLVM instruction that neither Python nor numba offers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


def octave(number: int) -> int:
    """Return log2 of a number of at least 1, rounded down; 0 for 0.

    >>> [octave(each) for each in (0, 1, 2, 3, 4)]
    [0, 0, 1, 1, 2]
    """
    return (int(number) | 1).bit_length() - 1


@overload(octave)
def _compiled_octave(number: int) -> Any:
    def find(number: int) -> int:
        return _octave(number)

    return find


@intrinsic
def _octave(context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        odd = builder.or_(args[0], ir.Constant(args[0].type, 1))
        zeros = builder.ctlz(odd, ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(args[0].type, 63), zeros)

    return types.int64(types.int64), generate
