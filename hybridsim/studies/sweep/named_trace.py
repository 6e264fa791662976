"""A trace by its name: opened by each worker, and hashed by its content.

The volumes of one large trace are split once into one file per volume.  It has rows in their
in-memory format, and lies in the folder of the sweep's results.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.requests.rows import DTYPES, Requests
from hybridsim.traces.formats.ordering import from_origin
from hybridsim.traces.trace import GENERATED, Rows, Trace, arguments, sources_of

ROW = np.dtype([(name, dtype) for name, dtype in zip(Requests._fields, DTYPES)])
WAITING_ROWS = 1 << 22  # buffered in memory
AnyTrace = Trace | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
VOLUMES, INDEX = "volumes", "index.json"


class NamedTrace(NamedTuple):
    """The paths and options of a trace, and the folder that relative paths refer to."""

    paths: tuple[str, ...]
    format: str | None = None
    device: str | None = None
    use_dispatch: bool = False
    folder: str = ""
    split: tuple[str, str] | None = None  # of a fleet's volume: its file, its digest's text

    @classmethod
    def here(cls, paths: tuple[str, ...], *how: Any) -> NamedTrace:
        """Return a trace whose paths are relative to the current folder, and `how` it is read."""
        if "-" in paths:
            raise UsageError("a sweep reads its traces more than once: save standard input first")
        return cls(paths, *how)._replace(folder=os.getcwd())

    @classmethod
    def of(cls, trace: AnyTrace) -> NamedTrace:
        """Return what opens a trace again, from the current folder."""
        if isinstance(trace, Trace):
            return cls.here(*trace.selection)
        paths = [trace] if isinstance(trace, str | os.PathLike) else trace
        return cls.here(tuple(os.fspath(path) for path in paths))

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
            return Trace(self.name, "volume", Rows(self.name, _rows_of(self.split[0])))
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
                if source.path is None:
                    digest.update(hashlib.sha256(path.encode()).digest())
                else:
                    digest.update(_of_file(source.path))
        return digest.hexdigest()


def _rows_of(path: str) -> Requests:
    """Return the rows of a file, which are read as they are used; raise TraceError if it fails."""
    try:
        rows = np.memmap(path, ROW, "r")
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot be read: {error}") from None
    return Requests._make(rows[name] for name in Requests._fields)


def _of_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None


def volumes_of(whole: NamedTrace, limit: int, folder: Path) -> list[NamedTrace]:
    """Return at most `limit` volumes of a trace (0: all), those with the most bytes first.

    They are split into files under `folder` unless these exist.  Raises UsageError for a trace of
    one device, TraceError for a format without volumes.
    """
    from hybridsim.traces.formats.column_reader import ALL

    if whole.device is not None:
        raise UsageError("--fleet uses all volumes: remove --device")
    digest = whole.digest()
    place = folder / VOLUMES / f"{digest[:24]}-{limit or ALL}"
    if not (place / INDEX).exists():
        _split(whole._replace(device=ALL).open(), limit, place)
    index = json.loads((place / INDEX).read_text(encoding="utf-8"))
    return [
        whole._replace(device=name, split=(str((place / file).absolute()), f"{digest} {name}"))
        for name, file in index.items()
    ]


def _split(trace: Trace, limit: int, place: Path) -> None:
    """Write one file per volume, all or none."""
    ranked = sorted(enumerate(trace.devices), key=lambda each: -each[1].bytes)
    if len(ranked) < 2:
        raise UsageError(f"{trace.name}: a fleet needs several volumes, this trace has one")
    chosen = {index: device.name for index, device in ranked[: limit or None]}
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=place.parent))
    try:
        _write(trace, chosen, temporary)
        index = {name: f"{number}.rows" for number, name in chosen.items()}
        (temporary / INDEX).write_text(json.dumps(index), encoding="utf-8")
        with contextlib.suppress(OSError):  # another client was first
            os.rename(temporary, place)
    except OSError as error:
        raise UsageError(f"cannot split {trace.name} into {place}: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(trace: Trace, chosen: dict[int, str], folder: Path) -> None:
    """Write the rows of each volume to its file, with times since its first request."""
    waiting: dict[int, list[bytes]] = {}
    began_ns: dict[int, int] = {}
    held = 0
    for part in trace.chunks_apart():
        for index in filter(chosen.__contains__, np.unique(part.device).tolist()):
            mine = part.where(part.device == index)
            first_ns = began_ns.setdefault(index, int(mine.arrival_ns[0]))
            rows = np.zeros(mine.rows, ROW)
            for name, column in zip(Requests._fields, from_origin(mine, first_ns)):
                rows[name] = column
            rows["device"] = 0
            waiting.setdefault(index, []).append(rows.tobytes())
            held += len(rows)
        if held >= WAITING_ROWS:
            _put(waiting, folder)
            held = 0
    _put(waiting, folder)


def _put(waiting: dict[int, list[bytes]], folder: Path) -> None:
    for index, parts in waiting.items():
        with (folder / f"{index}.rows").open("ab") as file:
            file.writelines(parts)
    waiting.clear()
