"""The volumes of one big trace, each to be replayed by itself: split once, in one pass.

A volume's requests are in a file of rows as they are in memory, beside the results of the sweep.
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
from hybridsim.traces.formats.volumes import ALL
from hybridsim.traces.trace import Trace

WAITING_ROWS = 1 << 22  # in memory, before they go to their files
VOLUMES, INDEX = "volumes", "index.json"


def volumes_of(said: NamedTrace, most: int, folder: Path) -> list[NamedTrace]:
    """Return the volumes of a trace, those with most bytes first, at most so many (0: all).

    They are split into files under `folder`, unless they are there.  Raises UsageError for a trace
    of one device, TraceError for a format that does not tell volumes apart.
    """
    if said.device is not None:
        raise UsageError("a fleet is all volumes: leave --device out")
    digest = said.digest()
    place = folder / VOLUMES / f"{digest[:24]}-{most or ALL}"
    if not (place / INDEX).exists():
        _split(said._replace(device=ALL).open(), most, place)
    known = json.loads((place / INDEX).read_text(encoding="utf-8"))
    return [
        said._replace(device=name, split=(str((place / file).absolute()), f"{digest} {name}"))
        for name, file in known.items()
    ]


def _split(trace: Trace, most: int, place: Path) -> None:
    """Write a file a volume, all or none."""
    ranked = sorted(enumerate(trace.devices), key=lambda each: -each[1].bytes)
    if len(ranked) < 2:
        raise UsageError(f"{trace.name}: a fleet has several volumes, this trace has one")
    chosen = {index: device.name for index, device in ranked[: most or None]}
    place.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=place.parent))
    try:
        _write(trace, chosen, making)
        index = {name: f"{number}.rows" for number, name in chosen.items()}
        (making / INDEX).write_text(json.dumps(index), encoding="utf-8")
        with contextlib.suppress(OSError):  # another client was first
            os.rename(making, place)
    except OSError as error:
        raise UsageError(f"cannot split {trace.name} into {place}: {error.strerror}") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


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
    """Return rows of one volume, their times from its first request on."""
    rows = np.zeros(part.rows, ROW)
    for name, column in zip(Requests._fields, part):
        rows[name] = column
    rows["device"] = 0
    for name in ("arrival_ns", "dispatch_ns", "complete_ns"):
        known = rows[name] >= 0
        rows[name][known] -= began_ns
    return rows


def _put(waiting: dict[int, list[np.ndarray[tuple[int], np.dtype[np.void]]]], folder: Path) -> None:
    for index, parts in waiting.items():
        with (folder / f"{index}.rows").open("ab") as file:
            for rows in parts:
                file.write(rows.tobytes())
    waiting.clear()
