"""The lines of Open CAS: what they hold, the lists they stand in, who locks them (2.13)."""

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
    made_dirty: tuple[int, int] = (0, 0)  # when last, and the how manieth of all
    owners: list["Claim"] = field(default_factory=list)
    waiting: deque["Claim"] = field(default_factory=deque)

    @property
    def list(self) -> int:
        """The number of the lists in which it stands."""
        return self.number // CHUNK % LISTS

    @property
    def is_in_use(self) -> bool:
        """Whether it is locked or waited for."""
        return bool(self.owners or self.waiting)


class Claim:
    """The lock of one job on some lines; `granted` is called later if it has to wait."""

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
        """Whether those who hold a line let it in."""
        if self.exclusive:
            return not line.owners
        return not any(owner.exclusive for owner in line.owners)

    def give_back(self) -> None:
        """Unlock all lines, and let in who waits."""
        for line in self.lines:
            line.owners.remove(self)
            while line.waiting and line.waiting[0].may_enter(line):
                entering = line.waiting.popleft()
                line.owners.append(entering)
                entering.wanting -= 1
                if entering.wanting == 0:
                    entering.granted()


class Resumed:
    """Jobs that got what they waited for, taken one an event."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.queue: deque[Done] = deque()
        self.awake = False

    def later(self, job: Done) -> Done:
        """What puts a job into the queue."""

        def enter() -> None:
            self.queue.append(job)
            if not self.awake:
                self.awake = True
                self.clock.at(self.clock.now, self.take)

        return enter

    def take(self) -> None:
        """Let the first go on."""
        self.queue.popleft()()
        if self.queue:
            self.clock.at(self.clock.now, self.take)
        else:
            self.awake = False


class Lines:
    """All lines."""

    def __init__(self, count: int) -> None:
        self.all = [Line(number) for number in range(count)]
        self.free: list[deque[Line]] = [deque() for _ in range(LISTS)]
        for line in self.all:
            self.free[line.list].append(line)
        self.of: dict[int, Line] = {}  # by core line
        self.clean: list[list[Line]] = [[] for _ in range(LISTS)]  # heads first
        self.dirty: list[list[Line]] = [[] for _ in range(LISTS)]
        self.last_seen: dict[int, Reason] = {}  # by core line: how it was last lost
        self.cursor = 0
        self.evictions = 0

    def standing(self, line: Line) -> list[Line]:
        """The list in which a line stands."""
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
        """Whether it stands in the second half of its list."""
        standing = self.standing(line)
        return standing.index(line) >= len(standing) // 2

    def look_up(self, core_line: int) -> Line | None:
        """Find the line of a core line, which is warmer by that."""
        line = self.of.get(core_line)
        if line and self.is_cold(line):
            standing = self.standing(line)
            standing.remove(line)
            standing.insert(0, line)
        return line

    def hold(self, line: Line, core_line: int) -> None:
        """Let a line that holds nothing hold a core line."""
        line.holds = core_line
        self.of[core_line] = line
        self.standing(line).insert(0, line)

    def change(self, line: Line, valid: set[int], dirty: set[int]) -> None:
        """Set what is valid and dirty of a line; it may change lists, or be free then."""
        before = self.standing(line)
        line.valid, line.dirty = valid, dirty
        after = self.standing(line)
        if before is not after:
            before.remove(line)
            after.insert(0, line)

    def invalidate(self, line: Line, sectors: set[int]) -> None:
        """Forget sectors of a line."""
        assert line.holds is not None
        self.change(line, line.valid - sectors, line.dirty - sectors)
        if not line.valid:
            self.last_seen[line.holds] = Reason.OVERWRITTEN
            self.empty(line)
            self.free[line.list].append(line)

    def empty(self, line: Line) -> None:
        """Let a clean line hold nothing."""
        assert line.holds is not None
        self.standing(line).remove(line)
        del self.of[line.holds]
        line.holds = None
        line.valid = set()

    # Taking lines (2.13.3).

    def take(self, count: int, own: range) -> list[Line] | None:
        """Take lines that hold nothing then, or none if there are too few."""
        taken: list[Line] = []
        if self.free_count:
            for each in around(self.next_list()):
                while self.free[each] and len(taken) < count:
                    taken.append(self.free[each].popleft())
        last: Line | None = None
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
        """Choose a line that can be taken from a clean list."""

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
        """Take a line from what it holds."""
        assert line.holds is not None
        self.evictions += 1
        self.last_seen[line.holds] = Reason.EVICTED
        self.empty(line)

    def choose_dirty(self, most: int) -> list[Line]:
        """Choose dirty lines to clean, from the tails of one list after the other."""
        lists = [reversed(self.dirty[number]) for number in around(self.next_list())]
        chosen = [line for lines in lists for line in lines if not line.is_in_use]
        return chosen[:most]

    def all_dirty(self, fits: Callable[[Line], bool]) -> list[Line]:
        """All dirty lines that are like that and not in use, in order of core lines."""
        found = [line for each in self.dirty for line in each]
        found = [line for line in found if not line.is_in_use and fits(line)]
        return sorted(found, key=lambda line: line.holds or 0)


def around(start: int) -> Iterator[int]:
    """The numbers of all lists, from one on round."""
    return ((start + step) % LISTS for step in range(LISTS))


def runs(sectors: set[int]) -> Iterator[tuple[int, int]]:
    """The first sector and the one after the last of each run of consecutive ones."""
    starts = sorted(each for each in sectors if each - 1 not in sectors)
    ends = sorted(each + 1 for each in sectors if each + 1 not in sectors)
    return zip(starts, ends, strict=True)
