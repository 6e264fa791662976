"""The files of a blktrace capture: `<prefix>.blktrace.<cpu>`, compressed or not."""

from __future__ import annotations

import re
from pathlib import Path

PER_CPU = re.compile(r"(?P<prefix>.+)\.blktrace\.(?P<cpu>\d+)(\.(gz|zst|xz|bz2))*")


def cpu_of(path: Path) -> int:
    """Return the CPU in the name of a per-CPU file, -1 for any other file."""
    match = PER_CPU.fullmatch(path.name)
    return int(match["cpu"]) if match else -1


def per_cpu_files(path: Path) -> list[Path]:
    """Return all per-CPU files of a capture, from its directory, prefix or any of its files."""
    match = PER_CPU.fullmatch(path.name)
    folder, prefix = path.parent, match["prefix"] if match else path.name.removesuffix(".blktrace")
    if path.is_dir():
        folder, prefix = path, ""
    files: dict[tuple[str, int], Path] = {}
    for file in sorted(folder.iterdir() if folder.is_dir() else [], key=lambda f: len(f.name)):
        each = PER_CPU.fullmatch(file.name)
        if each and (not prefix or each["prefix"] == prefix):
            files.setdefault((each["prefix"], int(each["cpu"])), file)
    if match and path.exists():
        files[match["prefix"], int(match["cpu"])] = path
    return [files[key] for key in sorted(files)]
