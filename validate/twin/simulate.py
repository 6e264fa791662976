"""Simulate the twin of a real run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybridsim.answers.measurements.measurement import Measurement
from hybridsim.requests.source import NEVER
from hybridsim.scenario import Scenario
from hybridsim.scenario.building import THROTTLED
from hybridsim.show.fio_json import measurement
from hybridsim.studies.fio import fio
from hybridsim.workloads.fio.job import RealRun
from hybridsim.workloads.fio.requests import Pace
from validate.twin import traced, warm
from validate.twin.begin import begin_s
from validate.twin.calibrate import Calibration, calibrated
from validate.twin.jobs import written
from validate.twin.pace import loosened, paces
from validate.twin.record import SECOND, Record, RecordError
from validate.twin.toml_text import toml_of

RELOADED = {"dm-cache"}  # kinds that the simulator can stop and restart
AGELESS = ("none", "page")  # whose cache does nothing without requests
CLOSED = "the same fio job with the same offsets, in closed loop"
PACED = f"{CLOSED}; for the cache's counters, at the real run's own pace"
TRACED = f"{CLOSED}; for the cache's counters, at the arrival times in the blktrace"


@dataclass(frozen=True)
class Twin:
    """The measurements of the twin, its machine and its assumptions."""

    measured: Measurement  # in closed loop
    paced: Measurement | None  # at the real run's pace; None without its logs
    scenario: str  # TOML
    calibration: Calibration
    load: str  # description of its load
    began_s: float | None  # first request of the real run, on the clock of its samples
    lead_s: float  # age of the cache then
    assumptions: list[str]


def twin(record: Record, calibration: Calibration | None = None, later_ns: int = 0) -> Twin:
    """Simulate the twin of a run, on devices calibrated without its cache.

    Its load begins `later_ns` later than the real one, as a load that runs once more would.

    Raises RecordError if the run is not complete enough.
    """
    devices = calibration or calibrated(record)
    began_s = begin_s(record)
    assumptions = [*record.notes, *devices.notes]
    lead_s = 0.0
    if record.created_s is not None and began_s is not None:
        lead_s = max(began_s - record.created_s, 0.0)
    elif record.cache.get("kind") not in AGELESS:
        assumptions.append(
            "the creation time of the cache is unknown: the time of the first request is used"
        )
    tables = devices.with_cache(record.cache)
    is_one = int(tables["backing"].get("members", 4)) == 1
    is_throttled = is_one and record.cache.get("kind") in THROTTLED
    throttle = record.throttle if is_throttled else "auto"
    tables["backing"] = tables["backing"] | {"writeback_throttle": throttle}
    text = toml_of(tables)
    scenario = Scenario.loads(text, f"the twin of {record.name}")
    load = _Load.of(record, began_s, lead_s).later(later_ns)
    if record.before is not None:
        is_reloaded = record.cache.get("kind") in RELOADED and load.real.reload_ns < NEVER
        assumptions.append(warm.RELOADED if is_reloaded else warm.KEPT)
    closed = load.simulated(scenario, [])
    paced = load.simulated(scenario, load.pace) if load.pace else None
    how = load.how if paced else CLOSED
    assumptions += [load.note] if load.note else []
    return Twin(closed, paced, text, devices, how, began_s, lead_s, assumptions)


def _limits(record: Record) -> list[Pace]:
    return [loosened(pace) for pace in paces(record.folder, record.jobs)]


@dataclass(frozen=True)
class _Load:
    """The load of the twin, and for a warm cache the load before it."""

    job: str
    pace: list[Pace]  # of each process; empty without a cache
    name: str
    real: RealRun
    how: str = PACED
    note: str = ""  # on the trace

    @classmethod
    def of(cls, record: Record, began_s: float | None, lead_s: float) -> _Load:
        """Return the load of a run that began at an age of the cache of `lead_s`."""
        name = f"twin of {record.name}"
        has_cache = record.cache.get("kind") != "none"
        jobs = record.jobs
        pace = _limits(record) if has_cache else []
        if record.before is not None:
            return cls._second(record, record.before, began_s, lead_s, pace)
        real = RealRun(round(lead_s * SECOND))
        arrivals = traced.pace(record, jobs, float(pace[0].done[-1])) if pace else None
        if arrivals is not None:
            return cls(record.job, [arrivals[0]], name, real, how=TRACED, note=arrivals[1])
        return cls(record.job, pace, name, real)

    @classmethod
    def _second(
        cls,
        record: Record,
        before: Record,
        began_s: float | None,
        lead_s: float,
        pace: list[Pace],
    ) -> _Load:
        """Return both loads of a cache that was restarted between them."""
        first_s = begin_s(before)
        if first_s is None or began_s is None or before.created_s is None:
            raise RecordError(f"{record.folder}: the start times of the two loads are missing")
        length_s = warm.length_s(before.job)
        gap_s = max(began_s - first_s - length_s, 0.0)
        real = RealRun(
            lead_ns=round(max(first_s - before.created_s, 0.0) * SECOND),
            later=written(record.job),
            gap_ns=round(gap_s * SECOND),
        )
        if record.created_s is not None:
            reload_s = length_s + max(gap_s - lead_s, 0.0)
            real = replace(real, reload_ns=round(reload_s * SECOND))
        first = _limits(before)
        both = [*first, *pace] if first and pace else []
        return cls(before.job, both, f"twin of {record.name}", real)

    def later(self, later_ns: int) -> _Load:
        """Return the load, begun so much later."""
        return replace(self, real=replace(self.real, lead_ns=self.real.lead_ns + later_ns))

    def simulated(self, scenario: Scenario, pace: Sequence[Pace]) -> Measurement:
        """Return the measurement of the load; with two loads, of the second one."""
        result = fio(written(self.job), scenario, real=replace(self.real, paces=pace))
        if self.real.later is not None:
            return warm.second_load(result, self.real.lead_ns, self.name)
        return measurement(result, self.name)
