"""Arrays (2.5): equal devices behind one range of bytes."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Level, Op, Spread
from hybridsim.foundation.machine_parameters import HddParameters, RebuildParameters, TierParameters
from hybridsim.reference.clock import Done, Parts, Step, each_of, in_turn
from hybridsim.reference.device import Device, Store
from hybridsim.reference.runs import split, touched

Health = Enum("Health", "WHOLE FAILED REBUILDING")  # of a member


class Range(NamedTuple):
    """Bytes of one member."""

    member: int
    start: int
    end: int


@dataclass
class Member:
    """A place in the array, with the device in it."""

    device: Device
    health: Health = Health.WHOLE
    began: list[int] = field(default_factory=list)  # start times of requests under way
    idle_until: int = 0  # start of the current or last busy period
    head: int = 0  # end of the last request
    next_read: int = -1  # end of the last READ


STRIPE = 4096  # bytes of each member that md treats as one
SECOND = 10**9


class Tier(Store):
    """One array over the devices of its members."""

    def __init__(self, parameters: TierParameters, devices: Sequence[Device]) -> None:
        self.parameters = p = parameters
        self.clock = devices[0].clock
        self.capacity_bytes = p.capacity_bytes
        self.devices = devices
        self.members = [Member(device) for device in devices]
        for number in p.failed:
            self.members[number].health = Health.FAILED
        self.parities = {Level.RAID5: 1, Level.RAID6: 2}.get(p.level, 0)
        self.data_per_row = p.members - self.parities
        self.copies = {Level.RAID1: p.members, Level.RAID10: 2}.get(p.level, 1)
        self.chunk = p.chunk_bytes
        self.rows = p.device.capacity_bytes // p.chunk_bytes
        if p.level in (Level.LINEAR, Level.RAID1):
            self.chunk *= self.rows
            self.rows = 1
        self.under_way = 0
        self.counters: Counter[str] = Counter()
        self.line: deque[Done] = deque()  # requests that wait
        self.parity_writes = ParityWrites(self)
        self.rebuild: Rebuild | None = None
        if p.rebuild is not None:
            self.replace(p.rebuild)

    def replace(self, parameters: RebuildParameters) -> None:
        """Begin to rebuild a member now."""
        self.members[parameters.member].health = Health.REBUILDING
        self.rebuild = Rebuild(self, parameters)

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Begin a request, or queue it at the queue depth limit."""
        self.outstanding += 1
        request = partial(in_turn, self.serving(op, offset, length), done)
        if self.under_way == self.parameters.queue_depth > 0:
            self.line.append(request)
        else:
            request()

    def serving(self, op: int, offset: int, length: int) -> Iterator[Step]:
        """Issue a request to the members; it completes `path_latency_ns` after its last part."""
        self.under_way += 1
        plain = op & OP_MASK
        is_redundant = self.parities > 0 or self.copies > 1
        if length == 0 or plain == Op.FLUSH or (plain == Op.DISCARD and is_redundant):
            yield partial(self.to_all, plain)
        elif plain == Op.READ:
            yield partial(self.read, offset, length)
        else:
            flushes_behind = op & FUA and not self.parameters.has_fua
            if op & PREFLUSH:
                yield partial(self.to_all, Op.FLUSH)
            kept = plain | (0 if flushes_behind else op & FUA)
            yield partial(self.write, kept, offset, length)
            if flushes_behind:
                yield partial(self.to_all, Op.FLUSH)
        if self.parameters.path_latency_ns:
            yield partial(self.clock.at, self.clock.now + self.parameters.path_latency_ns)
        self.outstanding -= 1
        self.under_way -= 1
        if self.line:
            self.line.popleft()()
        if self.is_idle and self.rebuild is not None:
            self.rebuild.quiet_since = self.clock.now
            self.rebuild.look()

    def to_all(self, op: int, done: Done) -> None:
        """Send a FLUSH, DISCARD or empty request to every member that has not failed."""
        each_of([self.to_member(op, n, 0, 0) for n in self.not_failed()], done)

    def not_failed(self) -> list[int]:
        """Return the members that take writes."""
        return [n for n, each in enumerate(self.members) if each.health != Health.FAILED]

    def to_member(self, op: int, number: int, start: int, end: int) -> Step:
        """Return a request for a range of a member as a step."""
        return partial(in_turn, self.accessing(op, self.members[number], start, end))

    def accessing(self, op: int, member: Member, start: int, end: int) -> Iterator[Step]:
        """Submit a range to a member's device."""
        began = self.clock.now
        if not member.began:
            member.idle_until = began
        member.began.append(began)
        member.head = end
        yield partial(member.device.submit, op, start, end - start)
        member.began.remove(began)
        self.counters["requests_ns"] += self.clock.now - began
        if not member.began:
            self.counters["in_use_ns"] += self.clock.now - member.idle_until

    def usage(self) -> dict[str, int]:
        """Return the summed request times and the summed in-use times of the members (2.5.5)."""
        now, busy = self.clock.now, [member for member in self.members if member.began]
        requests = sum(now - began for member in busy for began in member.began)
        in_use = sum(now - member.idle_until for member in busy)
        return {
            "requests_ns": self.counters["requests_ns"] + requests,
            "in_use_ns": self.counters["in_use_ns"] + in_use,
        }

    def read(self, offset: int, length: int, done: Done) -> None:
        """Read the data, or what they are reconstructed from where a member is lost."""
        parts = Parts(done)
        for each in self.ranges(offset, length):
            self.to_member(Op.READ, *each)(parts.another())

    def write(self, op: int, offset: int, length: int, done: Done) -> None:
        """Write to all members that hold the data or their parity."""
        if self.parities:
            take = partial(self.parity_writes.take, op)
            each_of([partial(take, each) for each in self.segments(offset, length)], done)
        else:
            pieces = joined_pieces(self.pieces_written(offset, length))
            each_of([self.to_member(op, *each) for each in pieces], done)

    # Where bytes lie.

    def data_member(self, row: int, index: int) -> int:
        """Return the member of a data chunk of a row; P, and Q behind it, precede the first."""
        n = len(self.members)
        return ((n - 1) - row % n + self.parities + index) % n

    def place(self, chunk: int, copy: int = 0) -> tuple[int, int]:
        """Return the member of a copy of a chunk, and the first byte of the copy there."""
        n = len(self.members)
        if self.parities:
            row, index = divmod(chunk, self.data_per_row)
            return self.data_member(row, index), row * self.chunk
        row, member = divmod(chunk, n)
        match self.parameters.spread:
            case Spread.NEAR:
                row, member = divmod(chunk * self.copies + copy, n)
            case Spread.FAR:
                row, member = row + copy * (self.rows // self.copies), (member + copy) % n
            case Spread.OFFSET:
                row, member = row * self.copies + copy, (member + copy) % n
        return member, row * self.chunk

    def is_readable(self, number: int, end: int) -> bool:
        """Whether a member has valid data up to this byte."""
        health = self.members[number].health
        if health == Health.REBUILDING:
            assert self.rebuild is not None
            return end <= self.rebuild.line
        return health == Health.WHOLE

    # Reads, and writes without parity.

    def copies_of(self, chunk: int, start: int, end: int) -> list[Range]:
        """Return where each copy of [start, end), a part of a chunk, lies."""
        places = [self.place(chunk, copy) for copy in range(self.copies)]
        moved = [(member, base - chunk * self.chunk) for member, base in places]
        return [Range(member, start + by, end + by) for member, by in moved]

    def ranges(self, offset: int, length: int) -> Iterator[Range]:
        """Yield the member ranges of a READ, each at the moment when it is issued."""
        if self.parities and any(each.health != Health.WHOLE for each in self.members):
            pieces = list(self.pieces_read(offset, length))
            readable = all(self.is_readable(each.member, each.end) for each in pieces)
            if not (len(pieces) == 1 and readable):
                return joined_pieces(self.pieces_degraded(offset, length))
        return joined_pieces(self.pieces_read(offset, length))

    def pieces_read(self, offset: int, length: int) -> Iterator[Range]:
        """Yield one piece for each chunk part, from the copy chosen for reading."""
        for part in split(offset, offset + length, self.chunk):
            copies = self.copies_of(*part)
            yield self.choose(copies) if len(copies) > 1 else copies[0]

    def choose(self, copies: list[Range]) -> Range:
        """Choose the copy to read from."""
        readable = [each for each in copies if self.is_readable(each.member, each.end)]
        if self.parameters.spread == Spread.NEAR:
            chosen = min(readable, key=self.mirror_cost)  # min() gives the first of equals
        else:
            chosen = readable[0]
        self.members[chosen.member].next_read = chosen.end
        return chosen

    def mirror_cost(self, where: Range) -> tuple[int, int]:
        """Rank a mirror, lowest first: sequential, idle, then nearest (disks) or least busy."""
        member = self.members[where.member]
        if where.start in (member.head, member.next_read):
            return 0, 0
        if not isinstance(self.parameters.device, HddParameters):
            return 1, len(member.began)
        return (2, abs(where.start - member.head)) if member.began else (1, 0)

    def pieces_written(self, offset: int, length: int) -> Iterator[Range]:
        """Yield every copy of each chunk part, except on failed members."""
        for part in split(offset, offset + length, self.chunk):
            for each in self.copies_of(*part):
                if self.members[each.member].health != Health.FAILED:
                    yield each

    def pieces_degraded(self, offset: int, length: int) -> Iterator[Range]:
        """Yield the pieces that a READ of rows with parity needs where a member is lost."""
        for segment in self.segments(offset, length):
            start, end = self.bytes_of(segment)
            wanted = {self.data_member(segment.row, index) for index in segment.data}
            if not all(self.is_readable(number, end) for number in wanted):
                wanted = self.readable_members(end)
            for number in sorted(wanted):
                yield Range(number, start, end)

    def readable_members(self, end: int) -> set[int]:
        """Return all members that have valid data up to this byte."""
        return {n for n in range(len(self.members)) if self.is_readable(n, end)}

    # Rows with parity.

    def bytes_of(self, segment: Segment) -> tuple[int, int]:
        """Return the byte range of a segment on each member."""
        base = segment.row * self.chunk
        return base + segment.start, base + segment.end

    def segments(self, offset: int, length: int) -> list[Segment]:
        """Return the segments of a range, row by row."""
        size = self.data_per_row * self.chunk
        return [
            segment
            for row, first, last in split(offset, offset + length, size)
            for segment in row_segments(self.chunk, row, first - row * size, last - row * size)
        ]


def joined_pieces(pieces: Iterable[Range]) -> Iterator[Range]:
    """Join adjacent pieces of the same member.

    Each range is issued before the next piece is requested, because requests already issued
    influence the choice of the next mirror.
    """
    opened: dict[int, Range] = {}
    for piece in pieces:
        before = opened.get(piece.member)
        if before is not None and before.end == piece.start:
            opened[piece.member] = before._replace(end=piece.end)
            continue
        opened[piece.member] = piece
        if before is not None:
            yield before
    yield from (opened[member] for member in sorted(opened))


# Writes to rows with parity (2.5.3).


@dataclass
class Segment:
    """The same bytes [start, end) of each chunk of a row, with the data chunks concerned."""

    row: int
    start: int
    end: int
    data: list[int]


def row_segments(chunk: int, row: int, a: int, b: int) -> list[Segment]:
    """Cut the data [a, b) of a row where the set of chunks concerned changes."""
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
    """A segment that is being written or waits."""

    op: int
    segment: Segment
    done: Done
    state: str = "waits"  # then "reads", "writes"
    joined: list[Done] = field(default_factory=list)


class ParityWrites:
    """The segments of a tier that are being written or wait for another segment."""

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self.by_row: dict[int, list[SegmentWrite]] = defaultdict(list)  # oldest first

    def take(self, op: int, segment: Segment, done: Done) -> None:
        """Begin a segment, or let it wait, or merge it into the segment before it."""
        new, row = SegmentWrite(op, segment, done), self.by_row[segment.row]
        overlapping = [other for other in row if self.overlap(new, other)]
        if overlapping and self.can_join(new, overlapping[-1]):
            earlier = overlapping[-1]
            earlier.segment.data = sorted(earlier.segment.data + new.segment.data)
            earlier.op |= new.op
            earlier.joined.append(new.done)
            return
        row.append(new)
        if not overlapping:
            in_turn(self.writing(new))

    def overlap(self, one: SegmentWrite, other: SegmentWrite) -> bool:
        """Whether two segments of a row touch the same stripe of the members."""
        a, b = (touched(*self.tier.bytes_of(each.segment), STRIPE) for each in (one, other))
        return max(a.start, b.start) < min(a.stop, b.stop)

    def can_join(self, new: SegmentWrite, other: SegmentWrite) -> bool:
        """Whether the other segment can write the data of the new one too."""
        one, two = new.segment, other.segment
        if (one.start, one.end) != (two.start, two.end):
            return False
        if one.data[0] != two.data[-1] + 1 and two.data[0] != one.data[-1] + 1:
            return False
        together = len(one.data) + len(two.data)
        return other.state == "waits" or (
            other.state == "reads" and together == self.tier.data_per_row
        )

    def writing(self, write: SegmentWrite) -> Iterator[Step]:
        """Read what the parity is computed from, if anything; write data and parities.

        Then the joined segments complete, waiting ones begin, and at last this one completes.
        """
        tier, row = self.tier, self.by_row[write.segment.row]
        start, end = tier.bytes_of(write.segment)
        write.state = "reads"
        sources = self.sources(write.segment, end)
        yield partial(each_of, [tier.to_member(Op.READ, n, start, end) for n in sorted(sources)])
        write.state = "writes"
        members = self.written_members(write.segment) & {*tier.not_failed()}
        yield partial(each_of, [tier.to_member(write.op, n, start, end) for n in sorted(members)])
        row.remove(write)
        for done in write.joined:
            tier.clock.at(tier.clock.now, done)
        for position, other in enumerate(row):
            if other.state == "waits" and not any(self.overlap(other, o) for o in row[:position]):
                in_turn(self.writing(other))
        write.done()

    def sources(self, segment: Segment, end: int) -> set[int]:
        """Return the members to read before a segment is written."""
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
        """Return the members of a segment's data and parities."""
        tier = self.tier
        parities = range(-tier.parities, 0)  # before the first data chunk
        return {tier.data_member(segment.row, index) for index in [*parities, *segment.data]}


# The rebuild of a replaced member (2.5.4).


class Rebuild:
    """Reconstructs the new member piece by piece, within a minimum and a maximum rate."""

    WINDOW = 16
    PIECE_BYTES = 64 * 1024
    QUIET_NS = 10_000_000

    def __init__(self, tier: Tier, parameters: RebuildParameters) -> None:
        self.tier = tier
        self.clock = tier.clock
        self.member = parameters.member
        self.rates = parameters
        self.pieces = [
            (row * tier.chunk + first, row * tier.chunk + last)
            for row in range(tier.rows)
            for _, first, last in split(0, tier.chunk, self.PIECE_BYTES)
        ]
        chunks = range(0 if tier.parities else tier.capacity_bytes // tier.chunk)
        self.chunks = {tier.place(k, copy): k for k in chunks for copy in range(tier.copies)}
        self.next = 0
        self.oldest = 0  # the first piece that is not written
        self.written: set[int] = set()  # pieces written beyond it
        self.free = self.due = 0  # next start by the maximum rate, and by the minimum rate
        self.quiet_since = self.clock.now  # when the array became idle
        self.timer: int | None = None
        self.set_timer(self.clock.now)

    @property
    def line(self) -> int:
        """The member offset in bytes below which everything is rebuilt."""
        return self.pieces[self.oldest][0] if not self.is_over else self.pieces[-1][1]

    @property
    def is_over(self) -> bool:
        """Whether all pieces are written."""
        return self.oldest == len(self.pieces)

    def look(self) -> None:
        """Begin the pieces that may begin now; set a timer for the next one."""
        while self.next < len(self.pieces) and self.span < self.WINDOW:
            wait_until = self.wait_until()
            if wait_until is not None:
                if self.timer is None or wait_until < self.timer:
                    self.set_timer(wait_until)
                return
            in_turn(self.moving(self.next))

    @property
    def span(self) -> int:
        """The distance, in pieces, from the oldest unwritten piece to the next one."""
        return self.next - self.oldest

    def wait_until(self) -> int | None:
        """Return the time when the next piece may begin; None: it may begin now."""
        now = self.clock.now
        if now < self.free:
            return self.free
        times = [self.due]
        if self.tier.outstanding == 0:
            times.append(self.quiet_since + self.QUIET_NS)
        return None if self.span == 0 or now >= min(times) else min(times)

    def set_timer(self, time: int) -> None:
        """Call `look` at `time`, unless the timer is set to another time before that."""

        def ring() -> None:
            if self.timer == self.clock.now:
                self.timer = None
                self.look()

        self.timer = time
        self.clock.at(time, ring)

    def moving(self, piece: int) -> Iterator[Step]:
        """Read a piece, then write it to the new member."""
        start, end = self.pieces[piece]
        self.next += 1
        self.free = self.clock.now + (end - start) * SECOND // self.rates.max_bytes_per_s
        self.due = min(self.due, self.clock.now)
        self.due += (end - start) * SECOND // self.rates.min_bytes_per_s
        sources = self.sources(start, end)
        yield partial(each_of, [self.tier.to_member(Op.READ, *each) for each in sources])
        yield self.tier.to_member(Op.WRITE, self.member, start, end)
        self.written.add(piece)
        while self.oldest in self.written:
            self.written.remove(self.oldest)
            self.oldest += 1
        if self.is_over:
            self.tier.members[self.member].health = Health.WHOLE
        else:
            self.look()

    def sources(self, start: int, end: int) -> list[Range]:
        """Return the ranges that a piece is computed or copied from."""
        tier = self.tier
        whole = [n for n, each in enumerate(tier.members) if each.health == Health.WHOLE]
        if tier.parities:
            return [Range(member, start, end) for member in whole]
        row, within = divmod(start, tier.chunk)
        chunk = self.chunks.get((self.member, row * tier.chunk))
        if chunk is None:
            return []
        at = chunk * tier.chunk + within
        copies = tier.copies_of(chunk, at, at + end - start)
        return [each for each in copies if each.member in whole][:1]
