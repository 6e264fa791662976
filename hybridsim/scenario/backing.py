"""The table `backing` (the slow tier), and in it `controller`, the DRAM of a RAID controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.machine_parameters import ArrayParameters, ControllerParameters
from hybridsim.foundation.toml.table import Share, size_text, word_or
from hybridsim.foundation.units import (
    format_size,
    human_size,
    parse_percent,
    parse_size,
    parse_time,
)
from hybridsim.scenario import levels
from hybridsim.storage.drives import Drive, Part, Rate, Size, Time

SECTOR_BYTES = 512


class ControllerDram(Part):
    """DRAM between the SSD cache and the array, for read-ahead and write-back.

    The default sizes are those of a controller with 512 MiB, three quarters of it for writes.
    Latency and rate are assumed, within the range of hits in the DRAM of such controllers.
    """

    read_memory_bytes: Size = 128 * 2**20  # 0: never reads ahead
    window_bytes: Size = Field(2**20, ge=SECTOR_BYTES)  # size of one read-ahead
    read_ahead_bytes: Size = 4 * 2**20  # distance ahead of the reader
    sequential_after: int = Field(3, ge=1, le=65_536)  # consecutive requests that make a stream
    streams: int = Field(32, ge=1, le=1024)
    write_memory_bytes: Size = 384 * 2**20  # 0: write-through
    line_bytes: Size = Field(4096, ge=SECTOR_BYTES, le=32 * SECTOR_BYTES)
    protected: bool = True  # battery or flash: DRAM survives a power failure
    high_water: Share = "80%"  # of the memory: destaging begins
    low_water: Share = "70%"  # and ends
    oldest_first_above: Share = "100%"  # destage by age instead of address
    idle_ns: Time = 100_000_000  # after this idle time: destage all
    max_destages: int = Field(64, ge=1, le=4096)
    latency_ns: Time = 50_000
    rate: Rate = 1_500_000_000  # bytes per second, to and from DRAM

    @property
    def memory_bytes(self) -> int:
        """Total size of the DRAM in bytes."""
        return self.read_memory_bytes + self.write_memory_bytes

    @property
    def lines(self) -> int:
        """Number of lines in the write memory."""
        return self.write_memory_bytes // self.line_bytes

    def parameters(self, stripe_bytes: int) -> ControllerParameters:
        """Return the parameters of the model, in front of an array with such stripes."""
        shares = (self.high_water, self.low_water, self.oldest_first_above)
        high, low, oldest = (int(parse_percent(share) * self.lines) for share in shares)
        return self.parameters_of(
            ControllerParameters,
            high_lines=high,
            low_lines=low,
            oldest_above_lines=oldest,
            windows=self.read_memory_bytes // self.window_bytes,
            stripe_bytes=stripe_bytes,
        )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each invalid combination of values."""
        if self.line_bytes & (self.line_bytes - 1):
            yield "line", "a line must be a power of two"
        if self.window_bytes % SECTOR_BYTES:
            yield "window", f"a window must be a multiple of {SECTOR_BYTES} bytes"
        if 0 < self.read_memory_bytes < 2 * self.window_bytes:
            minimum = format_size(2 * self.window_bytes)
            yield "read_memory", f"the minimum is two windows ({minimum}); 0 turns read-ahead off"
        if 0 < self.write_memory_bytes < self.line_bytes:
            yield "write_memory", f"less than one line ({format_size(self.line_bytes)})"
        elif parse_percent(self.low_water) >= parse_percent(self.high_water):
            yield "low_water", f"low_water must be below high_water ({self.high_water})"


THROTTLE_HDD_NS, THROTTLE_SSD_NS = 75_000_000, 2_000_000  # the kernel's, by queue/rotational


