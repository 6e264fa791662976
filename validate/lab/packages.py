"""Fetch and unpack Debian packages without root: apt resolves them as for an empty system.

apt uses its own folders, so that nothing on the host is changed or locked; it uses the host's
sources, keys and proxies.
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
from validate.progress import Progress

APT_S = 900  # a slow connection needs minutes for 150 MB
NEEDED = ("apt-get", "apt-config", "dpkg", "dpkg-deb", "tar")
ARCHITECTURE = "amd64"
LEFT_OUT = ("./usr/share/doc*", "./usr/share/man*", "./usr/share/locale*", "./usr/share/info*")


@dataclass(frozen=True)
class Package:
    """A package file that apt would fetch."""

    name: str  # of the file in apt's archive
    size_bytes: int

    @property
    def title(self) -> str:
        """Name and version."""
        package, version, _ = urllib.parse.unquote(self.name).rsplit("_", 2)
        return f"{package} {version}"


class Apt:
    """A private apt, with its own folder."""

    def __init__(self, folder: Path) -> None:
        """Create it; `folder` has its lists and downloads.  Raises MissingError without apt."""
        missing = [tool for tool in NEEDED if shutil.which(tool) is None]
        if missing:
            raise MissingError(
                f"the lab needs {missing[0]}, which is not installed: it fetches Debian's packages "
                "with apt and dpkg. Use Debian, or a container of it."
            )
        architecture = _output(["dpkg", "--print-architecture"])
        if architecture != ARCHITECTURE:
            raise MissingError(
                f"the lab's guest is a PC ({ARCHITECTURE}), this system is "
                f"{architecture or 'unknown'}: run it where `dpkg --print-architecture` prints "
                f"{ARCHITECTURE}"
            )
        self.archives = folder / "archives"
        self.lists = folder / "state" / "lists"
        self.nothing = folder / "nothing"  # empty: --print-uris omits files that are in the archive
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
        """Fetch the package lists; raise MissingError on failure."""
        self._run("update")
        if not any(self.lists.glob("*_Packages*")):
            raise MissingError(
                "apt fetched no package lists: check /etc/apt/sources.list and the network, "
                "then run `validate lab setup` again"
            )

    def first_available(self, names: Sequence[str]) -> str:
        """Return the first of these packages that is available."""
        for name in names:
            if _output(["apt-cache", *self.options, "policy", name]).find("Candidate: ") > 0:
                return name
        raise MissingError(
            f"apt has none of the packages {', '.join(names)}: the guest is built from Debian's "
            f"packages, so run it on Debian, or in a container of it; there, {_SOURCES}"
        )

    def needed(self, names: Sequence[str]) -> list[Package]:
        """Return these packages and their dependencies."""
        return self._parsed(self._run("install", "--print-uris", *names))

    def kernel(self, names: Sequence[str]) -> Package:
        """Return the kernel image that the first available of these metapackages depends on."""
        name = self.first_available(names)
        text = _output(["apt-cache", *self.options, "depends", "--important", name])
        named = re.findall(r"Depends: (linux-image-\S+)", text)
        return self._parsed(self._run("download", "--print-uris", *(named[:1] or [name])))[0]

    def fetch(self, packages: Sequence[Package], progress: Progress) -> list[Path]:
        """Download the missing packages; return the files of all.  Raises MissingError."""
        wanted = [each for each in packages if not self._has(each)]
        wanted_bytes = sum(each.size_bytes for each in wanted)
        room = shutil.disk_usage(self.archives).free
        if wanted_bytes > room:
            raise MissingError(
                f"no space in {self.archives}: {room / 1e6:.0f} MB are free, "
                f"{wanted_bytes / 1e6:.0f} MB needed. Set HYBRIDSIM_CACHE_DIR to another folder."
            )
        if wanted:
            exact = [each.title.replace(" ", "=") for each in wanted]
            self._run("download", *exact, into=self.archives, watch=self._watch(wanted, progress))
        lost = [each.name for each in packages if not self._has(each)]
        if lost:
            raise MissingError(f"apt did not fetch {lost[0]}: run `validate lab setup` again")
        return [self.archives / each.name for each in packages]

    def _watch(self, wanted: Sequence[Package], progress: Progress) -> Callable[[], None]:
        """Return a function that reports the progress of a download, once for each tenth."""
        total = sum(each.size_bytes for each in wanted)
        reported = -1

        def watch() -> None:
            nonlocal reported
            there = sum(each.size_bytes for each in wanted if self._has(each))
            if there * 10 // total > reported:
                reported = there * 10 // total
                progress(f"fetching {there / 1e6:.0f} of {total / 1e6:.0f} MB")

        return watch

    @staticmethod
    def _parsed(text: str) -> list[Package]:
        matches = re.findall(r"^'[^']*' (\S+\.deb) (\d+)", text, re.MULTILINE)
        return [Package(name, int(size)) for name, size in matches]

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
                            f"apt-get {words[0]} took longer than {APT_S // 60} minutes. The "
                            f"fetched files are kept: {_SOURCES}"
                        )
            finally:
                apt.kill()  # after a timeout or a signal
            out.seek(0)
            err.seek(0)
            output, errors = out.read(), err.read().splitlines()
        if apt.returncode:
            lines = [line for line in errors if line.startswith(("E:", "W:"))] or errors
            raise MissingError(
                f"apt-get {words[0]} failed: {_SOURCES}\n  " + "\n  ".join(lines[:6])
            )
        return output


_SOURCES = (
    "check /etc/apt/sources.list and the network (behind a proxy set http_proxy), "
    "then run `validate lab setup` again"
)


def unpack(files: Sequence[Path], into: Path, progress: Progress) -> None:
    """Unpack packages into one tree in which /bin, /lib and /sbin are links into /usr."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (into / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (into / name).is_symlink():
            (into / name).symlink_to(f"usr/{name}")
    left_out = [f"--exclude={pattern}" for pattern in LEFT_OUT]
    for i, path in enumerate(files):
        if i % 50 == 0:
            progress(f"unpacking {i}/{len(files)}")
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE) as deb:
            tar = subprocess.run(
                ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", *left_out, "-C", into],
                stdin=deb.stdout, capture_output=True, text=True, check=False,
            )  # fmt: skip
        if tar.returncode or deb.returncode:
            reason = tar.stderr.strip().splitlines()[-1:] or ["dpkg-deb failed"]
            raise MissingError(f"cannot unpack {path.name} into {into}: {reason[0]}")


def _output(command: Sequence[str | Path]) -> str:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    ).stdout.strip()


def command_in(tree: Path, program: str) -> list[str]:
    """Return the command line of a program in an unpacked tree, with the tree's libraries."""
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    loader = libraries / "ld-linux-x86-64.so.2"
    return [str(loader), "--library-path", f"{libraries}:{tree / 'usr/lib'}", str(tree / program)]
