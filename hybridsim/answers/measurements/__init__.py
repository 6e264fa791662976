"""All files of one run as one measurement: a file, a folder, or a prefix of file names.

To add a format: a module with `detect` and `read`, or a class with these methods, and a line in
FORMATS.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from hybridsim.answers.measurements.fio_log import job_of
from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    CACHE,
    HIT_RATIO,
    IOPS,
    SECOND,
    Curve,
    Measurement,
    Name,
    Samples,
)
from hybridsim.foundation.arrays import Floats
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS

FORMATS = {
    "fio's JSON": "fio_json",
    "hybridsim replay --json": "own_json:Replayed",
    "hybridsim serve --json": "own_json:Served",
    "fio's logs": "fio_log",
    "samples of dmsetup status": "samples:DmCache",
    "samples of a writecache's status": "samples:Writecache",
    "samples of casadm --stats": "samples:OpenCas",
    "samples of bcache's stats_total": "samples:Bcache",
    "samples of hybridsim serve": "samples:OfServe",
    "the start time of a load": "samples:Uptime",
    "fio's text": "fio_text",
}
LARGEST = 1 << 28  # characters of a file
# The errors of a format's reader if a value has an unexpected type, or is too large.
NONSENSE = (
    LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
HEAD = 1 << 20  # characters; a report may begin far down a page
HITS = {"read_hits": "read_misses", "cache_hits": "cache_misses", "hits": "misses"}
RATES = (IOPS, BANDWIDTH)


class Format(Protocol):
    """The functions of a module, or the methods of a class, in FORMATS."""

    def detect(self, name: str, head: str) -> bool:
        """Return whether a file with this name and these first characters has this format."""

    def read(self, name: str, text: str) -> Measurement:
        """Parse the text of a file; raise MeasurementError, with the place, if it is invalid."""


def formats() -> Mapping[str, Format]:
    """Return all formats, in the order in which they are tried."""
    result = {}
    for name, place in FORMATS.items():
        file, _, cls = place.partition(":")
        module = importlib.import_module(f"{__name__}.{file}")
        result[name] = getattr(module, cls)() if cls else module
    return result


def gather(path: str, begin_s: float | None = None) -> Measurement:
    """Parse the files of a run; files of an unknown format are noted and ignored.

    `begin_s` is the start of the load on the clock of the samples; it overrides that in the files.
    Raises MeasurementError if there are no results, or a file is invalid.
    """
    result = Measurement()
    place = Path(path)
    unknown = []
    for file in _files(path):
        one = _read(file)
        if one is None:
            unknown.append(file.name)
            continue
        result.begin_s = one.begin_s if one.begin_s is not None else result.begin_s
        result.add(one)
    if not (result.figures or result.curves or result.counters):
        raise MeasurementError(
            f"{path}: no results of a run; formats that are read: {', '.join(FORMATS)}"
        )
    result.begin_s = result.begin_s if begin_s is None else begin_s
    if unknown:
        result.notes.append(f"{place.name}: unknown format, ignored: {', '.join(unknown)}")
    return settled(result)


def _files(path: str) -> list[Path]:
    place = Path(path)
    if place.exists() and not place.is_dir():
        return [place]
    those = place.iterdir() if place.is_dir() else place.parent.glob(f"{place.name}*")
    files = sorted(each for each in those if each.is_file())
    if not files:
        what = "no such file or folder, or prefix of files"
        if place.is_dir():
            what = "no files in this folder: specify the folder of one run"
        raise MeasurementError(f"{path}: {what}")
    return files


def _read(file: Path) -> Measurement | None:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            head = stream.read(HEAD)
            for each in formats().values():
                if each.detect(str(file), head):
                    text = head + stream.read(LARGEST - len(head) + 1)
                    break
            else:
                return None
    except OSError as error:
        raise MeasurementError(f"cannot read {file}: {error.strerror}") from error
    if len(text) > LARGEST:
        raise MeasurementError(f"{file} is larger than {LARGEST >> 20} MiB: is it the right file?")
    try:
        result = each.read(str(file), text)
    except NONSENSE as error:
        raise MeasurementError(f"{file}: damaged or incomplete ({error!r})") from error
    if not all(map(math.isfinite, result.figures.values())):
        raise MeasurementError(f"{file}: damaged: a figure is not a finite number")
    return result


def settled(measurement: Measurement) -> Measurement:
    """Name the jobs of logs, count samples from the start of the load, and add the hit ratio."""
    _name_logs(measurement)
    if measurement.counters:
        _begin(measurement)
    _add_hit_ratio(measurement)
    return measurement


# Logs.


def _name_logs(measurement: Measurement) -> None:
    """Name logs after their jobs; logs of jobs that are reported as one are added up."""
    numbers = sorted({int(name.job.split()[1]) for name in measurement.curves if _is_log(name)})
    logs = [job_of(number) for number in numbers]
    if not logs:
        return
    if not measurement.jobs and len(logs) == 1:
        measurement.jobs = [""]
    if len(logs) == len(measurement.jobs):
        for log, job in zip(logs, measurement.jobs):
            measurement.rename(log, job)
    elif len(measurement.jobs) <= 1 and len(measurement.groups) <= 1:
        job = measurement.jobs[0] if measurement.jobs else ""
        measurement.jobs = [job]
        _join(measurement, logs, job)
        measurement.notes.append(f"the logs of {len(logs)} processes are added up")
    else:
        measurement.jobs += logs
        measurement.notes.append(
            f"{len(logs)} logs of {len(measurement.jobs) - len(logs)} jobs: not added up"
        )


def _is_log(name: Name) -> bool:
    return name.job.startswith("log ")


def _join(measurement: Measurement, logs: list[str], job: str) -> None:
    of_logs = {name: curve for name, curve in measurement.curves.items() if _is_log(name)}
    joined = {}
    for what, measure in sorted({(name.what, name.measure) for name in of_logs}):
        curves = [
            (of_logs[Name(log, what, measure)], of_logs.get(Name(log, what, IOPS)))
            for log in logs
            if Name(log, what, measure) in of_logs
        ]
        joined[Name(job, what, measure)] = together(curves, measure in RATES)
    for name in of_logs:
        del measurement.curves[name]
    measurement.curves |= joined
    latencies = measurement.latencies
    for name in [each for each in latencies if _is_log(each)]:
        whole = name._replace(job=job)
        mine = latencies.pop(name)
        latencies[whole] = latencies[whole] + mine if whole in latencies else mine


def together(curves: list[tuple[Curve, Curve | None]], is_rate: bool) -> Curve:
    """Return the sum of the curves if they are rates, else their mean weighted by requests."""
    width = max(max(curve.width_ns for curve, _ in curves), 1)
    until = min(curve.until_ns for curve, _ in curves)
    edges = np.arange(0, until + 1, width)
    values = np.array([curve.binned(edges, is_rate) for curve, _ in curves])
    if is_rate:
        return Curve(edges[:-1], edges[1:], values.sum(axis=0))
    weights = np.array([
        each.binned(edges, True) if each else np.ones(len(edges) - 1) for _, each in curves
    ])  # fmt: skip
    weights = np.where(np.isnan(values), 0, weights)
    present = weights.sum(axis=0) > 0
    mean = np.nansum(values * weights, axis=0)[present] / weights.sum(axis=0)[present]
    return Curve(edges[:-1][present], edges[1:][present], mean)


# Samples of the cache's counters.


def _begin(measurement: Measurement) -> None:
    """Subtract the start of the load from the times, and the counts at that time from counts."""
    begin_ns = 0
    if measurement.begin_s is not None:
        begin_ns = round(measurement.begin_s * SECOND)
    elif (first := min(int(each.time_ns[0]) for each in measurement.counters.values())) > 0:
        begin_ns = min(  # of a counter that never moves its last sample
            int(each.time_ns[(each.value == each.value[0]).argmin() - 1])
            for each in measurement.counters.values()
        )
        measurement.notes.append(
            f"the start of the load is not recorded; assumed: {(begin_ns - first) / SECOND:.1f} s "
            "after the first sample, the last one before a counter moved"
        )
    for name, samples in measurement.counters.items():
        at_begin = _at_begin(samples, begin_ns)
        nought = 0 if name in LEVELS else at_begin
        later = samples.time_ns >= begin_ns
        time_ns = np.append(0, samples.time_ns[later] - begin_ns)
        value = np.append(at_begin, samples.value[later]) - nought
        measurement.counters[name] = Samples(time_ns, value)


def _at_begin(samples: Samples, begin_ns: int) -> int:
    """Return the value at the start of the load: of the last sample before, if it was still then.

    A value that moved before, on a cache in use, goes on: it is interpolated.
    """
    before = int(np.searchsorted(samples.time_ns, begin_ns, "right")) - 1
    if before > 0 and samples.value[before] != samples.value[before - 1]:
        return round(float(samples.at(np.array([begin_ns]))[0]))
    return int(samples.value[max(before, 0)])


def _add_hit_ratio(measurement: Measurement) -> None:
    """Add the interval hit ratio of reads, if hits and misses are counted."""
    name, counters = Name("", CACHE, HIT_RATIO), measurement.counters
    for hits, misses in HITS.items():
        if {hits, misses} <= counters.keys() and name not in measurement.curves:
            end = counters[misses].time_ns
            hit: Floats = counters[hits].at(end)
            all_reads = hit + counters[misses].value
            present = np.append(True, np.diff(all_reads) > 0)
            end, hit, all_reads = end[present], hit[present], all_reads[present]
            if len(end) > 1 and all_reads[-1] > all_reads[0]:
                ratio = np.diff(hit) / np.diff(all_reads)
                measurement.curves[name] = Curve(end[:-1], end[1:], ratio)
                whole = (hit[-1] - hit[0]) / (all_reads[-1] - all_reads[0])
                measurement.figures.setdefault(name, float(whole))