def _time_text(text: Any) -> str:
    parse_time(text)
    return str(text)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Backing(Part):
    """The slow tier: an array of identical drives."""

    kind: Literal["single", "linear", "stripe", "raid1", "raid5", "raid6", "raid10"] = "raid5"
    members: int = Field(4, ge=1, le=1024)
    chunk_bytes: Size = Field(64 * 1024, ge=SECTOR_BYTES)
    # of each member: "trace" = the size that the trace needs, "drive" = the size of the drive
    capacity: Annotated[str, word_or(size_text, "trace", "drive")] = "trace"
    layout: Literal["near", "far", "offset"] = "near"  # of raid10, as md names them
    # as in md: 0 never reads old parity, 1 where this saves reads, 2 also at equal cost
    rmw_level: int = Field(ArrayParameters.rmw_level, ge=0, le=2)
    failed: Annotated[tuple[int, ...], BeforeValidator(_tuple)] = ()  # failed members
    rebuild: levels.Rebuild | None = None
    # "full": data are spread over all cylinders; "short": they lie on the outer cylinders
    stroke: Literal["full", "short"] = "full"
    scheduler: Literal["ncq", "sptf", "sstf", "clook", "fcfs"] = "ncq"  # ncq: the drive's own order
    window: int = Field(32, ge=1, le=1024)
    age_limit_ns: Time = 5 * 10**9
    write_cache: Literal["drive", "off"] = "drive"
    # Linux's writeback throttling (blk-wbt) of a single drive: the latency of reads above which
    # background writes have to wait; auto: 75ms for a hard disk and 2ms for an SSD, below bcache
    # and dm-writecache
    writeback_throttle: Annotated[str, word_or(_time_text, "auto", "off")] = "off"
    # maximum number of requests on the path to the array; 0: unlimited
    queue_depth: int = Field(ArrayParameters.queue_depth, ge=0, le=65_536)
    # round trip to the array (iSCSI, a hypervisor); added to the latency of each request
    path_latency_ns: Time = 0
    drive: Annotated[Drive, Field(discriminator="kind")]
    controller: ControllerDram | None = None  # RAID controller; None: none

    def throttle_ns(self, by_default: bool) -> int:
        """Read latency in ns above which background writes wait; 0: no writeback throttling.

        `by_default`: whether "auto" is on, where the array is one drive without a controller.
        """
        if self.writeback_throttle not in ("auto", "off"):
            return parse_time(self.writeback_throttle)
        if self.writeback_throttle == "off" or not by_default or not self.is_one_drive:
            return 0
        return {"hdd": THROTTLE_HDD_NS, "ssd": THROTTLE_SSD_NS}.get(self.drive.kind, 0)

    @property
    def is_one_drive(self) -> bool:
        """Whether it is one drive, without redundancy and without a RAID controller."""
        return self.members == 1 and self.controller is None

    @property
    def held_of_drive(self) -> int:
        """Bytes used on each drive: the specified capacity, or all of the drive."""
        if self.capacity not in ("trace", "drive"):
            return parse_size(self.capacity)
        return self.drive.capacity_bytes

    @property
    def held_bytes(self) -> int:
        """Capacity of the array in bytes."""
        rows = self.held_of_drive // self.chunk_bytes
        return levels.chunks_held(self.kind, self.members, self.layout, rows) * self.chunk_bytes

    def member_bytes(self, volume_bytes: int) -> int:
        """Return the bytes that a volume needs on each member.

        Raises ScenarioError if the volume does not fit.
        """
        if self.capacity == "trace":
            chunks = max(1, -(-volume_bytes // self.chunk_bytes))
            rows = levels.rows_needed(self.kind, self.members, self.layout, chunks)
            needed = rows * self.chunk_bytes
            if self.stroke == "short" and needed > self.drive.capacity_bytes:
                raise ScenarioError(
                    f"each member must hold {human_size(needed)}, more than the drive's "
                    f'{human_size(self.drive.capacity_bytes)}: use stroke = "full"'
                )
            return needed
        if self.held_bytes < volume_bytes:
            mend = 'use capacity = "trace"'
            if self.drive.kind == "volume":
                mend = "use larger volumes (capacity in [backing.drive]) or more members"
            raise ScenarioError(
                f"the trace touches {human_size(volume_bytes)}, the array holds "
                f"{human_size(self.held_bytes)}: {mend}"
            )
        return self.held_of_drive // self.chunk_bytes * self.chunk_bytes

    def _wrong_stroke(self) -> Iterator[tuple[str, str]]:
        if self.drive.kind != "hdd":
            yield "stroke", 'only a hard disk can be short-stroked: use stroke = "full"'
        elif self.held_of_drive > self.drive.capacity_bytes:
            holds = format_size(self.drive.capacity_bytes)
            yield "capacity", f'more than the drive holds ({holds}): use stroke = "full"'

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each invalid combination of values."""
        minimum = levels.KINDS[self.kind].min_members
        if self.members < minimum:
            yield "members", f"{self.kind} needs at least {minimum} members, not {self.members}"
        if self.kind == "single" and self.members != 1:
            yield (
                "members",
                f'"single" has 1 member, not {self.members}: use kind = "stripe"',
            )
        if self.layout != "near" and self.kind != "raid10":
            yield "layout", f'layout "{self.layout}" needs kind = "raid10"'
        wrong = levels.wrong_losses(self.kind, self.members, self.layout, self.failed, self.rebuild)
        if wrong:
            yield "failed" if self.failed else "rebuild", wrong
        if self.chunk_bytes % SECTOR_BYTES:
            yield "chunk", f"a chunk must be a multiple of {SECTOR_BYTES} bytes"
        if self.scheduler not in ("ncq", "fcfs") and not self.drive.rotates:
            yield "scheduler", "only hard disks choose by the position of their heads: leave it out"
        if self.scheduler == "fcfs" and self.window != 1:
            yield "window", 'fcfs needs window = 1; to reorder requests use scheduler = "ncq"'
        one_chunk = format_size(self.chunk_bytes)
        if self.capacity not in ("trace", "drive") and parse_size(self.capacity) < self.chunk_bytes:
            yield "capacity", f"a member must hold at least one chunk ({one_chunk})"
        if self.writeback_throttle not in ("auto", "off"):
            if not self.is_one_drive:
                yield (
                    "writeback_throttle",
                    'is modelled for a single drive without a controller only: use "off"',
                )
            elif parse_time(self.writeback_throttle) < 1:
                yield "writeback_throttle", 'must be above 0; to disable it use "off"'
        if self.stroke == "short":
            yield from self._wrong_stroke()
        if self.controller is not None and self.chunk_bytes % self.controller.line_bytes:
            line = format_size(self.controller.line_bytes)
            yield "chunk", f"a chunk must be a multiple of the controller's line ({line})"
