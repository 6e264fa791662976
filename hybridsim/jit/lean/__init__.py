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

Here: functions, from the source of each to their text for a loop's library.
"""

from __future__ import annotations
import __future__

import ast
import functools
import hashlib
import inspect
import linecache
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types

from hybridsim.jit import waiting
from hybridsim.jit.internals import NumbaError, cgutils, cpu_target
from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.body import Body, assembled
from hybridsim.jit.lean.expressions import AgainError, Translation
from hybridsim.jit.lean.kinds import Number, Unsupported
from hybridsim.jit.lean.memory import frame
from hybridsim.jit.lean.statements import RESULT, block, leave

OF_CLASS = getattr(inspect, "CO_METHOD", 0)


def tree_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function.

    Raises Unsupported if there is no source, or if it is not what the function was made from, as
    after a file was edited.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename))
    whole, functions = _trees(text)
    tree = functions.get(code.co_firstlineno)
    if tree is None:
        raise Unsupported("no source")
    # To compile only the function saves most of the time.  Its code depends on what is imported,
    # and on the variables of a function around it.
    imports = [each for each in whole.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    part = whole if code.co_freevars else ast.Module([*imports, tree], [])
    future = code.co_flags & __future__.annotations.compiler_flag
    made = compile(part, code.co_filename, "exec", future, dont_inherit=True)
    if _plain(code) not in map(_plain, _inside(made)):
        raise Unsupported("other source")
    return tree


@functools.cache
def _trees(text: str) -> tuple[ast.Module, dict[int, ast.FunctionDef]]:
    """Return a file's tree, and its functions by the line where they begin, decorators included."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise Unsupported("no source") from error
    return tree, {
        min([each.lineno, *(one.lineno for one in each.decorator_list)]): each
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
    }


def _plain(code: CodeType) -> CodeType:
    """Return code without the flag that Python 3.14 gives to what is defined in a class."""
    return code.replace(co_flags=code.co_flags & ~OF_CLASS)


