"""What the cache writes to its SSDs, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass

from hybridsim.metrics import Kind
from hybridsim.outcome import Phase

DAYS_PER_YEAR = 365.25


@dataclass(frozen=True)
class Wear:
    """Writes to the fast tier in one phase, and what they mean for its life."""

    bytes_written: int
    bytes_per_day: float
    per_host_write: float | None  # bytes written to SSD for each byte the host wrote
    read_per_written: float | None  # bytes hits took from SSD for each byte written to it
    endurance_bytes: int | None  # what the SSDs together are rated for
    years: float | None


def wear(phase: Phase, endurance_bytes: int | None) -> Wear | None:
    """Wear at the rate of this phase; None if the engine did not count writes to the SSD.

    A rating in bytes written counts what the drive is given, and has the flash's own
    rewriting in it already; so nothing is multiplied here.
    """
    written = phase.counters.get("fast_bytes_written")
    per_day = phase.per_day("fast_bytes_written")
    if written is None or per_day is None:
        return None
    host = phase.figures.bytes[Kind.WRITE]
    read = phase.counters.get("fast_bytes_read")
    return Wear(
        written,
        per_day,
        written / host if host else None,
        None if read is None or not written else read / written,
        endurance_bytes,
        endurance_bytes / per_day / DAYS_PER_YEAR if endurance_bytes and per_day else None,
    )
