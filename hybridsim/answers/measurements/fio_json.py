"""JSON of fio 2.x and 3.x, json and json+.  `hybridsim fio` writes it too, with more keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    BYTES,
    CACHE,
    COMPLETION,
    DIRECTIONS,
    IOPS,
    LATENCY,
    MICROSECOND,
    MILLISECOND,
    REQUESTS,
    RUNTIME,
    SUBMISSION,
    Curve,
    Measurement,
    Name,
    Samples,
    distribution,
)
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.reading import objects

KINDS = (LATENCY, COMPLETION, SUBMISSION)
MOMENTS = ("mean", "stddev", "min", "max")
LARGEST_BYTES = 1 << 28  # of a file; json+ with all bins is 100 times smaller
MIXED = "mixed"  # reads, writes and trims together: unified_rw_reporting
OWN = "hybridsim"  # the key of figures of a simulated run that fio does not have


def detect(name: str, head: str) -> bool:
    """Return whether a file is fio's JSON, which messages may precede."""
    return '"fio version"' in head and "{" in head


def load(name: str, text: str) -> dict[str, Any]:
    """Return the JSON document; `options` of each job are its own and the global ones.

    What a job of one direction reports as mixed is under that direction.

    Other output may stand before and after it; of several, as of --status-interval, it is the last.
    Raises MeasurementError if the text is not fio's JSON.
    """
    try:
        whole = objects(text)[-1]
        common = whole.get("global options", {})
        for job in whole["jobs"]:
            job["options"] = {**common, **job.get("job options", {})}
            rw = job["options"].get("rw", job["options"].get("readwrite", DIRECTIONS[0]))
            only = str(rw).partition(":")[0].removeprefix("rand")
            if MIXED in job and only in DIRECTIONS:
                job.setdefault(only, job[MIXED])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise MeasurementError(
            f"{name}: not fio's JSON: write it with --output-format=json ({error})"
        ) from error
    return whole


def read(name: str, text: str) -> Measurement:
    """Parse a file; raise MeasurementError if it is not fio's JSON."""
    return measured(name, load(name, text))


def measured(name: str, whole: Mapping[str, Any]) -> Measurement:
    """Parse a loaded document."""
    result = Measurement([name], version=str(whole.get("fio version", "")).removeprefix("fio-"))
    for job in whole["jobs"]:
        title = str(job.get("jobname", ""))
        if title in result.jobs:
            title = f"{title} ({result.jobs.count(title) + 1})"
        result.jobs.append(title)
        result.groups.add(int(job.get("groupid", 0)))
        apart = [what for what in DIRECTIONS if what in job]
        for what in apart or [MIXED]:
            part = job.get(what)
            if part and part.get("total_ios", part.get("io_bytes", 0)):
                _direction(result, title, what, part)
        syncs = job.get("sync") or {}
        latency, unit_ns = in_ns(syncs, LATENCY)
        if count := latency.get("N") or syncs.get("total_ios"):  # fdatasync has no total_ios
            result.put(title, "sync", REQUESTS, count)
            _latency(result, title, "sync", LATENCY, latency, unit_ns)
    _own(result, whole.get(OWN) or {})
    return result


def _direction(measurement: Measurement, job: str, what: str, part: Mapping[str, Any]) -> None:
    moved = part.get("io_bytes", 1024 * part.get("io_kbytes", 0))
    measurement.put(job, what, IOPS, part["iops"])
    measurement.put(job, what, BANDWIDTH, part.get("bw_bytes", 1024 * part.get("bw", 0)))
    measurement.put(job, what, BYTES, moved)
    measurement.put(job, what, RUNTIME, part["runtime"] * MILLISECOND)
    if "total_ios" in part:
        measurement.put(job, what, REQUESTS, part["total_ios"])
    for kind in KINDS:
        _latency(measurement, job, what, kind, *in_ns(part, kind))


def in_ns(part: Mapping[str, Any], kind: str) -> tuple[Mapping[str, Any], int]:
    """Return a latency's object and its unit: fio 2.x reports microseconds."""
    if part.get(f"{kind}_ns"):
        return part[f"{kind}_ns"], 1
    return part.get(kind) or {}, MICROSECOND


def _latency(
    measurement: Measurement, job: str, what: str, kind: str, part: Mapping[str, Any], unit_ns: int
) -> None:
    if not part.get("max"):
        return
    for moment in MOMENTS:
        measurement.put(job, what, f"{kind} {moment}", part[moment] * unit_ns)
    for percent, value in (part.get("percentile") or {}).items():
        number = float(percent)
        if number:  # fio 2.x pads the list with zeros
            measurement.put(job, what, f"{kind} p{number:g}", value * unit_ns)
    if part.get("bins"):
        measurement.latencies[Name(job, what, kind)] = distribution(
            part["bins"], part["mean"] * unit_ns, part["max"] * unit_ns, unit_ns
        )


def _own(measurement: Measurement, own: Mapping[str, Any]) -> None:
    """Add the rates and counters over time that the JSON of a simulated run contains."""
    for each in own.get("windows", ()):
        for measure in (IOPS, BANDWIDTH):
            rate = each[measure.lower()]
            start = np.arange(len(rate["value"]), dtype=np.int64) * rate["width_ns"]
            name = Name(measurement.jobs[each["job"]], each["direction"], measure)
            value = np.array(rate["value"], np.float64)
            measurement.curves[name] = Curve(start, start + rate["width_ns"], value)
    columns = {name: np.array(each, np.int64) for name, each in (own.get(CACHE) or {}).items()}
    times = columns.pop("time_ns", None)
    if times is not None:
        measurement.counters |= {name: Samples(times, each) for name, each in columns.items()}
