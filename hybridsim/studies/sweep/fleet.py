"""The volumes of one large trace, which is split once into one file per volume.

A volume's file has rows in their in-memory format, and lies in the folder of the sweep's results.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import Requests
from hybridsim.studies.sweep.named_trace import ROW, NamedTrace
from hybridsim.traces.formats.column_reader import ALL
from hybridsim.traces.trace import Trace

WAITING_ROWS = 1 << 22  # buffered in memory
VOLUMES, INDEX = "volumes", "index.json"


def volumes_of(whole: NamedTrace, limit: int, folder: Path) -> list[NamedTrace]:
    """Return at most `limit` volumes of a trace (0: all), those with the most bytes first.

    They are split into files under `folder` unless these exist.  Raises UsageError for a trace of
    one device, TraceError for a format without volumes.
    """
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
    waiting: dict[int, list[np.ndarray[tuple[int], np.dtype[np.void]]]] = {}
    began_ns: dict[int, int] = {}
    held = 0
    for part in trace.chunks_apart():
        for index in np.unique(part.device).tolist():
            if index not in chosen:
                continue
            mine = Requests._make(column[part.device == index] for column in part)
            own = _from_beginning(mine, began_ns.setdefault(index, int(mine.arrival_ns[0])))
            waiting.setdefault(index, []).append(own)
            held += len(own)
        if held >= WAITING_ROWS:
            _put(waiting, folder)
            held = 0
    _put(waiting, folder)


def _from_beginning(part: Requests, began_ns: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return the rows of one volume, with times since its first request."""
    rows = np.zeros(part.rows, ROW)
    for name, column in zip(Requests._fields, part):
        rows[name] = column
    rows["device"] = 0
    for name in ("arrival_ns", "dispatch_ns", "complete_ns"):
        is_set = rows[name] >= 0
        rows[name][is_set] -= began_ns
    return rows


def _put(waiting: dict[int, list[np.ndarray[tuple[int], np.dtype[np.void]]]], folder: Path) -> None:
    for index, parts in waiting.items():
        with (folder / f"{index}.rows").open("ab") as file:
            for rows in parts:
                file.write(rows.tobytes())
    waiting.clear()
