"""The parameters of drives, arrays, controllers and hosts, for engine and reference.

A scenario's tables (scenario/, storage/drives/) state what a user sets; what the models compute
with follows from these, and has its name, meaning and default here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

from hybridsim.foundation.cache_parameters import Plain, plain_values
from hybridsim.foundation.codes import Change, Level, Op, Order, Spread


class DeviceParameters(Plain):
    """A dataclass of the parameters of a device."""

    capacity_bytes: int


@dataclass
class HddParameters(DeviceParameters):
    """A hard disk (2.6). Zone z begins at byte zone_byte[z], on track zone_track[z].

    The end of the disk may follow in zone_byte.  Tables may be NumPy arrays: see `plain`.
    """

    rev_ns: int
    zone_byte: list[int]
    zone_track: list[int]
    zone_track_bytes: list[int]
    zone_angle_ns: list[int]
    zone_skew_ns: list[int]
    zone_cylinder_skew_ns: list[int]  # more than zone_skew_ns at the border of a cylinder
    surfaces: int  # tracks per cylinder
    seek_shift: int
    move_ns: list[int]  # by (cylinders + 2^seek_shift - 1) >> seek_shift; 0: to another track
    write_move_ns: list[int]
    read_ns: int
    hit_ns: int
    write_ns: int  # overhead of a write to the platters
    write_hit_ns: int  # overhead of a write to the write cache
    window: int
    age_limit_ns: int
    capacity_bytes: int
    read_ahead_bytes: int
    read_behind_bytes: int
    segments: int = 1
    read_tracks: bool = False
    read_stop_tracks: int = 0  # the read-ahead stops at the end of the track (2: or the next one)
    segment_bytes: int = 2**62
    read_watermark: int = 0  # of a read, in the buffer before its transfer to the host begins
    write_watermark: int = 100  # of a write, in the disk before it goes to the platters
    reacquire_ns: int = 0
    flush_ns: int = 0
    host_ps_per_byte: int = 0
    order: Order = Order.POSITION
    aging_ppm: int = 0  # of a command's waiting, off its cost by position
    write_cache_bytes: int = 0
    write_cache_ranges: int = 1
    destage_window: int = 1
    takes_turns: bool = False  # destages and commands, while the write cache is crowded
    is_protected: bool = False  # the write cache survives a loss of power
    # read_ns, hit_ns, write_ns and write_hit_ns after a command of the other kind; empty: the same
    after_other_ns: list[int] = field(default_factory=list)
    media_cache_span_bytes: int = 0  # of the media cache; 0: none, and the bands are not shingled
    media_cache_first_byte: int = 0  # whose place is that of the media cache's position 0
    media_cache_padding_bytes: int = 0  # that each entry takes more
    media_cache_write_bytes: int = 2**62  # written to it at once
    media_cache_entries: int = 1
    media_cache_idle_ns: int = 0  # without work, then it is cleaned
    media_cache_run_bytes: int = 0  # of writes in sequence that pass it by
    media_cache_map: int = 2**62  # with more, each write to it writes a part of its map as well
    media_cache_map_write_ns: int = 0  # which takes so long
    media_cache_piece_ns: int = 0  # of cleaning, for each entry
    band_bytes: int = 1
    cylinders: int = 0  # that the zones have; no model needs it

    def __post_init__(self) -> None:
        """Keep tables as they are."""

    def plain(self) -> HddParameters:
        """Return the same with Python's numbers and lists."""
        return replace(self, **plain_values(self))


class SsdParameters(NamedTuple):
    """A solid-state disk (2.7); storage/devices/ssd_timing.py has what fixes each value."""

    dies: int
    unit_bytes: int
    command_ns: int
    interval_ns: int
    read_ns: int
    program_ns: int
    scatter_ns: int
    suspend_ns: int
    write_ns: int
    buffer_ns: int  # die time of writes that the buffer hides from the host
    link_bytes_per_s: int
    capacity_bytes: int
    step_ns: int = 0
    program_units: int = 1  # consecutive units on a die
    flush_ns: int = 0
    is_protected: int = 1
    is_blocking: int = 0
    pipe_bytes_per_s: int = 10**15  # of the host's writes
    map_units: int = 1  # units of an entry of the map: programmed together
    slc_units: int = 0  # that the SLC cache takes; 0: there is none
    slc_units_per_s: int = 1  # folded while no write arrives
    slc_idle_ns: int = 0  # without a write, until folding begins
    native_program_ns: int = 0  # die time of a unit where the SLC cache is full
    erased_units: int = 0  # for which there is erased flash beside the SLC cache's cells
    folded_program_ns: int = 0  # die time of a unit where there is none; 0: that changes nothing
    folding_program_ns: int = 0  # die time of a unit while the full SLC cache is folded besides
    folding_units: int = 0  # written meanwhile; 0: it is not
    native_scatter_ns: int = 0  # die time of a request where the SLC cache is full
    write_interval_ns: int = 0
    is_by_stream: int = 0  # 1: scatter_ns is of scattered writes alone; 0: of any request
    needs_flush: int = 1  # 0: a FLUSH is not sent to it
    load_ns: int = 0  # of a program, in which it is not suspended; 0: dies are given units
    collect_ns: int = 0  # of the reads of a collection
    page_units: int = 1  # units that a die reads together
    write_lanes: int = 0  # of the controller, each takes one write at a time; 0: any number
    wake_ns: int = 0  # more, of a request that finds the drive idle
    sleep_ns: int = 0  # for so long


