"""A small compiler for methods: from their source straight to LLVM's language.

Numba compiles a method by some thirty passes in Python: bytecode, analysis of variables, inference
of types, lowering.  For the 350 methods of a machine they take four times as long as LLVM.  What
methods are written in is a small language (numbers, arrays, tuples, state machines, if, while, for,
calls of methods), so that one walk over a method's syntax tree is enough here.  What the types of
results are, numba decides, and each operation is defined as numba defines it.  A method with
anything else (Unsupported) is compiled by numba, and so are those that call it.

kinds        what an expression is worth, and its type: as LLVM names it, what it is made of
body         the text of a function as it grows: instructions, blocks, variables
arithmetic   operators and conversions
memory       fields of state machines, items of arrays, records
expressions  expressions, calls, and the state of a function while it is translated
statements   statements
library      whole functions, from their source to their text for a loop's library
"""
