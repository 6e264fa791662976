"""Build the guest's root file system and its initramfs.

The root is a read-only ext4 image, shared by all guests; an overlay in memory takes writes.  The
initramfs loads the modules of the disks and mounts the root.  The guest's scripts come with each
job, so that a changed script needs no rebuild.
"""

from __future__ import annotations

import lzma
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from validate.lab.errors import MissingError
from validate.lab.packages import command_in

INSIDE = Path(__file__).parent / "inside"
BOOT_MODULES = ("virtio_pci", "virtio_blk", "ext4", "overlay", "crc32c_generic")
SPARE = 1.15  # size of the image over that of the files: room for ext4's own tables
DIRECTORY, EXECUTABLE, DEVICE = 0o040755, 0o100755, 0o020600


def module_files(modules: Path, names: tuple[str, ...]) -> list[Path]:
    """Return the files of kernel modules and their dependencies, in the order of loading.

    The dependencies are in the modules (`depends=`); built-in modules have no file.
    """
    by_name = {path.name.split(".ko")[0].replace("-", "_"): path for path in modules.rglob("*.ko*")}
    order: dict[str, Path] = {}

    def add(name: str) -> None:
        path = by_name.get(name.replace("-", "_"))
        if path is None or name in order:
            return
        match = re.search(rb"\0depends=([^\0]*)\0", _module(path))
        for needed in match[1].decode().split(",") if match else ():
            add(needed.replace("-", "_"))
        order.setdefault(name, path)

    for name in names:
        add(name)
    return list(order.values())


def _module(path: Path) -> bytes:
    """Return a kernel module, which newer kernels of Debian compress."""
    content = path.read_bytes()
    return lzma.decompress(content) if path.suffix == ".xz" else content


def initramfs(busybox: Path, modules: Path, target: Path) -> None:
    """Write the archive (cpio "newc") of busybox, the boot modules, and `inside/init`."""
    with target.open("wb") as file:
        for part in _members(busybox, module_files(modules, BOOT_MODULES)):
            file.write(part)


def _members(busybox: Path, files: list[Path]) -> Iterator[bytes]:
    for folder in ("bin", "modules", "proc", "sys", "dev", "root"):
        yield _entry(folder, DIRECTORY)
    yield _entry("dev/console", DEVICE, device=(5, 1))
    yield _entry("bin/busybox", EXECUTABLE, busybox.read_bytes())
    for i, path in enumerate(files):
        name = f"{i:02d}-{path.name.removesuffix('.xz')}"
        yield _entry(f"modules/{name}", EXECUTABLE, _module(path))
    yield _entry("init", EXECUTABLE, (INSIDE / "init").read_bytes())
    yield _entry("TRAILER!!!", 0)


def _entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """Return one member: numbers of eight hexadecimal digits, parts padded to 4 bytes."""
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + name.encode() + b"\0"
    return _padded(head) + _padded(data)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)


def root_image(tree: Path, target: Path) -> None:
    """Create the ext4 image of a tree, without root."""
    used = sum(path.lstat().st_size + 4096 for path in tree.rglob("*"))
    size_mb = int(used * SPARE / 1e6) + 64
    free_mb = shutil.disk_usage(target.parent).free / 1e6
    if size_mb > free_mb:
        raise MissingError(
            f"no space in {target.parent}: {free_mb:.0f} MB are free, the guest's root needs "
            f"{size_mb} MB. Set HYBRIDSIM_CACHE_DIR to another folder."
        )
    command = [
        *command_in(tree, "usr/sbin/mke2fs"), "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0",
        "-E", "root_owner=0:0,lazy_itable_init=1", "-d", str(tree), str(target), f"{size_mb}M",
    ]  # fmt: skip
    _run(command, "create the guest's root")


def complete(tree: Path, version: str) -> None:
    """Complete a tree of unpacked packages, as their installation scripts would.

    Create the tables of modprobe and Python's compiled library (1 s less at each start), and links
    to busybox for tools that no package provides.
    """
    kmod = command_in(tree, "usr/bin/kmod")
    depmod = [*kmod[:-1], "--argv0", "depmod", kmod[-1], "-b", str(tree), version]
    _run(depmod, "index the kernel's modules")
    python = next((tree / "usr/bin").glob("python3.*[0-9]"))
    library = tree / "usr/lib" / python.name
    compiling = [*command_in(tree, f"usr/bin/{python.name}"), "-S", "-m", "compileall", "-q"]
    skipped = ["-x", "test|idlelib|lib2to3|ensurepip|distutils"]
    where = ["-s", str(tree), "-p", "/", *skipped, str(library)]
    _run(compiling + where, "compile Python's library", {"PYTHONHOME": str(tree / "usr")})
    busybox = tree / "usr/bin/busybox"
    for name in _run([str(busybox), "--list"], "list the tools of busybox").split():
        if not any((tree / "usr" / place / name).exists() for place in ("bin", "sbin")):
            (tree / "usr/bin" / name).symlink_to("busybox")


def _run(command: list[str], what: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise MissingError(f"cannot {what}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def sparse(path: Path, size_bytes: int) -> None:
    """Create a sparse file."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
