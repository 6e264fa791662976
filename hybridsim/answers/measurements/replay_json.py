"""The JSON of `hybridsim replay --json` (schema hybridsim.result/1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridsim.answers.intervals import Blocks
from hybridsim.answers.measurements.measurement import (
    BYTES,
    CACHE,
    HIT_RATIO,
    IOPS,
    LATENCY,
    REQUESTS,
    Curve,
    Measurement,
    Name,
)
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.histogram import Distribution, bin_of

SCHEMA = "hybridsim.result/1"
PHASE = "whole"


def detect(name: str, head: str) -> bool:
    """Return whether a file is the JSON of a replay."""
    return '"hybridsim.result/' in head


def read(name: str, text: str) -> Measurement:
    """Return the figures of the machine with its cache over the whole run.

    Raises MeasurementError if the JSON is not that of a replay.
    """
    try:
        whole = json.loads(text)
        if whole["schema"] != SCHEMA:
            raise MeasurementError(f"{name}: schema {whole['schema']}; only {SCHEMA} is supported")
        result = Measurement([name], [""], {0}, is_instant=True)
        phase = whole["phases"][PHASE]
        for what in ("read", "write"):
            _direction(result, what, phase[what])
        if phase["read"]["hit"] is not None:
            result.put("", CACHE, HIT_RATIO, phase["read"]["hit"])
        for counter, value in phase["counters"].items():
            result.put("", CACHE, counter, value)
        _curves(result, whole["series"], phase["end_ns"])
        result.kind = str(whole["inputs"]["scenario"].get("cache_kind", ""))
        result.requests_of = str(whole["inputs"]["trace"].get("requests_sha256", ""))
        blocks = whole.get("judgement", {}).get("blocks", {}).get("cached")
        result.blocks = blocks and Blocks.from_dict(blocks)
    except (ValueError, KeyError, TypeError) as error:
        raise MeasurementError(f"{name}: not the JSON of replay --json ({error!r})") from error
    return result


def _direction(measurement: Measurement, what: str, part: Mapping[str, Any]) -> None:
    if not part["n"]:
        return
    measurement.put("", what, REQUESTS, part["n"])
    measurement.put("", what, BYTES, part["bytes"])
    values = np.array([int(value) for value in part["bins"]], np.int64)
    bins = np.zeros_like(Distribution().bins)
    np.add.at(bins, bin_of(values), np.array(list(part["bins"].values()), np.int64))
    total = round(part["mean_ns"] * part["n"])
    measurement.put("", what, f"{LATENCY} mean", part["mean_ns"])
    measurement.put("", what, f"{LATENCY} max", part["max_ns"])
    for percent, value in part["p"].items():
        measurement.put("", what, f"{LATENCY} p{percent}", value)
    measurement.latencies[Name("", what, LATENCY)] = Distribution(
        part["n"], total, part["max_ns"], bins
    )


def _curves(measurement: Measurement, series: Mapping[str, Any], end_ns: int) -> None:
    start = np.array(series["start_ns"], np.int64)
    end = np.append(start[1:], max(end_ns, int(start[-1]) + 1)) if len(start) else start
    measurement.curves[Name("", "all", IOPS)] = Curve(
        start, end, np.array(series["iops"], np.float64)
    )
    hit = np.array([np.nan if each is None else each for each in series["hit"]])
    present = ~np.isnan(hit)
    measurement.curves[Name("", CACHE, HIT_RATIO)] = Curve(
        start[present], end[present], hit[present]
    )
