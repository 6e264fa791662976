"""The saved state of a watch, from which it goes on after it was killed.

A file in NumPy's format npz: `about`, a JSON of the settings, and arrays by number, which are the
leaves of nested tuples in order.  Nothing in it is executed, and it is replaced as a whole, also
in a power cut.

What came since then is in a journal beside it, which begins with the token of that state.  A
record is a header, the rows column by column, and the text of a real cache's state; its checksum
covers all of it.  The first record that is incomplete or damaged ends the journal.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.writing import whole_file
from hybridsim.requests.rows import DTYPES, Requests
from hybridsim.studies.watch.pieces import Piece

CHECK = struct.Struct("<I")  # CRC-32 of the rest of the record
HEADER = struct.Struct("<IIqq")  # rows, bytes of text, time in ns, lost events
HEAD_BYTES = CHECK.size + HEADER.size
ROW_BYTES = sum(np.dtype(each).itemsize for each in DTYPES)
SAVE_EVERY_S = 30.0
VERSION = 4
JOURNAL = ".journal"  # suffix


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


def mapped(tree: Any, change: Callable[[Any], Any], known: dict[int, Any] | None = None) -> Any:
    """Return nested tuples of the same shape, with their arrays and numbers changed in order.

    An array in several places is changed once.  None, a part that a machine does not have, stays.
    """
    known = {} if known is None else known
    if tree is None:
        return None
    if isinstance(tree, tuple):
        parts = [mapped(each, change, known) for each in tree]
        return type(tree)._make(parts) if hasattr(tree, "_make") else tuple(parts)
    if not isinstance(tree, np.ndarray):
        return change(tree)
    if id(tree) not in known:
        known[id(tree)] = change(tree)
    return known[id(tree)]


def leaves(tree: Any) -> list[Any]:
    """Return the arrays and numbers of nested tuples."""
    found: list[Any] = []
    mapped(tree, found.append)
    return found


def outline(tree: Any) -> str:
    """Return the names of the fields of nested tuples, in order: what their leaves are."""
    if not isinstance(tree, tuple):
        return ""
    names = getattr(tree, "_fields", range(len(tree)))
    return f"({' '.join(f'{name}{outline(part)}' for name, part in zip(names, tree))})"


def regrown(tree: Any, saved: Iterator[Any]) -> Any:
    """Return nested tuples of the same shape with other leaves; arrays may have another length.

    Raises ValueError for leaves of another kind.
    """

    def grown(old: Any) -> Any:
        leaf = next(saved)
        if isinstance(old, np.ndarray):
            if leaf.dtype != old.dtype or leaf.ndim != old.ndim:
                raise ValueError("an array of another kind")
            return leaf
        if leaf.ndim:
            raise ValueError("an array in place of a number")
        return type(old)(leaf[()])

    return mapped(tree, grown)


class Kept:
    """A file that is written now and then, and a journal of what came since."""

    def __init__(self, path: str = "") -> None:
        """Use a file, which need not exist; "": nothing is kept."""
        self.path = path
        self.journal = Journal(path + JOURNAL)
        self._saved_s = -math.inf

    def not_usable(self) -> str | None:
        """Return the first of its files, or their folder, that this process may not write."""
        folder = str(Path(self.path).absolute().parent)
        if not os.access(folder, os.W_OK | os.X_OK):
            return folder
        there = [each for each in (self.path, self.journal.path) if Path(each).exists()]
        return next((each for each in there if not os.access(each, os.R_OK | os.W_OK)), None)

    def is_due(self) -> bool:
        """Return whether there was no save yet, or the last one is some time ago."""
        return bool(self.path) and time.monotonic() - self._saved_s >= SAVE_EVERY_S

    def save(self, setting: list[Any], about: dict[str, Any], state: Any) -> None:
        """Write the file, completely or not at all; the journal begins anew."""
        if not self.path:
            return
        token = secrets.token_hex(8)
        head = json.dumps(
            {"version": VERSION, "setting": setting, "about": about, "journal": token}
        )
        arrays = {f"{at:05d}": np.asarray(leaf) for at, leaf in enumerate(leaves(state))}
        with whole_file(self.path, durable=True) as file:
            np.savez(file, about=np.array(head), **arrays)  # type: ignore[arg-type]
        self.journal.begin(token)
        self._saved_s = time.monotonic()

    def pieces(self) -> Iterator[Piece]:
        """Yield the pieces that came after the saved state, before the watch was killed."""
        head, _ = self._read()
        return self.journal.pieces(str(head["journal"])) if head else iter(())

    def load(self, setting: list[Any]) -> tuple[dict[str, Any], list[Any]] | None:
        """Return `about` and the leaves of the saved state; None: there is no file.

        From now on the state is that of this watch alone.  Raises UsageError for a file that cannot
        be read, that is of other caches, or that another watch uses.
        """
        if self.path:
            self.journal.claim()
        head, arrays = self._read()
        if not head:
            return None
        if head["setting"] != setting:
            raise UsageError(
                f"--state {printable(self.path)} is of other caches: specify the same options, or "
                "remove it"
            )
        return head["about"], arrays

    def status(self) -> str:
        """Return the saved state of the real cache beside; "": there is none."""
        head, _ = self._read()
        return str(head["about"].get("status", "")) if head else ""

    def _read(self) -> tuple[dict[str, Any], list[Any]]:
        if not self.path or not Path(self.path).exists():
            return {}, []
        try:
            with np.load(self.path, allow_pickle=False) as file:
                head = json.loads(str(file["about"]))
                if head["version"] != VERSION:
                    raise ValueError(f"its version is {head['version']}, not {VERSION}")
                head["about"].items()
                head["setting"].copy()
                head["journal"].encode()
                return head, [file[name] for name in sorted(set(file.files) - {"about"})]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError,
                zipfile.BadZipFile) as error:  # fmt: skip
            raise UsageError(
                f"--state {printable(self.path)}: not a state that `watch` saved ({error}): "
                "remove it"
            ) from None
