"""Results of jobs as fio 3.33 writes them with --output-format=json, json+ or terse."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hybridsim.answers.measurements import fio_json, settled
from hybridsim.answers.measurements.measurement import Measurement
from hybridsim.foundation.arrays import Ints
from hybridsim.workloads.fio.conditions import Progress, criterion
from hybridsim.workloads.fio.job import SECOND, Job
from hybridsim.workloads.fio.pattern import SYNC
from hybridsim.workloads.fio.results import (
    EDGES_NS,
    MIXED,
    NAMES,
    FioResult,
    JobResult,
    Measured,
)

FORM = "fio-3.33"
WINDOWS_MAX = 2048
DEPTHS = ("1", "2", "4", "8", "16", "32", ">=64")
# Options that are always written, as parsers expect them.
DEFAULTS = {"rw": "read", "bs": "4k", "iodepth": "1", "numjobs": "1"}
VERSIONS = ("3", "4", "5")
PERCENTILES = 20  # fields; unused ones are 0%=0
WITH_TRIM = ("4", "5")
WITH_SAMPLES = "5"


def document(result: FioResult, with_bins: bool) -> dict[str, Any]:
    """Return the document; its timestamps count from 1970-01-01, when the simulation begins."""
    end_ms = result.end_ns // 10**6
    whole: dict[str, Any] = {
        "fio version": FORM,
        "timestamp": end_ms // 1000,
        "timestamp_ms": end_ms,
        "time": "simulated",
        "hybridsim": {
            "machine": result.machine,
            "notes": result.notes,
            "windows": list(_windows(result)),
            "cache": {name: values.tolist() for name, values in result.counters.items()},
        },
    }
    common = {name: option.value for name, option in result.written.common.items()}
    if common:
        whole["global options"] = common
    whole["jobs"] = [_job(each, with_bins) for each in result.reported]
    whole["disk_util"] = []
    return whole


def text(result: FioResult, with_bins: bool) -> str:
    """Return the document as text."""
    return json.dumps(document(result, with_bins), indent=2) + "\n"


def measurement(result: FioResult, name: str) -> Measurement:
    """Return the results as a measurement, for a comparison with another run."""
    return settled(fio_json.measured(name, document(result, with_bins=True)))


def _windows(result: FioResult) -> Iterator[dict[str, Any]]:
    """Yield the IOPS and bandwidth of each job in windows of equal length, as in its logs."""
    for number, each in enumerate(result.reported):
        for name, measured in each.reported:
            if measured.count:
                done, moved = (w.whole(each.span_ns) for w in (measured.done, measured.moved))
                wider = -(-max(len(done), len(moved)) // WINDOWS_MAX)
                yield {
                    "job": number,
                    "direction": name,
                    "iops": _over(done, measured.done.width_ns, wider),
                    "bandwidth": _over(moved, measured.moved.width_ns, wider),
                }


def _over(sums: Ints, width_ns: int, wider: int) -> dict[str, Any]:
    """Return rates per second, after merging groups of `wider` windows."""
    width_ns *= wider
    kept = sums[: len(sums) // wider * wider].reshape(-1, wider).sum(axis=1)
    return {"width_ns": width_ns, "value": (kept * (SECOND / width_ns)).round(3).tolist()}


def _job(result: JobResult, with_bins: bool) -> dict[str, Any]:
    job = result.jobs[0]
    results: dict[str, Any] = {
        "jobname": job.name,
        "groupid": job.kin,
        "error": result.error,
        "eta": 0,
        "elapsed": -(-result.end_ns // SECOND),
        "job options": {"name": job.name, **DEFAULTS, **job.specified},
    }
    reported = {
        name: _direction(name, result, measured, job, with_bins)
        for name, measured in result.reported
    }
    results |= {name: reported.pop(name) for name in NAMES if name in reported}
    syncs = result.directions[SYNC]
    if job.reports_apart:
        results["sync"] = {
            "total_ios": result.counts[SYNC],
            "lat_ns": _latency(syncs, job, with_bins),
        }
    results |= reported  # the sum, if it is reported
    results |= {"job_runtime": result.span_ms * len(result.jobs)}
    results |= {"usr_cpu": 0.0, "sys_cpu": 0.0, "ctx": 0, "majf": 0, "minf": 0}
    one_by_one = dict.fromkeys(("0", "4", "8", "16", "32", "64", ">=64"), 0.0) | {"4": 100.0}
    results |= {"iodepth_level": dict(zip(DEPTHS, shares(result.levels)))}
    results |= {"iodepth_submit": one_by_one, "iodepth_complete": one_by_one}
    results |= {f"latency_{unit}": bins for unit, bins in coarse(result).items()}
    results |= {"latency_depth": result.depth, "latency_target": job.target_ns}
    results |= {"latency_percentile": job.percent, "latency_window": job.window_ns // 1000}
    if job.steady.of:
        results["steadystate"] = _steady(result.checked[0])
    return results


def _steady(progress: Progress) -> dict[str, Any]:
    """Return the criterion of steadystate, and the last seconds that it considered."""
    steady = progress.steady
    sign = "%" if steady.is_percent else ""
    name = f"{steady.of}_slope" if steady.is_slope else steady.of
    iops, bandwidth = progress.last
    values = iops if steady.of == "iops" else bandwidth
    plain = replace(steady, is_percent=False)
    extreme = criterion(plain, values) if values else 0.0
    padding = [0] * (steady.seconds - len(iops))
    return {
        "ss": f"{name}:{steady.limit:f}{sign}",
        "duration": steady.seconds,
        "attained": int(progress.is_attained),
        "criterion": f"{progress.criterion:f}{sign}",
        "max_deviation": 0.0 if steady.is_slope else extreme,
        "slope": extreme if steady.is_slope else 0.0,
        "data": {
            "bw_mean": int(sum(bandwidth) / steady.seconds),
            "iops_mean": int(sum(iops) / steady.seconds),
            "iops": [int(each) for each in iops] + padding,
            "bw": [int(each) for each in bandwidth] + padding,
        },
    }


def _direction(
    name: str, result: JobResult, measured: Measured, job: Job, with_bins: bool
) -> dict[str, Any]:
    seconds = result.span_of(name) / SECOND
    span_ms = result.span_ms_of(name) if measured.count else 0
    rate = measured.moved_bytes / seconds
    moved = _moments(measured.moved.whole(result.span_ns) if measured.count else [])
    done = _moments(measured.done.whole(result.span_ns) if measured.count else [])
    to_kib_s = SECOND / measured.moved.width_ns / 1024
    per_s = SECOND / measured.done.width_ns
    none: dict[str, float] = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    clat = _latency(measured, job, with_bins)
    with_lat = job.specified.get("lat_percentiles", "0") != "0"
    return {
        "io_bytes": measured.moved_bytes,
        "io_kbytes": measured.moved_bytes >> 10,
        "bw_bytes": int(rate),
        "bw": int(rate) >> 10,
        "iops": round(measured.count / seconds, 6),
        "runtime": span_ms,
        "total_ios": measured.count,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": none,  # submission takes no time in the simulation
        "clat_ns": clat,
        "lat_ns": clat if with_lat else {k: value for k, value in clat.items() if k in none},
        "bw_min": int(moved["min"] * to_kib_s),
        "bw_max": int(moved["max"] * to_kib_s),
        "bw_agg": 100.0 if measured.count else 0.0,
        "bw_mean": round(moved["mean"] * to_kib_s, 6),
        "bw_dev": round(moved["stddev"] * to_kib_s, 6),
        "bw_samples": int(moved["N"]),
        "iops_min": int(done["min"] * per_s),
        "iops_max": int(done["max"] * per_s),
        "iops_mean": round(done["mean"] * per_s, 6),
        "iops_stddev": round(done["stddev"] * per_s, 6),
        "iops_samples": int(done["N"]),
    }


def _latency(measured: Measured, job: Job, with_bins: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "min": measured.min_ns,
        "max": measured.latency.max_ns,
        "mean": round(measured.mean_ns, 6),
        "stddev": round(measured.deviation_ns, 6),
        "N": measured.count,
    }
    if not measured.count:
        return result
    result["percentile"] = {f"{p:.6f}": value for p, value in percentiles(measured, job).items()}
    if with_bins:
        result["bins"] = measured.latency.by_value()
    return result


def percentiles(measured: Measured, job: Job) -> dict[float, int]:
    """Return the latency at each requested percentile: the middle of its bin, as in fio."""
    bins = measured.latency.by_value()
    values, counts = list(bins), np.cumsum(list(bins.values()))
    result = {}
    for percent in job.percents:
        place = int(np.searchsorted(counts, percent / 100 * measured.count))
        result[percent] = int(values[min(place, len(values) - 1)])
    return result


def _moments(sums: Any) -> Mapping[str, float]:
    array = np.asarray(sums, np.float64)
    if not len(array):
        return {"min": 0.0, "max": 0.0, "mean": 0.0, "stddev": 0.0, "N": 0}
    deviation = float(array.std(ddof=1)) if len(array) > 1 else 0.0
    return {
        "min": float(array.min()), "max": float(array.max()), "mean": float(array.mean()),
        "stddev": deviation, "N": len(array),
    }  # fmt: skip


def shares(counts: Any) -> list[float]:
    """Return counts as percentages; any count above 0 gives at least 0.1, as in fio."""
    total = int(np.sum(counts))
    result = [100 * int(count) / total if total else 0.0 for count in counts]
    return [round(max(share, 0.1) if share else 0.0, 6) for share in result]


def coarse(result: JobResult) -> dict[str, dict[str, float]]:
    """Return the share of requests in each of fio's coarse bins, by unit."""
    total = int(result.coarse.sum())
    results: dict[str, dict[str, float]] = {"ns": {}, "us": {}, "ms": {}}
    for count, edge in zip(result.coarse.tolist(), [*EDGES_NS.tolist(), 0]):
        share = round(100 * count / total, 6) if total else 0.0
        share = max(share, 0.01) if count else share
        unit, per = ("ns", 1) if 0 < edge <= 1000 else ("us", 10**3)
        if edge == 0 or edge > 10**6:
            unit, per = "ms", 10**6
        results[unit][str(edge // per) if edge else ">=2000"] = share
    return results


# terse: one line per job.


def terse(result: FioResult, version: str = "3") -> str:
    """Return a line of fields for each reported job.

    Times are in us, rates in KiB/s; version 4 adds trims, version 5 the numbers of samples.
    """
    jobs = document(result, with_bins=False)["jobs"]
    pairs = zip(jobs, result.reported)
    return "".join(";".join(_fields(job, each, version)) + "\n" for job, each in pairs)


def _fields(job: Mapping[str, Any], each: Any, version: str) -> Iterator[str]:
    yield from (version, FORM, job["jobname"], str(job["groupid"]), str(job["error"]))
    percents = each.jobs[0].percents
    names = NAMES if version in WITH_TRIM else NAMES[:2]
    wanted = [name for name, _ in each.reported if name in (*names, MIXED)]
    for name in wanted:
        yield from _terse_direction(job[name], percents, version)
    yield from (f"{job['usr_cpu']:f}%", f"{job['sys_cpu']:f}%")
    yield from (str(job[name]) for name in ("ctx", "majf", "minf"))
    yield from (f"{share:.1f}%" for share in job["iodepth_level"].values())
    # The nanoseconds count to the first bin of microseconds, as in fio.
    nanoseconds = sum(job["latency_ns"].values())
    for number, share in enumerate(job["latency_us"].values()):
        yield f"{share + (nanoseconds if number == 0 else 0):.2f}%"
    yield from (f"{share:.2f}%" for share in job["latency_ms"].values())
    description = each.jobs[0].specified.get("description")
    if description:
        yield description


def _terse_direction(
    of: Mapping[str, Any], percents: tuple[float, ...], version: str
) -> Iterator[str]:
    runtime = of["runtime"]
    yield from (str(of["io_kbytes"]), str(of["bw"]), str(int(of["iops"])), str(runtime))
    yield from _terse_moments(of["slat_ns"])
    yield from _terse_moments(of["clat_ns"])
    values = list(of["clat_ns"].get("percentile", {}).values()) or [0] * len(percents)
    for percent, value in zip(percents[:PERCENTILES], values):
        yield f"{percent:f}%={value // 1000}"
    yield from ["0%=0"] * (PERCENTILES - len(percents[:PERCENTILES]))
    yield from _terse_moments(of["lat_ns"])
    share = min(100 * of["bw_mean"] / of["bw"], 100.0) if of["bw"] and of["bw_samples"] else 0.0
    yield from (str(of["bw_min"]), str(of["bw_max"]), f"{share:f}%")
    yield from (f"{of['bw_mean']:f}", f"{of['bw_dev']:f}")
    if version == WITH_SAMPLES:
        yield str(of["bw_samples"])
        yield from (str(of["iops_min"]), str(of["iops_max"]))
        yield from (f"{of['iops_mean']:f}", f"{of['iops_stddev']:f}", str(of["iops_samples"]))


def _terse_moments(of: Mapping[str, Any]) -> Iterator[str]:
    """Yield minimum, maximum, mean and deviation of a latency, in us."""
    yield from (str(int(of["min"]) // 1000), str(int(of["max"]) // 1000))
    yield from (f"{of['mean'] / 1000:f}", f"{of['stddev'] / 1000:f}")
