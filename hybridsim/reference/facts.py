"""The results of a simulation: plain dataclasses of plain ints."""

from dataclasses import dataclass, field

from hybridsim.foundation.codes import Op, Path, Reason


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
    counters: dict[str, int] = field(default_factory=dict)
