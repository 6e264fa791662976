"""Device models from runs of fio on the bare slow and fast device, never on the cached one.

A device is what the machine's own description says (a lab knows its models), else what `hybridsim
fit` makes of the bare runs, an array with as many members as explain its rate in a crowd.  Then it
is simulated under the deepest bare run's own job, and its times are made longer or shorter until
its IOPS are the measured ones.  Of an SSD all figures of a datasheet are those that were measured.
What a single read takes beyond the slow device's described model is the way to it and back.
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
TURNS = 4  # of the search for the times; each is off by a tenth of what the one before was
CLOSE = 0.002


@dataclass(frozen=True)
class Check:
    """A bare run beside the model that was calibrated to such runs."""

    side: str  # slow, fast
    pattern: str  # fio's rw
    depth: int
    measured_iops: float
    simulated_iops: float


@dataclass(frozen=True)
class Calibration:
    """Tables of a scenario, how well they give the bare runs, and how they were found."""

    tables: Tables
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def with_cache(self, said: Mapping[str, Any]) -> Tables:
        """Return the tables of the whole machine, with such a cache on the fast drive."""
        whole = deepcopy(self.tables)
        drive = whole.get("cache", {}).get("drive")
        whole["cache"] = dict(said)
        if drive is not None and said.get("kind") != "none":
            whole["cache"]["drive"] = drive
        return whole


def calibrated(record: Record) -> Calibration:
    """Return the machine of a run without its cache; RecordError where nothing tells of it."""
    notes: list[str] = []
    tables = _described(record, notes)
    tables["backing"]["capacity"] = f"{_member_bytes(tables, record.origin_bytes)}B"
    has_cache = record.cache.get("kind") != "none"
    if has_cache and "drive" not in tables.get("cache", {}):
        tables["cache"] = {"drive": _fitted_fast(record, notes)}
    sides = {"slow": record.slow, "fast": record.fast if has_cache else ()}
    if sides["fast"] and tables["cache"]["drive"].get("kind") == "ssd":
        tables["cache"]["drive"] = fast.measured(tables["cache"]["drive"], sides["fast"])
        notes.append("fast device: latencies and rates as measured on it alone")
    for side, bare in sides.items():
        if bare:
            tables = _paced(tables, side, bare, notes)
            if side == "slow" and record.machine is not None:
                tables = _with_path(tables, bare, notes)
        elif side == "slow" or has_cache:
            notes.append(f"{side} device: not calibrated, no run of fio on it alone is here")
    checks = [
        Check(side, run.pattern, run.depth, run.iops, simulated_iops(_alone(tables, side), run.job))
        for side, bare in sides.items()
        for run in map(_Measured.of, bare)
    ]
    return Calibration(tables, checks, notes)


def _paced(tables: Tables, side: str, bare: Sequence[Bare], notes: list[str]) -> Tables:
    """Return the tables with a device so slow that its deepest bare run is as measured."""
    deepest = max(map(_Measured.of, bare), key=lambda one: (one.calibrates, one.depth))
    times, off = 1.0, float("inf")
    tried = times
    for _ in range(TURNS):
        found = simulated_iops(_alone(slower(tables, side, tried), side), deepest.job)
        if abs(found / deepest.iops - 1) < off:
            times, off = tried, abs(found / deepest.iops - 1)
        if off < CLOSE:
            break
        tried *= found / deepest.iops
    notes.append(
        f"{side} device: {times:.3f} times as slow as that, so that its bare run at depth "
        f"{deepest.depth} is within {off:.1%} of the measured {deepest.iops:,.0f} IOPS"
    )
    return slower(tables, side, times)


def _with_path(tables: Tables, bare: Sequence[Bare], notes: list[str]) -> Tables:
    """Return the tables with the way to the slow device that its single reads show."""
    single = [run for run in map(_Measured.of, bare) if run.calibrates and run.depth == 1]
    if not single:
        return tables
    modelled = simulated_iops(_alone(tables, "slow"), single[0].job)
    path_ns = round(max(SECOND / single[0].iops - SECOND / modelled, 0.0))
    notes.append(f"slow device: a way of {format_time(path_ns)} there and back, by single reads")
    return tables | {"backing": tables["backing"] | {"path_latency": format_time(path_ns)}}


def _alone(tables: Tables, side: str) -> Tables:
    """Return a machine of one device."""
    backing = tables["backing"]
    if side == "fast":
        backing = {"kind": "single", "members": 1, "drive": tables["cache"]["drive"]}
    return {"backing": backing}


def _member_bytes(tables: Tables, origin_bytes: int) -> int:
    """Return what a member holds of the origin: its arm crosses just that."""
    whole = tables["backing"] | {"capacity": "trace"}
    scenario = Scenario.loads(toml_of({"backing": whole}), "the slow device")
    return scenario.backing.member_bytes(origin_bytes)


def _described(record: Record, notes: list[str]) -> Tables:
    """Return what is known of the devices before anything is calibrated."""
    if record.machine is not None:
        notes.append("slow device: the model that the machine's own description states")
        return deepcopy(dict(record.machine))
    if not record.slow:
        raise RecordError(f"{record.folder}: no runs on the bare slow device, and no model of it")
    found = fit.fit([str(bare.results) for bare in record.slow])
    tables: Tables = tomllib.loads(found.to_toml())
    notes += ["slow device: hybridsim fit of its bare runs", *found.notes]
    deepest = max((_Measured.of(bare) for bare in record.slow), key=lambda one: one.depth)
    if tables["backing"]["drive"]["kind"] == "hdd" and deepest.depth > 1:
        members = _members(tables, deepest)
        tables["backing"] |= {"kind": "stripe" if members > 1 else "single", "members": members}
        notes.append(f"slow device: {members} members explain its rate at depth {deepest.depth}")
    return tables


def _fitted_fast(record: Record, notes: list[str]) -> Tables:
    """Return the fast drive as `hybridsim fit` finds it."""
    if not record.fast:
        raise RecordError(f"{record.folder}: no runs on the bare fast device, and no model of it")
    found = fit.fit([str(bare.results) for bare in record.fast])
    notes += ["fast device: hybridsim fit of its bare runs", *found.notes]
    drive: Tables = tomllib.loads(found.to_toml())["backing"]["drive"]
    return drive


@dataclass(frozen=True)
class _Measured:
    """A bare run: its job, and the IOPS that fio measured."""

    job: str
    depth: int
    iops: float
    pattern: str

    @classmethod
    def of(cls, bare: Bare) -> _Measured:
        """Read it."""
        whole = load(str(bare.results), bare.results.read_text(encoding="utf-8"))
        parts = [part for job in whole["jobs"] for part in (job["read"], job["write"])]
        jobs = jobs_of(written(bare.job))
        depth = sum(job.depth for job in jobs)
        iops = sum(part["iops"] for part in parts)
        return cls(bare.job, depth, iops, str(jobs[0].said.get("rw", "read")))

    @property
    def calibrates(self) -> bool:
        """Whether it is of random reads, by which a device is calibrated."""
        return self.pattern == READS


def simulated_iops(tables: Tables, job: str) -> float:
    """Return the IOPS of a bare run's job on the slow tier alone."""
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
    """Return the tables with a device so many times as slow; volumes are what they are."""
    found = deepcopy(tables)
    where = found["backing" if side == "slow" else "cache"]
    drive = Scenario.loads(toml_of({"backing": {"drive": where["drive"]}}), "").backing.drive
    told: Tables = drive.model_dump(by_alias=True, exclude_none=True, exclude={"like"})
    for key in LONGER & told.keys():
        told[key] = format_time(round(parse_time(told[key]) * times))
    for key in FEWER & told.keys():
        told[key] = max(round(told[key] / times), 1)
    for key in ARM_TABLES & told.keys():
        told[key] = [[at, ms * times] for at, ms in told[key]]
    if "seek_fit" in told:
        a, b, split, c, e = told["seek_fit"]
        told["seek_fit"] = [a * times, b * times, split, c * times, e * times]
    if told["kind"] == "ssd":  # random writes cannot be fewer than sequential ones of 128 KiB
        most = told["random_write_iops"] * STREAM_BYTES
        told["sequential_write"] = format_rate(min(parse_rate(told["sequential_write"]), most))
    where["drive"] = told
    return found


