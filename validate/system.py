"""The machine: its programs, its files in /sys and /proc.  Tests give another."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from validate.errors import MissingError, RunError

PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STATE = "/var/lib/hybridsim-validate"
PACKAGES = {
    "fio": "fio", "dmsetup": "dmsetup", "make-bcache": "bcache-tools", "mdadm": "mdadm",
    "blktrace": "blktrace", "modprobe": "kmod",
}  # fmt: skip
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class System:
    """Where things are, and what was run."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    state: Path = Path(STATE)
    uid: int = field(default_factory=os.geteuid)
    dev: Path = Path("/dev")
    commands: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, Any] = field(default_factory=dict)  # devices.Claim by MAJOR:MINOR, held by us
    written: set[str] = field(default_factory=set)  # tokens of the marks that this process wrote
    loaded: set[str] = field(default_factory=set)  # of those, whose devices our load wrote to
    sealed: dict[str, dict[int, bytes]] = field(default_factory=dict)  # by token: ends by offset

    # Programs.

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the environment of programs: a plain one, without udev where it does not run."""
        plain = {"PATH": f"{os.environ.get('PATH', '')}:{PLACES}", "LC_ALL": "C"}
        if not Path("/run/udev/control").exists():
            plain["DM_DISABLE_UDEV"] = "1"
        return plain

    def program(self, name: str) -> str | None:
        """Return the path of a program, or None."""
        return shutil.which(name, path=self.variables["PATH"])

    def need(self, *names: str) -> None:
        """Raise MissingError that names all programs that are not installed."""
        missing = [name for name in names if self.program(name) is None]
        if missing:
            packages = sorted({PACKAGES.get(name, name) for name in missing})
            raise MissingError(
                f"{', '.join(missing)}: not installed (Debian: apt install {' '.join(packages)})"
            )

    def run(
        self,
        words: Sequence[str],
        *,
        stdin: str = "",
        timeout_s: float = 30,
        check: bool = True,
        record: bool = True,
    ) -> str:
        """Run a program to its end and return what it says; RunError where it fails or hangs."""
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [self.program(words[0]) or words[0], *words[1:]],
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
                env=self.variables,
                start_new_session=True,
            )
            code, told = done.returncode, done.stderr.strip() or done.stdout.strip()
            output = done.stdout
        except subprocess.TimeoutExpired:
            code, told, output = -1, f"it did not end within {timeout_s:.0f} s", ""
        except OSError as error:
            code, told, output = 127, error.strerror or str(error), ""
        if record:
            self.note(words, begun, code, stdin)
        if code and check:
            raise RunError(f"{' '.join(words)}: {told or f'exit code {code}'}")
        return output

    def note(self, words: Sequence[str], begun: float, code: int | None, stdin: str = "") -> None:
        """Remember a program that was run."""
        told = {"argv": list(words), "seconds": round(time.monotonic() - begun, 3), "rc": code}
        self.commands.append(told | ({"stdin": stdin} if stdin else {}))

    def start(self, words: Sequence[str], folder: Path, output: Any) -> subprocess.Popen[bytes]:
        """Start a program that is told to end when this process dies, however it dies."""

        def end_with_parent() -> None:
            _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

        return subprocess.Popen(
            [self.program(words[0]) or words[0], *words[1:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=self.variables,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )

    def module(self, name: str) -> None:
        """See that the kernel has a module; raise MissingError where it cannot be had."""
        if (self.sys / "module" / name.replace("-", "_")).is_dir():
            return
        try:
            self.run(["modprobe", name])
        except RunError:
            release = os.uname().release
            raise MissingError(
                f"the kernel {release} has no module {name}: install the modules of this kernel "
                f"(Debian: apt install linux-image-{release}), or use `validate lab`"
            ) from None

    # Block devices.

    def resume_mapped(self, name: str) -> None:
        """Let a mapped device work with the table that was loaded."""
        from validate import mapped

        mapped.resume(name)

    def open_device(self, node: str, mode: int) -> int:
        """Open a block device; with O_EXCL nobody else can mount it or open it so."""
        return os.open(node, mode | os.O_CLOEXEC)

    def close_device(self, fd: int) -> None:
        """Close what open_device opened."""
        os.close(fd)

    def number_of_open(self, fd: int) -> str:
        """Return MAJOR:MINOR of an open block device."""
        found = os.fstat(fd)
        return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"

    def pread(self, fd: int, offset: int, length: int) -> bytes:
        """Read from an open device what is on the medium now, not what was cached before.

        What is written through a mapped device passes by the pages cached of the one below it.
        """
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)
        found = b""
        while len(found) < length:
            more = os.pread(fd, length - len(found), offset + len(found))
            if not more:
                break
            found += more
        return found

    def pwrite(self, fd: int, offset: int, data: bytes) -> None:
        """Write all of it to an open device; it is on the medium when this returns."""
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], offset + done)
        os.fsync(fd)

    # Files.

    def read(self, path: Path | str, default: str | None = None) -> str:
        """Return a file's text, stripped; the default where it cannot be read."""
        try:
            return Path(path).read_text(errors="replace").strip()
        except OSError as error:
            if default is None:
                raise RunError(f"{path}: {error.strerror}") from None
            return default

    def write(self, path: Path | str, text: str) -> None:
        """Write to a file of the kernel's; RunError where it refuses."""
        try:
            with Path(path).open("w") as stream:
                stream.write(text)
        except OSError as error:
            raise RunError(f"cannot write {text!r} to {path}: {error.strerror}") from None

    def uptime_s(self) -> float:
        """Return the clock of all samples."""
        return float(self.read(self.proc / "uptime").split()[0])

    def boot(self) -> str:
        """Return what tells this boot of the kernel from others."""
        return self.read(self.proc / "sys/kernel/random/boot_id", "")

    def block(self, number: str) -> Path:
        """Return the folder in sysfs of the block device MAJOR:MINOR; it may not be there."""
        return Path(os.path.realpath(self.sys / "dev/block" / number))

    def number_of(self, path: str | Path) -> str | None:
        """Return MAJOR:MINOR of the block device at a path, links followed; None for others."""
        import stat

        try:
            found = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISBLK(found.st_mode):
            return None
        return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"

    def wait(self, what: str, is_so: Any, seconds: float = 10) -> None:
        """Wait until something is so; RunError where it does not become so."""
        until = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > until:
                raise RunError(f"{what}: not within {seconds:.0f} s")
            time.sleep(0.05)