class FlashParameters(NamedTuple):
    """A solid-state disk in detail (2.8); mapped_units = 0: the mapping is not simulated."""

    dies: int
    channels: int
    unit_bytes: int
    program_units: int
    interval_ns: int
    command_ns: int
    write_ns: int
    read_ns: int
    step_ns: int
    program_ns: int
    collect_ns: int
    suspend_ns: int
    flush_ns: int
    bus_ns: int  # time of the commands of each transfer
    is_protected: int
    is_blocking: int
    buffer_units: int
    channel_bytes_per_s: int
    link_bytes_per_s: int
    capacity_bytes: int
    mapped_units: int = 0
    blocks: int = 0
    block_units: int = 0
    erase_ns: int = 0
    filled: int = 0
    is_static: int = 0  # 1: the address determines the die of a write


@dataclass
class RebuildParameters(Plain):
    """The member to rebuild, and the minimum and maximum rate (2.5.4)."""

    member: int
    min_bytes_per_s: int
    max_bytes_per_s: int


READ_OR_WRITE = (Op.READ, Op.WRITE)
WHOLE_REQUEST = 1 << 62  # unit_bytes of a limit that counts requests of any length as one


@dataclass
class LimitParameters(Plain):
    """A token bucket (2.9): units per second, and how far it may run ahead of that rate."""

    ops: Sequence[Op]  # that the limit applies to
    unit_bytes: int  # a request counts one unit per started `unit_bytes`; 1: bytes
    units_per_s: int
    burst_ns: int = 0  # bucket size over rate


@dataclass
class VolumeParameters(DeviceParameters):
    """A cloud volume (2.9); the tables of latencies have 1,024 entries, ascending."""

    limits: list[LimitParameters]
    read_latency_ns: list[int]
    write_latency_ns: list[int]
    stream_bytes_per_s: int
    capacity_bytes: int
    seed: int = 0
    random_unit_bytes: int = 1  # a request that continues none counts as a multiple of it
    stall_ns: int = 0  # nothing completes for so long; 0: there are no stalls
    stall_every_ns: int = 1  # once in each stretch of so long


@dataclass
class HostParameters(Plain):
    """The limits of the host in front of the cache (2.10); 0: no limit."""

    max_iops: int = 0
    max_bandwidth: int = 0  # bytes per second
    overhead_ns: int = 0
    hold_ns: int = 0
    hold_from: int = 1
    hold_within_ns: int = 0


@dataclass
class ArrayParameters(Plain):
    """How equal devices form an array (2.5)."""

    level: Level
    members: int
    chunk_bytes: int
    _: KW_ONLY
    spread: Spread = Spread.NEAR
    rmw_level: int = 1  # as in md: 0 never read-modify-write, 1 if it saves reads, 2 also at a tie
    failed: list[int] = field(default_factory=list)  # members that are missing
    rebuild: RebuildParameters | None = None
    queue_depth: int = 0  # maximum number of requests under way; 0: no limit
    path_latency_ns: int = 0  # to the array and back: each request completes so much later
    has_fua: bool = True  # else a FLUSH of the members follows a WRITE with FUA


@dataclass
class TierParameters(ArrayParameters):
    """An array and its devices."""

    device: Any  # DeviceParameters, SsdParameters or FlashParameters
    capacity_bytes: int  # that the whole array offers


@dataclass
class ThrottleParameters(Plain):
    """Writeback throttling in front of a tier of one device (2.16)."""

    target_ns: int
    queue_depth: int
    has_write_cache: bool


@dataclass
class ControllerParameters(Plain):
    """A RAID controller's DRAM (2.11); windows = 0: no read-ahead; lines = 0: writes through."""

    protected: bool
    high_lines: int
    low_lines: int
    oldest_above_lines: int
    idle_ns: int
    max_destages: int
    window_bytes: int
    windows: int
    read_ahead_bytes: int
    sequential_after: int
    streams: int
    line_bytes: int
    lines: int
    stripe_bytes: int
    latency_ns: int
    rate: int  # bytes per second


class EventParameters(NamedTuple):
    """Something that happens at a moment of the load (2.17)."""

    at_ns: int  # of the load: time without that for which the load was held
    change: Change
    down_ns: int = 0  # of a reboot or a crash: until the load goes on
    member: int = 0  # of the array: which fails or is rebuilt
    min_bytes_per_s: int = 1  # of a rebuild
    max_bytes_per_s: int = 1
    every_ns: int = 1  # of a pass: time between two reads
    end_bytes: int = 0  # of a pass: where it ends

    @property
    def rebuild(self) -> RebuildParameters:
        """What is rebuilt, and how fast."""
        return RebuildParameters(self.member, self.min_bytes_per_s, self.max_bytes_per_s)


@dataclass
class JobParameters(Plain):
    """One of several closed loops (2.2.1); its requests are those whose stream is its number.

    The fields from ramp_ns to keeps_on belong to the depth search (2.2.2).
    """

    depth: int = 1
    low: int = 1
    reap_min: int = 1
    reap_max: int = 1
    group: int = 0  # numbered from 0 without gaps
    delay_ns: int = 0
    run_ns: int = 0
    ramp_ns: int = 0
    limit_read_ns: int = 0  # 0: no limit, here and below
    limit_write_ns: int = 0
    limit_trim_ns: int = 0
    target_ns: int = 0
    window_ns: int = 0
    share: int = 10**6
    keeps_on: int = 0
    set: int = 0
    after: int = -1  # the set that it waits for; -1: none
    ends: int = 0  # which jobs end with it
    kin: int = 0
    weight: int = 0  # in a flow; 0: none
    flow: int = 0
    flow_sleep_ns: int = 0  # between two attempts of a job that its flow holds up
    pause_ns: int = 0  # 0: none
    pause_after: int = 1  # how many requests; 0: any number
    counts_issues: int = 0  # 0: completions
    pause_every_ns: int = 0  # after the check that led to the pause before; 0: any time
