"""The state of a hard disk (2.6)."""

from dataclasses import dataclass

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Done


@dataclass
class Command:
    """A command from the host."""

    op: Op
    offset: int
    length: int
    submitted: int
    done: Done
    prepared: int = 0  # when it can go to the platters
    arrived: int = 0  # when enough of a write's data is in the disk to write it
    entered: int = 0  # when it entered the window that the arm chooses from
    follows_other: bool = False  # a read after a write, or a write after a read
    is_apart: bool = False  # a write that does not continue the write before it
    serial: int = 0  # of a FLUSH: the last write that it waits for

    @property
    def end(self) -> int:
        """The byte after the last byte."""
        return self.offset + self.length


@dataclass
class Segment:
    """Bytes [start, end) that were read; the last one passed the head at `time`."""

    start: int
    end: int
    time: int


@dataclass
class Reading:
    """The read-ahead of a segment up to byte `stop`, which it reaches at `time`."""

    segment: Segment
    stop: int
    time: int


@dataclass
class Range:
    """Bytes in the write cache."""

    start: int
    end: int
    ready: int  # when they have arrived from the host
    serial: int

    def has(self, offset: int, end: int) -> bool:
        """Whether all these bytes are in the range."""
        return self.start <= offset and end <= self.end
