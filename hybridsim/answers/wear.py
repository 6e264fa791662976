"""SSD wear: the bytes that a cache writes to its SSDs, and how long the SSDs last."""

from __future__ import annotations

from dataclasses import dataclass

from hybridsim.answers.metrics import Kind
from hybridsim.answers.outcome import Phase

DAYS_PER_YEAR = 365.25
WRITTEN = "fast_bytes_written"  # counter


@dataclass(frozen=True)
class Wear:
    """Writes to the SSDs in one phase, and the life of the SSDs at that rate."""

    bytes_written: int
    bytes_per_day: float
    per_host_write: float | None  # bytes written to the SSDs per byte that the host wrote
    read_per_written: float | None  # bytes read from the SSDs per byte written to them
    endurance_bytes: int | None  # rated endurance of all SSDs together
    years: float | None
    drive_writes_per_day: float | None  # of the whole capacity of the drives
    in_flash: float | None  # bytes written to the flash per byte written to the SSD, if simulated
    cycles_per_year: float | None  # erase cycles of each block, by the bytes written to the flash


def wear(
    phase: Phase, endurance_bytes: int | None, capacity_bytes: int | None = None
) -> Wear | None:
    """Return the wear at the rate of this phase; None if writes to the SSD were not counted.

    A rating in bytes written counts host writes and already allows for rewrites inside the SSD, so
    the years do not depend on the write amplification of the flash.
    """
    written = phase.counters.get(WRITTEN)
    per_day = phase.per_day(WRITTEN)
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
    """Return the write amplification of the flash, and the erase cycles per year at this rate."""
    placed = phase.counters.get("fast_bytes_placed", 0)
    if not placed:
        return None, None
    amplification = (placed + phase.counters.get("fast_bytes_moved", 0)) / placed
    if not capacity_bytes:
        return amplification, None
    return amplification, per_day * amplification * DAYS_PER_YEAR / capacity_bytes
