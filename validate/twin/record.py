"""A real run, with the values that its simulated twin needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridsim.foundation.errors import HybridsimError
from hybridsim.workloads.fio.job import Job, jobs_of
from validate.twin.jobs import written

SECOND = 10**9


class RecordError(HybridsimError):
    """A result folder that cannot be read, or is not complete enough for a twin."""

    exit_code = 2


@dataclass(frozen=True)
class Bare:
    """A run of fio on a device of the machine without a cache, for the calibration."""

    results: Path  # fio's JSON
    job: str  # text of its job file


@dataclass(frozen=True)
class Record:
    """One real run.  Times are seconds of uptime of the guest or host."""

    folder: Path
    title: str  # identifies the experiment: repeated runs have the same
    cache: Mapping[str, Any]  # table of a scenario, without the drive
    origin_bytes: int
    job: str  # text of the job file that fio ran
    created_s: float | None  # creation time of the cache
    machine: Mapping[str, Any] | None  # tables of a scenario, if the devices are models
    slow: Sequence[Bare] = ()
    fast: Sequence[Bare] = ()
    cached_device: str = ""  # its name in diskstats and in its trace
    trace: Path | None = None  # blktrace of the cached device
    throttle: str = "auto"  # of the slow device's queue, as a scenario's writeback_throttle
    before: Record | None = None  # the run that filled the cache
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """Name of the run in reports."""
        return self.folder.name if self.before is None else f"{self.before.name}, warm"

    @property
    def jobs(self) -> list[Job]:
        """The processes of fio."""
        return jobs_of(written(self.job))
