"""Calibrate device models to runs of fio on the bare devices, never to the cached run.

1. A device is described by the scenario of the run (the lab has one), or fitted to the bare runs by
   `hybridsim fit`; then the number of members is chosen by the rate at the largest queue depth.
2. The figures of an SSD's datasheet are replaced by the measured ones.
3. The device is simulated under the job of the bare run with the largest queue depth, and its times
   are scaled until the simulated IOPS equal the measured ones.
4. The time of a single read beyond that of the slow device's model becomes its path latency.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from hybridsim.answers.measurements.fio_json import load
from hybridsim.foundation.units import format_rate, format_time, parse_rate, parse_time
from hybridsim.scenario import Scenario
from hybridsim.studies import fit
from hybridsim.studies.fio import fio
from hybridsim.workloads.fio.job import jobs_of
from validate.twin import fast
from validate.twin.jobs import written
from validate.twin.record import SECOND, Bare, Record, RecordError
from validate.twin.toml_text import toml_of

Tables = dict[str, Any]
STREAM_BYTES = 128 * 1024
READS = "randread"
LONGER = {"seek_track_to_track", "seek_average", "seek_full", "read_latency", "write_latency"}
FEWER = {"rpm", "random_read_iops", "random_write_iops"}
ARM_TABLES = {"seek_table", "write_seek_table"}
MEMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24)
TURNS = 4  # iterations of the scaling; each reduces the error to about a tenth
CLOSE = 0.002  # relative error at which the scaling ends


@dataclass(frozen=True)
class Check:
    """The IOPS of a bare run, measured and simulated with the calibrated model."""

    side: str  # slow, fast
    pattern: str  # fio's rw
    depth: int
    measured_iops: float
    simulated_iops: float


@dataclass(frozen=True)
class Calibration:
    """Tables of a scenario, their errors on the bare runs, and notes on the method."""

    tables: Tables
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_cache(self, options: Mapping[str, Any]) -> Tables:
        """Return the tables of the whole machine, with a cache on the fast drive."""
        whole = deepcopy(self.tables)
        drive = whole.get("cache", {}).get("drive")
        whole["cache"] = dict(options)
        if drive is not None and options.get("kind") != "none":
            whole["cache"]["drive"] = drive
        return whole


def calibrated(record: Record) -> Calibration:
    """Return the calibrated devices of a run; raise RecordError without model and bare runs."""
    notes: list[str] = []
    tables = _described(record, notes)
    tables["backing"]["capacity"] = f"{_member_bytes(tables, record.origin_bytes)}B"
    has_cache = record.cache.get("kind") != "none"
    if has_cache and "drive" not in tables.get("cache", {}):
        tables["cache"] = {"drive": _fitted_fast(record, notes)}
    sides = {"slow": record.slow, "fast": record.fast if has_cache else ()}
    if sides["fast"] and tables["cache"]["drive"].get("kind") == "ssd":
        specified = tables["cache"]["drive"]
        tables["cache"]["drive"] = fast.measured(specified, sides["fast"])
        for kind in ("read", "write"):
            tables = _streamed(tables, kind, specified, sides["fast"])
        notes.append("fast device: latencies and rates as measured on the bare device")
    for side, bare in sides.items():
        if bare:
            tables = _paced(tables, side, bare, notes)
            if side == "slow" and record.machine is not None:
                tables = _with_path(tables, bare, notes)
        elif side == "slow" or has_cache:
            notes.append(f"{side} device: not calibrated, as there are no runs on the bare device")
    checks = [
        Check(
            side, run.pattern, run.depth, run.iops, simulated_iops(_single(tables, side), run.job)
        )
        for side, bare in sides.items()
        for run in map(_Measured.of, bare)
    ]
    return Calibration(tables, checks, notes)


def _paced(tables: Tables, side: str, bare: Sequence[Bare], notes: list[str]) -> Tables:
    """Return the tables with a device scaled to the IOPS of its deepest bare run."""
    deepest = max(map(_Measured.of, bare), key=lambda one: (one.calibrates, one.depth))
    times, off = 1.0, float("inf")
    tried = times
    for _ in range(TURNS):
        iops = simulated_iops(_single(slower(tables, side, tried), side), deepest.job)
        if abs(iops / deepest.iops - 1) < off:
            times, off = tried, abs(iops / deepest.iops - 1)
        if off < CLOSE:
            break
        tried *= iops / deepest.iops
    notes.append(
        f"{side} device: times scaled by {times:.3f}: its bare run at depth {deepest.depth} is "
        f"within {off:.1%} of the measured {deepest.iops:,.0f} IOPS"
    )
    return slower(tables, side, times)


def _streamed(tables: Tables, kind: str, specified: Tables, bare: Sequence[Bare]) -> Tables:
    """Return the tables with the sequential rate of the fast drive at which its stream is as fast.

    A stream of low queue depth waits for the latency of its requests, too: its measured rate is the
    least that the drive can have, and the specified rate is the most.
    """
    streams = [run for run in map(_Measured.of, bare) if run.pattern == kind]
    key = f"sequential_{kind}"
    if not streams:
        return tables
    run = max(streams, key=lambda one: (one.iops, one.depth))
    least, most = (parse_rate(str(drive[key])) for drive in (tables["cache"]["drive"], specified))
    rate = least
    for _ in range(TURNS):
        iops = simulated_iops(_single(tables, "fast"), run.job)
        if iops >= run.iops * (1 - CLOSE) or rate >= most:
            break
        rate = min(max(round(rate * run.iops / iops), rate + 1), most)
        tables = deepcopy(tables)
        tables["cache"]["drive"][key] = format_rate(rate)
    return tables


def _with_path(tables: Tables, bare: Sequence[Bare], notes: list[str]) -> Tables:
    """Return the tables with the path latency of the slow device, from its single reads."""
    single = [run for run in map(_Measured.of, bare) if run.calibrates and run.depth == 1]
    if not single:
        return tables
    modelled = simulated_iops(_single(tables, "slow"), single[0].job)
    path_ns = round(max(SECOND / single[0].iops - SECOND / modelled, 0.0))
    notes.append(f"slow device: a path latency of {format_time(path_ns)}, from single reads")
    return tables | {"backing": tables["backing"] | {"path_latency": format_time(path_ns)}}


def _single(tables: Tables, side: str) -> Tables:
    """Return the tables of a machine with one of the devices only."""
    backing = tables["backing"]
    if side == "fast":
        backing = {"kind": "single", "members": 1, "drive": tables["cache"]["drive"]}
    return {"backing": backing}


def _member_bytes(tables: Tables, origin_bytes: int) -> int:
    """Return the bytes of the origin on a member, over which its arm moves."""
    whole = tables["backing"] | {"capacity": "trace"}
    scenario = Scenario.loads(toml_of({"backing": whole}), "the slow device")
    return scenario.backing.member_bytes(origin_bytes)


def _described(record: Record, notes: list[str]) -> Tables:
    """Return the tables of the devices before the calibration."""
    if record.machine is not None:
        notes.append("slow device: the model of the machine's scenario")
        return deepcopy(dict(record.machine))
    if not record.slow:
        raise RecordError(f"{record.folder}: no runs on the bare slow device, and no model of it")
    fitted = fit.fit([str(bare.results) for bare in record.slow])
    tables: Tables = tomllib.loads(fitted.to_toml())
    notes += ["slow device: hybridsim fit of its bare runs", *fitted.notes]
    deepest = max((_Measured.of(bare) for bare in record.slow), key=lambda one: one.depth)
    if tables["backing"]["drive"]["kind"] == "hdd" and deepest.depth > 1:
        members = _members(tables, deepest)
        tables["backing"] |= {"kind": "stripe" if members > 1 else "single", "members": members}
        notes.append(f"slow device: {members} members match its rate at depth {deepest.depth} best")
    return tables


def _fitted_fast(record: Record, notes: list[str]) -> Tables:
    """Return the fast drive, fitted to its bare runs."""
    if not record.fast:
        raise RecordError(f"{record.folder}: no runs on the bare fast device, and no model of it")
    fitted = fit.fit([str(bare.results) for bare in record.fast])
    notes += ["fast device: hybridsim fit of its bare runs", *fitted.notes]
    drive: Tables = tomllib.loads(fitted.to_toml())["backing"]["drive"]
    return drive


@dataclass(frozen=True)
class _Measured:
    """A bare run: its job and measured IOPS."""

    job: str
    depth: int
    iops: float
    pattern: str

    @classmethod
    def of(cls, bare: Bare) -> _Measured:
        """Read the results of a bare run."""
        whole = load(str(bare.results), bare.results.read_text(encoding="utf-8"))
        parts = [part for job in whole["jobs"] for part in (job["read"], job["write"])]
        jobs = jobs_of(written(bare.job))
        depth = sum(job.depth for job in jobs)
        iops = sum(part["iops"] for part in parts)
        return cls(bare.job, depth, iops, str(jobs[0].specified.get("rw", "read")))

    @property
    def calibrates(self) -> bool:
        """Whether it has random reads, which calibrate a device."""
        return self.pattern == READS


def simulated_iops(tables: Tables, job: str) -> float:
    """Return the simulated IOPS of a bare run's job on the slow tier without a cache."""
    return _iops(toml_of(tables | {"cache": {"kind": "none"}}), job)


