"""The requests since the last saved state of a watch, appended while they come.

The file begins with the token of that state.  A record is a header, the rows column by column, and
the text of a real cache's state; its checksum covers all of it.  The first record that is
incomplete or damaged ends the journal.
"""

from __future__ import annotations

import fcntl
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.requests.rows import DTYPES, Requests
from hybridsim.studies.watch.pieces import Piece

CHECK = struct.Struct("<I")  # CRC-32 of the rest of the record
HEADER = struct.Struct("<IIqq")  # rows, bytes of text, time in ns, lost events
HEAD_BYTES = CHECK.size + HEADER.size
ROW_BYTES = sum(np.dtype(each).itemsize for each in DTYPES)


class Journal:
    """A file beside a saved state, begun anew with each state."""

    def __init__(self, path: str) -> None:
        """Use a file, which need not exist."""
        self.path = path
        self._file: BinaryIO | None = None
        self._has_begun = False

    def claim(self) -> None:
        """Open the file for this process alone; raise UsageError if another one has it."""
        try:
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise UsageError(
                f"--state: {printable(self.path)}: another watch uses it: name another file"
            ) from None
        except OSError as error:
            self.close()
            raise self._failed(error) from None

    def close(self) -> None:
        """Leave the file to others."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def begin(self, token: str) -> None:
        """Start an empty journal, of what follows the state with that token."""
        assert self._file is not None, "not claimed"
        self._file.truncate(0)
        self._write(token.encode())
        self._has_begun = True

    def add(self, piece: Piece) -> None:
        """Append a piece; before the first `begin` nothing is kept."""
        if not self._has_begun or not (piece.rows.rows or piece.state or piece.lost):
            return
        text = piece.state.encode()
        header = HEADER.pack(piece.rows.rows, len(text), piece.now_ns, piece.lost)
        record = b"".join([header, *(column.tobytes() for column in piece.rows), text])
        self._write(CHECK.pack(zlib.crc32(record)) + record)

    def pieces(self, token: str) -> Iterator[Piece]:
        """Yield the pieces after the state with that token; none if the journal is of another."""
        try:
            data = Path(self.path).read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed(error) from None
        if not data.startswith(token.encode()):
            return
        at = len(token)
        while at + HEAD_BYTES <= len(data):
            rows, text_bytes, now_ns, lost = HEADER.unpack_from(data, at + CHECK.size)
            end = at + HEAD_BYTES + rows * ROW_BYTES + text_bytes
            if end > len(data):
                return
            if CHECK.unpack_from(data, at)[0] != zlib.crc32(data[at + CHECK.size : end]):
                return
            at += HEAD_BYTES
            columns = []
            for dtype in DTYPES:
                columns.append(np.frombuffer(data, dtype, rows, at).copy())
                at += rows * np.dtype(dtype).itemsize
            yield Piece(Requests._make(columns), now_ns, lost, data[at:end].decode())
            at = end

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        rest = memoryview(data)
        try:
            while rest:  # a disk that is nearly full takes a part of it
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> UsageError:
        return UsageError(f"--state: {printable(self.path)}: {error.strerror or error}")
