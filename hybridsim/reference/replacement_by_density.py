"""LHD (2.4.2), plain."""

from hybridsim.reference.admission import Probabilistic
from hybridsim.reference.policies import Replacement

AGES, CLASSES = 512, 16


class Lhd(Replacement):
    """Learns what pages of a class and age promise; the least promising of some drawn goes."""

    def __init__(self, pages: int) -> None:
        self.period = max(4 * pages, 1 << 14)
        self.clock = 0
        self.shift = (8 * pages // AGES).bit_length()
        self.draws = 0
        self.hits = [[0] * AGES for _ in range(CLASSES)]
        self.evictions = [[0] * AGES for _ in range(CLASSES)]
        self.density = [[(1 << 20) // (age + 1) for age in range(AGES)] for _ in range(CLASSES)]
        self.last: dict[int, int] = {}
        self.kind: dict[int, int] = {}
        self.held: list[int] = []

    def age(self, page: int) -> int:
        """Steps since the last use."""
        return min((self.clock - self.last[page]) >> self.shift, AGES - 1)

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
        age = self.age(page)
        self.hits[self.kind[page]][age] += 1 << 7
        self.kind[page] = min(age.bit_length() + 1, CLASSES - 1)
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
            drawn.append(self.held[Probabilistic.mixed(self.draws) % len(self.held)])
            self.draws += 1
        victim = min(drawn, key=lambda page: self.density[self.kind[page]][self.age(page)])
        self.evictions[self.kind[victim]][self.age(victim)] += 1 << 7
        self.remove(victim)
        return victim

    def learn(self) -> None:
        """Hits still to come over the time they take, seen from each age."""
        events = sum(map(sum, self.hits)) + sum(map(sum, self.evictions))
        outlived = sum(row[-1] for row in self.hits + self.evictions)
        for hits, evictions, density in zip(self.hits, self.evictions, self.density):
            for age in range(AGES):
                to_come = hits[age:]
                ends = [h + e for h, e in zip(to_come, evictions[age:])]
                time = sum((steps + 1) * each for steps, each in enumerate(ends))
                if time:
                    density[age] = (sum(to_come) << 20) // time
            hits[:] = [each - (each >> 3) for each in hits]
            evictions[:] = [each - (each >> 3) for each in evictions]
        if outlived * 32 > events:
            self.shift += 1
            for row in self.hits + self.evictions:
                row[:] = [row[i] + row[i + 1] for i in range(0, AGES, 2)] + [0] * (AGES // 2)
