"""Results of points on disk: a folder that any number of sweeps and clients share.

results.jsonl   one line per point, with its key; append-only, and each line is on disk (fsync)
                before its result is reported.  A line torn by a crash is skipped.
claims          locks: a client that computes a point holds a lock on the byte that belongs to the
                point's key.  The system releases the locks of a killed client.

A sweep's records are exported as JSONL, CSV or Parquet, by the suffix of the file.  To add a file
type: a function that returns its bytes, and a line in WRITERS.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.writing import whole_file

SCHEMA = "hybridsim.point/2"
FOLDER = "hybridsim-sweep"  # default folder
RESULTS, CLAIMS = "results.jsonl", "claims"
Row = dict[str, Any]


def has_results(folder: str) -> bool:
    """Return whether the folder has results."""
    return (Path(folder) / RESULTS).exists()


class Store:
    """The results in a folder, including those of other clients."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Open or create the folder; raise UsageError if this fails."""
        self.folder = Path(folder)
        self._rows: dict[str, Row] = {}
        self._read_bytes = 0
        self._claimed: set[str] = set()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._results: BinaryIO = (self.folder / RESULTS).open("a+b")
            # Closing any handle of a file releases the process's locks on it: open it only here.
            self._claims: BinaryIO = (self.folder / CLAIMS).open("a+b")
        except OSError as error:
            raise UsageError(f"cannot store results in {folder}: {error.strerror}") from error
        self.refresh()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # a failed append was reported already
            self._results.close()
        self._claims.close()

    def get(self, key: str) -> Row | None:
        """Return the row of a point; None if it is not on disk."""
        return self._rows.get(key)

    def refresh(self) -> None:
        """Read the rows that any client appended since the last call."""
        self._results.seek(self._read_bytes)
        data = self._results.read()
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                row = json.loads(line)
                if row["schema"] == SCHEMA:
                    self._rows.setdefault(row["key"], row)
        self._read_bytes += whole  # last: an interrupt must not lose rows

    def add(self, key: str, row: Row) -> Row:
        """Append a row, release the claim, and return the row that is on disk.

        Raises UsageError if the disk is full.
        """
        with self._alone():
            self.refresh()
            if key not in self._rows:
                line = json.dumps({"schema": SCHEMA, "key": key, **row}, allow_nan=False)
                self._append(line.encode())
                self.refresh()
        self.give_back(key)
        return self._rows[key]

    def claim(self, key: str) -> bool:
        """Lock a point for this client; return False if another client computes it."""
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        self._claimed.add(key)
        return True

    def give_back(self, key: str) -> None:
        """Release the lock of a point."""
        if key in self._claimed:
            self._claimed.remove(key)
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(key))

    def _append(self, line: bytes) -> None:
        end = self._results.seek(0, os.SEEK_END)
        torn = b""
        if end:
            self._results.seek(end - 1)
            torn = b"" if self._results.read(1) == b"\n" else b"\n"
        try:
            self._results.write(torn + line + b"\n")
            self._results.flush()
            os.fsync(self._results.fileno())
        except OSError as error:
            raise UsageError(
                f"cannot store results in {self.folder}: {error.strerror}; existing results "
                "are kept, and the same command continues once there is space"
            ) from error

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other clients from appending."""
        fcntl.lockf(self._results, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._results, fcntl.LOCK_UN)


def _place(key: str) -> int:
    """Return the offset of the byte in the file of claims that belongs to a key."""
    return int(key[:15], 16)


Records = Sequence[dict[str, Any]]


def _jsonl(records: Records) -> bytes:
    return "".join(json.dumps(each, allow_nan=False) + "\n" for each in records).encode()


def _csv(records: Records) -> bytes:
    text = io.StringIO()
    names = list(dict.fromkeys(name for each in records for name in each))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def _parquet(records: Records) -> bytes:
    import pyarrow
    import pyarrow.parquet

    names = list(dict.fromkeys(name for each in records for name in each))
    columns = {name: _column([each.get(name) for each in records]) for name in names}
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression="zstd")
    return file.getvalue()


def _column(values: list[Any]) -> list[Any]:
    """Return values of one type: text if numbers and text are mixed."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and kinds <= {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1 or kinds & {list, dict}:
        return [None if value is None else str(value) for value in values]
    return values


WRITERS: dict[str, Callable[[Records], bytes]] = {
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
}


def check_output(file: str) -> None:
    """Raise UsageError early for a file that could not be written at the end."""
    suffix = Path(file).suffix
    if suffix not in WRITERS:
        raise UsageError(f"-o {file}: unknown file type: {hint(suffix, WRITERS)}")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise UsageError(
            f"-o {file} needs pyarrow: pip install 'hybridsim[parquet]'; "
            ".jsonl and .csv need no extra package"
        )


def write_output(records: Records, file: str) -> None:
    """Write records to a file; raise UsageError if this fails."""
    data = WRITERS[Path(file).suffix](records)
    with whole_file(file) as stream:
        stream.write(data)
