"""Debian packages without root: resolved by apt as for an empty system, unpacked by dpkg.

apt works in folders of its own, so that nothing on the host is touched and no lock of the host is
needed; it takes the host's sources, keys and proxies.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from validate.lab.errors import MissingError

Say = Callable[[str], None]
APT_S = 900  # a slow line needs minutes for 150 MB
NEEDED = ("apt-get", "apt-config", "dpkg", "dpkg-deb", "tar")
ARCHITECTURE = "amd64"
LEFT_OUT = ("./usr/share/doc*", "./usr/share/man*", "./usr/share/locale*", "./usr/share/info*")


@dataclass(frozen=True)
class Package:
    """A file that apt would fetch."""

    name: str  # of the file, as apt keeps it
    size_bytes: int

    @property
    def title(self) -> str:
        """Name and version."""
        package, version, _ = urllib.parse.unquote(self.name).rsplit("_", 2)
        return f"{package} {version}"


class Apt:
    """An apt of our own, in a folder."""

    def __init__(self, folder: Path) -> None:
        """Check that there is one; `folder` keeps its lists and downloads."""
        missing = [tool for tool in NEEDED if shutil.which(tool) is None]
        if missing:
            raise MissingError(
                f"the lab needs {missing[0]}, which this system lacks: it fetches Debian's "
                "packages with apt and dpkg. Use Debian, or a container of it."
            )
        found = _output(["dpkg", "--print-architecture"])
        if found != ARCHITECTURE:
            raise MissingError(
                f"the lab's guest is a PC ({ARCHITECTURE}), this system is {found or 'unknown'}: "
                f"run it where `dpkg --print-architecture` says {ARCHITECTURE}"
            )
        self.archives = folder / "archives"
        self.lists = folder / "state" / "lists"
        self.nothing = folder / "nothing"  # apt does not name what it finds downloaded
        for place in (self.archives, self.lists / "partial", self.nothing / "partial"):
            place.mkdir(parents=True, exist_ok=True)
        status = folder / "status"
        status.touch()
        settings = {
            "Dir::State": folder / "state",
            "Dir::State::status": status,
            "Dir::Cache": folder / "cache",
            "Dir::Cache::archives": self.nothing,
            "APT::Sandbox::User": os.environ.get("USER", "") if os.getuid() else "root",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "APT::Install-Recommends": "false",
            "Acquire::Retries": 1,
            "Acquire::http::Timeout": 20,
            "Acquire::https::Timeout": 20,
            "APT::Get::Assume-Yes": "true",
        }
        self.options = [f"-o{key}={value}" for key, value in settings.items()]

    def update(self) -> None:
        """Fetch the lists of packages."""
        self._run("update")
        if not any(self.lists.glob("*_Packages*")):
            raise MissingError(
                "apt fetched no list of packages: look at /etc/apt/sources.list and the network, "
                "then run `validate lab setup` again"
            )

    def first_known(self, names: Sequence[str]) -> str:
        """Return the first of these packages that there is."""
        for name in names:
            if _output(["apt-cache", *self.options, "policy", name]).find("Candidate: ") > 0:
                return name
        raise MissingError(
            f"apt knows none of the packages {', '.join(names)}: the guest is made of Debian's, so "
            f"run it on Debian, or in a container of it; there, {_SOURCES}"
        )

    def needed(self, names: Sequence[str]) -> list[Package]:
        """Return these packages and all that they depend on."""
        return self._parsed(self._run("install", "--print-uris", *names))

    def kernel(self, names: Sequence[str]) -> Package:
        """Return the kernel's own package that the first known of these stands for."""
        name = self.first_known(names)
        text = _output(["apt-cache", *self.options, "depends", "--important", name])
        named = re.findall(r"Depends: (linux-image-\S+)", text)
        return self._parsed(self._run("download", "--print-uris", *(named[:1] or [name])))[0]

    def fetch(self, packages: Sequence[Package], say: Say) -> list[Path]:
        """Download what is not there yet; return the files."""
        wanted = [each for each in packages if not self._has(each)]
        wanted_bytes = sum(each.size_bytes for each in wanted)
        room = shutil.disk_usage(self.archives).free
        if wanted_bytes > room:
            raise MissingError(
                f"no room in {self.archives}: {room / 1e6:.0f} MB are free, "
                f"{wanted_bytes / 1e6:.0f} MB are needed. Set HYBRIDSIM_CACHE_DIR to another place."
            )
        if wanted:
            exact = [each.title.replace(" ", "=") for each in wanted]
            self._run("download", *exact, into=self.archives, watch=self._progress(wanted, say))
        lost = [each.name for each in packages if not self._has(each)]
        if lost:
            raise MissingError(f"apt did not fetch {lost[0]}: run `validate lab setup` again")
        return [self.archives / each.name for each in packages]

    def _progress(self, wanted: Sequence[Package], say: Say) -> Callable[[], None]:
        """Return what tells how far a download is, each time it is a tenth further."""
        total = sum(each.size_bytes for each in wanted)
        told = -1

        def watch() -> None:
            nonlocal told
            there = sum(each.size_bytes for each in wanted if self._has(each))
            if there * 10 // total > told:
                told = there * 10 // total
                say(f"fetching {there / 1e6:.0f} of {total / 1e6:.0f} MB")

        return watch

    @staticmethod
    def _parsed(text: str) -> list[Package]:
        found = re.findall(r"^'[^']*' (\S+\.deb) (\d+)", text, re.MULTILINE)
        return [Package(name, int(size)) for name, size in found]

    def _has(self, package: Package) -> bool:
        path = self.archives / package.name
        return path.exists() and path.stat().st_size == package.size_bytes

    def _run(
        self, *words: str, into: Path | None = None, watch: Callable[[], None] = lambda: None
    ) -> str:
        command = ["apt-get", "-q", *self.options, *words]
        quiet = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        until = time.monotonic() + APT_S
        with (
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
            subprocess.Popen(
                command, cwd=into or self.nothing, env=quiet, stdin=subprocess.DEVNULL, stdout=out,
                stderr=err,
            ) as apt,
        ):  # fmt: skip
            try:
                while apt.poll() is None:
                    time.sleep(0.1)
                    watch()
                    if time.monotonic() > until:
                        raise MissingError(
                            f"apt-get {words[0]} took longer than {APT_S // 60} minutes. What was "
                            f"fetched is kept: {_SOURCES}"
                        )
            finally:
                apt.kill()  # where it is not done, because of that or of a signal
            out.seek(0)
            err.seek(0)
            said, complaints = out.read(), err.read().splitlines()
        if apt.returncode:
            lines = [line for line in complaints if line.startswith(("E:", "W:"))] or complaints
            raise MissingError(
                f"apt-get {words[0]} failed: {_SOURCES}\n  " + "\n  ".join(lines[:6])
            )
        return said


_SOURCES = (
    "look at /etc/apt/sources.list and the network (behind a proxy set http_proxy), "
    "then run `validate lab setup` again"
)


def unpack(files: Sequence[Path], into: Path, say: Say) -> None:
    """Unpack packages as one tree in which /bin, /lib and /sbin lead into /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (into / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (into / name).is_symlink():
            (into / name).symlink_to(f"usr/{name}")
    left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    for i, path in enumerate(files):
        if i % 50 == 0:
            say(f"unpacking {i}/{len(files)}")
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE) as deb:
            tar = subprocess.run(
                ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", *left_out, "-C", into],
                stdin=deb.stdout, capture_output=True, text=True, check=False,
            )  # fmt: skip
        if tar.returncode or deb.returncode:
            what = tar.stderr.strip().splitlines()[-1:] or ["dpkg-deb failed"]
            raise MissingError(f"cannot unpack {path.name} into {into}: {what[0]}")


def _output(command: Sequence[str | Path]) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    ).stdout.strip()


def command_in(tree: Path, program: str) -> list[str]:
    """Return the words that run a program of an unpacked tree with the tree's own libraries."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    return [str(loader), "--library-path", f"{libraries}:{tree / 'usr/lib'}", str(tree / program)]
