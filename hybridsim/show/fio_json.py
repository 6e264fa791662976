"""Results of jobs as fio 3.33 writes them with --output-format=json or json+."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hybridsim.answers.measurements import fio_json
from hybridsim.answers.measurements.gathering import settled
from hybridsim.answers.measurements.measurement import Measurement
from hybridsim.foundation.arrays import Ints
from hybridsim.workloads.fio.conditions import Progress, criterion
from hybridsim.workloads.fio.job import SECOND, Job
from hybridsim.workloads.fio.pattern import SYNC
from hybridsim.workloads.fio.results import EDGES_NS, NAMES, FioResult, JobResult, Measured

FORM = "fio-3.33"
WINDOWS_MAX = 2048
# Options that are always written, as parsers expect them.
DEFAULTS = {"rw": "read", "bs": "4k", "iodepth": "1", "numjobs": "1"}


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
    results |= _depths(result) | _coarse(result)
    goal = job.goal
    results |= {"latency_depth": result.depth, "latency_target": goal.target_ns}
    results |= {"latency_percentile": goal.percent, "latency_window": goal.window_ns // 1000}
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


def _depths(result: JobResult) -> dict[str, Any]:
    names = ["1", "2", "4", "8", "16", "32", ">=64"]
    alone = [100.0 if name == "4" else 0.0 for name in ("0", "4", "8", "16", "32", "64", ">=64")]
    one_by_one = dict(zip(("0", "4", "8", "16", "32", "64", ">=64"), alone))
    return {
        "iodepth_level": dict(zip(names, shares(result.levels))),
        "iodepth_submit": one_by_one,
        "iodepth_complete": one_by_one,
    }


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


def _coarse(result: JobResult) -> dict[str, Any]:
    return {f"latency_{unit}": bins for unit, bins in coarse(result).items()}
