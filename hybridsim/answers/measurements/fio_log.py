"""fio's logs `NAME_{bw,iops,lat,clat,slat}.N.log`: one line per request or per window of time.

The columns are time in ms, value, direction, bytes and more; a line with 0 bytes is a mean over the
window that ends at its time (log_avg_msec).  Bandwidth is in KiB/s.  Latencies are in ns; before
fio 3 in us: those logs have four columns, while logs of fio 3.20 and later have five.  Times of day
are counted from the whole second of the first line.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np

from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    COMPLETION,
    DIRECTIONS,
    IOPS,
    LATENCY,
    MICROSECOND,
    MILLISECOND,
    SECOND,
    SUBMISSION,
    Curve,
    Measurement,
    Name,
)
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.histogram import Distribution

FILE = re.compile(r"_(?P<kind>bw|iops|lat|clat|slat)(?:\.(?P<number>\d+))?\.log$")
LINE = re.compile(r"\d+, \d+, [012], \d+(, \d+)*\s*$")
MEASURES = {"bw": BANDWIDTH, "iops": IOPS, "lat": LATENCY, "clat": COMPLETION, "slat": SUBMISSION}
TIME, VALUE, KIND, LENGTH = range(4)
COLUMNS_OF_2 = 4
EPOCH_MS = 10**11  # larger times are times of day: no run lasts for years


def detect(name: str, head: str) -> bool:
    """Return whether a file is such a log, by its name and first line."""
    return FILE.search(name) is not None and LINE.match(head.partition("\n")[0]) is not None


def job_of(number: int) -> str:
    """Return the provisional name of the job of a log, as logs contain no job names."""
    return f"log {number}"


def read(name: str, text: str) -> Measurement:
    """Return the curves of a log by direction; raise MeasurementError for invalid lines."""
    match = FILE.search(Path(name).name)
    assert match is not None
    measure = MEASURES[match["kind"]]
    rows = _rows(name, text)
    result = Measurement([name])
    job = job_of(int(match["number"] or 1))
    for kind, what in enumerate(DIRECTIONS):
        mine = rows[rows[:, KIND] == kind]
        if len(mine):
            _add(result, Name(job, what, measure), mine)
    if rows.shape[1] == COLUMNS_OF_2 and measure in (LATENCY, COMPLETION, SUBMISSION):
        result.notes.append(f"{name}: it has four columns, as in fio 2.x: latencies are in us")
    return result


def _rows(name: str, text: str) -> Ints:
    try:
        rows = np.loadtxt(io.StringIO(text), np.int64, delimiter=",", ndmin=2)
    except ValueError as error:
        reason = str(error).partition(";")[0]  # without numpy's advice on its own options
        raise MeasurementError(f"{name}: a line is not one of a fio log ({reason})") from error
    if rows.shape[1] < COLUMNS_OF_2:
        raise MeasurementError(f"{name}: {rows.shape[1]} columns; a log of fio has at least four")
    if len(rows) and rows[0, TIME] > EPOCH_MS:  # log_unix_epoch: times of day
        rows[:, TIME] -= rows[0, TIME] // 1000 * 1000
    if rows.shape[1] == COLUMNS_OF_2 and "lat." in Path(name).name:
        rows[:, VALUE] *= MICROSECOND
    return rows


def _add(measurement: Measurement, name: Name, rows: Ints) -> None:
    time_ns = rows[:, TIME] * MILLISECOND
    value = rows[:, VALUE]
    if not rows[:, LENGTH].any():
        unit = 1024 if name.measure == BANDWIDTH else 1
        measurement.curves[name] = Curve.of_windows(time_ns, value.astype(float) * unit)
        return
    if name.measure in (LATENCY, COMPLETION):
        measurement.latencies[name] = Distribution.of(value)
    measurement.curves[name] = _of_requests(name.measure, time_ns, value, rows[:, LENGTH])


def _of_requests(measure: str, time_ns: Ints, value: Ints, length: Ints) -> Curve:
    """Return the curve of a log with one line per request: means over whole seconds."""
    second = time_ns // SECOND
    last = max(int(second.max()), 1)  # the last second is not whole
    weights = {IOPS: np.ones(len(value)), BANDWIDTH: length.astype(float)}
    weight = weights.get(measure, value.astype(float))
    number = np.bincount(second, minlength=last + 1)[:last]
    total = np.bincount(second, weight, last + 1)[:last].astype(float)
    present = np.arange(last)
    if measure not in weights:
        present = np.flatnonzero(number)
        total = total[present] / number[present]
    start = present * SECOND
    return Curve(start, start + SECOND, total)
