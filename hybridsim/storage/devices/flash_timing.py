"""From an SSD's data to the integers that `DESIGN.md` 2.8 computes with.

Flash parameters that are not specified follow from the datasheet: the time of a read from the
latency, the time of a program from sequential writes, which keep all dies programming.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.storage.devices.ssd_timing import UNIT_BYTES, timing

if TYPE_CHECKING:
    from hybridsim.storage.drives import SolidState
    from hybridsim.storage.drives.datasheet import Placement
    from hybridsim.storage.drives.ssd import Flash

SECOND_NS = 10**9
BLOCKS = 4096  # in the capacity visible to the host, unless specified


def write_amplification(spare: float) -> float:
    """Return the units programmed per unit that the host writes, for uniform random writes.

    WA = a / (a + W0(-a exp(-a))), a = 1 + spare: the limit of first-in-first-out collection, and
    with large blocks also of greedy collection (Luojie and Kurkoski 2011; Desnoyers 2012).
    """
    from scipy.special import lambertw  # loads slowly, and most machines do not need it

    a = 1 + spare
    return float(a / (a + lambertw(-a * exp(-a)).real))


def flash_timing(drive: SolidState, flash: Flash, capacity_bytes: int) -> FlashParameters:
    """Return the parameters of a drive of this capacity."""
    bus_ns = flash.channel_command_ns
    unit_ns = bus_ns + UNIT_BYTES * SECOND_NS // flash.channel_rate
    program_ns = flash.program_ns
    if program_ns is None:
        transfer_ns = bus_ns + drive.program_bytes * SECOND_NS // flash.channel_rate
        rate = drive.native_write or drive.sequential_write  # it has no SLC cache
        cycle_ns = drive.dies * drive.program_bytes * SECOND_NS // rate
        program_ns = max(cycle_ns - transfer_ns, 0)
    read_ns = flash.read_ns if flash.read_ns is not None else max(drive.read_ns - unit_ns, 0)
    program_units = drive.program_bytes // UNIT_BYTES
    excess = write_amplification(flash.spare) - 1 if flash.gc == "closed-form" else 0
    return FlashParameters(
        dies=drive.dies,
        channels=flash.channels,
        unit_bytes=UNIT_BYTES,
        program_units=program_units,
        interval_ns=round(SECOND_NS / drive.random_read_iops),
        command_ns=drive.command_ns,
        write_ns=drive.write_latency_ns - drive.command_ns - drive.wire_ns,
        read_ns=read_ns,
        step_ns=drive.read_step_ns,
        program_ns=program_ns,
        collect_ns=round(excess * (read_ns + program_ns)),
        suspend_ns=drive.suspend_ns,
        flush_ns=drive.flush_ns,
        bus_ns=bus_ns,
        is_protected=int(drive.power_loss_protection),
        is_blocking=int(drive.blocking_flush),
        is_static=int(flash.placement == "by-address"),
        buffer_units=max(drive.write_buffer_bytes // UNIT_BYTES, program_units),
        channel_bytes_per_s=flash.channel_rate,
        link_bytes_per_s=drive.sequential_read,
        capacity_bytes=capacity_bytes,
        erase_ns=flash.erase_ns,
        filled=int(flash.filled),
        **_mapping(drive, flash, capacity_bytes),
    )


def _mapping(drive: SolidState, flash: Flash, capacity_bytes: int) -> dict[str, int]:
    """Return the sizes of the mapping, if it is simulated."""
    if flash.gc != "simulated":
        return {}
    units = -(-capacity_bytes // UNIT_BYTES)
    program_units = drive.program_bytes // UNIT_BYTES
    block_units = (flash.block_bytes or 0) // UNIT_BYTES
    if not block_units:
        block_units = max(units // BLOCKS // program_units, 1) * program_units
    full = -(-units // block_units)
    blocks = max(round(units * (1 + flash.spare) / block_units), full + 2)
    return {"mapped_units": units, "blocks": blocks, "block_units": block_units}


def bank(drive: SolidState, members: int, use: Placement) -> Any:
    """Return `members` idle SSDs; with `flash`, of the model with flash in detail."""
    if drive.flash is not None:
        from hybridsim.storage.devices.flash import Flash as FlashBank

        return FlashBank.new(members, flash_timing(drive, drive.flash, use.capacity_bytes))
    from hybridsim.storage.devices.ssd import SSD

    return SSD.new(members, timing(drive, use.capacity_bytes))