def _inside(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of everything that is defined in a piece of code."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inside(each)


TRIES_MAX = 20  # to find the kinds of the variables; each makes one of them wider


@dataclass(frozen=True)
class Compiled:
    """A function in LLVM's language."""

    symbol: str  # its name there
    returns: Any  # a kind
    head: str  # from the type of the result on
    definition: str  # of the function, and of its constants
    declared: Collection[str]
    machines: Collection[Any]
    callees: Sequence[Compiled]


def compiled(function: Callable[..., Any], takes: tuple[Any, ...], symbol: str) -> Compiled:
    """Translate a function for arguments of these kinds; raise Unsupported if numba has to."""
    tree = tree_of(function)
    found = tree.args
    if found.defaults or found.kwonlyargs or found.vararg or found.kwarg or found.posonlyargs:
        raise Unsupported("parameters with defaults")
    names = [each.arg for each in found.args]
    if len(names) != len(takes):
        raise Unsupported("other arguments")
    variables: dict[str, Any] = dict(zip(names, takes))
    for _ in range(TRIES_MAX):
        t = Translation(function, variables, translated, Body(symbol))
        parameters = _take(t, names, takes)
        try:
            block(t, tree.body)
            if t.body.is_open:
                leave(t, Number(kinds.NONE, ""))
        except AgainError:
            continue
        return _finished(t, takes, parameters)
    raise Unsupported("variables of changing types")


def _take(t: Translation, names: Sequence[str], takes: Sequence[Any]) -> list[str]:
    """Make variables of the arguments; return the parameters."""
    parameters = []
    for n, (name, kind) in enumerate(zip(names, takes)):
        operands = [f"%a{n}.{m}" for m in range(len(kinds.leaves(kind)))]
        parameters += [
            f"{kinds.llvm(leaf)} {text}" for leaf, text in zip(kinds.leaves(kind), operands)
        ]
        t.assign(name, assembled(kind, operands))
    return parameters


def _finished(t: Translation, takes: Sequence[Any], parameters: Sequence[str]) -> Compiled:
    body, returns = t.body, t.variable_kinds[RESULT]
    machines = {*body.machines, *filter(kinds.is_machine, takes)}
    head = f'{kinds.returned(returns)} @"{body.symbol}"({", ".join(parameters)})'
    begin = f"define linkonce_odr {head} nounwind {{\nentry:"
    whole = "\n".join([*body.constants, begin, *body.entry, *body.lines, "}"])
    return Compiled(body.symbol, returns, head, whole, body.declared, machines, t.callees)


_functions: dict[tuple[Any, ...], Compiled | Exception] = {}
_symbols: set[str] = set()


# Of code that no compiler takes, or only numba: it compiles that, or explains what is wrong.
REASONS = (
    Unsupported, NumbaError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
)  # fmt: skip


def translated(function: Callable[..., Any], takes: tuple[Any, ...]) -> Compiled:
    """Return a function for arguments of these kinds; raise Unsupported if numba has to."""
    key = function, takes
    if key not in _functions:
        _functions[key] = Unsupported("recursion")
        try:
            found = compiled(function, takes, _symbol(function, takes))
            _verify(found)
            _functions[key] = found
        except REASONS as reason:
            _functions[key] = reason
    result = _functions[key]
    if isinstance(result, Exception):
        raise Unsupported(str(result)) from result
    return result


def _verify(found: Compiled) -> None:
    """Raise Unsupported if LLVM does not take a function."""
    declared = (f"declare {each.head}" for each in found.callees if each is not found)
    try:
        _parsed([found], sorted(set(declared)))
    except RuntimeError as error:
        raise Unsupported(str(error)) from error


def _symbol(function: Callable[..., Any], takes: tuple[Any, ...]) -> str:
    """Return a name that no other function of the process has, the same in each process."""
    line = function.__code__.co_firstlineno
    whole = f"{function.__module__}.{function.__qualname__}:{line}({', '.join(map(str, takes))})"
    plain = f"{function.__qualname__}.{hashlib.sha256(whole.encode()).hexdigest()[:16]}"
    symbol, times = plain, 1
    while symbol in _symbols:  # a class that was defined again
        times += 1
        symbol = f"{plain}.{times}"
    _symbols.add(symbol)
    return symbol


def for_numba(function: Callable[..., Any], takes: tuple[Any, ...]) -> Compiled:
    """Return a function that numba's code can call; raise Unsupported if numba has to compile it.

    Numba has no values for views.
    """
    found = translated(function, takes)
    if kinds.ADDRESS in kinds.leaves(found.returns):
        raise Unsupported("a view for numba")
    return found


def count() -> int:
    """Return the number of functions that were translated so far."""
    return len(_functions)


def call(context: Any, builder: Any, callee: Compiled, sig: Any, args: Any) -> Any:
    """Generate a call from code that numba lowers; return the result as numba's value."""
    operands: list[Any] = []
    for kind, value in zip(sig.args, args, strict=True):
        _flatten(builder, kind, value, operands)
    words = [
        cgutils.voidptr_t if isinstance(leaf, types.Array) else context.get_value_type(leaf)
        for leaf in kinds.leaves(callee.returns)
    ]
    result = ir.LiteralStructType(words) if len(words) > 1 else [*words, ir.VoidType()][0]
    whole = ir.FunctionType(result, [each.type for each in operands])
    function = cgutils.get_or_insert_function(builder.module, whole, callee.symbol)
    # A loop may fill the same frames again: what is read from them must not outlast the call.
    is_apart = any(
        isinstance(leaf, types.Array) for kind in sig.args for leaf in kinds.leaves(kind)
    )
    returned = builder.call(function, operands, attrs=["noinline"] if is_apart else [])
    if not words:
        return context.get_dummy_value()
    leaves = [returned] if len(words) == 1 else [
        builder.extract_value(returned, n) for n in range(len(words))
    ]  # fmt: skip
    return _assembled(context, builder, callee.returns, leaves)


def _flatten(builder: Any, kind: Any, value: Any, operands: list[Any]) -> None:
    """Add the leaves of numba's value to the operands of a call."""
    if isinstance(kind, types.BaseTuple):
        for n, part in enumerate(kind.types):
            _flatten(builder, part, builder.extract_value(value, n), operands)
    elif isinstance(kind, types.Array):
        frame_ = cgutils.alloca_once_value(builder, value)
        operands.append(unknown(builder, builder.bitcast(frame_, cgutils.voidptr_t)))
    elif kind is not kinds.NONE:
        operands.append(value)


def unknown(builder: Any, address: Any) -> Any:
    """Return an address of which LLVM does not know where it points to.

    What is loaded from a frame is marked as never changing.  That holds from the call on, not from
    where the frame is filled: LLVM must not see both in one.
    """
    kind = ir.FunctionType(address.type, [address.type])
    return builder.asm(kind, "", "=r,0", [address], side_effect=True)


def _assembled(context: Any, builder: Any, kind: Any, leaves: list[Any]) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = [_assembled(context, builder, part, leaves) for part in kind.types]
        return context.make_tuple(builder, kind, parts)
    if kind is kinds.NONE:
        return context.get_dummy_value()
    leaf = leaves.pop(0)
    if isinstance(kind, types.Array):
        whole = context.get_value_type(kind)
        return builder.load(builder.bitcast(leaf, whole.as_pointer()))
    return leaf


def keep_private(module: Any) -> None:
    """Leave no name of a function of ours in the machine code of a loop's module.

    LLVM drops parameters of a function that only its own module calls.  When the next loop is
    loaded, its linker takes any function of the same name that an earlier loop has, also such a
    one.
    """
    for each in module.functions:
        if each.name in _symbols:
            each.linkage = "private"


def linked(roots: Iterable[Compiled]) -> Any:
    """Return LLVM's module of the functions that a loop calls directly, and all they call."""
    waiting.optimizing()
    found: dict[str, Compiled] = {}
    rest = list(roots)
    while rest:
        each = rest.pop()
        if found.setdefault(each.symbol, each) is each:
            rest += [callee for callee in each.callees if callee.symbol not in found]
    return _parsed([each for _, each in sorted(found.items())])


def _parsed(functions: Sequence[Compiled], declared: Iterable[str] = ()) -> Any:
    """Return LLVM's module of functions, and of declarations of those that they call."""
    codegen = cpu_target.target_context.codegen()
    machines = {machine for each in functions for machine in each.machines}
    text = "\n".join([
        f'target datalayout = "{codegen._data_layout}"',
        f'target triple = "{codegen._llvm_module.triple}"',
        *sorted({f"{frame(each)} = type {_fields(each)}" for each in machines}),
        *sorted({line for each in functions for line in each.declared}),
        *declared,
        *(each.definition for each in functions),
        "!0 = !{}",
    ])  # fmt: skip
    module = llvmlite.binding.parse_assembly(text)
    module.verify()
    return module


def _fields(machine: Any) -> str:
    return f"{{{', '.join(map(kinds.in_frame, machine.field_types.values()))}}}"
