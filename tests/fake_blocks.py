"""Block devices simulated with files: claims, device mapper, kills and reboots, without root.

A disk is a sparse file.  An exclusive open is a lock on it; as with O_EXCL, other opens succeed.
Devices that the kernel holds (for a mount, an array, a mapped device) are recorded in a simulated
/sys, so that the state outlives the process that created it.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from validate.errors import RunError
from validate.system import System

SECTOR = 512
# Superblocks of caches.
DM_CACHE = bytes(32) + (0o6142003).to_bytes(8, "little")
WRITECACHE = bytes.fromhex("21934823")
OPEN_CAS = bytes(4) + (0x187E1CA6).to_bytes(4, "little")


@dataclass
class Blocks(System):
    """The machine; `point` is called wherever another process may run in between."""

    root: Path = Path()
    point = staticmethod(lambda what: None)
    torn = staticmethod(lambda data: None)  # bytes written before a kill; None: no kill
    wrote = staticmethod(lambda medium, offset, data: None)
    formatted = staticmethod(lambda medium, offset, data: None)  # by the kernel

    @classmethod
    def make(cls, root):
        system = cls(
            sys=root / "sys", proc=root / "proc", state=root / "state", uid=0, dev=root / "dev",
            root=root,
        )  # fmt: skip
        for each in ("dev", "sys/class/block", "sys/dev/block", "sys/devices", "proc/self",
                     "proc/sys/kernel/random", "sys/module/dm_mod", "sys/module/dm_cache",
                     "sys/module/dm_cache_smq", "sys/module/cas_cache"):  # fmt: skip
            (root / each).mkdir(parents=True)
        (system.proc / "swaps").write_text("Filename Type Size\n")
        (system.proc / "self/mountinfo").write_text("22 1 0:5 / /sys rw - sysfs none rw\n")
        (system.proc / "uptime").write_text("1.0 1.0\n")
        (root / "sequence").write_text("0")
        system.reboot()
        return system

    # Events of the machine.

    def add(self, name, number, size_bytes, serial=""):
        """Add a disk or a mapped device."""
        folder = self.sys / "devices" / name
        for each in ("holders", "slaves"):
            (folder / each).mkdir(parents=True)
        sequence = int((self.root / "sequence").read_text()) + 1
        (self.root / "sequence").write_text(str(sequence))
        for key, value in {"dev": number, "size": size_bytes // SECTOR, "ro": 0, "wwid": serial,
                           "diskseq": sequence}.items():  # fmt: skip
            (folder / key).write_text(f"{value}\n")
        for place, key in (("dev/block", number), ("class/block", name)):
            (self.sys / place / key).symlink_to(folder)
        node = self.dev / name
        if not node.exists():
            node.touch()
            os.truncate(node, size_bytes)
        return node

    def take_out(self, name):
        """Remove a disk; its medium stays as a file."""
        number = self.read(self.sys / "class/block" / name / "dev")
        (self.sys / "class/block" / name).unlink()
        (self.sys / "dev/block" / number).unlink()
        shutil.rmtree(self.sys / "devices" / name)

    def reboot(self):
        """Reboot: remove all mapped devices, mounts and arrays."""
        boot = self.proc / "sys/kernel/random/boot_id"
        boot.write_text(f"boot-{int((boot.read_text() if boot.exists() else 'boot-0')[5:]) + 1}")
        for folder in sorted((self.sys / "class/block").iterdir()):
            if (folder / "dm").exists() or folder.name.startswith("cas"):
                self.take_out(folder.name)
                (self.dev / folder.name).unlink()
        shutil.rmtree(self.dev / "disk", ignore_errors=True)
        (self.root / "caches").write_text("[]")
        for folder in (self.sys / "class/block").iterdir():
            for each in (folder / "holders").iterdir():
                each.unlink()
            (folder / "held").unlink(missing_ok=True)
            sequence = int((self.root / "sequence").read_text()) + 1
            (self.root / "sequence").write_text(str(sequence))
            (folder / "diskseq").write_text(str(sequence))
        (self.proc / "self/mountinfo").write_text("22 1 0:5 / /sys rw - sysfs none rw\n")

    def hold(self, name, what):
        """Let the kernel claim a device for a mount or an array; raise OSError if it is busy."""
        self.close_device(self.open_device(str(self.dev / name), os.O_RDWR | os.O_EXCL))
        (self.sys / "class/block" / name / "held").write_text(what)

    def unhold(self, name):
        """Let the kernel release a device."""
        (self.sys / "class/block" / name / "held").unlink(missing_ok=True)

    # The methods that `validate` calls.

    def number_of(self, path):
        real = Path(os.path.realpath(path))
        if real.parent != self.dev.resolve():
            return None
        return self.read(self.sys / "class/block" / real.name / "dev", "") or None

    def number_of_open(self, fd):
        inode = os.fstat(fd).st_ino
        for node in self.dev.iterdir():
            if node.stat().st_ino == inode:
                return self.number_of(node)
        return ""

    def open_device(self, node, mode):
        self.point(f"open {Path(node).name}")
        fd = os.open(node, (mode & ~os.O_EXCL) | os.O_CLOEXEC)
        if mode & os.O_EXCL:
            folder = self.sys / "class/block" / Path(node).name
            try:
                if (folder / "held").exists() or any((folder / "holders").iterdir()):
                    raise BlockingIOError
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                raise OSError(errno.EBUSY, "Device or resource busy", node) from None
        return fd

    def close_device(self, fd):
        os.close(fd)

    def _bottom(self, fd, offset):
        """Return the file of the disk below a device, and the offset there."""
        inode = os.fstat(fd).st_ino
        for disk in ("sda", "sdb"):  # the frequent and fast case
            with contextlib.suppress(OSError):
                if os.stat(self.dev / disk).st_ino == inode:
                    return self.dev / disk, offset
        name = self._name(self.number_of_open(fd))
        while True:
            table = self.sys / "class/block" / name / "dm/table"
            if not table.exists():
                return self.dev / name, offset
            below, start = json.loads(table.read_text())
            name, offset = self._name(below), offset + start

    def _name(self, number):
        return self.block(number).name

    def pread(self, fd, offset, length):
        self.point("read")
        path, offset = self._bottom(fd, offset)
        with path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)

    def pwrite(self, fd, offset, data):
        path, offset = self._bottom(fd, offset)
        cut = self.torn(data)
        self.wrote(path, offset, data if cut is None else data[:cut])
        with path.open("r+b", buffering=0) as stream:
            stream.seek(offset)
            stream.write(data if cut is None else data[:cut])
        if cut is not None:
            os.kill(os.getpid(), 9)

    def program(self, name):
        return f"/sbin/{name}" if name in ("dmsetup", "casadm") else None

    def resume_mapped(self, name):
        self.point("resume")

    def run(self, words, *, stdin="", timeout_s=30, check=True, record=True):
        self.point(" ".join(words[:2]))
        try:
            if words[0] == "casadm":
                return self._casadm(words[1], words[2:])
            return self._dmsetup(words[1], list(words[2:]), stdin)
        except (RunError, OSError) as error:
            if check:
                raise RunError(f"{' '.join(words)}: {error}") from None
            return ""
        finally:
            self.point(f"{' '.join(words[:2])} is done")

    def _mapped(self, name):
        for folder in (self.sys / "class/block").iterdir():
            if self.read(folder / "dm/name", "") == name:
                return folder
        raise RunError("No such device")

    def _dmsetup(self, command, words, stdin):
        if command == "create":
            taken = {each.name for each in (self.sys / "class/block").iterdir()}
            free = next(number for number in range(99) if f"dm-{number}" not in taken)
            table = stdin.split()
            below = table[3:5] if table else [None, 0]
            if below[0]:
                self._hold_for_dm(below[0])
            self.add(f"dm-{free}", f"253:{free}", int(table[1]) * SECTOR if table else 0)
            folder = (self.sys / "class/block" / f"dm-{free}").resolve()
            (folder / "dm").mkdir()
            (folder / "dm/name").write_text(words[0])
            (folder / "dm/uuid").write_text(words[2])
            if below[0]:
                self._stack(folder, [below[0]], below[0], int(below[1]) * SECTOR)
        elif command == "load":
            table, folder = stdin.split(), self._mapped(words[0]).resolve()
            if table[2] == "writecache":  # s, origin, cache
                below, origin, formatted, superblock = table[4:6], table[4], table[5], WRITECACHE
            else:  # metadata, cache, origin
                below, origin, formatted, superblock = table[3:6], table[5], table[3], DM_CACHE
            for number in below:
                self._hold_for_dm(number)
            self._stack(folder, below, origin, 0)
            self._format_metadata(formatted, superblock)
        elif command == "info":
            folder = self._mapped(words[-1])
            field = words[words.index("-o") + 1]
            return self.read(folder / ("dm/uuid" if field == "uuid" else "dev"))
        elif command == "remove":
            folder = self._mapped(words[-1])
            name, number = folder.name, self.read(folder / "dev")
            self.close_device(self.open_device(str(self.dev / name), os.O_RDWR | os.O_EXCL))
            for other in (self.sys / "class/block").iterdir():
                (other / "holders" / name).unlink(missing_ok=True)
            assert number
            self.take_out(name)
            (self.dev / name).unlink()
        return ""

    def _casadm(self, command, words):
        """Act on the caches of Open CAS: the path of a cache's device, of its core's, by ID."""
        caches = json.loads((self.root / "caches").read_text())
        options = dict(zip(words[::2], words[1::2]))
        if command == "--start-cache":
            device = options["--cache-device"]
            number = self._hold_for_cas(device)
            caches.append([device, ""])
            if words[-1] == "--load":
                (self.root / "caches").write_text(json.dumps(caches))
                core = (self.root / f"core of {number}").read_text()
                words = ["--cache-id", str(len(caches)), "--core-device", core]
                return self._casadm("--add-core", words)
            self._format_metadata(number, OPEN_CAS)
        elif command == "--add-core":
            device, one = options["--core-device"], caches[int(options["--cache-id"]) - 1]
            number = self._hold_for_cas(device)
            one[1] = device
            (self.root / f"core of {self.number_of(one[0])}").write_text(device)
            size_bytes = int(self.read(self.block(number) / "size")) * SECTOR
            at = options["--cache-id"]
            self.add(f"cas{at}-1", f"252:{at}", size_bytes)
        elif command == "--list-caches":
            rows = ["type,id,disk,status,write policy,device"]
            for number, (device, core) in enumerate(caches, 1):
                rows += [f"cache,{number},{device},Running,wt,-"] if device else []
                rows += [f"core,1,{core},Active,-,{self.dev}/cas{number}-1"] if core else []
            return "\n".join(rows if len(rows) > 1 else ["No caches running"])
        elif command == "--stop-cache":
            number = int(words[1])
            device, core = caches[number - 1]
            name = f"cas{number}-1"
            if core:
                self.close_device(self.open_device(str(self.dev / name), os.O_RDWR | os.O_EXCL))
                self.take_out(name)
                (self.dev / name).unlink()
                self.unhold(self._name(self.number_of(core)))
            self._format_metadata(self.number_of(device), OPEN_CAS + b"stopped")
            self.unhold(self._name(self.number_of(device)))
            caches[number - 1] = ["", ""]
        (self.root / "caches").write_text(json.dumps(caches))
        return ""

    def _hold_for_cas(self, path):
        """Hold a device as an exclusive open does; return its number."""
        number = self.number_of(path)
        self.hold(self._name(number), "Open CAS")
        return number

    def _format_metadata(self, number, superblock):
        """Write a superblock, as the kernel does when the table of a cache is loaded."""
        with (self.dev / self._name(number)).open("rb") as stream:
            path, offset = self._bottom(stream.fileno(), 0)
        data = superblock.ljust(SECTOR, b"\0")
        self.formatted(path, offset, data)
        with path.open("r+b", buffering=0) as stream:
            stream.seek(offset)
            stream.write(data)

    def _hold_for_dm(self, number):
        """Raise OSError if the device is claimed by anyone but device mapper."""
        name = self._name(number)
        folder = self.sys / "class/block" / name
        if (folder / "held").exists():
            raise OSError(errno.EBUSY, "Device or resource busy")
        with (self.dev / name).open("rb") as probe:
            try:
                fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OSError(errno.EBUSY, "Device or resource busy") from None

    def _stack(self, folder, below, base, start):
        (folder / "dm/table").write_text(json.dumps([base, start]))
        for number in below:
            (self.block(number) / "holders" / folder.name).touch()
