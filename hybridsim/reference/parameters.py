"""What goes into a simulation and what comes out of it: plain dataclasses of plain ints."""

from dataclasses import dataclass, field, fields
from typing import Any

from hybridsim.codes import Level, Mode, Op, Path, Reason, Replay, Spread


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's, whose integers never overflow."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


class _Plain:
    """A dataclass that may be given NumPy's numbers and keeps Python's."""

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            setattr(self, each.name, _plain(getattr(self, each.name)))


@dataclass
class HddParameters(_Plain):
    """A hard disk (2.6). Zone z begins at byte zone_byte[z], on track zone_track[z]."""

    rev_ns: int
    zone_byte: list[int]
    zone_track: list[int]
    zone_track_bytes: list[int]
    surfaces: int
    seek_ns: list[int]
    seek_shift: int
    head_switch_ns: int
    skew_ns: int
    settle_ns: int
    overhead_ns: int
    window: int
    age_limit_ns: int
    read_ahead_bytes: int
    capacity_bytes: int


@dataclass
class SsdParameters(_Plain):
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


@dataclass
class RebuildParameters(_Plain):
    """The member that is written anew, and the least and the greatest pace (2.5.4)."""

    member: int
    min_bytes_per_s: int
    max_bytes_per_s: int


@dataclass
class TierParameters(_Plain):
    """An array of equal devices (2.5); capacity_bytes is what the whole array offers.

    It has `queue_depth` requests under way at most; 0 is no limit.
    """

    level: Level
    members: int
    chunk_bytes: int
    device: HddParameters | SsdParameters
    capacity_bytes: int
    spread: Spread = Spread.NEAR
    rmw_level: int = 1
    failed: list[int] = field(default_factory=list)
    rebuild: RebuildParameters | None = None
    queue_depth: int = 0


@dataclass
class CacheParameters(_Plain):
    """The page cache and its policies (2.3, 2.4); pages = 0 is a machine without one."""

    page_bytes: int
    pages: int
    mode: Mode
    cutoff_bytes: int
    fills_max: int
    admission: tuple[str, int] | tuple[str]  # ("touches", n) or ("learned",)
    replacement: str = "lru"


@dataclass
class SourceParameters(_Plain):
    """When requests are issued (2.2); depth is for closed, speed for open and think."""

    mode: Replay
    depth: int = 1
    speed: float = 1.0


@dataclass
class Request(_Plain):
    """One request of a trace; complete_ns is when it completed there, -1 if that is unknown."""

    arrival_ns: int
    op: Op
    offset: int
    length: int
    stream: int = 0
    complete_ns: int = -1
    flags: int = 0  # codes.FUA, codes.PREFLUSH

    def __post_init__(self) -> None:
        super().__post_init__()
        self.op = Op(self.op)
        if self.op == Op.WRITE_ZEROES:
            self.op = Op.WRITE


@dataclass
class Fact:
    """What became of one request."""

    number: int
    issue_ns: int
    done_ns: int
    op: Op
    length: int
    path: Path
    reason: Reason
    pages: int  # that it touched; 0 without a cache
    pages_hit: int  # that a READ got from the fast tier


@dataclass
class Outcome:
    """What a simulation gives: facts in order of completion, and sums.

    Counters: `fills_started` (pages reserved) is `fills_completed` + `fills_doomed` at the end;
    `evictions`; for each tier (slow_, fast_), of all its devices together, `read_bytes` and
    `write_bytes`, and of hard disks' accesses to the media `move_ns` (with settling), `rotation_ns`
    and `transfer_ns`.
    """

    facts: list[Fact] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
