"""The machine: its programs, its files in /sys and /proc.  Tests substitute another."""

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
    "blktrace": "blktrace", "modprobe": "kmod", "casadm": "open-cas-linux",
}  # fmt: skip
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class System:
    """The paths of the machine, the programs that were run, and the state of this process."""

    sys: Path = Path("/sys")
    proc: Path = Path("/proc")
    state: Path = Path(STATE)
    uid: int = field(default_factory=os.geteuid)
    dev: Path = Path("/dev")
    commands: list[dict[str, Any]] = field(default_factory=list)
    claims: dict[str, Any] = field(default_factory=dict)  # devices.Claim by MAJOR:MINOR
    written: set[str] = field(default_factory=set)  # tokens of the files that this process created
    loaded: set[str] = field(default_factory=set)  # tokens of devices that our load wrote to
    sealed: dict[str, dict[int, bytes]] = field(
        default_factory=dict
    )  # by token: content of the ends, by offset

    # Programs.

    @property
    def variables(self) -> Mapping[str, str]:
        """Return the environment of programs: the C locale, no udev where udevd does not run."""
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
        """Run a program to its end and return its output; raise RunError if it fails or hangs."""
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
            code, message = done.returncode, done.stderr.strip() or done.stdout.strip()
            output = done.stdout
        except subprocess.TimeoutExpired:
            code, message, output = -1, f"it did not end within {timeout_s:.0f} s", ""
        except OSError as error:
            code, message, output = 127, error.strerror or str(error), ""
        if record:
            self.note(words, begun, code, stdin)
        if code and check:
            raise RunError(f"{' '.join(words)}: {message or f'exit code {code}'}")
        return output

    def note(self, words: Sequence[str], begun: float, code: int | None, stdin: str = "") -> None:
        """Record a program that was run."""
        command = {"argv": list(words), "seconds": round(time.monotonic() - begun, 3), "rc": code}
        self.commands.append(command | ({"stdin": stdin} if stdin else {}))

    def start(self, words: Sequence[str], folder: Path, output: Any) -> subprocess.Popen[bytes]:
        """Start a program that gets SIGTERM when this process dies, however it dies."""

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
        """Load a module of the kernel; raise MissingError if the kernel has none."""
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
        """Resume a mapped device, which activates the table that was loaded."""
        from validate import mapped

        mapped.resume(name)

    def open_device(self, node: str, mode: int) -> int:
        """Open a block device; O_EXCL claims it: others can neither mount it nor claim it."""
        return os.open(node, mode | os.O_CLOEXEC)

    def close_device(self, fd: int) -> None:
        """Close a file descriptor of `open_device`."""
        os.close(fd)

    def number_of_open(self, fd: int) -> str:
        """Return MAJOR:MINOR of an open block device."""
        status = os.fstat(fd)
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"

    def pread(self, fd: int, offset: int, length: int) -> bytes:
        """Read from an open device; drop its cached pages first.

        Writes through a mapped device do not update the page cache of the device below it.
        """
        os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)
        data = b""
        while len(data) < length:
            more = os.pread(fd, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def pwrite(self, fd: int, offset: int, data: bytes) -> None:
        """Write all data to an open device and flush it to the medium."""
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], offset + done)
        os.fsync(fd)

    # Files.

    def read(self, path: Path | str, default: str | None = None) -> str:
        """Return a file's text, stripped; if it cannot be read, the default, or raise RunError."""
        try:
            return Path(path).read_text(errors="replace").strip()
        except OSError as error:
            if default is None:
                raise RunError(f"{path}: {error.strerror}") from None
            return default

    def write(self, path: Path | str, text: str) -> None:
        """Write to a file in sysfs; raise RunError if the kernel refuses."""
        try:
            with Path(path).open("w") as stream:
                stream.write(text)
        except OSError as error:
            raise RunError(f"cannot write {text!r} to {path}: {error.strerror}") from None

    def uptime_s(self) -> float:
        """Return the uptime in seconds, the clock of all samples."""
        return float(self.read(self.proc / "uptime").split()[0])

    def boot(self) -> str:
        """Return the boot ID of the kernel."""
        return self.read(self.proc / "sys/kernel/random/boot_id", "")

    def block(self, number: str) -> Path:
        """Return the sysfs folder of the block device MAJOR:MINOR; it may not exist."""
        return Path(os.path.realpath(self.sys / "dev/block" / number))

    def number_of(self, path: str | Path) -> str | None:
        """Return MAJOR:MINOR of the block device at a path, links followed; None if it is none."""
        import stat

        try:
            status = os.stat(path)
        except OSError:
            return None
        if not stat.S_ISBLK(status.st_mode):
            return None
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"

    def wait(self, what: str, is_so: Any, seconds: float = 10) -> None:
        """Wait until `is_so()` is true; raise RunError after `seconds`."""
        until = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > until:
                raise RunError(f"{what}: not within {seconds:.0f} s")
            time.sleep(0.05)
