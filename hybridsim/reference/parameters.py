"""The parameters of a simulation but those of caches: plain dataclasses of plain ints."""

from dataclasses import dataclass, field

from hybridsim.foundation.cache_parameters import Plain
from hybridsim.foundation.codes import Change, Level, Op, Order, Replay, Spread


@dataclass
class EventParameters(Plain):
    """Something that happens at a moment of the load (2.17)."""

    at_ns: int
    change: Change
    down_ns: int = 0
    member: int = 0  # of DISK_FAILS and REBUILD
    min_bytes_per_s: int = 1  # of REBUILD
    max_bytes_per_s: int = 1
    every_ns: int = 1  # of PASS: between two reads
    end_bytes: int = 0  # of PASS


class DeviceParameters(Plain):
    """A dataclass of the parameters of a device."""

    capacity_bytes: int


@dataclass
class HddParameters(DeviceParameters):
    """A hard disk (2.6). Zone z begins at byte zone_byte[z], on track zone_track[z]."""

    rev_ns: int
    zone_byte: list[int]
    zone_track: list[int]
    zone_track_bytes: list[int]
    zone_angle_ns: list[int]
    zone_skew_ns: list[int]
    zone_cylinder_skew_ns: list[int]  # more than zone_skew_ns at the border of a cylinder
    surfaces: int
    seek_shift: int
    move_ns: list[int]
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
    read_percent: int = 0  # of a read, in the buffer before its transfer to the host begins
    write_percent: int = 100  # of a write, in the disk before it goes to the platters
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
    media_span_bytes: int = 0  # of the media cache; 0: none, and the bands are not shingled
    media_first_byte: int = 0  # whose place is that of the media cache's position 0
    media_padding_bytes: int = 0  # that each entry takes more
    media_write_bytes: int = 2**62  # written to it at once
    media_entries: int = 1
    media_idle_ns: int = 0  # without work, then it is cleaned
    media_run_bytes: int = 0  # of writes in sequence that pass it by
    media_map_entries: int = 2**62  # with more, each write to it writes a part of its map as well
    media_map_ns: int = 0  # which takes so long
    media_piece_ns: int = 0  # of cleaning, for each entry
    band_bytes: int = 1


@dataclass
class SsdParameters(DeviceParameters):
    """A solid-state disk (2.7)."""

    dies: int
    unit_bytes: int
    command_ns: int
    interval_ns: int
    read_ns: int
    program_ns: int
    scatter_ns: int
    suspend_ns: int
    write_ns: int
    buffer_ns: int
    link_bytes_per_s: int
    capacity_bytes: int
    step_ns: int = 0
    program_units: int = 1
    flush_ns: int = 0
    is_protected: int = 1
    is_blocking: int = 0
    pipe_bytes_per_s: int = 10**15
    map_units: int = 1
    slc_units: int = 0
    slc_units_per_s: int = 1
    slc_idle_ns: int = 0
    native_program_ns: int = 0
    erased_units: int = 0
    folded_program_ns: int = 0
    folding_program_ns: int = 0
    folding_units: int = 0
    native_scatter_ns: int = 0
    write_interval_ns: int = 0
    is_by_stream: int = 0
    needs_flush: int = 1
    load_ns: int = 0
    collect_ns: int = 0
    page_units: int = 1  # read together by a die
    write_lanes: int = 0  # of the controller, each takes one write at a time; 0: any number
    wake_ns: int = 0  # more, of a request that finds the drive idle
    sleep_ns: int = 0  # for so long


@dataclass
class FlashParameters(DeviceParameters):
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
    bus_ns: int
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
    is_static: int = 0


@dataclass
class RebuildParameters(Plain):
    """The member to rebuild, and the minimum and maximum rate (2.5.4)."""

    member: int
    min_bytes_per_s: int
    max_bytes_per_s: int


@dataclass
class LimitParameters(Plain):
    """A token bucket (2.9): units per second, with a burst of burst_ns."""

    ops: list[Op]  # that the limit applies to
    unit_bytes: int
    units_per_s: int
    burst_ns: int = 0


