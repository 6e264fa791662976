"""Block devices, identified by MAJOR:MINOR and hardware; a path only selects one."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validate.errors import RunError, UnsafeError
from validate.sizes import SECTOR, human
from validate.system import System

BLKROSET, BLKROGET = 0x125D, 0x125E
HARDWARE = (
    "wwid",
    "device/wwid",
    "serial",
    "device/serial",
    "dm/uuid",
)  # in sysfs: the first that is not empty identifies a disk


@dataclass(frozen=True)
class Device:
    """A block device."""

    path: str  # as the user specified it
    name: str  # of the kernel
    number: str  # MAJOR:MINOR
    folder: Path  # in sysfs
    size_bytes: int
    dev: Path = Path("/dev")

    @property
    def node(self) -> str:
        """The kernel's own path, which is not a link."""
        return f"{self.dev}/{self.name.replace('!', '/')}"

    @property
    def disk(self) -> Path:
        """The sysfs folder of the whole disk."""
        return self.folder.parent if self.is_partition else self.folder

    @property
    def is_partition(self) -> bool:
        """Whether it is a partition."""
        return (self.folder / "partition").exists()

    def identity(self, system: System) -> dict[str, str]:
        """Return values that distinguish it from other devices, also after a reboot."""
        disk = self.disk
        hardware = [system.read(disk / name, "") for name in HARDWARE]
        hardware.append(_backing(disk, system))
        return {
            "number": self.number,
            "name": self.name,
            "size": str(self.size_bytes),
            "boot": system.boot(),
            "sequence": system.read(disk / "diskseq", ""),
            "start": system.read(self.folder / "start", ""),  # of a partition
            "hardware": next((each for each in hardware if each), ""),
        }

    def facts(self, system: System) -> dict[str, Any]:
        """Return the properties that `environment.json` lists."""
        queue = self.disk / "queue"
        depth = system.read(queue / "nr_requests", "")
        scheduler = system.read(queue / "scheduler", "")
        return {
            "name": self.name,
            "path": self.path,
            "number": self.number,
            "size_bytes": self.size_bytes,
            "logical_block_bytes": int(system.read(queue / "logical_block_size", "512")),
            "rotational": system.read(queue / "rotational", "") == "1",
            "scheduler": chosen(scheduler),
            "queue_depth": int(depth) if depth else None,
            "model": model(self, system),
        }


def _backing(disk: Path, system: System) -> str:
    """Return the path and inode of the file behind a loop device, or ""."""
    path = system.read(disk / "loop/backing_file", "")
    try:
        status = os.stat(path) if path else None
    except OSError:
        return ""
    return f"{path} {status.st_dev}:{status.st_ino}" if status else ""


def chosen(text: str) -> str:
    """Return the word in brackets of a list of choices in sysfs, or the whole text."""
    return text.partition("[")[2].partition("]")[0] or text


def model(device: Device, system: System) -> str:
    """Return vendor and model of the disk."""
    names = (system.read(device.disk / "device" / each, "") for each in ("vendor", "model"))
    return " ".join(name for name in names if name and not name.startswith("0x"))


def find(path: str, system: System) -> Device:
    """Return the device at a path, links followed; raise UnsafeError if there is none."""
    number = system.number_of(path)
    if number is None:
        if not os.path.lexists(path):
            raise UnsafeError(f"{path}: there is no such device: `lsblk` lists all devices")
        raise UnsafeError(f"{path}: is not a block device: name one as `lsblk -p` shows it")
    return of_number(number, system, path)


def of_number(number: str, system: System, path: str = "") -> Device:
    """Return the device MAJOR:MINOR; raise UnsafeError if the kernel has none."""
    folder = system.block(number)
    if not (folder / "size").exists():
        raise UnsafeError(f"{path or number}: the kernel has no device {number}: is it gone?")
    size_bytes = int(system.read(folder / "size")) * SECTOR
    name = folder.name
    node = f"{system.dev}/{name.replace('!', '/')}"
    return Device(path or node, name, number, folder, size_bytes, system.dev)


