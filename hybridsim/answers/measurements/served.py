"""The JSON of `hybridsim serve --json` (schema hybridsim.served/1)."""

from __future__ import annotations

import json

import numpy as np

from hybridsim.answers.measurements.measurement import (
    BYTES,
    CACHE,
    HIT_RATIO,
    LATENCY,
    REQUESTS,
    Measurement,
    Samples,
)
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS

SCHEMA = "hybridsim.served/1"


def detect(name: str, head: str) -> bool:
    """Return whether a file is the JSON of a served cache."""
    return '"hybridsim.served/' in head


def read(name: str, text: str) -> Measurement:
    """Return the figures of the whole run, and the counters over its time.

    Raises MeasurementError if the JSON is not that of serve.
    """
    try:
        whole = json.loads(text)
        if whole["schema"] != SCHEMA:
            raise MeasurementError(f"{name}: schema {whole['schema']}; only {SCHEMA} is supported")
        result = Measurement([name], [""], {0}, is_instant=True, begin_s=0.0)
        for what in ("read", "write"):
            part = whole["requests"][what]
            if part["n"]:
                result.put("", what, REQUESTS, part["n"])
                result.put("", what, BYTES, part["bytes"])
                result.put("", what, f"{LATENCY} mean", part["mean_ns"])
        if whole["requests"]["read"]["n"]:
            result.put("", CACHE, HIT_RATIO, whole["read_hits"] / whole["requests"]["read"]["n"])
        for counter, value in whole["counters"].items():
            result.put("", CACHE, counter, value)
        series = {key: np.array(column, np.int64) for key, column in whole["series"].items()}
        times = series.pop("time_ns")
        for counter, column in series.items():
            result.counters[counter] = Samples(times, column)
        result.levels = set(LEVELS & series.keys())
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"{name}: not the JSON of serve --json ({error!r})") from error
    return result