@dataclass
class VolumeParameters(DeviceParameters):
    """A cloud volume (2.9); the tables of latencies have 1,024 entries, ascending."""

    limits: list[LimitParameters]
    read_latency_ns: list[int]
    write_latency_ns: list[int]
    stream_bytes_per_s: int
    capacity_bytes: int
    seed: int = 0
    random_unit_bytes: int = 1
    stall_ns: int = 0
    stall_every_ns: int = 1


@dataclass
class HostParameters(Plain):
    """The limits of the host in front of the cache (2.10); 0: no limit."""

    max_iops: int = 0
    max_bytes_per_s: int = 0
    overhead_ns: int = 0
    hold_ns: int = 0
    hold_from: int = 1
    hold_within_ns: int = 0


@dataclass
class TierParameters(Plain):
    """An array of equal devices (2.5); capacity_bytes is what the whole array offers.

    At most `queue_depth` requests are under way; 0: no limit.  Each completes `path_ns`
    after its member requests.  Without `has_fua`, a FLUSH of the members follows a WRITE with FUA.
    """

    level: Level
    members: int
    chunk_bytes: int
    device: DeviceParameters
    capacity_bytes: int
    spread: Spread = Spread.NEAR
    rmw_level: int = 1
    failed: list[int] = field(default_factory=list)
    rebuild: RebuildParameters | None = None
    queue_depth: int = 0
    path_ns: int = 0
    has_fua: bool = True


@dataclass
class ThrottleParameters(Plain):
    """Writeback throttling in front of a tier of one device (2.16)."""

    target_ns: int
    queue_depth: int
    has_write_cache: bool


@dataclass
class ControllerParameters(Plain):
    """A RAID controller's DRAM (2.11); windows = 0: no read-ahead; lines = 0: writes through."""

    protected: int
    high_lines: int
    low_lines: int
    oldest_above_lines: int
    idle_ns: int
    destages_max: int
    window_bytes: int
    windows: int
    ahead_bytes: int
    after: int
    streams: int
    line_bytes: int
    lines: int
    stripe_bytes: int
    latency_ns: int
    bytes_per_s: int


@dataclass
class JobParameters(Plain):
    """One of several closed loops (2.2.1); its requests are those whose stream is its number.

    The fields from ramp_ns to keeps_on belong to the depth search (2.2.2).
    """

    depth: int = 1
    low: int = 1
    reap_min: int = 1
    reap_max: int = 1
    group: int = 0
    delay_ns: int = 0
    run_ns: int = 0
    ramp_ns: int = 0
    limit_read_ns: int = 0
    limit_write_ns: int = 0
    limit_trim_ns: int = 0
    target_ns: int = 0
    window_ns: int = 0
    share: int = 10**6
    keeps_on: int = 0
    set: int = 0
    after: int = -1
    ends: int = 0
    kin: int = 0
    weight: int = 0
    flow: int = 0
    flow_sleep_ns: int = 0
    pause_ns: int = 0  # 0: none
    pause_after: int = 1
    counts_issues: int = 0
    pause_every_ns: int = 0


@dataclass
class SourceParameters(Plain):
    """When requests are issued (2.2); depth applies to closed, speed to open and think.

    With jobs the other fields are ignored.
    """

    mode: Replay
    depth: int = 1
    speed: float = 1.0
    jobs: list[JobParameters] = field(default_factory=list)


@dataclass
class Request(Plain):
    """One request of a trace; complete_ns is its recorded completion, -1 if unknown."""

    arrival_ns: int
    op: Op
    offset: int
    length: int
    stream: int = 0
    complete_ns: int = -1
    flags: int = 0  # codes.FUA, codes.PREFLUSH, codes.SYNC
    think_ns: int = 0  # jobs only; there arrival_ns counts from the job's start
    may_pause: bool = True  # jobs only

    def __post_init__(self) -> None:
        super().__post_init__()
        self.op = Op(self.op)
        if self.op == Op.WRITE_ZEROES:
            self.op = Op.WRITE
