"""Where machine code is kept from one run to the next."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from hybridsim.foundation.version import PACKAGE


def code_folder(compiler: str) -> Path:
    """Return the folder of what a compiler made of this source; make it where it is missing.

    HYBRIDSIM_CACHE_DIR names another place.  Where no place can be written to, it is a folder for
    this process alone.
    """
    digest = hashlib.sha256(compiler.encode())
    for source in sorted(PACKAGE.rglob("*.py")):
        digest.update(source.read_bytes())
    for place in ("HYBRIDSIM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        if os.environ.get(place):
            root = Path(os.environ[place]) / (".cache" if place == "HOME" else "")
            folder = root / "hybridsim" / digest.hexdigest()[:16]
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
