"""The folders of machine code: that of earlier runs, and that inside the package.

    python -m hybridsim.jit [FOLDER]

makes the latter where a wheel is built, so that its users need not compile: it runs some commands
with an empty cache, and keeps their machine code in FOLDER, by default `code` beside this file, for
the Python that runs it and every CPU of level CPU.  A wheel that is built then holds it.  Machine
code of other source, of another Python or numba, or for more than this CPU has, is not used: what
is missing is compiled as without it.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import numba

from hybridsim.foundation.version import PACKAGE

# Folders with compiled functions, and those that these import: no other source is in machine code.
COMPILED = (
    "caches", "engine", "foundation", "jit", "requests", "storage", "traces", "workloads",
)  # fmt: skip
CPU = "x86-64-v3"  # most servers since 2013 (Haswell), 2015 (Excavator)
# Of that level, beyond x86-64 (System V ABI, AMD64 supplement 1.0, table 3.1), as LLVM names them.
FEATURES = (
    "cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3",
    "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave",
)  # fmt: skip
KEPT = PACKAGE / "jit" / "code"
INTO = "HYBRIDSIM_SHIP_INTO"  # environment variable: the folder that takes machine code


def sources() -> list[Path]:
    """Return the source files that machine code may depend on, in order."""
    return sorted(each for name in COMPILED for each in (PACKAGE / name).rglob("*.py"))


def _digest(python: object) -> str:
    """Return a name for the machine code that numba makes of this source, for a Python."""
    compiler = f"{python}{numba.__version__}"
    return hashlib.sha256(compiler.encode() + _of_sources()).hexdigest()[:16]


@functools.cache
def _of_sources() -> bytes:
    result = hashlib.sha256()
    for source in sources():
        result.update(source.read_bytes())
    return result.digest()


@functools.cache
def cache_folder() -> Path:
    """Return the folder for machine code of this source; create it if missing.

    HYBRIDSIM_CACHE_DIR overrides its place.  If no folder can be written to, return a temporary
    folder for this process.
    """
    name = _digest(sys.version)
    for place in ("HYBRIDSIM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        if os.environ.get(place):
            root = Path(os.environ[place]) / (".cache" if place == "HOME" else "")
            folder = root / "hybridsim" / name
            if _can_be_written(folder):
                return folder
    own = tempfile.mkdtemp(prefix="hybridsim-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


@functools.cache
def shipped_folder() -> Path:
    """Return the folder in the package that holds or takes this source's machine code."""
    return Path(os.environ.get(INTO) or KEPT) / _digest(sys.version_info[:2])


def is_kept(name: str) -> bool:
    """Return whether there is machine code in files of this name, which may have wildcards."""
    places = [cache_folder()]
    if suits_this_cpu():
        places.append(shipped_folder())
    return any(any(place.rglob(name)) for place in places)


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