@cache
def _iops(text: str, job: str) -> float:
    result = fio(written(job), Scenario.loads(text, "the bare device"), cached=False)
    return sum(
        measured.count / (each.span_ns / 1e9)
        for each in result.reported
        for measured in each.directions[:2]
    )


def slower(tables: Tables, side: str, times: float) -> Tables:
    """Return the tables with the times of a device multiplied by `times`; sizes are unchanged."""
    scaled = deepcopy(tables)
    where = scaled["backing" if side == "slow" else "cache"]
    drive = Scenario.loads(toml_of({"backing": {"drive": where["drive"]}}), "").backing.drive
    values: Tables = drive.model_dump(by_alias=True, exclude_none=True, exclude={"like"})
    for key in LONGER & values.keys():
        values[key] = format_time(round(parse_time(values[key]) * times))
    for key in FEWER & values.keys():
        values[key] = max(round(values[key] / times), 1)
    for key in ARM_TABLES & values.keys():
        values[key] = [[at, ms * times] for at, ms in values[key]]
    if "seek_fit" in values:
        a, b, split, c, e = values["seek_fit"]
        values["seek_fit"] = [a * times, b * times, split, c * times, e * times]
    if values["kind"] == "ssd":  # sequential writes of 128 KiB cannot exceed random ones
        limit = values["random_write_iops"] * STREAM_BYTES
        values["sequential_write"] = format_rate(min(parse_rate(values["sequential_write"]), limit))
    where["drive"] = values
    return scaled


