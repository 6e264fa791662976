"""LHD (2.4.2)."""

from hybridsim.reference.admission import Probabilistic
from hybridsim.reference.policies import Replacement

AGES, CLASSES = 512, 16


def age_of(steps: int) -> int:
    """Return the age of a number of steps: 64 ages of 1 step, then 32 each of 2, 4, ... steps."""
    octave = max(steps.bit_length() - 6, 0)
    return min((steps >> octave) + 32 * octave, AGES - 1)


def steps_in(age: int) -> int:
    """Return the number of steps in an age."""
    return 1 << max(age // 32 - 1, 0)


class Lhd(Replacement):
    """Learns the hit density of each class and age; evicts the least dense of 32 drawn pages."""

    def __init__(self, pages: int) -> None:
        self.period = max(4 * pages, 1 << 14)
        self.clock = 0
        self.shift = (pages // 128).bit_length()
        self.draws = 0
        self.hits = [[0] * AGES for _ in range(CLASSES)]
        self.evictions = [[0] * AGES for _ in range(CLASSES)]
        starts = [sum(map(steps_in, range(age))) for age in range(AGES)]
        self.density = [[(1 << 26) // (start + 1) for start in starts] for _ in range(CLASSES)]
        self.last: dict[int, int] = {}
        self.kind: dict[int, int] = {}
        self.held: list[int] = []

    def steps(self, page: int) -> int:
        """Return the steps since the last use of a page."""
        return (self.clock - self.last[page]) >> self.shift

    def age(self, page: int) -> int:
        """Return the current age of a page."""
        return age_of(self.steps(page))

    def missed(self, page: int) -> None:
        """Count an access; learn at the end of each period."""
        self.clock += 1
        if self.clock % self.period == 0:
            self.learn()

    def admit(self, page: int) -> None:
        """Insert a page in class 0, never hit."""
        self.last[page] = self.clock
        self.kind[page] = 0
        self.held.append(page)

    def touch(self, page: int) -> None:
        """Record a hit and update the class."""
        self.missed(page)
        self.hits[self.kind[page]][self.age(page)] += 1 << 7
        self.kind[page] = min(self.steps(page).bit_length() + 1, CLASSES - 1)
        self.last[page] = self.clock

    def remove(self, page: int) -> None:
        """Remove a page; the last held page takes its position."""
        at = self.held.index(page)
        self.held[at] = self.held[-1]
        self.held.pop()

    def evict(self) -> int:
        """Draw 32 pages and evict the one of least density."""
        if not self.held:
            return -1
        drawn = []
        for _ in range(32):
            drawn.append(self.held[Probabilistic.mixed(self.draws) * len(self.held) >> 31])
            self.draws += 1
        victim = min(drawn, key=lambda page: self.density[self.kind[page]][self.age(page)])
        self.evictions[self.kind[victim]][self.age(victim)] += 1 << 7
        self.remove(victim)
        return victim

    def learn(self) -> None:
        """Recompute the density of each age: expected hits over expected time."""
        for hits, evictions, density in zip(self.hits, self.evictions, self.density):
            to_come = events = time = 0
            for age in reversed(range(AGES)):
                to_come += hits[age]
                events += hits[age] + evictions[age]
                time += events * steps_in(age)
                if time:
                    density[age] = (to_come << 26) // time
            hits[:] = [each - (each >> 3) for each in hits]
            evictions[:] = [each - (each >> 3) for each in evictions]
