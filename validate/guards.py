"""What is refused, before anything is touched: every device that somebody may need.

A guard is a function of a device that returns why it must not be taken, and what to do, or "".
To add one: the function, and its name in GUARDS.
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
    """Refuse what is mounted, itself or anything on it: also the disk of the system itself."""
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
    """Refuse swap space."""
    numbers = {each.number for each in tree(device, system)}
    for line in system.read(system.proc / "swaps", "").splitlines()[1:]:
        path = line.split()[0].replace("\\040", " ")
        if system.number_of(path) in numbers:
            return f"is swap space ({path}): swapoff {path} first"
    return ""


def no_holders(device: Device, system: System) -> str:
    """Refuse what an array, a volume group or another cache is built on."""
    on_it = [each.name for each in tree(device, system) if each is not device]
    holders = [name for name in on_it if not (device.folder / name / "partition").exists()]
    if holders:
        return f"is in use by {', '.join(sorted(set(holders)))}: remove that first, if it may go"
    return ""


def no_partitions(device: Device, system: System) -> str:
    """Refuse a disk with partitions."""
    parts = sorted(each.parent.name for each in device.folder.glob("*/partition"))
    if parts:
        return (
            f"has the partitions {', '.join(parts)}: name one that is free, or remove its table "
            f"(wipefs -a {device.node}) if all of it may go"
        )
    return ""


def not_of_a_used_disk(device: Device, system: System) -> str:
    """Refuse a partition beside others that are in use."""
    if not device.is_partition:
        return ""
    disk = of_number(system.read(device.disk / "dev"), system)
    for guard in (not_mounted, not_swap, no_holders):
        why = guard(disk, system)
        if why:
            return f"is a partition of {disk.name}, which {why}"
    return ""


def writable(device: Device, system: System) -> str:
    """Refuse what is read-only."""
    if system.read(device.folder / "ro", "0") == "1":
        return f"is read-only: blockdev --setrw {device.node}, if that is not there to protect it"
    return ""


def not_open(device: Device, system: System) -> str:
    """Refuse what a program has open, even where it shares it with others."""
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
    except OSError:  # it ended, or is not ours to look at
        return False
    return any(system.number_of(file) in numbers for file in files)


def no_other_path(device: Device, system: System) -> str:
    """Refuse one of several paths to the same disk: the others may be in use elsewhere."""
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
        return f"is the same disk as {', '.join(others)}: name the multipath device over them"
    return ""


def not_reserved(device: Device, system: System) -> str:
    """Refuse a SCSI disk that a host has reserved, as far as sg_persist is there to ask."""
    scsi = (device.disk / "device/scsi_level").exists()
    if not scsi or system.uid != 0 or system.program("sg_persist") is None:
        return ""
    words = ["sg_persist", "--in", "--read-reservation", f"{system.dev}/{device.disk.name}"]
    if "Reservation follows" in system.run(words, check=False, record=False):
        return "is reserved (SCSI persistent reservation), perhaps by another host: end that first"
    return ""


GUARDS: tuple[Guard, ...] = (
    not_mounted, not_swap, no_holders, no_partitions, not_of_a_used_disk, writable, not_open,
    no_other_path, not_reserved,
)  # fmt: skip


def large_enough(device: Device, need_bytes: int, what: str) -> str:
    """Refuse what is too small."""
    if device.size_bytes < need_bytes:
        return (
            f"has {human(device.size_bytes)}, and {what} needs {human(need_bytes)}: name a larger "
            "one, or write a smaller size in the experiment"
        )
    return ""


def empty(device: Device, claim: Claim, system: System) -> str:
    """Refuse what holds anything: by what is read now, and by blkid's own reading."""
    names = signatures.found(claim.read, device.size_bytes, remains.known(device, system))
    names += [name for name in _by_blkid(device, system) if not names]
    if not names:
        return ""
    mend = f"if nothing of it is needed, wipefs -a {device.node}"
    if names[0].startswith("data at"):
        mend = "if nothing of it is needed, zero both its ends"
    elif names[0].startswith("data in"):
        mend = f"if nothing of it is needed, zero all of it (blkdiscard -z {device.node})"
    elif names[0] == signatures.MARK_OF_A_RUN:
        mend = "`validate clean`, with the --state of that run, gives it back"
    return f"holds {', '.join(names)}: {mend}"


def _by_blkid(device: Device, system: System) -> list[str]:
    """Ask util-linux's blkid to probe, where it is installed: it knows more formats."""
    if system.program("blkid") is None:
        return []
    told = system.run(["blkid", "-p", "-o", "export", device.node], check=False, record=False)
    known = dict(line.split("=", 1) for line in told.splitlines() if "=" in line)
    return [known[key] for key in ("TYPE", "PTTYPE") if key in known][:1]


def check(device: Device, system: System, guards: Iterable[Guard] = GUARDS) -> None:
    """Raise UnsafeError with all that speaks against a device."""
    reasons = [why for guard in guards if (why := guard(device, system))]
    if reasons:
        raise UnsafeError("\n".join(f"{device.path}: {why}" for why in dict.fromkeys(reasons)))


def all_different(devices: Sequence[Device]) -> None:
    """Raise UnsafeError where two are the same, or one is a part of another."""
    for index, one in enumerate(devices):
        for other in devices[:index]:
            if one.number == other.number:
                raise UnsafeError(
                    f"{other.path} and {one.path} are the same device ({one.name}): name two"
                )
            if one.disk == other.folder or other.disk == one.folder:
                raise UnsafeError(f"{one.path} and {other.path}: one is a part of the other")


def named_twice(devices: Sequence[Device], erase: Sequence[str], system: System) -> None:
    """Raise UnsafeError unless the same devices were named again, as ones to be erased."""
    again = {system.number_of(path): path for path in erase}
    missing = [each for each in devices if each.number not in again]
    if missing:
        words = " ".join(f"--erase {each.path}" for each in missing)
        raise UnsafeError(
            f"everything on {', '.join(each.path for each in missing)} will be lost: if that is "
            f"meant, name it again: {words}"
        )
    numbers = {each.number for each in devices}
    for number, path in again.items():
        if number not in numbers:
            raise UnsafeError(f"--erase {path}: it is not among the devices of this run")


def is_file(path: str) -> bool:
    """Tell whether a path is meant as a file: a new one, or one that is there."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return not os.path.lexists(path) and not path.startswith("/dev/")
    except OSError:
        return False
