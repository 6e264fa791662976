"""The JSON that hybridsim itself writes of runs."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
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
    Samples,
    distribution,
)
from hybridsim.foundation.errors import MeasurementError

SERVED = "hybridsim.served/1"


class _Own(ABC):
    schema: str
    command: str

    def detect(self, name: str, head: str) -> bool:
        """Return whether a file is the JSON of this command."""
        return f'"{self.schema.partition("/")[0]}/' in head

    def read(self, name: str, text: str) -> Measurement:
        """Return the figures of the whole run; raise MeasurementError for any other JSON."""
        result = Measurement([name], [""], {0}, is_instant=True)
        try:
            whole = json.loads(text)
            if whole["schema"] != self.schema:
                raise MeasurementError(
                    f"{name}: schema {whole['schema']}; only {self.schema} is supported"
                )
            self._take(whole, result)
        except (ValueError, KeyError, TypeError) as error:
            raise MeasurementError(
                f"{name}: not the JSON of {self.command} --json ({error!r})"
            ) from error
        return result

    @abstractmethod
    def _take(self, whole: Mapping[str, Any], result: Measurement) -> None:
        """Put the figures of a whole document into the result."""


class Replayed(_Own):
    """The JSON of `hybridsim replay --json` (schema hybridsim.result/1).

    The figures are those of the machine with its cache over the whole run.
    """

    schema, command = "hybridsim.result/1", "replay"

    def _take(self, whole: Mapping[str, Any], result: Measurement) -> None:
        phase = whole["phases"]["whole"]
        for what in ("read", "write"):
            _put(result, what, phase[what])
        if phase["read"]["hit"] is not None:
            result.put("", CACHE, HIT_RATIO, phase["read"]["hit"])
        for counter, value in phase["counters"].items():
            result.put("", CACHE, counter, value)
        series = whole["series"]
        start = np.array(series["start_ns"], np.int64)
        ends = [max(phase["end_ns"], int(each) + 1) for each in start[-1:]]
        end = np.append(start[1:], np.array(ends, np.int64))
        iops = np.array(series["iops"], np.float64)
        hit = np.array(series["hit"], np.float64)
        there = ~np.isnan(hit)
        result.curves = {
            Name("", "all", IOPS): Curve(start, end, iops),
            Name("", CACHE, HIT_RATIO): Curve(start[there], end[there], hit[there]),
        }
        result.kind = str(whole["inputs"]["scenario"].get("cache_kind", ""))
        result.requests_of = str(whole["inputs"]["trace"].get("requests_sha256", ""))
        blocks = whole.get("judgement", {}).get("blocks", {}).get("cached")
        result.blocks = blocks and Blocks.from_dict(blocks)


class Served(_Own):
    """The JSON of `hybridsim serve --json` (schema hybridsim.served/1)."""

    schema, command = SERVED, "serve"

    def _take(self, whole: Mapping[str, Any], result: Measurement) -> None:
        result.begin_s = 0.0
        requests = whole["requests"]
        for what in ("read", "write"):
            _put(result, what, requests[what])
        if requests["read"]["n"]:
            result.put("", CACHE, HIT_RATIO, whole["read_hits"] / requests["read"]["n"])
        for counter, value in whole["counters"].items():
            result.put("", CACHE, counter, value)
        series = {key: np.array(column, np.int64) for key, column in whole["series"].items()}
        times = series.pop("time_ns")
        result.counters = {name: Samples(times, column) for name, column in series.items()}


def _put(measurement: Measurement, what: str, part: Mapping[str, Any]) -> None:
    """Add the figures of reads or writes; the distribution too, if there is one."""
    if not part["n"]:
        return
    measurement.put("", what, REQUESTS, part["n"])
    measurement.put("", what, BYTES, part["bytes"])
    measurement.put("", what, f"{LATENCY} mean", part["mean_ns"])
    if "bins" in part:
        measurement.put("", what, f"{LATENCY} max", part["max_ns"])
        for percent, value in part["p"].items():
            measurement.put("", what, f"{LATENCY} p{percent}", value)
        measurement.latencies[Name("", what, LATENCY)] = distribution(
            part["bins"], part["mean_ns"], part["max_ns"]
        )
