"""Which files make one blktrace capture: `<prefix>.blktrace.<cpu>`, compressed or not."""

from __future__ import annotations

import re
from pathlib import Path

PER_CPU = re.compile(r"(?P<prefix>.+)\.blktrace\.(?P<cpu>\d+)(\.(gz|zst|xz|bz2))*")


def cpu_of(path: Path) -> int:
    """Return the CPU that a per-CPU file's name tells, -1 for any other file."""
    match = PER_CPU.fullmatch(path.name)
    return int(match["cpu"]) if match else -1


def per_cpu_files(path: Path) -> list[Path]:
    """Return the per-CPU files that a directory, a prefix or any one of the files stands for."""
    match = PER_CPU.fullmatch(path.name)
    folder, prefix = path.parent, match["prefix"] if match else path.name.removesuffix(".blktrace")
    if path.is_dir():
        folder, prefix = path, ""
    found: dict[tuple[str, int], Path] = {}
    for file in sorted(folder.iterdir() if folder.is_dir() else [], key=lambda f: len(f.name)):
        each = PER_CPU.fullmatch(file.name)
        if each and (not prefix or each["prefix"] == prefix):
            found.setdefault((each["prefix"], int(each["cpu"])), file)
    if match and path.exists():
        found[match["prefix"], int(match["cpu"])] = path
    return [found[key] for key in sorted(found)]
