"""The lines of Open CAS: contents, LRU lists and locks (2.13)."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hybridsim.foundation.codes import Reason
from hybridsim.reference.clock import Clock, Done

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
    owners: list["Claim"] = field(default_factory=list)
    waiting: deque["Claim"] = field(default_factory=deque)

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

    def load(self, old: "Lines") -> None:
        """Take over the lines of a cache that has stopped in order; no lock is left."""
        self.all, self.free, self.of = old.all, old.free, old.of
        self.clean, self.dirty = old.clean, old.dirty
        self.last_seen, self.evictions = old.last_seen, old.evictions
        for line in self.all:
            line.owners, line.waiting = [], deque()

    def recover(self, old: "Lines") -> None:
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
            self.evict(last)
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

    def evict(self, line: Line) -> None:
        """Evict the core line of a line."""
        assert line.holds is not None
        self.evictions += 1
        self.last_seen[line.holds] = Reason.EVICTED
        self.empty(line)

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


def runs(sectors: set[int]) -> Iterator[tuple[int, int]]:
    """Yield [first, end) of each run of consecutive sectors."""
    starts = sorted(each for each in sectors if each - 1 not in sectors)
    ends = sorted(each + 1 for each in sectors if each + 1 not in sectors)
    return zip(starts, ends, strict=True)
