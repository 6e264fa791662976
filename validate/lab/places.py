"""The folder of the lab.

apt/        package lists and downloads
qemu-KEY/   the emulator and its libraries, if the host has none
guest-KEY/  kernel, modules and root image; KEY is a digest of their packages
runs/       one folder for each running guest
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from validate.lab.errors import MissingError

VARIABLES = ("HYBRIDSIM_CACHE_DIR", "XDG_CACHE_HOME", "HOME")


def lab_folder() -> Path:
    """Return the lab's folder, created if needed; HYBRIDSIM_CACHE_DIR overrides its path."""
    for name in VARIABLES:
        if os.environ.get(name):
            below = ".cache/hybridsim" if name == "HOME" else "hybridsim"
            root = Path(os.environ[name])
            folder = root / "lab" if name == VARIABLES[0] else root / below / "lab"
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise MissingError(
                    f"cannot create {folder}: {error.strerror}. Set HYBRIDSIM_CACHE_DIR to a "
                    "writable folder with 1 GB of free space."
                ) from error
            return folder.resolve()
    raise MissingError("no folder for the lab: set HYBRIDSIM_CACHE_DIR to a writable folder")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for a lock and hold it; the kernel releases the lock of a killed process."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
