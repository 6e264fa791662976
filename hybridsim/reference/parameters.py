"""What happens in a simulation: requests, their source, and events; plain dataclasses."""

from dataclasses import dataclass, field

from hybridsim.foundation.cache_parameters import Plain
from hybridsim.foundation.codes import Change, Op, Replay


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
