"""The datasheet of an SSD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hybridsim.foundation.toml.table import Part, Rate, Size, Time, percentage
from hybridsim.foundation.units import parse_percent
from hybridsim.storage.drives.datasheet import Datasheet

UNIT_BYTES = 4096  # unit of a drive's map
SEQUENTIAL_BYTES = 131_072  # datasheets give sequential rates of such requests
UNITS_MAX = 2**31  # numbers of units are 32 bits wide


OVER_PROVISIONING = "an over-provisioning: above 0% and at most 400%"
Filled = Annotated[str, percentage("a part of the drive: 0% to 100%")]
Spare = Annotated[str, percentage(OVER_PROVISIONING, most=4, is_above_0=True)]


class Flash(Part):
    """The flash behind the controller, if it is simulated in detail: without an SLC cache."""

    gc: Literal["closed-form", "simulated"] = "simulated"
    over_provisioning: Spare = "7%"  # of the visible capacity
    # with gc = "closed-form": writes go to the dies in turn, as in a log, or by their address
    placement: Literal["in-turn", "by-address"] = "in-turn"
    filled: bool = True  # true: every unit has been written once, in order; false: none has
    channels: int = Field(8, ge=1, le=1024)
    channel_rate: Rate = 800_000_000
    channel_command_ns: Time = 400  # of each transfer
    read_ns: Time | None = None  # of the fastest page; or from read_latency
    program_ns: Time | None = None  # default: from sequential_write
    erase_ns: Time = 5_000_000
    block_bytes: Size | None = None  # erased at once; default: 1/4096

    @property
    def spare(self) -> float:
        """Flash that is not visible to the host, as a share of the visible capacity."""
        return float(parse_percent(self.over_provisioning))


class SolidState(Datasheet):
    """A drive of flash or similar memory: dies behind a controller and a link."""

    device: ClassVar[str] = "hybridsim.storage.devices.ssd_timing:bank"
    kind: Literal["ssd"]
    capacity_bytes: Size = Field(ge=2**20)
    read_latency_ns: Time = Field(gt=0)  # 4 KiB random, queue depth 1
    write_latency_ns: Time = Field(gt=0)
    random_read_iops: int = Field(ge=1, le=10**9)  # 4 KiB, deep queue
    # of map_unit (4 KiB), steady state; into the SLC cache, where there is one
    random_write_iops: int = Field(ge=1, le=10**9)
    sequential_read: Rate  # 128 KiB, bytes per second
    sequential_write: Rate  # into the SLC cache, where there is one
    # Flash that a drive uses with one bit a cell for what is written first: the part that it always
    # has, and at most what it adds of flash that holds no data, of which it takes cell_bits times
    # as much. A drive that serves as a cache is full: only the fixed part is left.
    slc_cache_bytes: Size = Field(0, le=2**45)
    slc_dynamic_bytes: Size = Field(0, le=2**45)
    # of the capacity, with data of which the drive knows (the rest is erased); for slc_dynamic and
    # folded_write
    filled: Filled = "100%"
    native_write: Rate | None = None  # sequential, where the SLC cache is full
    native_write_iops: int | None = Field(None, ge=1, le=10**9)  # of map_unit, where it is full
    # sequential, where the SLC cache is full and the drive folds it while it writes, until all is
    # folded; default: it does not
    folding_write: Rate | None = None
    # sequential, where the SLC cache is full and no flash is erased, so that data have to be folded
    # first; default: as native_write
    folded_write: Rate | None = None
    # erased flash at the start: for the SLC cache, which takes cell_bits times its size, and for
    # what is written beyond it; 0: what is not filled
    erased_bytes: Size = 0
    cell_bits: int = Field(3, ge=2, le=5)  # of the native cells: 3 TLC, 4 QLC
    slc_refill: Rate = 400_000_000  # of folding: the SLC cache becomes free again while no write
    slc_idle_ns: Time = 1_000_000_000  # has arrived for so long
    # which writes cost more than their units: those that continue no stream, or each of them
    write_rule: Literal["streams", "requests"] = "streams"
    map_bytes: Size = Field(UNIT_BYTES, alias="map_unit", ge=UNIT_BYTES, le=65_536)
    dies: int = Field(32, ge=1, le=65_536)  # that work in parallel
    page_bytes: Size = Field(UNIT_BYTES, alias="page_size", ge=UNIT_BYTES, le=2**20)  # read at once
    # of the controller, by address, each for one write at a time; 0: any number of writes
    write_lanes: int = Field(0, ge=0, le=1024)
    # part of the latencies at depth 1: of requests that find the drive idle, as it, its link or the
    # host's processor has fallen asleep
    wake_up_ns: Time = 0
    sleep_after_ns: Time = 0  # idle for so long
    program_bytes: Size = Field(UNIT_BYTES, alias="program_size", ge=UNIT_BYTES)  # by a die at once
    # of a program's data on the way to the die: a read that arrives meanwhile waits for the
    # program's end. With it dies are given whole programs, and collection is programs and reads
    program_load_ns: Time = 0
    read_step_ns: Time = 0  # TLC: a third of the pages 1, a third 3 more
    write_buffer_bytes: Size = Field(16 * 2**20, gt=0)
    suspend_ns: Time = 20_000  # wait of a read until a busy die pauses
    power_loss_protection: bool = True  # the buffer survives power loss: a flush need not drain it
    flush_ns: Time = 0  # of a flush, besides draining the buffer
    # whether it reports a cache that a host must flush; default: only where a flush has work to do
    volatile_cache: bool | None = None
    blocking_flush: bool = False  # as SATA drives: nothing else is served meanwhile
    fua: bool = True  # false: a flush follows a FUA write, as Linux does for SATA
    endurance_bytes: Size | None = None  # rated total of host writes
    flash: Flash | None = None

    @property
    def free_bytes(self) -> int:
        """Capacity without data."""
        return round(self.capacity_bytes * (1 - float(parse_percent(self.filled))))

    @property
    def slc_bytes(self) -> int:
        """Size of the SLC cache with so much data in the drive."""
        return self.slc_cache_bytes + min(self.slc_dynamic_bytes, self.free_bytes // self.cell_bits)

    @property
    def has_fua(self) -> bool:
        """Return whether the drive honours FUA, as its datasheet says."""
        return self.fua

    @property
    def needs_flush(self) -> bool:
        """Return whether the drive reports a volatile cache, so that a host sends it FLUSH."""
        if self.volatile_cache is not None:
            return self.volatile_cache
        return not self.power_loss_protection or self.flush_ns > 0

    @property
    def wire_ns(self) -> int:
        """Time of 4 KiB on the link, in ns; sequential reads use all of the link."""
        return 4096 * 10**9 // self.sequential_read

    @property
    def pipe_rate(self) -> int:
        """Rate at which writes reach the buffer, in bytes per second."""
        return self.sequential_write if self.write_rule == "streams" else self.sequential_read

    @property
    def pipe_ns(self) -> int:
        """Time of 4 KiB of a write on the way to the buffer, in ns."""
        return max(4096 * 10**9 // self.pipe_rate, self.wire_ns)

    @property
    def command_ns(self) -> int:
        """Time of a command in the controller, in ns: assumed a quarter of the shorter latency."""
        return max(min(self.read_latency_ns, self.write_latency_ns) - self.wake_up_ns, 0) // 4

    @property
    def mean_read_ns(self) -> int:
        """Mean time of a read on its die, in ns: the latency awake, less controller and link."""
        return self.read_latency_ns - self.wake_up_ns - self.command_ns - self.wire_ns

    @property
    def read_ns(self) -> int:
        """Time of reading the fastest pages, in ns; the others need 1 and 3 steps more."""
        return self.mean_read_ns - self.read_step_ns * 4 // 3

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, problem) for latencies shorter than the link, and too few dies."""
        for key in ("read_latency", "write_latency"):
            transfer_ns = self.wire_ns if key == "read_latency" else self.pipe_ns
            if self.wake_up_ns and getattr(self, f"{key}_ns") <= self.wake_up_ns + 2 * transfer_ns:
                yield "wake_up", f"wake_up is a part of {key}, which leaves too little for 4 KiB"
            elif getattr(self, f"{key}_ns") <= self.command_ns + transfer_ns:
                minimum_ns = 2 * transfer_ns
                rate_key = "sequential_" + key.removesuffix("_latency")
                yield (
                    key,
                    f"{key} must be {minimum_ns}ns or more: it includes 4 KiB at {rate_key}",
                )
        if self.read_ns < 0:
            yield "read_step", "with this read_step the mean read takes longer than read_latency"
        for key, size in (("program_size", self.program_bytes), ("page_size", self.page_bytes)):
            if size % UNIT_BYTES:
                yield key, f"{key} must be a multiple of 4096 bytes"
        yield from self._contradictions_of_programs()
        yield from self._contradictions_of_flash()
        yield from self._contradictions_of_slc()
        written, native = self.sequential_write, self.native_write
        for key, iops, rate_key, rate in (
            ("random_write_iops", self.random_write_iops, "sequential_write", written),
            ("native_write_iops", self.native_write_iops, "native_write", native),
        ):
            if iops is not None and rate is not None and rate // SEQUENTIAL_BYTES > iops:
                yield (
                    key,
                    f"{iops} writes per second of {self.map_bytes // 1024} KiB are fewer than the "
                    f"{rate // SEQUENTIAL_BYTES} of 128 KiB that {rate_key} means",
                )
        busiest = max(self.random_read_iops, self.sequential_read // self.page_bytes)
        minimum = busiest * max(self.mean_read_ns, 0) // 10**9 + 1
        if self.dies < minimum:
            yield (
                "dies",
                f"{self.dies} dies of this latency cannot reach these read rates: "
                f"the minimum is {minimum}",
            )

    def _contradictions_of_programs(self) -> Iterator[tuple[str, str]]:
        if not self.program_load_ns:
            return
        whole_ns = self.dies * self.program_bytes * 10**9 // self.sequential_write
        if self.program_load_ns >= whole_ns:
            yield "program_load", f"a program, with its load, takes {whole_ns} ns in this drive"
        if self.slc_cache_bytes:
            yield "program_load", "program_load is known of drives without an SLC cache only"

    def _contradictions_of_slc(self) -> Iterator[tuple[str, str]]:
        if self.map_bytes % UNIT_BYTES:
            yield "map_unit", "map_unit must be a multiple of 4096 bytes"
        natives = ("native_write", "native_write_iops")
        for key in natives:
            if self.slc_cache_bytes and getattr(self, key) is None:
                yield key, f"an SLC cache needs {key}: the figure of writes where it is full"
            if not self.slc_cache_bytes and getattr(self, key) is not None:
                yield key, f"{key} is the figure of writes beyond an SLC cache: set slc_cache"
        if self.folded_write is not None and self.folded_write > (self.native_write or 0):
            yield "folded_write", "folded_write needs an SLC cache, and a native_write not below it"
        if self.slc_dynamic_bytes and not self.slc_cache_bytes:
            yield "slc_dynamic", "slc_dynamic is what is added to slc_cache: set that, too"
        native = self.native_write or 0
        if self.folding_write is not None and self.folding_write >= native:
            yield "folding_write", "folding_write needs an SLC cache, and a native_write above it"
        if self.erased_bytes and self.folded_write is None:
            yield "erased", "without folded_write it makes no difference what is erased"
        if self.erased_bytes > 2 * self.capacity_bytes:
            yield "erased", "more flash is erased than this drive has"
        if self.native_write is not None and self.native_write > self.sequential_write:
            yield "native_write", "native_write is faster than sequential_write, into the SLC cache"
        if self.flash is not None and self.map_bytes > UNIT_BYTES:
            yield (
                "flash",
                "flash in detail maps units of 4 KiB: leave out flash, or set map_unit = 4KiB",
            )

    def _contradictions_of_flash(self) -> Iterator[tuple[str, str]]:
        if self.flash is None:
            return
        by_datasheet = {
            "page_size": self.page_bytes > UNIT_BYTES,
            "write_lanes": self.write_lanes > 0,
            "wake_up": self.wake_up_ns > 0,
        }
        for key, is_set in by_datasheet.items():
            if is_set:
                yield key, f"{key} is of drives by datasheet: leave out flash, or {key}"
        if self.flash.channels > self.dies:
            yield "dies", f"{self.dies} dies cannot use {self.flash.channels} channels"
        if self.flash.placement == "by-address" and self.flash.gc == "simulated":
            yield (
                "flash",
                'placement "by-address" needs gc = "closed-form": a simulated map is a log',
            )
        if (self.flash.block_bytes or 0) % self.program_bytes:
            yield "flash", f"block must be a multiple of program_size, {self.program_bytes} bytes"
        if self.flash.gc == "simulated":
            units = round(self.capacity_bytes * (1 + self.flash.spare) / UNIT_BYTES)
            if units >= UNITS_MAX:
                yield (
                    "capacity",
                    "the map is too large to simulate: the flash must be below 8 TiB",
                )
