"""What a result folder tells of one real run, in the terms that its simulated twin needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybridsim.foundation.errors import HybridsimError

SECOND = 10**9


class RecordError(HybridsimError):
    """A result folder that cannot be read, or tells too little for a twin."""

    exit_code = 2


@dataclass(frozen=True)
class Bare:
    """fio on a device of the machine without any cache: what calibration rests on."""

    results: Path  # fio's JSON
    job: str  # a job file


@dataclass(frozen=True)
class Record:
    """One real run.  Times are seconds on the guest's or host's own clock of uptime."""

    folder: Path
    title: str  # of the experiment: repeated runs of one have the same
    cache: Mapping[str, Any]  # a scenario's table, without its drive
    origin_bytes: int
    job: str  # a job file, as fio ran it
    depth: int  # requests that fio kept under way
    created_s: float | None  # when the cache was made
    machine: Mapping[str, Any] | None  # tables of a scenario, where the devices are known models
    slow: Sequence[Bare] = ()
    fast: Sequence[Bare] = ()
    cached_device: str = ""  # as diskstats and its trace call it
    trace: Path | None = None  # blktrace of the cached device
    throttle: str = "auto"  # of the slow device's queue, as a scenario's writeback_throttle
    before: Record | None = None  # the run that filled the cache
    notes: Sequence[str] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.folder.name if self.before is None else f"{self.before.name}, warm"
