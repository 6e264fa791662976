"""Sparse files instead of devices, and the loop devices that make devices of them.

A file is made without a name, gets a token behind its last byte (and the loop device ends before
that), and is linked to its name only then: the link never replaces a file, and no file of that name
is ever without its token.  It is removed by that token, and only by it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from validate import signatures
from validate.errors import MissingError, NotOursError, RunError, UnsafeError
from validate.sizes import MIB, human
from validate.steps import Scene
from validate.system import System

LOOP_CTL_GET_FREE = 0x4C82
LOOP_CLR_FD, LOOP_GET_STATUS64, LOOP_CONFIGURE = 0x4C01, 0x4C05, 0x4C0A
CONFIG_BYTES, INFO_BYTES = 304, 232  # struct loop_config: fd, block size, loop_info64, reserved
INFO_AT = 8
LIMIT_AT, FLAGS_AT, NAME_AT = 32, 52, 56  # lo_sizelimit, lo_flags, lo_file_name in loop_info64
DIRECT_IO = 16
TRIES = 10
TRAILER = 4096


def _trailer(token: str) -> bytes:
    words = f"{signatures.OURS.decode()}: a file made for a run; {token}\n"
    return words.encode().ljust(TRAILER, b".")


@dataclass(frozen=True)
class CreateFile:
    """A new sparse file."""

    path: str
    size_bytes: int
    token: str = ""

    def describe(self) -> str:
        """Say what it does."""
        return f"create the sparse file {self.path} of {human(self.size_bytes)}"

    def do(self, scene: Scene) -> None:
        """Create it; a file that is there is never touched."""
        fd = -1
        try:
            if os.path.lexists(self.path):
                raise FileExistsError
            fd = self._nameless()
            os.ftruncate(fd, self.size_bytes + TRAILER)
            os.pwrite(fd, _trailer(self.token), self.size_bytes)
            os.fsync(fd)
            self._link(fd)
        except FileExistsError:
            raise UnsafeError(f"{self.path}: is there already: name a file that is not") from None
        except OSError as error:
            if error.errno in (errno.EFBIG, errno.ENOSPC, errno.EINVAL):
                raise RunError(f"{self.path}: cannot be so large: {error.strerror}") from None
            raise MissingError(f"cannot create {self.path}: {error.strerror}") from None
        finally:
            if fd >= 0:
                os.close(fd)
        scene.system.written.add(self.token)

    def _nameless(self) -> int:
        """Return a new file of ours that its name does not lead to yet."""
        folder = str(Path(self.path).parent)
        try:
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
        # Where the file system has none: a name that nobody else has, and a link from it.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self._first_name, flags, 0o600)

    def _link(self, fd: int) -> None:
        if os.path.lexists(self._first_name):
            os.link(self._first_name, self.path, follow_symlinks=False)
            os.unlink(self._first_name)
        else:
            root = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
            try:  # with a folder given, Python follows the link as it says it does
                os.link(f"/proc/self/fd/{fd}", self.path, src_dir_fd=root)
            finally:
                os.close(root)

    @property
    def _first_name(self) -> str:
        return f"{self.path}.{self.token}"

    def undo(self, system: System) -> None:
        """Remove it, if it is the one that was made, and holds nothing of others'."""
        for path in (self._first_name, self.path):
            self._remove(path, system)
        system.written.discard(self.token)

    def _remove(self, path: str, system: System) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # there is none, or a link: none of ours
            return
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return
            if path == self.path and not self._is_ours(fd, found.st_size):
                raise NotOursError(f"{path}: is another file than the one that was made: it stays")
            if path == self.path and self.token not in system.written and _holds_data(
                fd, self.size_bytes
            ):  # fmt: skip
                raise NotOursError(
                    f"{path}: was made by a run that was killed, and holds data that may be of "
                    f"others: it stays; if nothing of it is needed: rm {path}"
                )
            now = os.stat(path, follow_symlinks=False)
            if (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino):
                os.unlink(path)
        finally:
            os.close(fd)

    def _is_ours(self, fd: int, size_bytes: int) -> bool:
        """Tell it by its token alone: neither its name nor its size is ours."""
        return bool(self.token) and size_bytes == self.size_bytes + TRAILER and (
            os.pread(fd, TRAILER, self.size_bytes) == _trailer(self.token)
        )  # fmt: skip


