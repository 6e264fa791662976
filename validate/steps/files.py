"""Sparse files instead of devices, and the loop devices on them.

A file is created without a name.  A trailer with a token is written behind its last data byte, and
the loop device ends before the trailer.  Only then the file is linked to its name: link(2) never
replaces a file, and the name never refers to a file of ours without its token.  A file is removed
only if its trailer has the token.
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
TRIES = 10  # other processes may take the free loop device first
TRAILER = 4096  # bytes


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
        """Return what the step does."""
        return f"create the sparse file {self.path} of {human(self.size_bytes)}"

    def do(self, scene: Scene) -> None:
        """Create it.  Raises UnsafeError if the path exists: an existing file is never touched."""
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
            raise UnsafeError(f"{self.path}: is there already: name a new file") from None
        except OSError as error:
            if error.errno in (errno.EFBIG, errno.ENOSPC, errno.EINVAL):
                raise RunError(f"{self.path}: cannot be so large: {error.strerror}") from None
            raise MissingError(f"cannot create {self.path}: {error.strerror}") from None
        finally:
            if fd >= 0:
                os.close(fd)
        scene.system.written.add(self.token)

    def _nameless(self) -> int:
        """Open a new file that does not have its final name yet."""
        folder = str(Path(self.path).parent)
        try:
            return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
        # The file system does not support O_TMPFILE: use a temporary name with the token.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self._first_name, flags, 0o600)

    def _link(self, fd: int) -> None:
        if os.path.lexists(self._first_name):
            os.link(self._first_name, self.path, follow_symlinks=False)
            os.unlink(self._first_name)
        else:
            root = os.open("/", os.O_RDONLY | os.O_CLOEXEC)
            try:  # Python follows the link in /proc only if src_dir_fd is set
                os.link(f"/proc/self/fd/{fd}", self.path, src_dir_fd=root)
            finally:
                os.close(root)

    @property
    def _first_name(self) -> str:
        return f"{self.path}.{self.token}"

    @property
    def _last_name(self) -> str:
        return f"{self.path}.{self.token}.removed"

    def undo(self, system: System) -> None:
        """Remove the file that this step created.

        Raises NotOursError if it is another file, or others may have written to it.
        """
        self._finish_removal(system)
        for path in (self._first_name, self.path):
            self._remove(path, system)
        system.written.discard(self.token)

    def _remove(self, path: str, system: System) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # it does not exist, or is a symbolic link: not ours
            return
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return
            if path == self._first_name:  # its name has the token
                os.unlink(path)
                return
            self._check(fd, system)
        finally:
            os.close(fd)
        # unlink(2) removes whatever has the name by then, so another process could lose a file that
        # replaced ours after the check.  rename(2) loses nothing, and the new name is private.
        with contextlib.suppress(FileNotFoundError):
            os.rename(path, self._last_name)
        self._finish_removal(system)

    def _check(self, fd: int, system: System) -> None:
        """Raise NotOursError unless an open file is ours, and free of data of others."""
        if not self._is_ours(fd, os.fstat(fd).st_size):
            raise NotOursError(f"{self.path}: is not the file that this run created: it is kept")
        if self.token not in system.written and _holds_data(fd, self.size_bytes):
            raise NotOursError(
                f"{self.path}: was created by a run that was killed, and holds data that may not "
                f"be ours: it is kept; if you need nothing of it: rm {self.path}"
            )

    def _finish_removal(self, system: System) -> None:
        """Delete the renamed file if it is ours; otherwise restore its name."""
        try:
            fd = os.open(
                self._last_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except FileNotFoundError:
            return
        except OSError:  # a symbolic link, for example: not ours
            self._restore()
            return
        try:
            self._check(fd, system)
        except NotOursError:
            self._restore()
            raise
        finally:
            os.close(fd)
        os.unlink(self._last_name)

    def _restore(self) -> None:
        """Give a renamed file its name back; a file that has the name meanwhile is not replaced."""
        try:
            os.link(self._last_name, self.path, follow_symlinks=False)
        except OSError as error:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.lstat(self._last_name), os.lstat(self.path)):
                    os.unlink(self._last_name)  # a kill came after the link
                    return
            raise NotOursError(
                f"{self._last_name}: is not ours, and was {self.path} before: it is kept there, as "
                f"its name cannot be restored: {error.strerror}"
            ) from None
        os.unlink(self._last_name)

    def _is_ours(self, fd: int, size_bytes: int) -> bool:
        """Return whether the trailer has our token; name and size alone prove nothing."""
        return bool(self.token) and size_bytes == self.size_bytes + TRAILER and (
            os.pread(fd, TRAILER, self.size_bytes) == _trailer(self.token)
        )  # fmt: skip


def _holds_data(fd: int, size_bytes: int) -> bool:
    """Return whether the first bytes of a sparse file hold anything but zeros."""
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
        """Return what the step does."""
        return f"attach {self.path} to a loop device ({self.role})"

    def do(self, scene: Scene) -> None:
        """Attach the first free loop device, with direct I/O if the file system supports it."""
        system = scene.system
        system.module("loop")
        backing = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            size_bytes = os.fstat(backing).st_size - TRAILER
            if size_bytes < 0 or os.pread(backing, TRAILER, size_bytes) != _trailer(self.token):
                raise UnsafeError(f"{self.path}: is not the file that this run created")
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
        raise RunError(f"{self.path}: no free loop device: detach some (losetup -D)")

    @property
    def _label(self) -> bytes:
        return f"hsval-{self.token}".encode()

    def undo(self, system: System) -> None:
        """Detach the loop device that has our label, whatever the name of its file is now."""
        for folder in sorted((system.sys / "class/block").glob("loop*/loop")):
            fd = os.open(f"/dev/{folder.parent.name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                info = bytearray(INFO_BYTES)
                with contextlib.suppress(OSError):  # it was detached meanwhile
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
                f"/dev/{folder.parent.name}: to detach {self.path}",
                lambda here=folder: not here.exists(),
            )


def _configure(number: int, backing: int, size_bytes: int, label: bytes) -> bool:
    """Configure a free loop device; return False if another process took it first."""
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
