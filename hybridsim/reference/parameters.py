"""What happens in a simulation: requests, their source, and events; plain dataclasses."""

from dataclasses import dataclass, field

from hybridsim.foundation.cache_parameters import Plain
from hybridsim.foundation.codes import Op, Replay
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
