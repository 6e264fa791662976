"""Fetching memory before it is needed: an LLVM instruction that numba does not offer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from hybridsim.jit.internals import cgutils

C = TypeVar("C", bound=type)


def by_page(*fields: str) -> Callable[[C], C]:
    """Name the arrays of a state machine, by page id, of which an access reads the page's entry.

    Loops that know the pages of the next accesses fetch these entries early.
    """

    def name(cls: C) -> C:
        cls.BY_PAGE = fields  # type: ignore[attr-defined]
        return cls

    return name


def prefetch(array: Any, index: int) -> None:
    """Make the processor fetch array[index], which is needed soon; any index is harmless.

    Instead of an array it may be a tuple of arrays: each is fetched.

    If the state is larger than the caches, waiting for memory is most of a loop's time.
    """


@overload(prefetch)
def _compiled_prefetch(array: Any, index: int) -> Any:
    def fetch(array: Any, index: int) -> None:
        _fetch_ahead(array, index)

    def leave(array: Any, index: int) -> None:
        """Fetch nothing: what numba compiles instead of lean/ need not be fast."""

    return fetch if isinstance(array, types.Array) else leave


@intrinsic
def _fetch_ahead(context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read_into_all_levels_of_data_cache = [ir.Constant(number, each) for each in (0, 3, 1)]
        builder.call(fetch, [address, *read_into_all_levels_of_data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate
