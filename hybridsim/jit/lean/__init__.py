"""A small compiler for methods: from their source straight to LLVM's language.

Numba compiles a method by some thirty passes in Python: bytecode, analysis of variables, inference
of types, lowering.  For the 350 methods of a machine they take four times as long as LLVM.  What
methods are written in is a small language (numbers, arrays, tuples, state machines, if, while, for,
calls of methods), so that one walk over a method's syntax tree is enough here.  What the types of
results are, numba decides, and each operation is defined as numba defines it.  A method with
anything else (Unsupported) is compiled by numba, and so are those that call it.

source       the syntax tree of a function
kinds        types: as LLVM names them, what they are made of, what operators return
values       what an expression is worth while it is translated
body         the text of a function as it grows: instructions, blocks, variables
arithmetic   operators and conversions
memory       fields of state machines, items of arrays, records
calls        calls of methods and of the functions that methods may use
expressions  expressions
statements   statements
function     a whole function
library      functions that are compiled, and their text for a loop's library
"""

from hybridsim.jit.lean.function import Compiled
from hybridsim.jit.lean.library import (
    Library,
    call,
    count,
    for_numba,
    keep_private,
    unknown,
)
from hybridsim.jit.lean.values import Unsupported

__all__ = [
    "Compiled",
    "Library",
    "Unsupported",
    "call",
    "count",
    "for_numba",
    "keep_private",
    "unknown",
]
