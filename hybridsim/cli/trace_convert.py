"""Write a trace file completely or not at all, and show progress while reading."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hybridsim.cli.running import Line, reading_line
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.writing import whole_file
from hybridsim.traces.formats import WRITTEN, recognise, writer
from hybridsim.traces.formats.files import source, zstd

if TYPE_CHECKING:
    from hybridsim.traces.trace import Trace, Watch

BY_SUFFIX = {"iolog": "fio-iolog"}  # other suffixes equal the name of their format
PACKED: dict[str, Callable[[IO[bytes]], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0),
    ".zst": partial(zstd.ZstdFile, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
}


def convert_to(opened: Trace, inputs: Sequence[str], output: str, format: str | None = None) -> int:
    """Write `opened` to `output`, by default in the format of its suffix; return the requests."""
    format = format or format_of(output)
    write = writer(format)
    if output == "-":
        with with_progress(opened) as counted:
            return write(counted(opened.chunks()), _to_stdout)
    target = Path(output)
    for name in inputs:
        if target.exists() and Path(name).exists() and target.samefile(name):
            raise UsageError(f"{output} is also the input: specify another output file")
    check_replaced(output, format, opened.format)
    with (
        with_progress(opened) as counted,
        whole_file(output) as raw,
        PACKED.get(target.suffix, contextlib.nullcontext)(raw) as file,
    ):
        return write(counted(opened.chunks()), lambda part: file.write(
            part.encode() if isinstance(part, str) else part
        ))  # fmt: skip


def check_replaced(output: str, written: str, read: str) -> None:
    """Raise UsageError if `output` is a file that may be a capture rather than an earlier output.

    A file that is there is replaced only if it has the format `written`, and the trace `read` has
    another one: the last file of `trace convert sda.blktrace.*` is a part of the capture.
    """
    if not Path(output).is_file() or not Path(output).stat().st_size:
        return
    try:
        there = recognise([source(output)])
    except TraceError:
        there = "unknown"
    if there != written or there == read:
        raise UsageError(
            f"cannot write {output}: a file of the format {there} is there, and would be lost; "
            "specify another output file, or remove it first"
        )


def format_of(output: str) -> str:
    """Return the format of a file's suffix, the one before that of its compression; else csv."""
    suffixes = [each[1:] for each in Path(output).suffixes if each not in PACKED]
    name = BY_SUFFIX.get(suffixes[-1], suffixes[-1]) if suffixes else ""
    return name if name in WRITTEN else "csv"


def _to_stdout(part: str | bytes) -> None:
    if isinstance(part, str):
        sys.stdout.write(part)
    else:
        sys.stdout.buffer.write(part)


@contextlib.contextmanager
def with_progress(opened: Trace, passes: int = 1) -> Iterator[Watch]:
    """Yield a function that passes chunks on; on a terminal, show how far the trace is read.

    `passes` is how often it will be read.
    """
    from hybridsim.traces.trace import watched

    before = last_bytes = 0
    with Line() as line:

        def on_read(requests: int, read_bytes: int, of_bytes: int) -> None:
            nonlocal before, last_bytes
            before = min(before + (read_bytes < last_bytes), passes - 1)
            last_bytes = read_bytes
            passed_s = time.monotonic() - line.begun_s
            line.update(
                lambda: reading_line(requests, read_bytes, of_bytes, passed_s, before, passes)
            )

        with watched(opened, on_read if line.is_wanted else None) as counted:
            yield counted
