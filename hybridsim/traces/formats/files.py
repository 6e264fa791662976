"""Read bytes of files: plain, compressed (also twice) or standard input, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.printable import printable
from hybridsim.requests.rows import Findings

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["STDIN", "ByteStream", "Source", "records_of", "source", "zstd"]

BATCH = 1 << 16  # records that are read at a time

STDIN = "-"
HEAD_BYTES = 1 << 16
NESTING_MAX = 4
UNPACK = "unpack it first; gz, bz2, xz and zst need no unpacking"
UNREAD = (  # formats that are recognised but not read: first bytes, name, fix
    (rb"PK\x03\x04", "a zip archive", UNPACK),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK),
    (rb"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (rb"\x04\x22\x4d\x18", "compressed with lz4", UNPACK),
    (rb"(?s).{257}ustar", "a tar archive", "unpack it, or: tar xOf ARCHIVE FILE | hybridsim ... -"),
    (rb"\xff\xfe([ -~\t\r\n]\0){9}", "UTF-16", "convert it to UTF-8: iconv -f utf-16 -t utf-8"),
    (
        rb"\xf0\xde\xbc\x9a\x78\x56\x34\x12",
        "libCacheSim's lcs",
        "convert it to oracleGeneral with traceConv",
    ),
)
UNREAD_BYTES = 262
BUFFER_BYTES = 1 << 17


CODECS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),
    b"\x28\xb5\x2f\xfd": zstd.ZstdFile,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"BZh": bz2.BZ2File,
}


Watcher = Callable[[int], None]  # takes the bytes on disk that have been read
Arriving = Callable[["Source"], None]
ARRIVING_S = 1.0  # between two looks at a stream that has not ended


@dataclass(frozen=True)
class Source:
    """A file that can be read repeatedly; standard input is spooled to a temporary file."""

    name: str  # as shown in messages
    path: Path | None
    spool: IO[bytes] | None = None
    limit_bytes: int | None = None  # of a spool: what has arrived so far; None: all
    watchers: list[Watcher] = field(default_factory=list, compare=False, repr=False)

    @property
    def size_bytes(self) -> int:
        """Size on disk, compressed as it is; 0 if it is unknown."""
        try:
            if self.spool is not None:
                return self.limit_bytes or os.fstat(self.spool.fileno()).st_size
            return self.path.stat().st_size if self.path is not None else 0
        except OSError:
            return 0

    def open(self, findings: Findings) -> ByteStream:
        """Open the file from its start, decompressed."""
        try:
            if self.spool is not None:
                raw: Any = io.BufferedReader(_FromStart(self.spool, self.limit_bytes), BUFFER_BYTES)
            else:
                assert self.path is not None
                raw = self.path.open("rb", BUFFER_BYTES)
        except OSError as error:
            raise TraceError(f"{self.name}: cannot be opened: {error.strerror}") from None
        return ByteStream(raw, self.name, findings, self.watchers)

    def head(self) -> bytes:
        """Return the first bytes, decompressed."""
        with self.open(Findings()) as stream:
            return stream.read(HEAD_BYTES)


def source(path: str | os.PathLike[str], arriving: Arriving | None = None) -> Source:
    """Return the source of a path, or of standard input for `-`.

    `arriving` gets, each second until a pipe has ended, the source of what has arrived so far.
    """
    name, shown = os.fspath(path), printable(os.fspath(path))
    if name == STDIN:
        return _spooled("standard input", sys.stdin.buffer, arriving)
    try:
        regular = Path(name).is_file()
        if not regular and not Path(name).is_dir() and Path(name).exists():
            with Path(name).open("rb") as pipe:  # a pipe or a device: readable only once
                return _spooled(shown, pipe, arriving)
    except OSError as error:
        raise TraceError(f"{shown}: cannot be read: {error.strerror}") from None
    return Source(shown, Path(name))


def records_of(source: Source, layout: np.dtype[Any], findings: Findings) -> Iterator[Any]:
    """Yield the records of a binary file as arrays, in batches."""
    with source.open(findings) as stream:
        while data := stream.read(BATCH * layout.itemsize):
            if len(data) % layout.itemsize:
                findings.add(
                    "truncated",
                    "the file ends within a record, which was skipped",
                    place=source.name,
                    fix="copy the file again",
                )
            yield np.frombuffer(data, layout, len(data) // layout.itemsize)


def inline(text: str) -> Source:
    """Return the source of a text specified in place of a file name."""
    return _spooled(text, io.BytesIO(text.encode()))


def _spooled(name: str, stream: Any, arriving: Arriving | None = None) -> Source:
    """Copy a stream to an unnamed temporary file, which is removed with the trace."""
    spool = tempfile.TemporaryFile(prefix="hybridsim-")  # noqa: SIM115
    failed: list[OSError] = []

    def copy() -> None:
        try:
            while part := stream.read1(1 << 20):
                spool.write(part)
                spool.flush()
        except OSError as error:
            failed.append(error)

    if arriving is None:
        copy()
    else:
        copying = threading.Thread(target=copy, daemon=True)
        copying.start()
        copying.join(ARRIVING_S)
        while copying.is_alive():
            arriving(Source(name, None, spool, os.fstat(spool.fileno()).st_size))
            copying.join(ARRIVING_S)
    if failed:
        raise TraceError(f"{name}: cannot be read: {failed[0].strerror}")
    return Source(name, None, spool)


class ByteStream:
    """Decompressed bytes of a file; damaged compression ends the stream, with a finding."""

    def __init__(
        self, raw: IO[bytes], name: str, findings: Findings, watchers: Sequence[Watcher] = ()
    ) -> None:
        self.name = name
        self._watchers: Sequence[Watcher] = ()
        self._findings = findings
        self._layers: list[Any] = [raw]
        self._ahead = b""  # the first bytes, read to detect a compression
        self._broken = False
        self._unwrap()
        self._watchers = watchers

    def _unwrap(self) -> None:
        """Add a decompressor for each compression detected from the first bytes."""
        for _ in range(NESTING_MAX):
            self._ahead = self.read(6)
            codec = next((c for magic, c in CODECS.items() if self._ahead.startswith(magic)), None)
            if codec is None:
                self._ahead = self.read(UNREAD_BYTES)
                for beginning, what, fix in UNREAD:
                    if re.match(beginning, self._ahead):
                        raise TraceError(f"{self.name}: {what}, which is not supported: {fix}")
                return
            self._layers[-1].seek(0)
            self._layers.append(codec(self._layers[-1]))
            self._ahead = b""
        raise TraceError(
            f"{self.name}: compressed more than {NESTING_MAX} times: decompress it first"
        )

    def read(self, size: int) -> bytes:
        """Return `size` bytes; fewer only at the end."""
        data = bytearray(size)
        del data[self.readinto(memoryview(data)) :]
        return bytes(data)

    def readinto(self, target: memoryview) -> int:
        """Fill `target` and return the number of bytes, fewer only at the end."""
        held = len(self._ahead[: len(target)])
        target[:held] = self._ahead[:held]
        self._ahead = self._ahead[held:]
        while held < len(target) and not self._broken:
            try:
                got = self._layers[-1].readinto1(target[held:])
            except (EOFError, OSError, zlib.error, lzma.LZMAError, zstd.ZstdError) as error:
                if len(self._layers) == 1 and isinstance(error, OSError):
                    raise TraceError(f"{self.name}: cannot be read: {error.strerror}") from None
                self._note(error)
                break
            if not got:
                break
            held += got
        for each in self._watchers:
            each(self._layers[0].tell())
        return held

    def _note(self, error: Exception) -> None:
        """Add the finding of compressed data that end too early or are damaged."""
        self._broken = True
        is_cut = isinstance(error, EOFError)
        what = "file is truncated" if is_cut else f"data are damaged ({error})"
        self._findings.add(
            "compressed-truncated" if is_cut else "compressed-damaged",
            f"the compressed {what}; the data before that are used",
            place=self.name,
            fix="copy or compress the file again",
        )

    def close(self) -> None:
        """Close the file."""
        for layer in reversed(self._layers):
            layer.close()

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _FromStart(io.RawIOBase):
    """Reads a file from its start, with a position of its own, up to a limit if it has one."""

    def __init__(self, file: IO[bytes], limit_bytes: int | None) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if self._limit_bytes is not None:
            target = target[: max(self._limit_bytes - self._position, 0)]
        size = os.preadv(self._file.fileno(), [target], self._position)
        self._position += size
        return size

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + (self._position if whence == os.SEEK_CUR else 0)
        return self._position


# The files of a blktrace capture: `<prefix>.blktrace.<cpu>`, compressed or not.

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
