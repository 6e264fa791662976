"""Arrays (2.5): equal devices behind one range of bytes."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence

from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Level, Op, Spread
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.device import Device
from hybridsim.reference.member import Health, Member, Range
from hybridsim.reference.parameters import HddParameters, TierParameters
from hybridsim.reference.parity import ParityWrites, Segment, row_segments
from hybridsim.reference.rebuild import Rebuild


class Tier:
    """One array; a machine makes it with the devices of its members."""

    def __init__(
        self, parameters: TierParameters, devices: Sequence[Device], clock: Clock | None = None
    ) -> None:
        p = parameters
        self.parameters = p
        self.clock = clock or devices[0].clock
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
        self.outstanding = 0
        self.under_way = 0
        self.counters: Counter[str] = Counter()
        self.line: deque[tuple[int, int, int, Done]] = deque()
        self.parity_writes = ParityWrites(self)
        self.rebuild: Rebuild | None = None
        if p.rebuild is not None:
            self.members[p.rebuild.member].health = Health.REBUILDING
            self.rebuild = Rebuild(self, p.rebuild)

    @property
    def is_idle(self) -> bool:
        """Whether every request is complete."""
        return self.outstanding == 0

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request, its op with flags, or let it wait while there are too many."""
        self.outstanding += 1
        if self.under_way == self.parameters.queue_depth > 0:
            self.line.append((op, offset, length, done))
        else:
            self.begin(op, offset, length, done)

    def submit_background(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a write that nobody waits for."""
        self.submit(op, offset, length, done)

    def begin(self, op: int, offset: int, length: int, done: Done) -> None:
        """Issue a request to the members; it completes with its last part."""
        self.under_way += 1

        def on_its_way() -> None:
            if self.parameters.path_ns:
                self.clock.at(self.clock.now + self.parameters.path_ns, complete)
            else:
                complete()

        def complete() -> None:
            self.outstanding -= 1
            self.under_way -= 1
            if self.line:
                self.begin(*self.line.popleft())
            if self.outstanding == 0 and self.rebuild is not None:
                self.rebuild.rest()
            done()

        all_written = on_its_way
        if op & FUA and not self.parameters.has_fua:
            op ^= FUA

            def all_written() -> None:
                self.to_all(Op.FLUSH, on_its_way)

        plain = op & OP_MASK
        is_redundant = self.parities > 0 or self.copies > 1
        if length == 0 or plain == Op.FLUSH or (plain == Op.DISCARD and is_redundant):
            self.to_all(plain, on_its_way)
        elif plain == Op.READ:
            self.read(offset, length, on_its_way)
        elif op & PREFLUSH:
            write = Op.WRITE | (op & FUA)
            self.to_all(Op.FLUSH, lambda: self.write(write, offset, length, all_written))
        else:
            self.write(op, offset, length, all_written)

    def to_all(self, op: int, done: Done) -> None:
        """Send what has no data to every member that is there."""
        parts = Parts(done)
        for number, member in enumerate(self.members):
            if member.health != Health.FAILED:
                self.to_member(op, Range(number, 0, 0), parts.another())

    def to_member(self, op: int, where: Range, done: Done) -> None:
        """Submit a range to a member's device."""
        member, began = self.members[where.member], self.clock.now

        def complete() -> None:
            member.began.remove(began)
            self.counters["requests_ns"] += self.clock.now - began
            if not member.began:
                self.counters["in_use_ns"] += self.clock.now - member.idle_until
            done()

        if not member.began:
            member.idle_until = began
        member.began.append(began)
        member.head = where.end
        member.device.submit(op, where.start, where.end - where.start, complete)

    def usage(self) -> dict[str, int]:
        """How long requests took at the members so far, and these had something to do (2.5.5)."""
        now, busy = self.clock.now, [member for member in self.members if member.began]
        requests = sum(now - began for member in busy for began in member.began)
        in_use = sum(now - member.idle_until for member in busy)
        return {
            "requests_ns": self.counters["requests_ns"] + requests,
            "in_use_ns": self.counters["in_use_ns"] + in_use,
        }

    def read(self, offset: int, length: int, done: Done) -> None:
        """Read from where the data are, or from what is left of them."""
        parts = Parts(done)
        for each in self.ranges(offset, length):
            self.to_member(Op.READ, each, parts.another())

    def write(self, op: int, offset: int, length: int, done: Done) -> None:
        """Write to all members that hold the data, or parity of them."""
        if self.parities:
            self.parity_writes.submit(op, self.segments(offset, length), done)
            return
        parts = Parts(done)
        for each in gathered(self.pieces_written(offset, length)):
            self.to_member(op, each, parts.another())

    # Where bytes lie.

    def parity_member(self, row: int) -> int:
        """The member that holds P of a row; Q is on the next."""
        n = len(self.members)
        return (n - 1) - row % n

    def parity_members(self, row: int) -> set[int]:
        """The members that hold the parities of a row."""
        n = len(self.members)
        return {(self.parity_member(row) + each) % n for each in range(self.parities)}

    def data_member(self, row: int, index: int) -> int:
        """The member that holds a data chunk of a row with parity."""
        return (self.parity_member(row) + self.parities + index) % len(self.members)

    def place(self, chunk: int, copy: int = 0) -> tuple[int, int]:
        """The member on which a copy of a chunk lies, and its first byte there."""
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

    def chunks_by_place(self) -> dict[tuple[int, int], int]:
        """Which chunk lies where, by member and first byte, for arrays of copies."""
        chunks = range(self.capacity_bytes // self.chunk)
        return {self.place(k, copy): k for k in chunks for copy in range(self.copies)}

    def is_readable(self, number: int, end: int) -> bool:
        """Whether a member has its data up to this byte."""
        health = self.members[number].health
        if health == Health.REBUILDING:
            assert self.rebuild is not None
            return end <= self.rebuild.line
        return health == Health.WHOLE

    # Reads, and writes without parity.

    def chunk_parts(self, offset: int, length: int) -> Iterator[tuple[int, int, int]]:
        """The parts of a range that lie in one chunk each: chunk, first byte in it, bytes."""
        while length > 0:
            chunk, within = divmod(offset, self.chunk)
            size = min(length, self.chunk - within)
            yield chunk, within, size
            offset += size
            length -= size

    def ranges(self, offset: int, length: int) -> Iterator[Range]:
        """The ranges that a READ makes on the members, each when it is to be issued."""
        if len(self.members) == 1:
            return iter([Range(0, offset, offset + length)])
        if self.parities and any(each.health != Health.WHOLE for each in self.members):
            pieces = list(self.pieces_read(offset, length))
            readable = all(self.is_readable(each.member, each.end) for each in pieces)
            if not (len(pieces) == 1 and readable):
                return gathered(self.pieces_left(offset, length))
        return gathered(self.pieces_read(offset, length))

    def pieces_read(self, offset: int, length: int) -> Iterator[Range]:
        """One piece for each chunk part, from the copy that is best to read."""
        for chunk, within, size in self.chunk_parts(offset, length):
            if self.copies == 1:
                member, base = self.place(chunk)
                yield Range(member, base + within, base + within + size)
            else:
                yield self.choose(chunk, within, size)

    def choose(self, chunk: int, within: int, size: int) -> Range:
        """Choose the copy to read a chunk part from."""
        readable = []
        for copy in range(self.copies):
            number, base = self.place(chunk, copy)
            if self.is_readable(number, base + within + size):
                readable.append(Range(number, base + within, base + within + size))
        if self.parameters.spread == Spread.NEAR:
            chosen = min(readable, key=self.mirror_cost)  # min() gives the first of equals
        else:
            chosen = readable[0]
        self.members[chosen.member].next_read = chosen.end
        return chosen

    def mirror_cost(self, where: Range) -> tuple[int, int]:
        """How a mirror ranks: going on where it is, else idle or near, else least busy."""
        member = self.members[where.member]
        if where.start in (member.head, member.next_read):
            return 0, 0
        if not isinstance(self.parameters.device, HddParameters):
            return 1, member.under_way
        return (1, 0) if member.under_way == 0 else (2, abs(where.start - member.head))

    def pieces_written(self, offset: int, length: int) -> Iterator[Range]:
        """Every copy of each chunk part, but for members that are gone."""
        for chunk, within, size in self.chunk_parts(offset, length):
            for copy in range(self.copies):
                member, base = self.place(chunk, copy)
                if self.members[member].health != Health.FAILED:
                    yield Range(member, base + within, base + within + size)

    def pieces_left(self, offset: int, length: int) -> Iterator[Range]:
        """What a READ of rows with parity takes where a member is lost."""
        for segment in self.segments(offset, length):
            start, end = self.bytes_of(segment)
            wanted = {self.data_member(segment.row, index) for index in segment.data}
            if not all(self.is_readable(number, end) for number in wanted):
                wanted = self.readable_members(end)
            for number in sorted(wanted):
                yield Range(number, start, end)

    def readable_members(self, end: int) -> set[int]:
        """All members that have their data up to this byte."""
        return {n for n in range(len(self.members)) if self.is_readable(n, end)}

    # Rows with parity.

    def bytes_of(self, segment: Segment) -> tuple[int, int]:
        """The range of a segment on each member."""
        base = segment.row * self.chunk
        return base + segment.start, base + segment.end

    def segments(self, offset: int, length: int) -> list[Segment]:
        """The segments of a range, row by row."""
        row_bytes = self.data_per_row * self.chunk
        end = offset + length
        result = []
        for row in range(offset // row_bytes, (end - 1) // row_bytes + 1):
            a = max(offset - row * row_bytes, 0)
            b = min(end - row * row_bytes, row_bytes)
            result += row_segments(self.chunk, row, a, b)
        return result


def gathered(pieces: Iterable[Range]) -> Iterator[Range]:
    """Join pieces that go on where the last one of their member ended.

    A range is issued before the next piece is looked for: what is issued decides between mirrors.
    """
    opened: dict[int, Range] = {}
    for piece in pieces:
        open_range = opened.get(piece.member)
        if open_range is not None and open_range.end == piece.start:
            open_range.end = piece.end
            continue
        if open_range is not None:
            yield open_range
        opened[piece.member] = Range(piece.member, piece.start, piece.end)
    yield from (opened[member] for member in sorted(opened))
