"""Claims on devices and files: refused if others use them or, for a cache, if they hold other data.

A block device is open with O_EXCL until the process ends: it can then neither be mounted nor be a
part of an array, a mapping or swap space, and it was none of these before.  A file is locked.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import struct
import subprocess
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from hybridsim.foundation.errors import DeviceError

if TYPE_CHECKING:
    from hybridsim.serving.cache import Device

BLKSSZGET = 0x1268  # the size of a logical block
BLKDISCARD = 0x1277
PUNCH_HOLE, KEEP_SIZE = 2, 1  # of fallocate
END = 1 << 20  # bytes at each end that must be zeros
SAMPLES, SAMPLE_BYTES = 128, 4096  # between the ends
SECTOR = 512
READ, WRITTEN, DISCARDED = 2, 6, 13  # sectors, in a device's `stat` in sysfs
TRIES = 100  # at counts of several devices at one moment
USERS_SHOWN = 3


@dataclass(frozen=True)
class Claim:
    """An open device or file of this process alone."""

    path: str
    fd: int
    is_block: bool
    size_bytes: int
    block_bytes: int  # what offsets and lengths must be multiples of
    why_unknown: ClassVar = ""  # its stamp shows writes by others

    def release(self) -> None:
        """Close it, which ends the claim."""
        os.close(self.fd)

    def read(self, where: memoryview, offset: int) -> None:
        """Fill memory; raise OSError."""
        _all_of(os.preadv, self.fd, where, offset)

    def write(self, data: memoryview, offset: int, durable: bool) -> None:
        """Write memory, to the medium itself if `durable`; raise OSError."""
        _all_of(os.pwritev, self.fd, data, offset, os.RWF_DSYNC if durable else 0)

    def flush(self) -> None:
        """Wait until all completed writes are on the medium; raise OSError."""
        os.fdatasync(self.fd)

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the device can; its contents may be anything afterwards."""
        try:
            if self.is_block:
                fcntl.ioctl(self.fd, BLKDISCARD, struct.pack("QQ", offset, length))
            else:
                _punch_hole(self.fd, offset, length)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS):
                raise

    def is_same(self, name: str) -> bool:
        """Return whether a path is one of this device or file; raise OSError if there is none."""
        return _identity(os.stat(name)) == self.identity

    @property
    def identity(self) -> tuple[int, ...]:
        """What distinguishes it from other devices and files now."""
        return _identity(os.fstat(self.fd))

    def stamp(self) -> list[Any]:
        """Return values that change with any write to it by others, and with a reboot if a device.

        A file: its times; they are exact to a few milliseconds.  A device: its sectors written and
        discarded; values that never come again if they are not counted.
        """
        status = os.fstat(self.fd)
        if not self.is_block:
            return ["file", status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns,
                    status.st_ctime_ns]  # fmt: skip
        folder = _sysfs(status.st_rdev)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        sequence = _text(disk_of(folder) / "diskseq")
        return ["device", boot, status.st_rdev, sequence, self.size_bytes, *changes(folder)]


def claim(path: str, direct: bool = False) -> Claim:
    """Open a device or file for this process alone; raise DeviceError if that is not possible.

    A device is read and written past the kernel's page cache; a file only if `direct`.
    """
    try:
        status = os.stat(path)
    except OSError as error:
        raise DeviceError(f"{path}: {error.strerror}: name a block device or a file") from None
    is_block = stat.S_ISBLK(status.st_mode)
    if not is_block and not stat.S_ISREG(status.st_mode):
        raise DeviceError(f"{path}: is neither a block device nor a file")
    flags = os.O_RDWR | os.O_CLOEXEC
    flags |= os.O_EXCL if is_block else 0
    flags |= os.O_DIRECT if is_block or direct else 0
    try:
        fd = os.open(path, flags)
    except OSError as error:
        why = error.strerror
        if error.errno == errno.EBUSY:
            why = "it is in use (mounted, swap space, or a part of an array or mapping): end that"
        raise DeviceError(f"{path}: cannot be opened for this process alone: {why}") from None
    try:
        return _checked(path, fd, status, is_block, direct)
    except BaseException:
        os.close(fd)
        raise


def _checked(path: str, fd: int, before: os.stat_result, is_block: bool, direct: bool) -> Claim:
    status = os.fstat(fd)
    if _identity(status) != _identity(before):
        raise DeviceError(f"{path}: has changed while it was opened: name it by another path")
    if not is_block:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DeviceError(f"{path}: is in use by another process that locks it") from None
    users = [*users_of(_identity(status)), *uses_by_the_kernel(_identity(status))]
    if users:
        more = f" and {len(users) - USERS_SHOWN} more" if len(users) > USERS_SHOWN else ""
        raise DeviceError(f"{path}: is open in {', '.join(users[:USERS_SHOWN])}{more}: end that")
    block = SECTOR
    if is_block:
        (block,) = struct.unpack("i", fcntl.ioctl(fd, BLKSSZGET, bytes(4)))
    elif direct:
        block = 4096
    size = os.lseek(fd, 0, os.SEEK_END) // block * block
    if size < block:
        raise DeviceError(f"{path}: has only {os.lseek(fd, 0, os.SEEK_END)} bytes")
    return Claim(path, fd, is_block, size, block)


def _all_of(move: Callable[..., int], fd: int, data: memoryview, offset: int, *flags: int) -> None:
    """Read or write memory, as many times as it takes; raise OSError."""
    while data:
        count = move(fd, [data], offset, *flags)
        if count == 0:
            raise OSError(errno.EIO, "the device ends too early")
        data, offset = data[count:], offset + count


