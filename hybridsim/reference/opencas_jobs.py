"""Requests under way in Open CAS (2.13.1)."""

from enum import Enum

from hybridsim.foundation.codes import FUA, Op, Path, Reason
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import Done
from hybridsim.reference.opencas_lines import Claim, Line
from hybridsim.reference.opencas_threads import Thread

SECTOR = 512
NO_CLAIM = Claim([], False, lambda: None)


class Way(Enum):
    """How a job uses the cache."""

    INSERT = "insert"
    UPDATE = "update"
    INVALIDATE = "invalidate"
    OVERLAY = "overlay"
    PASS = "pass"


class Job:
    """A READ or WRITE of whole sectors."""

    def __init__(
        self,
        op: Op,
        offset: int,
        length: int,
        line_bytes: int,
        done: Done,
        flags: int,
        thread: Thread,
    ) -> None:
        self.op = op
        self.flagged = op | (flags & FUA)
        self.done = done
        self.thread = thread
        self.offset = offset // SECTOR * SECTOR
        self.end = -(-(offset + length) // SECTOR) * SECTOR
        self.line_bytes = line_bytes
        first, last = self.offset // line_bytes, (self.end - 1) // line_bytes
        self.core_lines = range(first, last + 1)
        self.verdict = Verdict(Path.BYPASS, Reason.WRITE, len(self.core_lines))
        self.way = Way.INSERT
        self.cut = False
        self.lines: dict[int, Line] = {}  # by core line
        self.claim = NO_CLAIM

    @property
    def length(self) -> int:
        """The length in bytes."""
        return self.end - self.offset

    def part(self, core_line: int) -> tuple[int, int]:
        """Return the byte range of the job in a core line, relative to the line's start."""
        start = core_line * self.line_bytes
        return max(self.offset - start, 0), min(self.end - start, self.line_bytes)

    def sectors(self, core_line: int) -> set[int]:
        """Return the sectors of the job in a core line."""
        start, end = self.part(core_line)
        return set(range(start // SECTOR, end // SECTOR))

    def judge(self, path: Path, reason: Reason) -> None:
        """Set the path of a READ."""
        if self.op == Op.READ:
            self.verdict.path, self.verdict.reason = path, reason
