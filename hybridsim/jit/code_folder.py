"""The folder that keeps machine code from one run to the next."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from hybridsim.foundation.version import PACKAGE

# Folders with compiled functions, and those that these import: no other source is in machine code.
COMPILED = (
    "caches", "engine", "foundation", "jit", "requests", "storage", "traces", "workloads",
)  # fmt: skip


def sources() -> list[Path]:
    """Return the source files that machine code may depend on, in order."""
    return sorted(each for name in COMPILED for each in (PACKAGE / name).rglob("*.py"))


def digest(compiler: str) -> str:
    """Return a name for the machine code that a compiler makes of this source."""
    return hashlib.sha256(compiler.encode() + _of_sources()).hexdigest()[:16]


@functools.cache
def _of_sources() -> bytes:
    result = hashlib.sha256()
    for source in sources():
        result.update(source.read_bytes())
    return result.digest()


def code_folder(compiler: str) -> Path:
    """Return the folder for a compiler's machine code of this source; create it if missing.

    HYBRIDSIM_CACHE_DIR overrides its place.  If no folder can be written to, return a temporary
    folder for this process.
    """
    name = digest(compiler)
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
