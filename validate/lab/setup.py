"""Fetch and build the guest; parts that exist already are kept."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from validate.errors import ExperimentError
from validate.lab import image
from validate.lab.packages import Apt, Package, command_in, unpack
from validate.lab.places import lab_folder, locked
from validate.progress import Progress

# Packages of the kernel of this Debian, and of a release that is named.
KERNELS = ("linux-image-cloud-amd64", "linux-image-amd64")
KERNELS_OF = ("linux-image-{}-cloud-amd64", "linux-image-{}-amd64")
RELEASE = re.compile(r"\d+\.\d+")
EMULATOR = ("qemu-system-x86",)
GUEST = (
    "usr-is-merged", "busybox-static", "bash", "dash", "coreutils", "grep", "sed", "mawk", "tar",
    "kmod", "util-linux", "mount", "fdisk", "e2fsprogs", "dmsetup", "lvm2",
    "thin-provisioning-tools", "bcache-tools", "mdadm", "blktrace", "fio", "procps",
    "python3-minimal", "libpython3-stdlib",
)  # fmt: skip
BUILDER = 3  # version of the build; change it to rebuild from the same packages


@dataclass(frozen=True)
class Lab:
    """The files and packages of a guest."""

    emulator: list[str]  # command line of QEMU
    share: str  # /usr of its unpacked tree; "" for this system's QEMU
    kernel: str
    modules: str  # /lib/modules/VERSION, unpacked
    busybox: str
    root: str  # ext4 image
    kernel_version: str
    versions: dict[str, str]  # of packages, by name


def find(release: str = "") -> Lab | None:
    """Return the lab that was set up with a kernel, or None if files are missing."""
    return _read(_file(release))


def _file(release: str) -> Path:
    return lab_folder() / (f"lab-{release}.json" if release else "lab.json")


def _read(path: Path) -> Lab | None:
    try:
        lab = Lab(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
    files = (lab.emulator[0], lab.kernel, lab.busybox, lab.root)
    return lab if all(Path(path).exists() for path in files) else None


def set_up(
    progress: Progress, release: str = "", *, refresh: bool = False, fetch_qemu: bool = False
) -> Lab:
    """Return the lab; fetch and build the missing parts.

    `release` is that of the kernel, as 6.12, if not this Debian's own.  `refresh` fetches newer
    packages; `fetch_qemu` uses Debian's QEMU even if this system has one.  Raises MissingError with
    what is missing and what to do.
    """
    if release and not RELEASE.fullmatch(release):
        raise ExperimentError(f"kernel {release!r}: write a release, for example 6.12")
    folder = lab_folder()
    with locked(folder / "setup.lock"):
        existing = None if refresh else find(release)
        if existing:
            progress(f"ready: {_summary(existing)}")
            return existing
        started = time.monotonic()
        lab = _build(folder, release, fetch_qemu, progress)
        _write(_file(release), json.dumps(asdict(lab), indent=1))
        _remove_old(folder)
        taken = sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file()) * 512
        progress(f"ready: {_summary(lab)}")
        progress(f"took {time.monotonic() - started:.0f} s; {taken / 1e6:.0f} MB in {folder}")
        return lab


def _summary(lab: Lab) -> str:
    kinds = ("fio", "dmsetup", "bcache-tools", "mdadm", "blktrace")
    tools = ", ".join(f"{name} {lab.versions[name]}" for name in kinds if name in lab.versions)
    where = "this system's" if not lab.share else "Debian's"
    return f"Linux {lab.kernel_version}; {tools}; {where} QEMU"


def _build(folder: Path, release: str, fetch_qemu: bool, progress: Progress) -> Lab:
    apt = Apt(folder / "apt")
    progress("fetching package lists")
    apt.update()
    own = None if fetch_qemu else shutil.which("qemu-system-x86_64")
    if own:
        progress(f"QEMU: {own} of this system")
    emulator = [] if own else apt.needed(EMULATOR)
    guest = apt.needed(GUEST)
    kernel = apt.kernel([each.format(release) for each in (KERNELS_OF if release else KERNELS)])
    everything = {each.name: each for each in (*emulator, *guest, kernel)}
    total = sum(each.size_bytes for each in everything.values())
    progress(f"packages: {len(everything)}, {total / 1e6:.0f} MB")
    apt.fetch(list(everything.values()), progress)
    words, share = ([own], "") if own else _emulator(folder, apt, emulator, progress)
    place, version = _guest(folder, apt, [*guest, kernel], progress)
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


def _emulator(
    folder: Path, apt: Apt, packages: list[Package], progress: Progress
) -> tuple[list[str], str]:
    """Unpack QEMU; return its command line, and /usr of its tree."""
    place = folder / f"qemu-{_digest(packages)}"
    if not place.exists():
        half = _emptied(folder / "qemu-half")
        unpack(apt.fetch(packages, progress), half, progress)
        half.rename(place)
        progress(f"QEMU: unpacked ({_size_mb(place)} MB)")
    return command_in(place, "usr/bin/qemu-system-x86_64"), f"{place}/usr"


def _guest(folder: Path, apt: Apt, packages: list[Package], progress: Progress) -> tuple[Path, str]:
    """Build kernel, modules and root image; return their folder and the kernel's version."""
    place = folder / f"guest-{_digest(packages)}"
    if not place.exists():
        half, tree = _emptied(folder / "guest-half"), _emptied(folder / "guest-tree")
        unpack(apt.fetch(packages, progress), tree, progress)
        kernel = next((tree / "boot").glob("vmlinuz-*"))
        version = kernel.name.removeprefix("vmlinuz-")
        image.complete(tree, version)
        kernel.rename(half / kernel.name)
        shutil.copytree(tree / "usr/lib/modules", half / "modules", symlinks=True)
        shutil.copy(tree / "usr/bin/busybox", half / "busybox")
        shutil.rmtree(tree / "boot")
        progress("building the root file system")
        image.root_image(tree, half / "root.img")
        shutil.rmtree(tree)
        half.rename(place)
        progress(f"guest: built ({_size_mb(place)} MB)")
    return place, next(place.glob("vmlinuz-*")).name.removeprefix("vmlinuz-")


def _remove_old(folder: Path) -> None:
    """Remove guests and emulators that no lab uses any more."""
    labs = [_read(path) for path in folder.glob("lab*.json")]
    used = " ".join(f"{lab.emulator} {lab.root}" for lab in labs if lab)
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
