"""Results of jobs as fio 3.33 writes them with --output-format=terse: one line per job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.show import fio_json
from hybridsim.workloads.fio.results import MIXED, NAMES, FioResult

VERSIONS = ("3", "4", "5")
PERCENTILES = 20  # fields; unused ones are 0%=0
WITH_TRIM = ("4", "5")
WITH_SAMPLES = "5"
LEVELS = ("1", "2", "4", "8", "16", "32", ">=64")


def text(result: FioResult, version: str = "3") -> str:
    """Return a line of fields for each reported job.

    Times are in us, rates in KiB/s; version 4 adds trims, version 5 the numbers of samples.
    """
    document = fio_json.document(result, with_bins=False)
    pairs = zip(document["jobs"], result.reported)
    return "".join(";".join(_fields(job, each, version)) + "\n" for job, each in pairs)


def _fields(job: Mapping[str, Any], each: Any, version: str) -> Iterator[str]:
    yield from (version, fio_json.FORM, job["jobname"], str(job["groupid"]), str(job["error"]))
    percents = each.jobs[0].percents
    names = NAMES if version in WITH_TRIM else NAMES[:2]
    wanted = [name for name, _ in each.reported if name in (*names, MIXED)]
    for name in wanted:
        yield from _direction(job[name], percents, version)
    yield from (f"{job['usr_cpu']:f}%", f"{job['sys_cpu']:f}%")
    yield from (str(job[name]) for name in ("ctx", "majf", "minf"))
    yield from (f"{job['iodepth_level'][level]:.1f}%" for level in LEVELS)
    # The nanoseconds count to the first bin of microseconds, as in fio.
    nanoseconds = sum(job["latency_ns"].values())
    for number, share in enumerate(job["latency_us"].values()):
        yield f"{share + (nanoseconds if number == 0 else 0):.2f}%"
    yield from (f"{share:.2f}%" for share in job["latency_ms"].values())
    description = each.jobs[0].specified.get("description")
    if description:
        yield description


def _direction(of: Mapping[str, Any], percents: tuple[float, ...], version: str) -> Iterator[str]:
    runtime = of["runtime"]
    yield from (str(of["io_kbytes"]), str(of["bw"]), str(int(of["iops"])), str(runtime))
    yield from _moments(of["slat_ns"])
    yield from _moments(of["clat_ns"])
    values = list(of["clat_ns"].get("percentile", {}).values()) or [0] * len(percents)
    for percent, value in zip(percents[:PERCENTILES], values):
        yield f"{percent:f}%={value // 1000}"
    yield from ["0%=0"] * (PERCENTILES - len(percents[:PERCENTILES]))
    yield from _moments(of["lat_ns"])
    share = min(100 * of["bw_mean"] / of["bw"], 100.0) if of["bw"] and of["bw_samples"] else 0.0
    yield from (str(of["bw_min"]), str(of["bw_max"]), f"{share:f}%")
    yield from (f"{of['bw_mean']:f}", f"{of['bw_dev']:f}")
    if version == WITH_SAMPLES:
        yield str(of["bw_samples"])
        yield from (str(of["iops_min"]), str(of["iops_max"]))
        yield from (f"{of['iops_mean']:f}", f"{of['iops_stddev']:f}", str(of["iops_samples"]))


def _moments(of: Mapping[str, Any]) -> Iterator[str]:
    """Yield minimum, maximum, mean and deviation of a latency, in us."""
    yield from (str(int(of["min"]) // 1000), str(int(of["max"]) // 1000))
    yield from (f"{of['mean'] / 1000:f}", f"{of['stddev'] / 1000:f}")