def _holds_data(fd: int, size_bytes: int) -> bool:
    """Tell whether anything but zeros is in the first bytes of a sparse file."""
    at = 0
    while at < size_bytes:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
            end = min(os.lseek(fd, at, os.SEEK_HOLE), size_bytes)
        except OSError:  # no more data
            return False
        while at < end:
            data = os.pread(fd, min(MIB, end - at), at)
            if not data:
                return False
            if signatures.not_zero(data):
                return True
            at += len(data)
    return False


@dataclass(frozen=True)
class AttachLoop:
    """A loop device over a file."""

    path: str
    role: str
    token: str = ""  # of the file

    def describe(self) -> str:
        """Say what it does."""
        return f"attach {self.path} to a loop device ({self.role})"

    def do(self, scene: Scene) -> None:
        """Take the first free one, with direct I/O where the file's file system can."""
        system = scene.system
        system.module("loop")
        backing = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(backing).st_size - TRAILER
            if size_bytes < 0 or os.pread(backing, TRAILER, size_bytes) != _trailer(self.token):
                raise UnsafeError(f"{self.path}: is another file than the one that was made")
            control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
            try:
                for _ in range(TRIES):
                    number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
                    if _configure(number, backing, size_bytes, self._label):
                        scene.roles[self.role] = system.read(
                            system.sys / f"class/block/loop{number}/dev"
                        )
                        return
            finally:
                os.close(control)
        finally:
            os.close(backing)
        raise RunError(f"{self.path}: no free loop device was to be had")

    @property
    def _label(self) -> bytes:
        return f"hsval-{self.token}".encode()

    def undo(self, system: System) -> None:
        """Detach the loop device that bears our label, over whatever name its file has now."""
        for folder in sorted((system.sys / "class/block").glob("loop*/loop")):
            fd = os.open(f"/dev/{folder.parent.name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                info = bytearray(INFO_BYTES)
                with contextlib.suppress(OSError):  # it is gone meanwhile
                    fcntl.ioctl(fd, LOOP_GET_STATUS64, info)
                if not self.token or info[NAME_AT : NAME_AT + 64].rstrip(b"\0") != self._label:
                    continue
                fcntl.ioctl(fd, LOOP_CLR_FD)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise RunError(f"{folder.parent.name}: {error.strerror}") from None
            finally:
                os.close(fd)
            system.wait(
                f"/dev/{folder.parent.name}: to let go of {self.path}",
                lambda here=folder: not here.exists(),
            )


def _configure(number: int, backing: int, size_bytes: int, label: bytes) -> bool:
    """Configure a free loop device; False where somebody else was faster."""
    loop = os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
    try:
        for flags in (DIRECT_IO, 0):
            config = bytearray(CONFIG_BYTES)
            struct.pack_into("=II", config, 0, backing, 0)
            struct.pack_into("=Q", config, INFO_AT + LIMIT_AT, size_bytes)
            struct.pack_into("=I", config, INFO_AT + FLAGS_AT, flags)
            struct.pack_into("64s", config, INFO_AT + NAME_AT, label)
            try:
                fcntl.ioctl(loop, LOOP_CONFIGURE, bytes(config))
                return True
            except OSError as error:
                if error.errno == errno.EBUSY:
                    return False
                if error.errno != errno.EINVAL or not flags:
                    raise RunError(f"/dev/loop{number}: {error.strerror}") from None
    finally:
        os.close(loop)
    return False
