"""Compress recorded files one at a time, without a moment at which data could be lost."""

from __future__ import annotations

import shutil
from pathlib import Path

from hybridsim.foundation.writing import whole_file
from hybridsim.traces.formats.blktrace_files import per_cpu_files
from hybridsim.traces.formats.files import zstd

LEVEL = 3
PIECE_BYTES = 1 << 20
PACKED = ".zst"


def files_of(prefix: Path) -> list[Path]:
    """Return the files of a recording."""
    return per_cpu_files(prefix)


def pack(prefix: Path) -> None:
    """Compress each file of a recording to a new file beside it, then remove the original."""
    for plain in files_of(prefix):
        if plain.suffix == PACKED:
            continue
        packed = plain.with_name(plain.name + PACKED)
        with (
            plain.open("rb") as source,
            whole_file(packed) as raw,
            zstd.ZstdFile(raw, "wb", level=LEVEL) as target,
        ):
            shutil.copyfileobj(source, target, PIECE_BYTES)
        plain.unlink()
