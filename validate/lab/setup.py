"""Fetch and build what a guest needs; what is there already is kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from validate.lab import image
from validate.lab.packages import Apt, Package, command_in, unpack
from validate.lab.places import lab_folder, locked

Say = Callable[[str], None]
KERNELS = ("linux-image-cloud-amd64", "linux-image-amd64")
EMULATOR = ("qemu-system-x86",)
GUEST = (
    "usr-is-merged", "busybox-static", "bash", "dash", "coreutils", "grep", "sed", "mawk", "tar",
    "kmod", "util-linux", "mount", "fdisk", "e2fsprogs", "dmsetup", "lvm2",
    "thin-provisioning-tools", "bcache-tools", "mdadm", "blktrace", "fio", "procps",
    "python3-minimal", "libpython3-stdlib",
)  # fmt: skip
BUILDER = 3  # changes when the same packages are to be built into something else


@dataclass(frozen=True)
class Lab:
    """What a guest is started with."""

    emulator: list[str]  # words that run QEMU
    share: str  # /usr of the tree that it lies in, "" where it is this system's
    kernel: str
    modules: str  # /lib/modules/VERSION, unpacked
    busybox: str
    root: str  # ext4 image
    kernel_version: str
    versions: dict[str, str]  # of packages, by name


def find() -> Lab | None:
    """Return what was set up and is still there, or None."""
    try:
        lab = Lab(**json.loads((lab_folder() / "lab.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    files = (lab.emulator[0], lab.kernel, lab.busybox, lab.root)
    return lab if all(Path(path).exists() for path in files) else None


def set_up(say: Say, *, refresh: bool = False, fetch_qemu: bool = False) -> Lab:
    """Return the lab, fetched and built where it is not there; `refresh` asks for newer packages.

    `fetch_qemu` takes Debian's QEMU even where this system has one.

    Raises MissingError with what is lacking and how to mend it.
    """
    folder = lab_folder()
    with locked(folder / "setup.lock"):
        found = None if refresh else find()
        if found:
            say(f"ready: {_told(found)}")
            return found
        started = time.monotonic()
        lab = _build(folder, fetch_qemu, say)
        _write(folder / "lab.json", json.dumps(asdict(lab), indent=1))
        _forget(folder, lab)
        taken = sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file()) * 512
        say(f"ready: {_told(lab)}")
        say(f"took {time.monotonic() - started:.0f} s; {taken / 1e6:.0f} MB in {folder}")
        return lab


def _told(lab: Lab) -> str:
    kinds = ("fio", "dmsetup", "bcache-tools", "mdadm", "blktrace")
    tools = ", ".join(f"{name} {lab.versions[name]}" for name in kinds if name in lab.versions)
    where = "this system's" if not lab.share else "Debian's"
    return f"Linux {lab.kernel_version}; {tools}; {where} QEMU"


def _build(folder: Path, fetch_qemu: bool, say: Say) -> Lab:
    apt = Apt(folder / "apt")
    say("lists of packages: asking")
    apt.update()
    own = None if fetch_qemu else shutil.which("qemu-system-x86_64")
    if own:
        say(f"QEMU: {own} of this system")
    emulator = [] if own else apt.needed(EMULATOR)
    guest = apt.needed(GUEST)
    kernel = apt.kernel(KERNELS)
    everything = {each.name: each for each in (*emulator, *guest, kernel)}
    total = sum(each.size_bytes for each in everything.values())
    say(f"packages: {len(everything)}, {total / 1e6:.0f} MB")
    apt.fetch(list(everything.values()), say)
    words, share = ([own], "") if own else _emulator(folder, apt, emulator, say)
    place, version = _guest(folder, apt, [*guest, kernel], say)
    return Lab(
        emulator=words,
        share=share,
        kernel=str(place / f"vmlinuz-{version}"),
        modules=str(place / "modules" / version),
        busybox=str(place / "busybox"),
        root=str(place / "root.img"),
        kernel_version=version,
        versions=dict(each.title.split(" ", 1) for each in everything.values()),
    )


def _emulator(folder: Path, apt: Apt, packages: list[Package], say: Say) -> tuple[list[str], str]:
    """Unpack QEMU; return the words that run it, and /usr of its tree."""
    place = folder / f"qemu-{_digest(packages)}"
    if not place.exists():
        half = _emptied(folder / "qemu-half")
        unpack(apt.fetch(packages, say), half, say)
        half.rename(place)
        say(f"QEMU: unpacked ({_size_mb(place)} MB)")
    return command_in(place, "usr/bin/qemu-system-x86_64"), f"{place}/usr"


def _guest(folder: Path, apt: Apt, packages: list[Package], say: Say) -> tuple[Path, str]:
    """Build kernel, modules and root image; return their folder and the kernel's version."""
    place = folder / f"guest-{_digest(packages)}"
    if not place.exists():
        half, tree = _emptied(folder / "guest-half"), _emptied(folder / "guest-tree")
        unpack(apt.fetch(packages, say), tree, say)
        kernel = next((tree / "boot").glob("vmlinuz-*"))
        version = kernel.name.removeprefix("vmlinuz-")
        image.complete(tree, version)
        kernel.rename(half / kernel.name)
        shutil.copytree(tree / "usr/lib/modules", half / "modules", symlinks=True)
        shutil.copy(tree / "usr/bin/busybox", half / "busybox")
        shutil.rmtree(tree / "boot")
        say("root file system: building")
        image.root_image(tree, half / "root.img")
        shutil.rmtree(tree)
        half.rename(place)
        say(f"guest: built ({_size_mb(place)} MB)")
    return place, next(place.glob("vmlinuz-*")).name.removeprefix("vmlinuz-")


def _forget(folder: Path, lab: Lab) -> None:
    """Remove what earlier versions were built into."""
    used = f"{lab.emulator} {lab.root}"
    for place in (*folder.glob("guest-*"), *folder.glob("qemu-*")):
        if place.name not in used:
            shutil.rmtree(place, ignore_errors=True)


def _digest(packages: list[Package]) -> str:
    names = sorted(each.name for each in packages)
    return hashlib.sha256(repr((BUILDER, names)).encode()).hexdigest()[:12]


def _emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _size_mb(folder: Path) -> int:
    files = (path.lstat() for path in folder.rglob("*"))
    return sum(each.st_blocks for each in files) * 512 // 1_000_000


def _write(path: Path, text: str) -> None:
    half = path.with_suffix(".half")
    half.write_text(text)
    os.replace(half, path)