def _members(tables: Tables, run: _Measured) -> int:
    """Return the number of members whose rate in a crowd is nearest to the measured one."""

    def off(members: int) -> float:
        kind = "stripe" if members > 1 else "single"
        backing = tables["backing"] | {"kind": kind, "members": members}
        return abs(simulated_iops(tables | {"backing": backing}, run.job) / run.iops - 1)

    return min(MEMBERS, key=off)


def summary(found: Calibration) -> str:
    """Return the random reads of each device in words, by depth."""
    parts = []
    for side in dict.fromkeys(one.side for one in found.checks):
        mine = [one for one in found.checks if (one.side, one.pattern) == (side, READS)]
        mine.sort(key=lambda one: one.depth)
        columns = zip(*((one.depth, one.measured_iops, one.simulated_iops) for one in mine))
        told = (", ".join(f"{value:,.0f}" for value in values) for values in columns)
        parts.append("{}: at depth {}: {} random reads a second, simulated {}".format(side, *told))
    return "; ".join(parts)


def as_json(found: Calibration) -> Tables:
    """Return it as what JSON can hold."""
    whole: Tables = json.loads(json.dumps({"tables": found.tables}))
    checks = [vars(check) for check in found.checks]
    return whole | {"checks": checks, "notes": found.notes}