def _punch_hole(fd: int, offset: int, length: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    arguments = fd, PUNCH_HOLE | KEEP_SIZE, ctypes.c_int64(offset), ctypes.c_int64(length)
    if libc.fallocate(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def disk_of(folder: Path) -> Path:
    """Return the folder in sysfs of the disk that a device is, or is a partition of."""
    return folder.parent if (folder / "partition").exists() else folder


def changes(folder: Path) -> list[Any]:
    """Return counts that rise with each write or discard of the data of a device in sysfs.

    The data of a partition also change by writes to the whole disk.  The disk counts these and
    those of all its partitions.
    """
    disk = disk_of(folder)
    is_counted = _text(disk / "queue/iostats") != "0" and _sectors(folder, READ) > 0
    if not is_counted:
        return [uuid.uuid4().hex]
    if disk == folder:
        return [_changed(folder)]
    parts = sorted(each.parent for each in disk.glob("*/partition"))
    for _ in range(TRIES):
        before = [_changed(each) for each in parts]
        whole = _changed(disk)
        if before == [_changed(each) for each in parts]:
            return [before[parts.index(folder)], whole - sum(before)]
    return [uuid.uuid4().hex]


def _changed(folder: Path) -> int:
    return _sectors(folder, WRITTEN) + _sectors(folder, DISCARDED)


def _sectors(folder: Path, column: int) -> int:
    counts = (folder / "stat").read_text().split()
    return int(counts[column]) if column < len(counts) else 0  # Linux before 4.18: no discards


def all_different(one: Device, other: Device) -> None:
    """Raise DeviceError if two claims are of the same device, file or export."""
    with contextlib.suppress(OSError):
        if one.is_same(other.path):
            raise DeviceError(f"{one.path} and {other.path} are the same: name two")


def check_replaceable(fast: Device, read: Any, erase: str | None) -> None:
    """Raise DeviceError if a device for a cache has partitions or holds data.

    Data may be overwritten if `erase` names the device again.  `read(offset, length)` returns bytes
    of it.
    """
    if isinstance(fast, Claim) and fast.is_block:
        parts = sorted(
            each.parent.name for each in _sysfs(os.fstat(fast.fd).st_rdev).glob("*/partition")
        )
        if parts:
            raise DeviceError(f"{fast.path}: has the partitions {', '.join(parts)}: name one of "
                              "them, or erase the partition table")  # fmt: skip
    if erase is not None:
        try:
            is_named = fast.is_same(erase)
        except OSError as error:
            raise DeviceError(f"--erase {erase}: {error.strerror}") from None
        if not is_named:
            raise DeviceError(f"--erase {erase}: is not --fast {fast.path}: nothing was written")
        return
    place = data_in(read, fast.size_bytes)
    if place is not None:
        what = _by_blkid(fast.path) if isinstance(fast, Claim) else ""
        raise DeviceError(
            f"{fast.path}: holds {what or f'data (at byte {place})'}, and would be overwritten: if "
            f"you do not need it, name it again: --erase {fast.path}"
        )


def data_in(read: Any, size_bytes: int) -> int | None:
    """Return where a device holds data: its ends and samples between them; None if all are zeros.

    All formats of file systems, arrays and volumes have a signature at one of the ends.
    """
    places = [(0, min(END, size_bytes)), (max(size_bytes - END, 0), min(END, size_bytes))]
    inner = size_bytes - 2 * END
    if inner >= SAMPLE_BYTES:
        places += [
            ((END + inner * number // SAMPLES) // SAMPLE_BYTES * SAMPLE_BYTES, SAMPLE_BYTES)
            for number in range(SAMPLES)
        ]
    for at, length in places:
        data = read(at, length)
        if data.count(0) != len(data):
            return at
    return None


def users_of(identity: tuple[int, ...]) -> list[str]:
    """Return the other processes that have a device or file open, as far as this user may see."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or process.name == str(os.getpid()):
            continue
        try:
            opened = [_identity_of_open(each) for each in (process / "fd").iterdir()]
        except OSError:  # it ended, or belongs to another user
            continue
        if identity in opened:
            found.append(f"{_text(process / 'comm')} ({process.name})")
    return sorted(found)


def uses_by_the_kernel(
    identity: tuple[int, ...], blocks: str = "/sys/block", swaps: str = "/proc/swaps"
) -> list[str]:
    """Return what in the kernel has a file or device open without a claim: loop devices, swap."""
    found = [
        each.parent.parent.name
        for each in Path(blocks).glob("loop*/loop/backing_file")
        if _identity_of_open(Path(_text(each))) == identity
    ]
    for line in _text(Path(swaps)).splitlines()[1:]:
        name = line.split()[0].replace(r"\040", " ")
        if _identity_of_open(Path(name)) == identity:
            found.append("the swap space")
    return sorted(found)


def _identity_of_open(file: Path) -> tuple[int, ...]:
    try:
        return _identity(os.stat(file))
    except OSError:
        return ()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    if stat.S_ISBLK(status.st_mode):
        return (status.st_rdev,)
    return status.st_dev, status.st_ino


def _sysfs(device: int) -> Path:
    return Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _by_blkid(path: str) -> str:
    """Return the name of what a device holds, by blkid of util-linux if it is installed."""
    program = shutil.which("blkid", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        return ""
    words = [program, "-p", "-o", "export", path]
    output = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    values = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    return values.get("TYPE") or values.get("PTTYPE") or ""
