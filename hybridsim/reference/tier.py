"""Arrays (2.5): equal devices behind one range of bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hybridsim.codes import Level, Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.device import Device
from hybridsim.reference.parameters import TierParameters


@dataclass
class Range:
    """Bytes of one member."""

    member: int
    start: int
    end: int


@dataclass
class RowSegment:
    """The same bytes [start, end) of each chunk of a row; a WRITE writes them in chunks `data`."""

    row: int
    start: int
    end: int
    data: list[int]


class Tier:
    """A stripe, or a RAID-5 laid out left-symmetric as Linux md does."""

    def __init__(self, parameters: TierParameters, devices: Sequence[Device]) -> None:
        self.level = parameters.level
        self.chunk = parameters.chunk_bytes
        self.capacity_bytes = parameters.capacity_bytes
        self.devices = devices

    def submit(self, op: Op, offset: int, length: int, done: Done) -> None:
        """Split a request among the members; it completes with its last part."""
        parts = Parts(done)
        if op in (Op.FLUSH, Op.DISCARD):
            for device in self.devices:
                device.submit(op, 0, 0, parts.another())
        elif op == Op.WRITE and self.level == Level.RAID5:
            for segment in self.segments(offset, length):
                self.write_segment(segment, parts.another())
        else:
            for each in self.ranges(offset, length):
                device = self.devices[each.member]
                device.submit(op, each.start, each.end - each.start, parts.another())

    # Where bytes lie.

    def parity_member(self, row: int) -> int:
        """The member that holds the parity of a row."""
        n = len(self.devices)
        return (n - 1) - row % n

    def data_member(self, row: int, index: int) -> int:
        """The member that holds a data chunk of a RAID-5 row."""
        return (self.parity_member(row) + 1 + index) % len(self.devices)

    def place(self, chunk: int) -> tuple[int, int]:
        """The member on which a chunk lies, and its first byte there."""
        n = len(self.devices)
        if self.level == Level.RAID5:
            row, index = divmod(chunk, n - 1)
            return self.data_member(row, index), row * self.chunk
        return chunk % n, chunk // n * self.chunk

    # Reads, and writes without parity.

    def ranges(self, offset: int, length: int) -> list[Range]:
        """The ranges that a request makes on the members, in the order in which they are issued."""
        issued: list[Range] = []
        opened: dict[int, Range] = {}
        while length > 0:
            member, base = self.place(offset // self.chunk)
            start = base + offset % self.chunk
            size = min(length, self.chunk - offset % self.chunk)
            if member in opened and opened[member].end == start:
                opened[member].end += size
            else:
                if member in opened:
                    issued.append(opened[member])
                opened[member] = Range(member, start, start + size)
            offset += size
            length -= size
        return issued + [opened[member] for member in sorted(opened)]

    # Writes with parity.

    def segments(self, offset: int, length: int) -> list[RowSegment]:
        """The segments of a RAID-5 WRITE, row by row."""
        row_bytes = (len(self.devices) - 1) * self.chunk
        end = offset + length
        result = []
        for row in range(offset // row_bytes, (end - 1) // row_bytes + 1):
            a = max(offset - row * row_bytes, 0)
            b = min(end - row * row_bytes, row_bytes)
            result += self.row_segments(row, a, b)
        return result

    def row_segments(self, row: int, a: int, b: int) -> list[RowSegment]:
        """Cut the data [a, b) of a row where the set of written chunks changes."""
        first, x = divmod(a, self.chunk)
        last, y = divmod(b - 1, self.chunk)
        y += 1
        if first == last:
            return [RowSegment(row, x, y, [first])]
        result = []
        breakpoints = sorted([0, x, y, self.chunk])
        for u, v in pairwise(breakpoints):
            data = list(range(first + 1, last))
            if u >= x:
                data.insert(0, first)
            if v <= y:
                data.append(last)
            if u < v and data:
                result.append(RowSegment(row, u, v, data))
        return result

    def write_segment(self, segment: RowSegment, done: Done) -> None:
        """Write a segment and its parity, after reading what the new parity is computed from."""
        n = len(self.devices)
        count = len(segment.data)
        written = {self.data_member(segment.row, index) for index in segment.data}
        written.add(self.parity_member(segment.row))
        others = set(range(n)) - written

        def write() -> None:
            self.submit_segment(Op.WRITE, segment, written, Parts(done))

        if count == n - 1:
            write()
        elif count + 1 < n - 1 - count:  # read-modify-write: old data and old parity
            self.submit_segment(Op.READ, segment, written, Parts(write))
        else:  # reconstruct-write: the data that stay
            self.submit_segment(Op.READ, segment, others, Parts(write))

    def submit_segment(self, op: Op, segment: RowSegment, members: set[int], parts: Parts) -> None:
        """Submit the range of a segment to some members."""
        start = segment.row * self.chunk + segment.start
        for member in sorted(members):
            self.devices[member].submit(op, start, segment.end - segment.start, parts.another())
