"""From an SSD's datasheet to the integers that `DESIGN.md` 2.7 computes with.

Each datasheet figure fixes one parameter, in closed form:

    read_ns      read latency at depth 1, less command and link
    interval_ns  random reads per second, deep queue: the controller's rate
    link         sequential read rate
    write_ns     write latency at depth 1, less command and link: the buffer's acknowledgement
    program_ns, scatter_ns   die time p per 4 KiB and s more per request, from
                 sequential writes of 128 KiB (32 units) and steady random writes of 4 KiB:
                 32 p + s = dies * 128 KiB / rate    and    p + s = dies / IOPS

They are exact because writes go to the dies in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hybridsim.storage.drives import SolidState

UNIT_BYTES = 4096
SEQUENTIAL_UNITS = 32  # datasheets give sequential rates of 128 KiB requests


class Timing(NamedTuple):
    """The parameters of one SSD."""

    capacity_bytes: int
    dies: int
    unit_bytes: int  # address u // unit_bytes lies on die (u // unit_bytes) % dies
    command_ns: int
    interval_ns: int
    read_ns: int
    program_ns: int
    scatter_ns: int
    suspend_ns: int
    write_ns: int
    buffer_ns: int  # die time of writes that the buffer hides from the host
    link_bytes_per_s: int
    step_ns: int
    program_units: int  # consecutive units on a die
    flush_ns: int
    is_protected: int
    is_blocking: int


def timing(drive: SolidState) -> Timing:
    """Return the parameters that reproduce the drive's datasheet figures."""
    dies = drive.dies
    program_units = max(drive.program_bytes // UNIT_BYTES, 1)
    program_ns, scatter_ns = _die_time_of_writes(drive, dies)
    drain_ns = drive.write_buffer_bytes * 10**9 // drive.sequential_write
    return Timing(
        capacity_bytes=drive.capacity_bytes,
        dies=dies,
        unit_bytes=UNIT_BYTES,
        command_ns=drive.command_ns,
        interval_ns=round(10**9 / drive.random_read_iops),
        read_ns=drive.read_ns,
        program_ns=program_ns,
        scatter_ns=scatter_ns,
        suspend_ns=drive.suspend_ns,
        write_ns=drive.write_latency_ns - drive.command_ns - drive.wire_ns,
        # at depth 1 the host must not wait for the die
        buffer_ns=max(drain_ns, program_units * program_ns + scatter_ns),
        link_bytes_per_s=drive.sequential_read,
        step_ns=drive.read_step_ns,
        program_units=program_units,
        flush_ns=drive.flush_ns,
        is_protected=int(drive.power_loss_protection),
        is_blocking=int(drive.blocking_flush),
    )


def _die_time_of_writes(drive: SolidState, dies: int) -> tuple[int, int]:
    """Solve the two equations above; scatter is 0 if random writes are as fast as sequential."""
    sequential = dies * SEQUENTIAL_UNITS * UNIT_BYTES * 10**9 / drive.sequential_write
    random = dies * 10**9 / drive.random_write_iops
    program = (sequential - random) / (SEQUENTIAL_UNITS - 1)
    if random <= program:
        return round(sequential / SEQUENTIAL_UNITS), 0
    return round(program), round(random - program)
