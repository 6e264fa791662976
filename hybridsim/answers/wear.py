"""What the cache writes to its SSDs, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass

from hybridsim.answers.metrics import Kind
from hybridsim.answers.outcome import Phase

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
    drive_writes_per_day: float | None  # of the drives' whole capacity
    in_flash: (
        float | None
    )  # bytes the flash wrote per byte written to the SSD, where that is simulated
    cycles_per_year: float | None  # of each block, as the flash wrote


def wear(
    phase: Phase, endurance_bytes: int | None, capacity_bytes: int | None = None
) -> Wear | None:
    """Wear at the rate of this phase; None if the engine did not count writes to the SSD.

    A rating in bytes written counts host writes, and includes the flash's own
    rewriting in it already; so the years are not divided by what the flash wrote.
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
        per_day / capacity_bytes if capacity_bytes else None,
        *_in_flash(phase, per_day, capacity_bytes),
    )


def _in_flash(
    phase: Phase, per_day: float, capacity_bytes: int | None
) -> tuple[float | None, float | None]:
    """Return the flash's own write amplification, and the cycles of a year at this rate."""
    placed = phase.counters.get("fast_bytes_placed", 0)
    if not placed:
        return None, None
    amplification = (placed + phase.counters.get("fast_bytes_moved", 0)) / placed
    if not capacity_bytes:
        return amplification, None
    return amplification, per_day * amplification * DAYS_PER_YEAR / capacity_bytes
