"""QEMU's command line: a PC with two serial lines and disks, and no other device.

Each disk has its own thread and a serial number, `lab-NAME`, by which the guest identifies it.
Served disks are NBD exports; QEMU keeps at most 16 requests of such a disk in flight
(MAX_NBD_REQUESTS), which a twin of the run specifies as `queue_depth = 16`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from validate.lab.setup import Lab

KERNEL_WORDS = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"
PROCESSOR_THREAD = "CPU "  # prefix of the names of the threads that run the guest's processors
FIRMWARE = ("/share/qemu", "/share/seabios", "/lib/ipxe/qemu")
ACCELERATORS = {
    # Under software emulation 57-bit addresses add a level to each page walk, and wide vectors cost
    # more than they save: together 11% of the time to boot and to start Python.
    "tcg": ("tcg,thread=multi,tb-size=512", "max,la57=off,avx=off,avx2=off"),
    "kvm": ("kvm", "host"),
}


@dataclass(frozen=True)
class Disk:
    """A disk of a guest: an empty sparse file, or the export of a server at NAME.sock."""

    name: str  # at most 12 letters
    size_bytes: int
    is_served: bool = False
    is_rotational: bool = True


def command(
    lab: Lab, disks: Sequence[Disk], memory_mb: int, cpus: int, accelerator: str
) -> list[str]:
    """Return QEMU's command line; all paths except the lab's are relative to the guest's folder."""
    firmware = [word for place in FIRMWARE if lab.share for word in ("-L", lab.share + place)]
    emulation, processor = ACCELERATORS[accelerator]
    words = [
        *lab.emulator, *firmware, "-nodefaults", "-no-user-config", "-no-reboot",
        "-name", "lab,debug-threads=on",
        "-display", "none", "-accel", emulation, "-cpu", processor,
        "-m", str(memory_mb), "-smp", str(cpus),
        "-kernel", lab.kernel, "-initrd", "initrd", "-append", KERNEL_WORDS,
        "-serial", "file:console.txt", "-serial", "stdio",
    ]  # fmt: skip
    for each in disks:
        words += _disk(each.name, _backend(each), not each.is_rotational)
    words += _disk("root", _file(lab.root) | {"read-only": True}, False)
    words += _disk("job", _file("job.tar") | {"read-only": True}, False)
    words += _disk("out", _file("out.img"), False)
    return words


def environment(lab: Lab) -> dict[str, str]:
    """Return the environment of QEMU."""
    parts = {"QEMU_MODULE_DIR": f"{lab.share}/lib/x86_64-linux-gnu/qemu"} if lab.share else {}
    return os.environ | parts


def _backend(disk: Disk) -> dict[str, object]:
    if disk.is_served:
        return {"driver": "nbd", "server": {"type": "unix", "path": f"{disk.name}.sock"}}
    return _file(f"{disk.name}.img")


def _file(path: str) -> dict[str, object]:
    return {"driver": "file", "filename": path, "cache": {"no-flush": True}}


def _disk(name: str, backend: dict[str, object], can_discard: bool) -> list[str]:
    """Return the arguments of one disk; a hard disk supports neither discards nor write-zeroes.

    QEMU must not merge adjacent requests: the disk gets those that the guest's kernel sends.
    """
    serial = f"lab-{name}"
    same = {"discard": "unmap", "read-only": bool(backend.get("read-only"))}
    file = {"node-name": f"{serial}-file", **same, **backend}
    raw = {"driver": "raw", "node-name": serial, "file": f"{serial}-file", **same}
    switch = "on" if can_discard else "off"
    return [
        "-object", f"iothread,id=io-{name}",
        "-blockdev", json.dumps(file), "-blockdev", json.dumps(raw),
        "-device", f"virtio-blk-pci,drive={serial},serial={serial},iothread=io-{name},"
        f"discard={switch},write-zeroes={switch},request-merging=off",
    ]  # fmt: skip
