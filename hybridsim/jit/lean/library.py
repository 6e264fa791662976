"""Functions that are compiled, and their text for a loop's library."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import llvmlite.binding
from llvmlite import ir
from numba import types

from hybridsim.jit import waiting
from hybridsim.jit.internals import NumbaError, cgutils, cpu_target
from hybridsim.jit.lean import kinds
from hybridsim.jit.lean.function import Compiled, compiled
from hybridsim.jit.lean.memory import frame
from hybridsim.jit.lean.values import Unsupported

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
            found = compiled(function, takes, _symbol(function, takes), translated)
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
    result = ir.VoidType()
    found = kinds.leaves(callee.returns)
    words = [context.get_value_type(leaf) for leaf in found]
    words = [cgutils.voidptr_t if isinstance(leaf, types.Array) else word
             for leaf, word in zip(found, words)]  # fmt: skip
    if words:
        result = words[0] if len(words) == 1 else ir.LiteralStructType(words)
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


class Library:
    """The functions that a loop's library calls, for numba to link."""

    def __init__(self, roots: Iterable[Compiled]) -> None:
        """Keep the functions that are called directly; more may be added until it is linked."""
        self._roots = roots
        self._reload_init: set[Any] = set()

    def _ensure_finalized(self) -> None:
        """Do nothing: there is only text until it is linked."""

    def _get_module_for_linking(self) -> Any:
        """Return the functions that are called directly, and all that these call."""
        waiting.optimizing()
        found: dict[str, Compiled] = {}
        rest = list(self._roots)
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
