"""Lines, locks, threads, requests and policies of Open CAS (2.13)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from hybridsim.foundation.codes import FUA, Op, Path, Reason
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import Clock, Done, Parts

LISTS = 32
CHUNK = 256


@dataclass(eq=False)
class Line:
    """A line of the cache; sectors are counted from its start."""

    number: int
    holds: int | None = None  # a core line
    valid: set[int] = field(default_factory=set)
    dirty: set[int] = field(default_factory=set)
    dirtied: tuple[int, int] = (0, 0)  # time of the last one, and its serial number
    owners: list[Claim] = field(default_factory=list)
    waiting: deque[Claim] = field(default_factory=deque)

    @property
    def list(self) -> int:
        """The number of the lists in which it stands."""
        return self.number // CHUNK % LISTS

    @property
    def is_in_use(self) -> bool:
        """Whether a job locks the line or waits for it."""
        return bool(self.owners or self.waiting)


class Claim:
    """The lock of one job on some lines; `granted` is called later if the job must wait."""

    def __init__(self, lines: list[Line], exclusive: bool, granted: Done) -> None:
        self.lines = lines
        self.exclusive = exclusive
        self.granted = granted
        self.wanting = 0
        for line in lines:
            if line.waiting or not self.may_enter(line):
                line.waiting.append(self)
                self.wanting += 1
            else:
                line.owners.append(self)
        self.waited = self.wanting > 0

    def may_enter(self, line: Line) -> bool:
        """Whether the current owners of a line allow this lock."""
        if self.exclusive:
            return not line.owners
        return not any(owner.exclusive for owner in line.owners)

    def give_back(self) -> None:
        """Unlock all lines and grant the waiting locks."""
        for line in self.lines:
            line.owners.remove(self)
            while line.waiting and line.waiting[0].may_enter(line):
                entering = line.waiting.popleft()
                line.owners.append(entering)
                entering.wanting -= 1
                if entering.wanting == 0:
                    entering.granted()


class Resumed:
    """Jobs whose locks were granted, resumed one per event."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queue: deque[Done] = deque()
        self.awake = False

    def later(self, job: Done) -> Done:
        """Return a callback that puts a job into the queue."""

        def enter() -> None:
            self.queue.append(job)
            if not self.awake:
                self.awake = True
                self.clock.at(self.clock.now, self.take)

        return enter

    def take(self) -> None:
        """Resume the first job."""
        self.queue.popleft()()
        if self.queue:
            self.clock.at(self.clock.now, self.take)
        else:
            self.awake = False


