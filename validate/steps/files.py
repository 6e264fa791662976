"""Sparse files instead of devices, and the loop devices that make devices of them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from validate.errors import MissingError, RunError, UnsafeError
from validate.sizes import human
from validate.steps import Scene
from validate.system import System

LOOP_CTL_GET_FREE = 0x4C82
LOOP_CLR_FD, LOOP_CONFIGURE = 0x4C01, 0x4C0A
CONFIG_BYTES = 304  # struct loop_config: fd, block size, loop_info64, reserved
FLAGS_AT, DIRECT_IO = 8 + 52, 16  # lo_flags in it
TRIES = 10


@dataclass(frozen=True)
class CreateFile:
    """A new sparse file."""

    path: str
    size_bytes: int

    def describe(self) -> str:
        """Say what it does."""
        return f"create the sparse file {self.path} of {human(self.size_bytes)}"

    def do(self, scene: Scene) -> None:
        """Create it; a file that is there is never touched."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            raise UnsafeError(f"{self.path}: is there already: name a file that is not") from None
        except OSError as error:
            raise MissingError(f"cannot create {self.path}: {error.strerror}") from None
        with contextlib.suppress(OSError):  # where there are none, `undo` goes by the size alone
            os.setxattr(fd, "user.hsval", b"1")
        try:
            os.ftruncate(fd, self.size_bytes)
        except OSError as error:
            raise RunError(f"{self.path}: cannot be so large: {error.strerror}") from None
        finally:
            os.close(fd)

    def undo(self, system: System) -> None:
        """Remove it, if it is the one that was made: by its mark, or its exact size."""
        path = Path(self.path)
        if not path.is_file() or path.is_symlink():
            return
        try:
            is_ours = os.getxattr(path, "user.hsval") == b"1"
        except OSError:
            is_ours = path.stat().st_size in (0, self.size_bytes)
        if is_ours:
            path.unlink()


@dataclass(frozen=True)
class AttachLoop:
    """A loop device over a file."""

    path: str
    role: str

    def describe(self) -> str:
        """Say what it does."""
        return f"attach {self.path} to a loop device ({self.role})"

    def do(self, scene: Scene) -> None:
        """Take the first free one, with direct I/O where the file's file system can."""
        system = scene.system
        system.module("loop")
        control = os.open("/dev/loop-control", os.O_RDWR)
        backing = os.open(self.path, os.O_RDWR)
        try:
            for _ in range(TRIES):
                number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
                if _configure(number, backing):
                    scene.roles[self.role] = system.read(
                        system.sys / f"class/block/loop{number}/dev"
                    )
                    return
        finally:
            os.close(backing)
            os.close(control)
        raise RunError(f"{self.path}: no free loop device was to be had")

    def undo(self, system: System) -> None:
        """Detach every loop device over the file."""
        for folder in sorted((system.sys / "class/block").glob("loop*/loop")):
            backing = system.read(folder / "backing_file", "")
            if backing in (self.path, f"{self.path} (deleted)"):
                fd = os.open(f"/dev/{folder.parent.name}", os.O_RDONLY)
                try:
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


def _configure(number: int, backing: int) -> bool:
    """Configure a free loop device; False where somebody else was faster."""
    loop = os.open(f"/dev/loop{number}", os.O_RDWR)
    try:
        for flags in (DIRECT_IO, 0):
            config = bytearray(CONFIG_BYTES)
            struct.pack_into("=II", config, 0, backing, 0)
            struct.pack_into("=I", config, FLAGS_AT, flags)
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
