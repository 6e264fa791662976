"""Machine code inside the package: made where a wheel is built, so that its users need not compile.

    python -m hybridsim.jit [FOLDER]

runs some commands with an empty cache, and keeps their machine code in FOLDER, by default `code`
beside this file, for the Python that runs it and every CPU of level CPU.  A wheel that is built
then holds it.  Machine code of other source, of another Python or numba, or for more than this CPU
has, is not used: what is missing is compiled as without it.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
from pathlib import Path

from hybridsim.foundation.version import PACKAGE
from hybridsim.jit.code_folder import digest

CPU = "x86-64-v3"  # most servers since 2013 (Haswell), 2015 (Excavator)
# Of that level, beyond x86-64 (System V ABI, AMD64 supplement 1.0, table 3.1), as LLVM names them.
FEATURES = (
    "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3",
    "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave",
)  # fmt: skip
KEPT = PACKAGE / "jit" / "code"
INTO = "HYBRIDSIM_SHIP_INTO"  # environment variable: the folder that takes machine code


def folder(compiler: str) -> Path:
    """Return the folder that holds or takes this source's machine code, by compiler."""
    return Path(os.environ.get(INTO) or KEPT) / digest(compiler)


def is_being_made() -> bool:
    """Return whether machine code is to be kept for a wheel."""
    return bool(os.environ.get(INTO))


@functools.cache
def suits_this_cpu() -> bool:
    """Return whether this CPU runs machine code for CPU."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        return False
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    return all(features.get(each) for each in FEATURES)
