"""LHD (2.4.2), plain."""

from hybridsim.reference.admission import Probabilistic
from hybridsim.reference.policies import Replacement

AGES, CLASSES = 512, 16


def age_of(steps: int) -> int:
    """Ages of one step each up to 63, then of two, of four, ..., 32 of each size."""
    octave = max(steps.bit_length() - 6, 0)
    return min((steps >> octave) + 32 * octave, AGES - 1)


def steps_in(age: int) -> int:
    """How many steps an age lasts."""
    return 1 << max(age // 32 - 1, 0)


class Lhd(Replacement):
    """Learns what pages of a class and age promise; the least promising of some drawn goes."""

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
        """Steps since the last use."""
        return (self.clock - self.last[page]) >> self.shift

    def age(self, page: int) -> int:
        """The age of a page now."""
        return age_of(self.steps(page))

    def missed(self, page: int) -> None:
        """Count an access."""
        self.clock += 1
        if self.clock % self.period == 0:
            self.learn()

    def admit(self, page: int) -> None:
        """Enter as never hit."""
        self.last[page] = self.clock
        self.kind[page] = 0
        self.held.append(page)

    def touch(self, page: int) -> None:
        """Note the hit and change class."""
        self.missed(page)
        self.hits[self.kind[page]][self.age(page)] += 1 << 7
        self.kind[page] = min(self.steps(page).bit_length() + 1, CLASSES - 1)
        self.last[page] = self.clock

    def remove(self, page: int) -> None:
        """The last of those held takes the page's position."""
        at = self.held.index(page)
        self.held[at] = self.held[-1]
        self.held.pop()

    def evict(self) -> int:
        """Draw 32."""
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
        """Hits still to come over the time they take, seen from each age."""
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
