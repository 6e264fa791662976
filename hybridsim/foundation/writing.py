"""Output files: written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable

DEFAULT_MODE = 0o666


@contextlib.contextmanager
def whole_file(name: str | os.PathLike[str], *, durable: bool = False) -> Iterator[IO[bytes]]:
    """Yield a binary stream to a file that replaces `name` once it is complete.

    Until then it is a hidden file in the same folder, which is removed if anything fails.  A
    device or a pipe is written to directly.  With `durable` the file is on the medium at the end,
    and was before it replaced the old one: after a power cut one of the two is there.  Raises
    UsageError if the file cannot be written.
    """
    target = Path(os.path.realpath(name))
    is_special = os.path.exists(name) and not os.path.isfile(name)
    try:
        with open(name, "wb") if is_special else _beside(target, durable) as stream:
            yield stream
    except OSError as error:
        raise UsageError(f"cannot write {printable(name)}: {error.strerror or error}") from error


def write_text(name: str | os.PathLike[str], text: str) -> None:
    """Write a text as UTF-8, completely or not at all.

    Bytes of file names that are not UTF-8 are written as escapes.
    """
    with whole_file(name) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def _beside(target: Path, durable: bool) -> Iterator[IO[bytes]]:
    temporary = target.with_name(f".hybridsim-{secrets.token_hex(8)}")
    try:  # a signal may arrive as soon as the file exists
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
        if durable:
            _sync(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _mode(target: Path) -> int:
    """Return the permissions of the replaced file, or those of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return DEFAULT_MODE & ~umask
