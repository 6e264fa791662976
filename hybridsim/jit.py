"""How hybridsim compiles: one decorator for state machines, one for loops.

A policy or a device is a NamedTuple: its fields are numpy arrays (the state) and numbers (the
parameters), its @method functions are the behaviour.  A @loop that is handed one is specialised
on its class, so `policy.touch(page)` is a direct call.  With NUMBA_DISABLE_JIT=1 the same source
is ordinary Python: step into it, measure its coverage.

This is the only file that knows numba's internals (the typing templates that jitclass is built
on, and the private flag `_nrt`); `pyproject.toml` pins numba to one minor version for it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr
from numba.extending import lower_builtin

PACKAGE = Path(__file__).parent

F = TypeVar("F", bound=Callable[..., Any])

compiled = not numba.config.DISABLE_JIT


def method(function: F) -> F:
    """Compile a method of a state machine, or a function that one calls.

    A method never allocates: all state exists before the loop starts.  `_nrt=False` makes numba
    refuse an allocation, and drops the reference counting that halves the speed.
    """
    return njit(_nrt=False, error_model="numpy")(function)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """Compile a method like `method`, and make it part of each caller.

    A call hands over all fields of a state machine; for small methods of a large one that costs
    more than what they do.
    """
    return njit(_nrt=False, forceinline=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def loop(function: F) -> F:
    """Compile `function` and keep the machine code on disk until any source file changes.

    Numba invalidates a cached function when its own file changes, not when a method that it calls
    does; naming the folder after the whole package's source closes that hole.
    """
    others = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return njit(function, cache=True, nogil=True, error_model="numpy")  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = others


@functools.cache
def fresh(compiled_loop: Any) -> Any:
    """Return the same loop, compiled for this process only: for classes from outside the package."""
    return njit(nogil=True, error_model="numpy")(getattr(compiled_loop, "py_func", compiled_loop))


def is_ours(machine: Any) -> bool:
    """Tell whether a state machine, and all it is made of, is defined in this package."""
    parts = [part for part in machine if isinstance(part, tuple)]
    return type(machine).__module__.startswith("hybridsim.") and all(map(is_ours, parts))


@functools.cache
def cache_folder() -> Path:
    """Return the folder of this source's machine code; HYBRIDSIM_CACHE_DIR names another place."""
    digest = hashlib.sha256(f"{sys.version}{numba.__version__}".encode())
    for source in sorted(PACKAGE.rglob("*.py")):
        digest.update(source.read_bytes())
    root = os.environ.get("HYBRIDSIM_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    base = Path(root) if root else Path.home() / ".cache"
    return base / "hybridsim" / digest.hexdigest()[:16]


@infer_getattr
class _MethodsOfNamedTuples(AttributeTemplate):  # type: ignore[misc]
    key = types.BaseNamedTuple

    def generic_resolve(self, instance: Any, name: str) -> Any:
        function = getattr(instance.instance_class, name, None)
        if not isinstance(function, Dispatcher):
            return None
        _lower(name)

        class Bound(AbstractTemplate):  # type: ignore[misc]
            key = (types.BaseNamedTuple, name)

            def generic(self, args: Any, kws: Any) -> Any:
                dispatcher = types.Dispatcher(function)
                return dispatcher.get_call_type(self.context, (instance, *args), kws).as_method()

        return types.BoundFunction(Bound, instance)


_lowered: set[str] = set()


def _lower(name: str) -> None:
    if name in _lowered:
        return
    _lowered.add(name)

    @lower_builtin((types.BaseNamedTuple, name), types.BaseNamedTuple, types.VarArg(types.Any))
    def call(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        function = getattr(sig.args[0].instance_class, name)
        lowered = context.get_function(types.Dispatcher(function), sig)
        context.add_linking_libs(getattr(lowered, "libs", ()))
        return lowered(builder, args)
