"""The log files of fio 3.33: rates, latencies and latency histograms over time, and I/O logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.histogram import BINS, bin_of
from hybridsim.foundation.writing import whole_file
from hybridsim.workloads.fio.job import MILLISECOND, SECOND
from hybridsim.workloads.fio.pattern import DATA_SYNC, READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.results import FioResult, JobResult

Rows = npt.NDArray[np.int64]  # rows: time in ms, value, direction, bytes, order of issue
DONE, LATENCY, KIND, LENGTH, NUMBER = range(5)
FILES = {"bw": ("bw",), "lat": ("lat", "clat", "slat"), "iops": ("iops",), "hist": ("clat_hist",)}
WORDS = {READ: "read", WRITE: "write", TRIM: "trim", SYNC: "sync", DATA_SYNC: "datasync"}


def write(result: FioResult) -> list[str]:
    """Write the logs that the jobs specify; return the names of the files."""
    logs: dict[str, list[Iterator[str]]] = {}
    for number, each in enumerate(result.of_jobs, 1):
        job = each.jobs[0]
        for kind, prefix in job.logs.items():
            for name in FILES[kind]:
                path = f"{prefix}_{name}.{number}.log"
                if job.log_is_shared:
                    path = f"{prefix}_{name}.log"
                lines = _histograms(each) if kind == "hist" else _lines(each, _rows(each, name))
                logs.setdefault(path, []).append(lines)
        if job.iolog:
            path = f"{job.iolog}.{number}" if job.iolog in logs else job.iolog
            logs[path] = [_requests(each)]
    for path, parts in logs.items():
        with whole_file(path) as stream:
            stream.writelines(line.encode() for lines in parts for line in lines)
    return list(logs)


def _lines(result: JobResult, rows: Rows) -> Iterator[str]:
    job = result.jobs[0]
    ends: Iterable[str] = repeat("0")
    if job.log_offsets:
        assert result.generated is not None
        offset = rows[NUMBER] if job.log_window_ns else result.generated[1][rows[NUMBER]]
        ends = (f"{at}, 0" for at in offset.tolist())
    for (time_ms, value, kind, size, _), end in zip(rows.T.tolist(), ends):
        yield f"{time_ms}, {value}, {kind}, {size}, {end}\n"


def _requests(result: JobResult) -> Iterator[str]:
    """Yield the lines of an I/O log of version 3: all requests in order of issue."""
    assert result.generated is not None
    files = result.jobs[0].files
    yield "fio version 3 iolog\n"
    yield from (f"0 {file} {word}\n" for file in files for word in ("add", "open"))
    issued = np.concatenate([np.zeros((2, 0), np.int64), *result.issued], axis=1)
    issued = issued[:, np.argsort(issued[0])]
    issued = issued[:, issued[0] < result.generated.shape[1]]  # the log has no sync at the end
    last = time_us = 0
    rows = result.generated[:, issued[0]].T.tolist()
    for since_ns, (kind, offset, length, file) in zip(issued[1].tolist(), rows):
        time_us = since_ns // 1000
        last = offset if kind < SYNC else last
        yield f"{time_us} {files[file]} {WORDS[kind]} {last} {length}\n"
    yield from (f"{time_us} {file} close\n" for file in files)


def _histograms(result: JobResult) -> Iterator[str]:
    """Yield the completion latencies of each complete window and direction, in fio's bins."""
    job = result.jobs[0]
    if not (result.log and job.hist_window_ns):
        return
    facts = np.concatenate(result.log, axis=1)
    facts = facts[:, facts[KIND] != SYNC]
    window = facts[DONE] // job.hist_window_ns
    together = 1 << job.hist_coarseness
    for number in range(int(window.max())):  # the last one is incomplete
        mine = facts[:, window == number]
        for kind in np.unique(mine[KIND]).tolist():
            chosen = mine[:, mine[KIND] == kind]
            bins = np.bincount(bin_of(chosen[LATENCY]), minlength=BINS)
            bins = bins.reshape(-1, together).sum(axis=1)
            time_ms = (number + 1) * job.hist_window_ns // MILLISECOND
            size = int(chosen[LENGTH][-1])
            yield f"{time_ms}, {kind}, {size}, {', '.join(map(str, bins.tolist()))}\n"


def _rows(result: JobResult, name: str) -> Rows:
    """Return the rows of a log: one per request, or one per window and direction."""
    if not result.log:
        return np.zeros((5, 0), np.int64)
    facts = np.concatenate(result.log, axis=1)
    facts = facts[:, facts[KIND] != SYNC]
    window_ns = result.jobs[0].log_window_ns
    if name == "slat":  # submission takes no time
        facts[LATENCY] = 0
    if window_ns:
        return _averaged(facts, name, window_ns, result.jobs[0].log_maxima)
    latency_ns = np.maximum(facts[LATENCY], 1)
    values = {
        "bw": facts[LENGTH] * SECOND // latency_ns // 1024,
        "iops": np.ones_like(latency_ns),
    }
    value = values.get(name, facts[LATENCY])
    columns = (facts[DONE] // MILLISECOND, value, facts[KIND], facts[LENGTH], facts[NUMBER])
    return np.stack(columns)


def _averaged(facts: Rows, name: str, window_ns: int, has_maxima: bool) -> Rows:
    """Return a row for each complete window and direction with at least one request.

    Latencies are averages, or with `has_maxima` the longest.
    """
    window = facts[DONE] // window_ns
    last = int(facts[DONE].max()) // window_ns  # incomplete
    result = []
    for kind in np.unique(facts[KIND]).tolist():
        mine = facts[KIND] == kind
        number = np.bincount(window[mine], minlength=last + 1)
        moved = np.bincount(window[mine], facts[LENGTH][mine].astype(float), last + 1)
        waited = np.bincount(window[mine], facts[LATENCY][mine].astype(float), last + 1)
        values = {
            "bw": moved * SECOND / window_ns / 1024,
            "iops": number * SECOND / window_ns,
        }
        latency = waited / np.maximum(number, 1)
        if has_maxima:
            latency = np.zeros(last + 1)
            np.maximum.at(latency, window[mine], facts[LATENCY][mine])
        value = values.get(name, latency).astype(np.int64)
        used = np.flatnonzero(number[:last])
        times = (used + 1) * window_ns // MILLISECOND
        none = np.zeros_like(used)
        result.append(np.stack([times, value[used], none + kind, none, none]))
    rows = np.concatenate(result, axis=1)
    return rows[:, np.lexsort((rows[2], rows[0]))]