class Lines:
    """All lines of the cache."""

    def __init__(self, count: int) -> None:
        self.all = [Line(number) for number in range(count)]
        self.free: list[deque[Line]] = [deque() for _ in range(LISTS)]
        for line in self.all:
            self.free[line.list].append(line)
        self.of: dict[int, Line] = {}  # by core line
        self.clean: list[list[Line]] = [[] for _ in range(LISTS)]  # heads first
        self.dirty: list[list[Line]] = [[] for _ in range(LISTS)]
        self.last_seen: dict[int, Reason] = {}  # by core line: why it last left the cache
        self.on_dirty: Callable[[int, int], None] = lambda core_line, by: None
        self.cursor = 0
        self.evictions = 0

    def load(self, old: Lines) -> None:
        """Take over the lines of a cache that has stopped in order; no lock is left."""
        self.all, self.free, self.of = old.all, old.free, old.of
        self.clean, self.dirty = old.clean, old.dirty
        self.last_seen, self.evictions = old.last_seen, old.evictions
        for line in self.all:
            line.owners, line.waiting = [], deque()

    def recover(self, old: Lines) -> None:
        """Take over the dirty sectors of a cache that has crashed; all other lines are free."""
        self.last_seen, self.evictions = old.last_seen, old.evictions
        for line, before in zip(self.all, old.all, strict=True):
            if before.holds is not None and before.dirty:
                self.free[line.list].remove(line)
                line.valid, line.dirty = set(before.dirty), set(before.dirty)
                self.hold(line, before.holds)

    def standing(self, line: Line) -> list[Line]:
        """Return the LRU list of a line."""
        lists = self.dirty if line.dirty else self.clean
        return lists[line.list]

    @property
    def free_count(self) -> int:
        """How many lines hold nothing."""
        return sum(map(len, self.free))

    def next_list(self) -> int:
        """Where the next search for lines begins."""
        self.cursor += 1
        return (self.cursor - 1) % LISTS

    def is_cold(self, line: Line) -> bool:
        """Whether a line is in the second half of its list."""
        standing = self.standing(line)
        return standing.index(line) >= len(standing) // 2

    def look_up(self, core_line: int) -> Line | None:
        """Return the line of a core line, or None; a cold line moves to the head of its list."""
        line = self.of.get(core_line)
        if line and self.is_cold(line):
            standing = self.standing(line)
            standing.remove(line)
            standing.insert(0, line)
        return line

    def hold(self, line: Line, core_line: int) -> None:
        """Assign an empty line to a core line."""
        line.holds = core_line
        self.of[core_line] = line
        self.standing(line).insert(0, line)

    def change(self, line: Line, valid: set[int], dirty: set[int]) -> None:
        """Set the valid and dirty sectors of a line; the line may change lists."""
        before, by = self.standing(line), bool(dirty) - bool(line.dirty)
        line.valid, line.dirty = valid, dirty
        if by:
            self.on_dirty(line.holds or 0, by)
        after = self.standing(line)
        if before is not after:
            before.remove(line)
            after.insert(0, line)

    def invalidate(self, line: Line, sectors: set[int]) -> None:
        """Invalidate sectors of a line; an empty line becomes free."""
        assert line.holds is not None
        self.change(line, line.valid - sectors, line.dirty - sectors)
        if not line.valid:
            self.last_seen[line.holds] = Reason.OVERWRITTEN
            self.empty(line)
            self.free[line.list].append(line)

    def empty(self, line: Line) -> None:
        """Detach a clean line from its core line."""
        assert line.holds is not None
        self.standing(line).remove(line)
        del self.of[line.holds]
        line.holds = None
        line.valid = set()

    # Taking lines (2.13.3).

    def take(self, count: int, own: range) -> list[Line] | None:
        """Take `count` empty lines, evicting as needed; None if there are too few."""
        taken: list[Line] = []
        if self.free_count:
            for each in around(self.next_list()):
                while self.free[each] and len(taken) < count:
                    taken.append(self.free[each].popleft())
        last: Line | None = None  # the line evicted last
        while len(taken) < count:
            last = self.victim(last, own)
            if last is None:
                for line in taken:
                    self.free[line.list].append(line)
                return None
            assert last.holds is not None
            self.evictions += 1
            self.last_seen[last.holds] = Reason.EVICTED
            self.empty(last)
            taken.append(last)
        return taken

    def victim(self, last: Line | None, own: range) -> Line | None:
        """Choose a victim from the clean lists; None if every clean line is in use."""

        def can_be_taken(line: Line) -> bool:
            return not line.is_in_use and line.holds not in own

        if last is not None and last.number + 1 < len(self.all):
            beside = self.all[last.number + 1]
            is_clean = beside.holds is not None and not beside.dirty
            if is_clean and self.is_cold(beside) and can_be_taken(beside):
                return beside
        for number in around(self.next_list() if last is None else last.list):
            for line in reversed(self.clean[number]):
                if can_be_taken(line):
                    return line
        return None

    def choose_dirty(self, limit: int) -> list[Line]:
        """Choose up to `limit` dirty lines to clean, from the tail of one list after the other."""
        lists = [reversed(self.dirty[number]) for number in around(self.next_list())]
        chosen = [line for lines in lists for line in lines if not line.is_in_use]
        return chosen[:limit]

    def all_dirty(self, fits: Callable[[Line], bool]) -> list[Line]:
        """Return the dirty lines that fit and are not in use, in order of core lines."""
        dirty = [line for each in self.dirty for line in each]
        matches = [line for line in dirty if not line.is_in_use and fits(line)]
        return sorted(matches, key=lambda line: line.holds or 0)


def around(start: int) -> Iterator[int]:
    """Yield the numbers of all lists, cyclically from `start`."""
    return ((start + step) % LISTS for step in range(LISTS))


# Sends a request, with what to call when it is complete, and when it is let in if it waits.
Send = Callable[[Done, Done], bool]


