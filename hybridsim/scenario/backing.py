"""The table `backing` (the slow tier), and in it `controller`, the DRAM of a RAID controller.

Also the kinds of arrays, their capacity and the losses they survive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from hybridsim.foundation.codes import Level
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.machine_parameters import ArrayParameters, ControllerParameters
from hybridsim.foundation.toml.table import Part, Rate, Share, Size, Time, size_text, word_or
from hybridsim.foundation.units import (
    format_size,
    human_size,
    parse_percent,
    parse_size,
    parse_time,
)
from hybridsim.storage.drives import Drive

SECTOR_BYTES = 512


class Kind(NamedTuple):
    """Properties of all arrays of one kind."""

    level: Level
    min_members: int
    usual_members: int
    copies: int = 1  # of each chunk; ALL: on every member
    parities: int = 0  # per row


ALL = 0

KINDS = {
    "single": Kind(Level.STRIPE, 1, 1),
    "linear": Kind(Level.LINEAR, 1, 4),
    "stripe": Kind(Level.STRIPE, 1, 4),
    "raid1": Kind(Level.RAID1, 2, 2, copies=ALL),
    "raid5": Kind(Level.RAID5, 3, 4, parities=1),
    "raid6": Kind(Level.RAID6, 4, 4, parities=2),
    "raid10": Kind(Level.RAID10, 2, 4, copies=2),
}
RATE_MIN, RATE_MAX = 10**6, 2 * 10**8  # bytes per second, of a rebuild: md's defaults


class Rebuild(Part):
    """Rebuild of a replaced member, at md's speed limits."""

    member: int = Field(ge=0)
    min_bytes_per_s: Rate = Field(RATE_MIN, alias="min")  # guaranteed under load
    max_bytes_per_s: Rate = Field(RATE_MAX, alias="max")  # while the array is idle

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse a minimum rate above the maximum."""
        if self.min_bytes_per_s > self.max_bytes_per_s:
            yield "min", "min cannot exceed max"


class Form(NamedTuple):
    """The form of an array: where its chunks lie."""

    kind: str
    members: int
    layout: str

    @property
    def copies(self) -> int:
        """Number of members that hold a chunk of data."""
        return KINDS[self.kind].copies or self.members

    @property
    def data_members(self) -> int:
        """Number of members without those that parity takes."""
        return self.members - KINDS[self.kind].parities

    @property
    def row_chunks(self) -> int:
        """Number of data chunks in a row (the best unit of writing)."""
        return 1 if self.kind == "linear" else max(1, self.data_members // self.copies)

    def chunks_held(self, rows: int) -> int:
        """Return the capacity in chunks of data, if each member has `rows` chunks."""
        if self.layout == "near":
            return rows * self.data_members // self.copies
        return rows // self.copies * self.members

    def rows_needed(self, chunks: int) -> int:
        """Return the chunks that each member needs for so many data chunks."""
        if self.layout == "near":
            return -(-chunks * self.copies // self.data_members)
        return -(-chunks // self.members) * self.copies

    def loses_data(self, lost: Collection[int]) -> bool:
        """Return whether the array loses data when the members `lost` fail."""
        about = KINDS[self.kind]
        if about.copies == ALL:
            return len(lost) == self.members
        if about.copies == 1:
            return len(lost) > about.parities
        # two copies on neighbours: in fixed pairs, or each with the next, cyclically
        paired = self.layout == "near" and self.members % 2 == 0
        firsts = range(0, self.members, 2 if paired else 1)
        return any(first in lost and (first + 1) % self.members in lost for first in firsts)

    def wrong_losses(self, lost: Collection[int]) -> str:
        """Return what is wrong with the lost members (unknown members, data loss), or ""."""
        strange = [member for member in lost if not 0 <= member < self.members]
        if strange:
            return f"there is no member {strange[0]}: members are 0 to {self.members - 1}"
        if len(set(lost)) < len(lost):
            return "a member may be listed once, and not both as failed and as rebuilt"
        about = KINDS[self.kind]
        if lost and about.copies == 1 and about.parities == 0:
            return f"{self.kind} has no redundancy: it loses data with any failed member"
        if self.loses_data(lost):
            return f"{self.kind} of {self.members} members loses data when these members fail"
        return ""


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
    rebuild: Rebuild | None = None
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

    @property
    def form(self) -> Form:
        """The form of the array."""
        return Form(self.kind, self.members, self.layout)

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
        return self.form.chunks_held(rows) * self.chunk_bytes

    def member_bytes(self, volume_bytes: int) -> int:
        """Return the bytes that a volume needs on each member.

        Raises ScenarioError if the volume does not fit.
        """
        if self.capacity == "trace":
            chunks = max(1, -(-volume_bytes // self.chunk_bytes))
            needed = self.form.rows_needed(chunks) * self.chunk_bytes
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

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each invalid combination of values."""
        minimum = KINDS[self.kind].min_members
        if self.members < minimum:
            yield "members", f"{self.kind} needs at least {minimum} members, not {self.members}"
        if self.kind == "single" and self.members != 1:
            yield (
                "members",
                f'"single" has 1 member, not {self.members}: use kind = "stripe"',
            )
        if self.layout != "near" and self.kind != "raid10":
            yield "layout", f'layout "{self.layout}" needs kind = "raid10"'
        lost = [*self.failed, *([self.rebuild.member] if self.rebuild else [])]
        if wrong := self.form.wrong_losses(lost):
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
        if self.stroke == "short" and self.drive.kind != "hdd":
            yield "stroke", 'only a hard disk can be short-stroked: use stroke = "full"'
        elif self.stroke == "short" and self.held_of_drive > self.drive.capacity_bytes:
            holds = format_size(self.drive.capacity_bytes)
            yield "capacity", f'more than the drive holds ({holds}): use stroke = "full"'
        if self.controller is not None and self.chunk_bytes % self.controller.line_bytes:
            line = format_size(self.controller.line_bytes)
            yield "chunk", f"a chunk must be a multiple of the controller's line ({line})"
