"""The log files that fio 3.33 writes: bandwidth, latency and requests a second over time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hybridsim.errors import UsageError
from hybridsim.fio.job import MILLISECOND, SECOND
from hybridsim.fio.pattern import SYNC
from hybridsim.fio.results import FioResult, JobResult

Rows = npt.NDArray[np.int64]  # time in ms, value, direction, bytes
DONE, LATENCY, KIND, LENGTH = range(4)
FILES = {"bw": ("bw",), "lat": ("lat", "clat", "slat"), "iops": ("iops",)}


def write(result: FioResult) -> list[str]:
    """Write the logs that jobs ask for; return the names of the files."""
    written = []
    for number, each in enumerate(result.of_jobs, 1):
        job = each.jobs[0]
        for kind, prefix in job.logs.items():
            for name in FILES[kind]:
                path = f"{prefix}_{name}.{number}.log"
                rows = _rows(each, name)
                try:
                    with Path(path).open("w", encoding="ascii") as stream:
                        stream.writelines(_lines(rows))
                except OSError as error:
                    raise UsageError(f"cannot write {path}: {error.strerror}") from error
                written.append(path)
    return written


def _lines(rows: Rows) -> Iterator[str]:
    for time_ms, value, kind, size in rows.T.tolist():
        yield f"{time_ms}, {value}, {kind}, {size}, 0\n"


def _rows(result: JobResult, name: str) -> Rows:
    """Return the rows of a log: one a request, or one a window and direction."""
    if not result.log:
        return np.zeros((4, 0), np.int64)
    facts = np.concatenate(result.log, axis=1)
    facts = facts[:, facts[KIND] != SYNC]
    window_ns = result.jobs[0].log_window_ns
    if name == "slat":  # handing over takes no time
        facts[LATENCY] = 0
    if window_ns:
        return _averaged(facts, name, window_ns)
    latency_ns = np.maximum(facts[LATENCY], 1)
    values = {
        "bw": facts[LENGTH] * SECOND // latency_ns // 1024,
        "iops": np.ones_like(latency_ns),
    }
    value = values.get(name, facts[LATENCY])
    return np.stack([facts[DONE] // MILLISECOND, value, facts[KIND], facts[LENGTH]])


def _averaged(facts: Rows, name: str, window_ns: int) -> Rows:
    """Return a row for each whole window and direction in which something was done."""
    window = facts[DONE] // window_ns
    last = int(facts[DONE].max()) // window_ns  # not whole
    found = []
    for kind in np.unique(facts[KIND]).tolist():
        mine = facts[KIND] == kind
        number = np.bincount(window[mine], minlength=last + 1)
        moved = np.bincount(window[mine], facts[LENGTH][mine].astype(float), last + 1)
        waited = np.bincount(window[mine], facts[LATENCY][mine].astype(float), last + 1)
        values = {
            "bw": moved * SECOND / window_ns / 1024,
            "iops": number * SECOND / window_ns,
        }
        value = values.get(name, waited / np.maximum(number, 1)).astype(np.int64)
        used = np.flatnonzero(number[:last])
        times = (used + 1) * window_ns // MILLISECOND
        none = np.zeros_like(used)
        found.append(np.stack([times, value[used], none + kind, none]))
    rows = np.concatenate(found, axis=1)
    return rows[:, np.lexsort((rows[2], rows[0]))]