def _members(tables: Tables, run: _Measured) -> int:
    """Return the number of members with the smallest error of the IOPS of a bare run."""

    def error(members: int) -> float:
        kind = "stripe" if members > 1 else "single"
        backing = tables["backing"] | {"kind": kind, "members": members}
        return abs(simulated_iops(tables | {"backing": backing}, run.job) / run.iops - 1)

    return min(MEMBERS, key=error)


def summary(calibration: Calibration) -> str:
    """Return the measured and simulated random reads of each device by depth, in words."""
    parts = []
    for side in dict.fromkeys(one.side for one in calibration.checks):
        mine = [one for one in calibration.checks if (one.side, one.pattern) == (side, READS)]
        mine.sort(key=lambda one: one.depth)
        columns = zip(*((one.depth, one.measured_iops, one.simulated_iops) for one in mine))
        lists = (", ".join(f"{value:,.0f}" for value in values) for values in columns)
        parts.append("{}: at depth {}: {} random reads a second, simulated {}".format(side, *lists))
    return "; ".join(parts)


def as_json(calibration: Calibration) -> Tables:
    """Return the calibration as a JSON object."""
    whole: Tables = json.loads(json.dumps({"tables": calibration.tables}))
    checks = [vars(check) for check in calibration.checks]
    return whole | {"checks": checks, "notes": calibration.notes}