class Thread:
    """Does one thing after another, unless it sleeps."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.asleep = False
        self.called = False
        self.high: deque[Done] = deque()
        self.low: deque[Done] = deque()

    @property
    def busy(self) -> bool:
        """Whether what comes now has to wait."""
        return self.asleep or bool(self.high or self.low)

    def do(self, what: Done) -> None:
        """Go on with a job, now or when the thread has time."""
        if self.busy:
            self.high.append(what)
        else:
            what()

    def later(self, what: Done) -> Done:
        """Return a callback that goes on with a job."""
        return lambda: self.do(what)

    def start(self, what: Done) -> None:
        """Start a request, behind all that goes on."""
        if self.busy:
            self.low.append(what)
        else:
            what()

    def take(self) -> None:
        """Do the first thing that waits."""
        self.called = False
        if not self.asleep:
            (self.high or self.low).popleft()()
            self.call()

    def call(self) -> None:
        """Have it take something in this instant, if something waits."""
        if not self.asleep and not self.called and self.busy:
            self.called = True
            self.clock.at(self.clock.now, self.take)

    def send(self, what: Send, done: Done) -> None:
        """Send one request, and sleep until it is let in."""
        self.asleep = what(done, self.let_in)

    def let_in(self) -> None:
        """Wake up."""
        self.asleep = False
        self.call()

    def send_all(self, requests: Iterator[Send], done: Done) -> None:
        """Send requests, and sleep whenever one waits; `done` when all are complete, or none is."""
        parts = Parts(done)
        unsent = parts.another()

        def send_rest() -> None:
            for each in requests:
                self.asleep = each(parts.another(), woken)
                if self.asleep:
                    return
            unsent()

        def woken() -> None:
            self.asleep = False
            send_rest()
            self.call()

        send_rest()


SECTOR = 512
NO_CLAIM = Claim([], False, lambda: None)


Way = Enum("Way", "INSERT UPDATE INVALIDATE OVERLAY PASS")  # how a job uses the cache


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


BUCKETS = 10
NEW_STREAMS, ESTABLISHED_STREAMS, ESTABLISHING_REQUESTS = 64, 128, 8


@dataclass(eq=False)
class Stream:
    """Consecutive requests of one direction."""

    op: Op
    end: int
    length: int
    requests: int


class Streams:
    """The recent streams; both lists are in order of use, the most recent first."""

    def __init__(self, sequential_cutoff_bytes: int) -> None:
        self.sequential_cutoff_bytes = sequential_cutoff_bytes
        self.new: list[Stream] = []
        self.established: list[Stream] = []

    def extend(self, op: Op, offset: int, length: int) -> bool:
        """Add a request to its stream; return whether the stream is long."""
        for streams in (self.new, self.established):
            for stream in streams:
                if (stream.op, stream.end) == (op, offset):
                    return self.extended(streams, stream, length)
        self.new.insert(0, Stream(op, offset + length, length, 1))
        del self.new[NEW_STREAMS:]
        return False

    def extended(self, streams: list[Stream], stream: Stream, length: int) -> bool:
        """Extend a stream; return whether it is long."""
        stream.end += length
        stream.length += length
        stream.requests += 1
        is_long = stream.length >= self.sequential_cutoff_bytes
        streams.remove(stream)
        if streams is self.new and (is_long or stream.requests >= ESTABLISHING_REQUESTS):
            streams = self.established
        streams.insert(0, stream)
        del self.established[ESTABLISHED_STREAMS:]
        return is_long


class Chunks:
    """Parts of the core by their numbers of dirty lines, in buckets, for ACP."""

    def __init__(self, lines_each: int) -> None:
        self.lines_each = lines_each
        self.dirty: Counter[int] = Counter()
        self.bucket: Counter[int] = Counter()  # of each chunk; those in bucket 0 are not cleaned
        self.order: list[list[int]] = [[] for _ in range(BUCKETS + 1)]
        self.now: int | None = None  # the chunk that is being cleaned
        self.next = 0  # its core line from which on lines were not looked at

    def load(self, core_lines: Iterable[int]) -> None:
        """Begin with these dirty core lines."""
        self.__init__(self.lines_each)  # type: ignore[misc]
        self.dirty.update(core_line // self.lines_each for core_line in core_lines)
        for chunk in sorted(self.dirty):
            self.bucket[chunk] = BUCKETS * self.dirty[chunk] // self.lines_each
            self.order[self.bucket[chunk]].append(chunk)

    def changed(self, core_line: int, by: int) -> None:
        """Count a core line that became dirty (1), clean (-1) or was written again (0)."""
        chunk = core_line // self.lines_each
        self.dirty[chunk] += by
        share, bucket = BUCKETS * self.dirty[chunk], self.bucket[chunk]
        if share > bucket * self.lines_each:
            self.move(chunk, bucket + 1, len(self.order[bucket + 1]))
        elif bucket and share <= (bucket - 1) * self.lines_each:
            self.move(chunk, bucket - 1, 0)

    def move(self, chunk: int, bucket: int, place: int) -> None:
        """Put a chunk into another bucket."""
        if chunk in self.order[self.bucket[chunk]]:
            self.order[self.bucket[chunk]].remove(chunk)
        self.order[bucket].insert(place, chunk)
        self.bucket[chunk] = bucket

    def choose(self) -> bool:
        """Choose a chunk unless one is being cleaned; return whether there is one."""
        if self.now is None:
            first = [chunks[0] for chunks in reversed(self.order[1:]) if chunks]
            if not first:
                return False
            self.now, self.next = first[0], first[0] * self.lines_each
        return True


class Nhit:
    """Counts misses of core lines that are not cached."""

    def __init__(self, threshold: int, room: int) -> None:
        self.threshold = threshold
        self.room = room
        self.misses: dict[int, int] = {}  # in order of insertion

    def refuses(self, core_lines: range) -> bool:
        """Count a miss of each core line; return whether any has too few misses."""
        passing = [self.passes(core_line) for core_line in core_lines]
        return not all(passing)

    def passes(self, core_line: int) -> bool:
        """Count a miss; return whether the threshold is reached."""
        if core_line in self.misses:
            self.misses[core_line] += 1
            return self.misses[core_line] >= self.threshold
        if len(self.misses) == self.room:
            del self.misses[next(iter(self.misses))]
        self.misses[core_line] = 1
        return False

    def forget(self, core_lines: range) -> None:
        """Reset the counts of these core lines."""
        for core_line in core_lines:
            if core_line in self.misses:
                self.misses[core_line] = 0
