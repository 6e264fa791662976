"""Samples of the counters of `hybridsim serve`: a line of names, then one of uptime and values."""

from __future__ import annotations

import numpy as np

from hybridsim.answers.measurements.measurement import SECOND, Measurement, Samples
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS

FIRST = "uptime hits misses "


def detect(name: str, head: str) -> bool:
    """Return whether a file holds such samples."""
    return head.startswith(FIRST)


def read(name: str, text: str) -> Measurement:
    """Return the counters over uptime; raise MeasurementError for a line unlike the header."""
    header, *lines = [line.split() for line in text.splitlines() if line.strip()]
    try:
        table = [[float(row[0]), *map(int, row[1:])] for row in lines]
        columns = np.array(table).reshape(len(lines), len(header)).T
    except ValueError as error:
        raise MeasurementError(f"{name}: a line does not match the header ({error})") from error
    if not lines:
        raise MeasurementError(f"{name}: no samples below the header")
    time_ns = np.rint(columns[0] * SECOND).astype(np.int64)
    result = Measurement([name])
    for counter, values in zip(header[1:], columns[1:]):
        result.counters[counter] = Samples(time_ns, values.astype(np.int64))
    result.levels = set(LEVELS & set(header))
    return result
