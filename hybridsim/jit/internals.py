"""What is used of numba and is not public: its names are imported here and nowhere else.

`pyproject.toml` pins numba to one minor version because of them.  Of another version,
`tests/test_jit.py -k internals` says which of these it lacks.
"""

# ruff: noqa: F401 - what the other files of jit/ import from here

from __future__ import annotations

from numba.core import cgutils
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import Flags, compile_internal
from numba.core.errors import NumbaError
from numba.core.imputils import impl_ret_borrowed
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    signature,
)
from numba.np.numpy_support import from_dtype

# The attributes with an underscore that jit/ reads, sets or defines anew, by what has them.
PRIVATE = {
    "dispatcher": ("_cache",),
    "cache": ("_cache_file", "_impl", "_load_overload", "_py_func"),
    "cache file": ("_cache_path",),
    "library": (
        "_codegen",
        "_ensure_finalized",
        "_final_module",
        "_get_module_for_linking",
        "_linking_libraries",
        "_optimize_final_module",
        "_reload_init",
    ),
    "codegen": ("_data_layout", "_llvm_module", "_tm"),
}
