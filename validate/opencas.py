"""Open CAS Linux by its own programs: load its modules, and read caches and settings by casadm.

The kernel does not have Open CAS: its modules and casadm are those that the machine has installed,
or those in a folder: a folder with casadm and the files *.ko, or the folder in which it was built.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from validate.errors import MissingError, RunError
from validate.system import System

CASADM, CACHE_MODULE = "casadm", "cas_cache"
BELOW = ("cas_bd", "cas_disk")  # the module below it, in releases from 26 and before
# The tables of parameters that casadm shows; those of a core are last.
PARAMETERS = ("promotion", "cleaning", "cleaning-alru", "cleaning-acp", "promotion-nhit")
OF_CORE = ("seq-cutoff",)
EXPORTED = re.compile(r"cas(\d+)-(\d+)")
WAIT_S = 120


@dataclass(frozen=True)
class CachedOrigin:
    """A core of a cache, as casadm lists it."""

    cache_id: int
    core_id: int
    cache: str  # path of the cache's device
    origin: str  # path of the core's device
    exported: str  # path of the cached device


def program(folder: str) -> str:
    """Return casadm: that of a folder, or of the machine if the folder is ""."""
    if not folder:
        return CASADM
    places = (Path(folder) / CASADM, Path(folder) / CASADM / CASADM)
    found = [place for place in places if place.is_file()]
    if not found:
        raise MissingError(
            f"{folder}: has no {CASADM}: name the folder in which Open CAS was built"
        )
    return str(found[0].resolve())


def modules(folder: str) -> list[Path]:
    """Return the modules in a folder in the order in which they are loaded."""
    found: dict[str, Path] = {}
    for name in (*BELOW, CACHE_MODULE):
        for place in (Path(folder), Path(folder) / "modules" / name):
            if (place / f"{name}.ko").is_file():
                found.setdefault(name, (place / f"{name}.ko").resolve())
    if CACHE_MODULE not in found or len(found) != 2:
        wanted = f"{' or '.join(f'{name}.ko' for name in BELOW)}, and {CACHE_MODULE}.ko"
        raise MissingError(
            f"{folder}: expected {wanted}: name the folder in which Open CAS was built"
        )
    return list(found.values())


def load(folder: str, system: System) -> None:
    """Load the modules of Open CAS unless they are loaded; they stay loaded.

    Raises MissingError if there are none, or if they are not for this kernel.
    """
    if (system.sys / "module" / CACHE_MODULE).is_dir():
        return
    if not folder:
        try:
            system.module(CACHE_MODULE)
        except MissingError:
            raise MissingError(
                f"the kernel has no module {CACHE_MODULE}: install Open CAS, or name the folder in "
                "which you built it: --open-cas DIR"
            ) from None
        return
    for path in modules(folder):
        if (system.sys / "module" / path.stem).is_dir():
            continue
        try:
            system.run(["insmod", str(path)])
        except RunError as error:
            raise MissingError(
                f"{path}: cannot be loaded: was it built for this kernel? See `dmesg` ({error})"
            ) from None


def cores(casadm: str, system: System) -> list[CachedOrigin]:
    """Return the cores of all caches."""
    return [core for core in _listed(casadm, system) if core.core_id >= 0]


def cache_id(casadm: str, device: str, system: System) -> int | None:
    """Return the ID of the cache on a device, by the path that it was started with."""
    return next((each.cache_id for each in _listed(casadm, system) if each.cache == device), None)


def _listed(casadm: str, system: System) -> Iterator[CachedOrigin]:
    """Yield each cache, as a core with the ID -1, and its cores below it."""
    if not (system.sys / "module" / CACHE_MODULE).is_dir():
        return
    words = [casadm, "--list-caches", "--output-format", "csv", "--by-id-path"]
    of, device = -1, ""
    for row in csv.DictReader(system.run(words, record=False).splitlines()):
        if row.get("type") == "cache":
            of, device = int(row["id"]), row["disk"]
            yield CachedOrigin(of, -1, device, "", "")
        elif row.get("type") == "core" and str(row.get("id")).isdigit():
            yield CachedOrigin(of, int(row["id"]), device, row["disk"], row["device"])


def statistics(casadm: str, core: CachedOrigin) -> tuple[str, ...]:
    """Return the command that prints the counters of a core."""
    return (
        casadm, "--stats", "--cache-id", str(core.cache_id), "--core-id", str(core.core_id),
        "--output-format", "csv",
    )  # fmt: skip


def shown(casadm: str, core: CachedOrigin, system: System) -> str:
    """Return the settings of a cache and a core as casadm shows them."""
    of_cache = ["--cache-id", str(core.cache_id)]
    commands = [["--stats", *of_cache, "--filter", "conf"]]
    commands += [["--get-param", "--name", name, *of_cache] for name in PARAMETERS]
    of_core = [*of_cache, "--core-id", str(core.core_id)]
    commands += [["--get-param", "--name", name, *of_core] for name in OF_CORE]
    return "\n".join(system.run([casadm, *words]).strip() for words in commands) + "\n"


def main_settings(text: str) -> tuple[str, int, str]:
    """Return the mode, the bytes of a line and the cleaning policy of what casadm shows."""
    words = []
    for name in ("Write Policy", "Cache line size", "Cleaning Policy"):
        match = re.search(rf"^{name}\s+(\w+)", text, re.MULTILINE)
        if match is None:
            raise RunError(f"casadm does not show the {name.lower()} of the cache")
        words.append(match[1])
    return words[0], int(words[1]) << 10, words[2]
