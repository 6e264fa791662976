"""Checks that refuse a device that may be in use or hold data, before anything is changed.

A guard is a function of a device.  It returns why the device must not be used and what to do, or
"".  To add one, write the function and add it to GUARDS.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from validate import remains, signatures
from validate.devices import Claim, Device, of_number, tree
from validate.errors import UnsafeError
from validate.sizes import human
from validate.system import System

Guard = Callable[[Device, System], str]
PROGRAMS_SHOWN = 3


def not_mounted(device: Device, system: System) -> str:
    """Refuse a device if it, or a device built on it, is mounted or holds the running system."""
    numbers = {each.number: each for each in tree(device, system)}
    for line in system.read(system.proc / "self/mountinfo", "").splitlines():
        fields = line.split()
        source = fields[fields.index("-") + 2] if "-" in fields else ""
        used = fields[2] if fields[2] in numbers else system.number_of(source)
        if used in numbers:
            which = "" if numbers[used].number == device.number else f" ({numbers[used].name})"
            place = fields[4].replace("\\040", " ")
            if place == "/":
                return f"holds the running system{which}: name another disk"
            return f"is mounted at {place}{which}: umount it if it may be erased"
    return ""


def not_swap(device: Device, system: System) -> str:
    """Refuse active swap space."""
    numbers = {each.number for each in tree(device, system)}
    for line in system.read(system.proc / "swaps", "").splitlines()[1:]:
        path = line.split()[0].replace("\\040", " ")
        if system.number_of(path) in numbers:
            return f"is swap space ({path}): swapoff {path} first"
    return ""


def no_holders(device: Device, system: System) -> str:
    """Refuse a device on which an array, a volume group or another cache is built."""
    on_it = [each.name for each in tree(device, system) if each is not device]
    holders = [name for name in on_it if not (device.folder / name / "partition").exists()]
    if holders:
        return f"is in use by {', '.join(sorted(set(holders)))}: remove that first, if unneeded"
    return ""


def no_partitions(device: Device, system: System) -> str:
    """Refuse a disk with partitions."""
    parts = sorted(each.parent.name for each in device.folder.glob("*/partition"))
    if parts:
        return (
            f"has the partitions {', '.join(parts)}: name an unused one, or, if you need none, "
            f"erase the partition table (wipefs -a {device.node})"
        )
    return ""


def not_of_a_used_disk(device: Device, system: System) -> str:
    """Refuse a partition if others on its disk are in use."""
    if not device.is_partition:
        return ""
    disk = of_number(system.read(device.disk / "dev"), system)
    for guard in (not_mounted, not_swap, no_holders):
        why = guard(disk, system)
        if why:
            return f"is a partition of {disk.name}, which {why}"
    return ""


def writable(device: Device, system: System) -> str:
    """Refuse a read-only device."""
    if system.read(device.folder / "ro", "0") == "1":
        return f"is read-only: blockdev --setrw {device.node}, unless it is meant to be protected"
    return ""


def not_open(device: Device, system: System) -> str:
    """Refuse a device that another process has open, also without a claim."""
    numbers = {each.number for each in tree(device, system)}
    users = []
    for process in _processes(system):
        if process.name != str(os.getpid()) and _opens(process, numbers, system):
            users.append(f"{system.read(process / 'comm', '?')} ({process.name})")
    if users:
        more = f" and {len(users) - PROGRAMS_SHOWN} more" if len(users) > PROGRAMS_SHOWN else ""
        return f"is open in {', '.join(users[:PROGRAMS_SHOWN])}{more}: end that first"
    return ""


def _processes(system: System) -> Iterable[Path]:
    return sorted(each for each in system.proc.iterdir() if each.name.isdigit())


def _opens(process: Path, numbers: set[str], system: System) -> bool:
    try:
        files = list((process / "fd").iterdir())
    except OSError:  # it ended, or we may not look at it
        return False
    return any(system.number_of(file) in numbers for file in files)


def no_other_path(device: Device, system: System) -> str:
    """Refuse one of several paths to the same disk: the other paths may be in use."""
    own = system.read(device.disk / "wwid", "") or system.read(device.disk / "device/wwid", "")
    others = [
        folder.name
        for folder in sorted((system.sys / "class/block").iterdir())
        if own
        and os.path.realpath(folder) != str(device.disk)
        and not (folder / "partition").exists()
        and own in (system.read(folder / "wwid", ""), system.read(folder / "device/wwid", ""))
    ]
    if others:
        return f"is the same disk as {', '.join(others)}: name the multipath device on them"
    return ""


def not_reserved(device: Device, system: System) -> str:
    """Refuse a SCSI disk with a persistent reservation, if sg_persist is installed."""
    scsi = (device.disk / "device/scsi_level").exists()
    if not scsi or system.uid != 0 or system.program("sg_persist") is None:
        return ""
    words = ["sg_persist", "--in", "--read-reservation", f"{system.dev}/{device.disk.name}"]
    if "Reservation follows" in system.run(words, check=False, record=False):
        return (
            "is reserved (SCSI persistent reservation), perhaps by another host: release it first"
        )
    return ""


GUARDS: tuple[Guard, ...] = (
    not_mounted, not_swap, no_holders, no_partitions, not_of_a_used_disk, writable, not_open,
    no_other_path, not_reserved,
)  # fmt: skip


def large_enough(device: Device, need_bytes: int, what: str) -> str:
    """Refuse a device that is too small."""
    if device.size_bytes < need_bytes:
        return (
            f"has {human(device.size_bytes)}, but {what} needs {human(need_bytes)}: name a larger "
            "device, or write a smaller size in the experiment"
        )
    return ""


def empty(device: Device, claim: Claim, system: System) -> str:
    """Refuse a device that holds data, by our own reads and by blkid."""
    names = signatures.contents(claim.read, device.size_bytes, remains.load(device, system))
    names += [name for name in _by_blkid(device, system) if not names]
    if not names:
        return ""
    remedy = f"if you do not need it, wipefs -a {device.node}"
    if names[0].startswith("data at"):
        remedy = "if you do not need it, zero both its ends"
    elif names[0].startswith("data in"):
        remedy = f"if you do not need it, zero the whole device (blkdiscard -z {device.node})"
    elif names[0] == signatures.MARK_OF_A_RUN:
        remedy = "run `validate clean` with the --state of that run"
    return f"holds {', '.join(names)}: {remedy}"


def _by_blkid(device: Device, system: System) -> list[str]:
    """Probe with blkid of util-linux, if installed: it supports more formats."""
    if system.program("blkid") is None:
        return []
    output = system.run(["blkid", "-p", "-o", "export", device.node], check=False, record=False)
    values = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    return [values[key] for key in ("TYPE", "PTTYPE") if key in values][:1]


def check(device: Device, system: System, guards: Iterable[Guard] = GUARDS) -> None:
    """Raise UnsafeError with the reasons of all guards that refuse a device."""
    reasons = [why for guard in guards if (why := guard(device, system))]
    if reasons:
        raise UnsafeError("\n".join(f"{device.path}: {why}" for why in dict.fromkeys(reasons)))


def all_different(devices: Sequence[Device]) -> None:
    """Raise UnsafeError if two devices are the same, or one is a partition of another."""
    for index, one in enumerate(devices):
        for other in devices[:index]:
            if one.number == other.number:
                raise UnsafeError(
                    f"{other.path} and {one.path} are the same device ({one.name}): name two"
                )
            if one.disk == other.folder or other.disk == one.folder:
                raise UnsafeError(f"{one.path} and {other.path}: one is a part of the other")


def named_twice(devices: Sequence[Device], erase: Sequence[str], system: System) -> None:
    """Raise UnsafeError unless `erase` names exactly these devices."""
    again = {system.number_of(path): path for path in erase}
    missing = [each for each in devices if each.number not in again]
    if missing:
        words = " ".join(f"--erase {each.path}" for each in missing)
        raise UnsafeError(
            f"everything on {', '.join(each.path for each in missing)} will be lost: to "
            f"confirm, name it again: {words}"
        )
    numbers = {each.number for each in devices}
    for number, path in again.items():
        if number not in numbers:
            raise UnsafeError(f"--erase {path}: it is not among the devices of this run")


def is_file(path: str) -> bool:
    """Return whether a path is a regular file, or a new one outside /dev."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return not os.path.lexists(path) and not path.startswith("/dev/")
    except OSError:
        return False
