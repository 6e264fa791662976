"""Writes to rows with parity (2.5.3): segments, who waits for whom, and what is read first."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.member import Range

if TYPE_CHECKING:
    from hybridsim.reference.tier import Tier

STRIPE = 4096  # bytes of each member that md treats as one


@dataclass
class Segment:
    """The same bytes [start, end) of each chunk of a row, and the data chunks it is about."""

    row: int
    start: int
    end: int
    data: list[int]


def row_segments(chunk: int, row: int, a: int, b: int) -> list[Segment]:
    """Cut the data [a, b) of a row where the set of its chunks changes."""
    first, x = divmod(a, chunk)
    last, y = divmod(b - 1, chunk)
    y += 1
    if first == last:
        return [Segment(row, x, y, [first])]
    result = []
    for u, v in pairwise(sorted([0, x, y, chunk])):
        data = list(range(first + 1, last))
        if u >= x:
            data.insert(0, first)
        if v <= y:
            data.append(last)
        if u < v and data:
            result.append(Segment(row, u, v, data))
    return result


@dataclass(eq=False)
class SegmentWrite:
    """A segment on its way to the members."""

    op: int
    segment: Segment
    done: Done
    state: str = "waits"  # then "reads", "writes"
    joined: list[Done] = field(default_factory=list)


class ParityWrites:
    """The segments of a tier that are being written or wait to be."""

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self.by_row: dict[int, list[SegmentWrite]] = defaultdict(list)  # the oldest first

    def submit(self, op: int, segments: list[Segment], done: Done) -> None:
        """Write all segments of a request."""
        parts = Parts(done)
        for segment in segments:
            self.take(SegmentWrite(op, segment, parts.another()))

    def take(self, new: SegmentWrite) -> None:
        """Begin a segment, or let it wait, or let the one before it take it along."""
        row = self.by_row[new.segment.row]
        met = [other for other in row if self.meet(new, other)]
        if met and self.can_join(new, met[-1]):
            rival = met[-1]
            rival.segment.data = sorted(rival.segment.data + new.segment.data)
            rival.op |= new.op
            rival.joined.append(new.done)
            return
        row.append(new)
        if not met:
            self.begin(new)

    def meet(self, one: SegmentWrite, other: SegmentWrite) -> bool:
        """Whether two segments of a row touch a common stripe of the members."""
        (a, b), (c, d) = self.tier.bytes_of(one.segment), self.tier.bytes_of(other.segment)
        return a // STRIPE <= (d - 1) // STRIPE and c // STRIPE <= (b - 1) // STRIPE

    def can_join(self, new: SegmentWrite, other: SegmentWrite) -> bool:
        """Whether the other can write the new one's data too."""
        one, two = new.segment, other.segment
        if (one.start, one.end) != (two.start, two.end):
            return False
        if one.data[0] != two.data[-1] + 1 and two.data[0] != one.data[-1] + 1:
            return False
        together = len(one.data) + len(two.data)
        return other.state == "waits" or (
            other.state == "reads" and together == self.tier.data_per_row
        )

    def begin(self, write: SegmentWrite) -> None:
        """Read what the parity is computed from, if it needs any of it, then write."""
        start, end = self.tier.bytes_of(write.segment)
        sources = self.sources(write.segment, end)
        if not sources:
            self.write(write)
            return
        write.state = "reads"
        parts = Parts(lambda: self.write(write))
        for member in sorted(sources):
            self.to_member(Op.READ, member, start, end, parts)

    def sources(self, segment: Segment, end: int) -> set[int]:
        """The members to be read before a segment is written."""
        tier = self.tier
        if len(segment.data) == tier.data_per_row:
            return set()
        old = self.written_members(segment)
        others = set(range(len(tier.members))) - old
        readable = tier.readable_members(end)
        level = tier.parameters.rmw_level
        can_modify, can_reconstruct = level > 0 and old <= readable, others <= readable
        if can_modify and can_reconstruct:
            saves = len(old) < len(others) or (level == 2 and len(old) == len(others))
            return old if saves else others
        if can_modify:
            return old
        return others if can_reconstruct else readable

    def written_members(self, segment: Segment) -> set[int]:
        """The members of a segment's data and parities."""
        tier = self.tier
        data = {tier.data_member(segment.row, index) for index in segment.data}
        return data | tier.parity_members(segment.row)

    def write(self, write: SegmentWrite) -> None:
        """Write data and parities to the members that are there."""
        write.state = "writes"
        start, end = self.tier.bytes_of(write.segment)
        parts = Parts(lambda: self.complete(write))
        for member in sorted(self.written_members(write.segment)):
            if member not in self.tier.parameters.failed:
                self.to_member(write.op, member, start, end, parts)

    def to_member(self, op: int, member: int, start: int, end: int, parts: Parts) -> None:
        """Submit the range of a segment to a member."""
        self.tier.to_member(op, Range(member, start, end), parts.another())

    def complete(self, write: SegmentWrite) -> None:
        """Tell those that joined, start those that waited, then tell the request."""
        row = self.by_row[write.segment.row]
        row.remove(write)
        for done in write.joined:
            self.tier.clock.at(self.tier.clock.now, done)
        for position, other in enumerate(row):
            if other.state == "waits" and not any(self.meet(other, o) for o in row[:position]):
                self.begin(other)
        write.done()
