"""From an SSD's datasheet to the integers that `DESIGN.md` 2.7 and 2.8 compute with.

Each datasheet figure fixes one parameter, in closed form:

    read_ns      read latency at depth 1, less command and link
    interval_ns  random reads per second, deep queue: the controller's rate
    write_interval_ns  the same, or the random writes per second where a drive takes more of these,
                 or where they go to an SLC cache, which is as fast as the controller lets it be
    link         sequential read rate
    pipe         sequential write rate: the host's writes do not run ahead of the dies
    write_ns     write latency at depth 1, less command and pipe: the buffer's acknowledgement
    program_ns   die time p of a unit of 4 KiB in a sequential write: dies * 4 KiB / rate
    scatter_ns   die time s more of each scattered write: n p + s = dies / IOPS, of writes of n
                 units (map_unit); both once from the figures of the datasheet, and once, of a
                 drive with an SLC cache, from the figures beyond it. Of each request, not of each
                 unit: a page cache on a real X25-E (3,300 random writes a second) was filled with
                 107 MB/s (Adaptec's MaxIQ guide: 32 GB in 5 minutes)

    collect_ns   of a drive with program_load: the reads of a collection, which moves as much as a
                 program holds: one of each page that has some of it, and the data on the channel

They are exact because writes go to the dies in turn. With `write_rule = "requests"` s is of
each request, sequential ones too: 32 p + s = dies * 128 KiB / rate; and the pipe is the link.

Parameters of flash in detail that are not specified follow from the datasheet too: the time of a
read from the latency, that of a program from sequential writes, which keep all dies programming.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.machine_parameters import FlashParameters, SsdParameters
from hybridsim.storage.devices.flash import Flash as FlashBank
from hybridsim.storage.devices.ssd import SSD

if TYPE_CHECKING:
    from hybridsim.storage.drives import SolidState
    from hybridsim.storage.drives.datasheet import Placement
    from hybridsim.storage.drives.ssd import Flash

UNIT_BYTES = 4096
SEQUENTIAL_UNITS = 32  # datasheets give sequential rates of 128 KiB requests
PAGE_BYTES = 16_384  # that a die reads at once: of 3D flash, as Cho et al. 2024 (arXiv 2404.10355)


def timing(drive: SolidState, capacity_bytes: int | None = None) -> SsdParameters:
    """Return the parameters that reproduce the drive's datasheet figures.

    With a capacity, by default the drive's own.
    """
    dies = drive.dies
    program_units = max(drive.program_bytes // UNIT_BYTES, 1)
    map_units = drive.map_bytes // UNIT_BYTES
    program_ns, scatter_ns = _die_time_of_writes(
        drive, drive.sequential_write, drive.random_write_iops
    )
    native_program_ns = native_scatter_ns = folded_program_ns = 0
    folding_program_ns = folding_units = 0
    slc_units = drive.slc_bytes // UNIT_BYTES
    if drive.native_write is not None and drive.native_write_iops is not None:
        native_program_ns, native_scatter_ns = _die_time_of_writes(
            drive, drive.native_write, drive.native_write_iops
        )
        if drive.folded_write is not None:
            folded_program_ns = dies * UNIT_BYTES * 10**9 // drive.folded_write
        if drive.folding_write is not None:
            folding_program_ns = dies * UNIT_BYTES * 10**9 // drive.folding_write
            spared = drive.native_write - drive.folding_write  # for folding
            folding_units = slc_units * drive.folding_write // spared
    collect_ns = 0
    if drive.program_load_ns:
        collect_ns = _reads_of_a_collection(drive, program_ns, scatter_ns)
    drain_ns = drive.write_buffer_bytes * 10**9 // drive.sequential_write
    writes = drive.random_write_iops  # per second, that the controller accepts
    if not drive.slc_cache_bytes:
        writes = max(writes, drive.random_read_iops)
    erased_bytes = 0  # beside the cells of the SLC cache
    if drive.folded_write is not None:
        erased_bytes = drive.erased_bytes or drive.free_bytes
        erased_bytes = max(erased_bytes - drive.cell_bits * drive.slc_bytes, 0)
    return drive.parameters_of(
        SsdParameters,
        capacity_bytes=capacity_bytes or drive.capacity_bytes,
        unit_bytes=UNIT_BYTES,
        interval_ns=round(10**9 / drive.random_read_iops),
        write_interval_ns=round(10**9 / writes),
        program_ns=program_ns,
        scatter_ns=scatter_ns,
        is_by_stream=int(drive.write_rule == "streams"),
        write_ns=drive.write_latency_ns - drive.wake_up_ns - drive.command_ns - drive.pipe_ns,
        # at depth 1 the host must not wait for the die
        buffer_ns=max(
            drain_ns,
            program_units * program_ns + scatter_ns,
            program_units * max(native_program_ns, folded_program_ns, folding_program_ns)
            + native_scatter_ns,
            2 * program_units * program_ns + collect_ns if drive.program_load_ns else 0,
        ),
        link_bytes_per_s=drive.sequential_read,
        step_ns=drive.read_step_ns,
        program_units=program_units,
        is_protected=int(drive.power_loss_protection),
        is_blocking=int(drive.blocking_flush),
        needs_flush=int(drive.needs_flush),
        pipe_bytes_per_s=drive.pipe_rate,
        map_units=map_units,
        slc_units=slc_units,
        slc_units_per_s=max(drive.slc_refill // UNIT_BYTES, 1),
        native_program_ns=native_program_ns,
        native_scatter_ns=native_scatter_ns,
        erased_units=erased_bytes // UNIT_BYTES,
        folded_program_ns=folded_program_ns,
        folding_program_ns=folding_program_ns,
        folding_units=folding_units,
        load_ns=drive.program_load_ns,
        collect_ns=collect_ns,
        page_units=drive.page_bytes // UNIT_BYTES,
        wake_ns=drive.wake_up_ns,
        sleep_ns=drive.sleep_after_ns,
    )


def _reads_of_a_collection(drive: SolidState, program_ns: int, scatter_ns: int) -> int:
    """Return the time of a die that gives a program's worth of old data away, page by page.

    A drive that moves x units for each that the host writes collects blocks of which the share
    x / (1 + x) is valid: it reads more pages than the data fill, but none that are all garbage.
    x follows from the cost of a scattered write, which is that of moving x units.
    """
    units = drive.program_bytes // UNIT_BYTES
    page_units = PAGE_BYTES // UNIT_BYTES
    valid = 1.0
    for _ in range(50):  # converges in a few steps
        pages = units * (1 - (1 - valid) ** page_units) / (page_units * valid)
        reads_ns = max(pages, 1) * drive.mean_read_ns + drive.program_load_ns
        moved = scatter_ns / (program_ns + reads_ns / units)
        valid = moved / (1 + moved) if moved > 0 else 1.0
    return round(reads_ns)


def _die_time_of_writes(drive: SolidState, rate: int, iops: int) -> tuple[int, int]:
    """Solve the equations above; scatter is 0 if random writes are as fast as sequential ones."""
    unit = drive.dies * UNIT_BYTES * 10**9 / rate
    random = drive.dies * 10**9 / iops
    map_units = drive.map_bytes // UNIT_BYTES
    if drive.write_rule == "streams":
        return round(unit), max(round(random - map_units * unit), 0)
    sequential = SEQUENTIAL_UNITS * unit
    program = (sequential - random) / (SEQUENTIAL_UNITS - map_units)
    if random <= map_units * program:
        return round(unit), 0
    return round(program), round(random - map_units * program)


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
    return drive.parameters_of(
        FlashParameters,
        channels=flash.channels,
        unit_bytes=UNIT_BYTES,
        program_units=program_units,
        interval_ns=round(SECOND_NS / drive.random_read_iops),
        write_ns=drive.write_latency_ns - drive.command_ns - drive.wire_ns,
        read_ns=read_ns,
        step_ns=drive.read_step_ns,
        program_ns=program_ns,
        collect_ns=round(excess * (read_ns + program_ns)),
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
        return FlashBank.new(members, flash_timing(drive, drive.flash, use.capacity_bytes))
    return SSD.new(members, timing(drive, use.capacity_bytes))
