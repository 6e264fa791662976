"""A trace by its name: opened by each worker, and hashed by its content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.requests.rows import DTYPES, Device, Findings, Requests
from hybridsim.traces.trace import CHUNK_ROWS, GENERATED, Trace, arguments, sources_of

ROW = np.dtype([(name, dtype) for name, dtype in zip(Requests._fields, DTYPES)])


class NamedTrace(NamedTuple):
    """The paths and options of a trace, and the folder that relative paths refer to."""

    paths: tuple[str, ...]
    format: str | None = None
    device: str | None = None
    use_dispatch: bool = False
    folder: str = ""
    split: tuple[str, str] | None = None  # of a fleet's volume: its file, its digest's text

    @classmethod
    def here(
        cls,
        paths: tuple[str, ...],
        format: str | None = None,
        device: str | None = None,
        use_dispatch: bool = False,
    ) -> NamedTrace:
        """Return a trace whose paths are relative to the current folder."""
        if "-" in paths:
            raise UsageError("a sweep reads its traces more than once: save standard input first")
        return cls(paths, format, device, use_dispatch, os.getcwd())

    @property
    def places(self) -> tuple[str, ...]:
        """The paths, valid in any working directory."""
        return tuple(
            path if path.startswith(GENERATED) else os.path.join(self.folder, path)
            for path in self.paths
        )

    def open(self, seed: int | None = None) -> Trace:
        """Open the trace; `seed` replaces the seed of a generated workload."""
        if self.split:
            return opened(self.split[0], self.name)
        trace = Trace.read(self.places, self.format, self.device, self.use_dispatch)
        return trace if seed is None else trace.seeded(seed)

    @property
    def name(self) -> str:
        """Name in reports."""
        return " ".join(self.paths) + (f" {self.device}" if self.device else "")

    @property
    def arguments(self) -> list[str]:
        """Command-line arguments that select this trace."""
        return arguments(self.paths, self.format, self.device, self.use_dispatch)

    def digest(self) -> str:
        """Return a hash of the contents of its files, and of the options for reading them."""
        if self.split:
            return hashlib.sha256(self.split[1].encode()).hexdigest()
        digest = hashlib.sha256(json.dumps(self[1:4]).encode())
        for path in self.places:
            for source in sources_of(path):
                digest.update(_of_text(path) if source.path is None else _of_file(source.path))
        return digest.hexdigest()


def opened(path: str, name: str) -> Trace:
    """Open a volume that was split off a trace."""
    return Trace(name, "volume", Rows(path, name))


class Rows:
    """A file of rows in their in-memory format."""

    origin_unix_ns: int | None = None

    def __init__(self, path: str, name: str) -> None:
        """Open the file; raise TraceError if this fails."""
        try:
            self._rows = np.memmap(path, ROW, "r")
        except (OSError, ValueError) as error:
            raise TraceError(f"{path}: cannot be read: {error}") from None
        size = int(self._rows["length_bytes"].sum())
        self.devices = [Device(name, len(self._rows), size, chosen=True)]

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Yield the requests."""
        for first in range(0, len(self._rows), CHUNK_ROWS):
            part = self._rows[first : first + CHUNK_ROWS]
            yield Requests._make(np.array(part[name]) for name in Requests._fields)


def _of_text(path: str) -> bytes:
    return hashlib.sha256(path.encode()).digest()


def _of_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
