"""Where the lab keeps what it fetched and built.

apt/        lists of packages and what was downloaded
qemu/       the emulator and its libraries, where the host has none
guest-KEY/  kernel, module tree and root image; KEY is a digest of what they were made of
runs/       one folder a guest under way
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
    """Return the lab's folder, made if need be; HYBRIDSIM_CACHE_DIR names another place."""
    for name in VARIABLES:
        if os.environ.get(name):
            below = ".cache/hybridsim" if name == "HOME" else "hybridsim"
            root = Path(os.environ[name])
            folder = root / "lab" if name == VARIABLES[0] else root / below / "lab"
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise MissingError(
                    f"cannot make {folder}: {error.strerror}. Set HYBRIDSIM_CACHE_DIR to a folder "
                    "that you can write to, with 1 GB of room."
                ) from error
            return folder.resolve()
    raise MissingError("no place for the lab: set HYBRIDSIM_CACHE_DIR to a folder with room")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process holds this lock, and hold it; a killed process holds none."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