def tree(device: Device, system: System) -> Iterator[Device]:
    """Yield a device, its partitions, and all devices built on them."""
    yield device
    for part in sorted(device.folder.glob("*/partition")):
        yield from tree(of_number(system.read(part.parent / "dev"), system), system)
    holders = device.folder / "holders"
    for holder in sorted(holders.iterdir()) if holders.is_dir() else ():
        number = system.read(holder / "dev", "")
        if number:
            yield from tree(of_number(number, system), system)


class Claim:
    """An exclusive claim on a device: it is open with O_EXCL until it is released.

    Meanwhile others can neither mount nor claim it; they can still write to it without a claim.
    """

    def __init__(self, device: Device, system: System, *, write: bool) -> None:
        """Open the device.  Raises UnsafeError if it is claimed, or its identity changed."""
        self.device = device
        self._system = system
        self._identity = device.identity(system)
        mode = os.O_RDWR if write else os.O_RDONLY
        try:
            self.fd = system.open_device(device.node, mode | os.O_EXCL)
        except OSError as error:
            reason = error.strerror
            if error.errno == errno.EBUSY:
                reason = (
                    "it is in use, perhaps mounted in a container: end that; `lsblk`, `dmsetup ls` "
                    "and `fuser -v` may show the user"
                )
            raise UnsafeError(f"{device.path}: cannot be claimed exclusively: {reason}") from None
        try:
            self.verify()
        except BaseException:
            self.release()
            raise

    def verify(self) -> None:
        """Raise UnsafeError if path, node and open file are not the same device any more."""
        number = self.device.number
        opened = self._system.number_of_open(self.fd)
        named = self._system.number_of(self.device.path)
        now = of_number(number, self._system, self.device.path).identity(self._system)
        if not opened == named == number or now != self._identity:
            raise UnsafeError(
                f"{self.device.path}: it was {number} ({human(self.device.size_bytes)}) and is now "
                f"{named}: the device changed after the check; nothing was written.  Name it by "
                "/dev/disk/by-id/..., and find out what changes that path"
            )

    def read(self, offset: int, length: int) -> bytes:
        """Read from the medium."""
        return self._system.pread(self.fd, offset, length)

    def write(self, offset: int, data: bytes) -> None:
        """Write all data and flush it; raise RunError on failure."""
        try:
            self._system.pwrite(self.fd, offset, data)
        except OSError as error:
            raise RunError(f"{self.device.path}: cannot be written: {error.strerror}") from None

    def release(self) -> None:
        """Close the device, which ends the claim."""
        if self.fd >= 0:
            self._system.close_device(self.fd)
            self.fd = -1


def held(device: Device, system: System) -> Claim:
    """Return this process's claim on a device; claim it if needed.

    The claim stays in `system.claims`, so that no other process claims the device between the
    check, the question to the user and the change.  Raises UnsafeError if the device is claimed by
    another process.
    """
    claim: Claim | None = system.claims.get(device.number)
    if claim is None:
        claim = system.claims[device.number] = Claim(device, system, write=True)
    return claim


def release_claim(system: System, number: str | None = None) -> None:
    """Release the claim on a device if there is one; without a number, all claims."""
    for each in [number] if number is not None else list(system.claims):
        claim = system.claims.pop(each, None)
        if claim is not None:
            claim.release()


def is_read_only(node: str) -> bool:
    """Return whether the kernel's read-only flag of a device is set."""
    fd = os.open(node, os.O_RDONLY)
    try:
        return bool(struct.unpack("i", fcntl.ioctl(fd, BLKROGET, bytes(4)))[0])
    finally:
        os.close(fd)


def set_read_only(node: str, value: bool) -> None:
    """Set or clear the kernel's read-only flag of a device."""
    fd = os.open(node, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, BLKROSET, struct.pack("i", value))
    finally:
        os.close(fd)
