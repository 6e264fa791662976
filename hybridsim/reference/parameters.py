"""What goes into a simulation beside its parts, and what comes out; plain dataclasses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from hybridsim.foundation.cache_parameters import Plain
from hybridsim.foundation.codes import Op, Path, Reason, Replay
from hybridsim.foundation.machine_parameters import JobParameters


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


@dataclass
class Fact:
    """The result of one request; times in nanoseconds."""

    number: int
    issue_ns: int
    done_ns: int
    op: Op
    length: int
    path: Path
    reason: Reason
    pages: int  # pages touched; 0 without a cache
    pages_hit: int  # pages that a READ got from the fast tier


@dataclass
class Outcome:
    """The result of a simulation: facts in order of completion, and counters.

    Counters: `fills_started` (pages reserved) is `fills_completed` + `fills_doomed` at the end;
    `evictions`; for each tier (slow_, fast_), of all its devices together, `read_bytes` and
    `write_bytes`, and of hard disks' accesses to the media `move_ns` (with settling), `rotation_ns`
    and `transfer_ns`, of volumes `iops_limit_ns`, `bandwidth_limit_ns` and `latency_ns` (of all
    requests) and `throttled_ns` (of the volume, while any request waited).
    """

    facts: list[Fact] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
