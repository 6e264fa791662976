"""Classes of accesses (2.4.1): by the history of the page, its request and its region."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from hybridsim.reference.admission import Probabilistic

AGES = 52
STARTS = [0, *sorted([1 << k for k in range(1, 27)] + [3 << k for k in range(26)])]
WEIGHT = 16
FORGET = 256 * WEIGHT
PRIOR = 8 * WEIGHT
DOUBT = 16 * WEIGHT

mixed = Probabilistic.mixed


def age_of(time: int) -> int:
    """Return the age class of a time in accesses: two per octave, times below 2 together."""
    return min(bisect_right(STARTS, time) - 1, AGES - 1)


def span(age: int) -> int:
    """Return the length of an age in accesses."""
    return STARTS[age + 1] - STARTS[age]


def eighths(time: int) -> int:
    """Return log2 of a time in eighths, at most 211."""
    octave = time.bit_length() - 1
    return min(8 * octave + (8 * time >> octave) - 8, 211)


def exceeded(count: int, bounds: tuple[int, ...]) -> int:
    """Return the number of bounds that a count exceeds."""
    return sum(count > bound for bound in bounds)


class Regions:
    """Runs, last touch and mean gap of each region; regions with equal hashes are one."""

    def __init__(self) -> None:
        self.touched: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.run: dict[int, int] = {}
        self.gap: dict[int, int] = {}  # mean, as 64 log2
        self.here = self.rest = self.size = self.pace = 0

    def request(self, offset: int, length: int, clock: int) -> None:
        """Record the region, run and size of a request."""

        def place(byte: int) -> int:
            return mixed(byte // 2**20) % 2**14

        before, first, self.here = place(offset - 1), place(offset), place(offset + length - 1)
        run = self.run[before] if self.end.get(before) == offset else 0
        self.rest, self.pace = 0, 255
        if first in self.touched:
            idle = clock - self.touched[first]
            self.rest = min(1 + idle.bit_length() // 2, 13)
            gap = 8 * eighths(max(idle, 1))
            mean = self.gap.get(first, gap)
            mean += (gap - mean) // 8
            self.pace = mean // 8
            self.gap[first] = max(mean, 1)
        self.size = exceeded(length, (4096, 16384, 65536))
        self.touched[first] = self.touched[self.here] = clock
        self.end[self.here] = offset + length
        self.run[self.here] = run

    def position(self) -> int:
        """Return the class of the next page's position in its run."""
        run = self.run.get(self.here, 0)
        self.run[self.here] = run + 1
        return exceeded(run, (0, 3, 31))


class Sizes:
    """What pages of requests of each size save, as a part of what their classes do."""

    def __init__(self) -> None:
        self.saved = [64.0] * 8
        self.expected = [64.0] * 8
        self.part = [1.0] * 8

    def learn(self, size: int, saved: float, expected: float) -> None:
        """Add a touch of a page whose last request had this size."""
        self.saved[size] += saved
        self.expected[size] += expected
        if self.expected[size] > 512:
            self.saved[size] /= 2
            self.expected[size] /= 2
        self.part[size] = self.saved[size] / self.expected[size]


@dataclass
class Page:
    """The access history of a page."""

    clock: int  # of its last access
    kind: int  # class of its last access
    size: int  # of its last request, in octaves of pages
    count: int = 1
    mean: int = 0  # mean gap between accesses, as 32 log2

    def record_access(self, clock: int, write: int, pace: int) -> None:
        """Record an access; the class includes the gap before it."""
        gap, count = eighths(clock - self.clock), self.count
        if count == 1:
            self.mean = 4 * gap
        else:
            if 4 * gap > self.mean + 128:
                count = 1
            self.mean += (4 * gap - self.mean) // 2 ** (1 + exceeded(count, (2, 7, 16)))
        usual = self.mean // 4
        turn = 0 if gap < usual - 12 else 2 if gap > usual + 4 else 1
        often = exceeded(self.count, (1, 2, 4, 8, 16))
        heat = exceeded(pace, (64, 96))
        group = (write * 6 + often) * 53 + usual // 4
        self.kind = 448 + (group * 3 + turn) * 3 + heat
        self.count = min(count + 1, 17)
        self.clock = clock


def first_kind(write: int, position: int, rest: int, size: int) -> int:
    """Return the class of a page's first access."""
    return ((write * 4 + position) * 14 + rest) * 4 + size


class Row:
    """The statistics of one or more classes."""

    def __init__(self, parent: "Coarser | None") -> None:
        self.parent = parent
        self.touched = [0] * AGES
        self.reached = [0] * AGES
        self.reward = 0.0  # mean reward of a touch, in disk reads
        self.heard = 0  # rewards in the mean, at most 256

    def add_reward(self, reward: float) -> None:
        """Add the reward of a touch to the running means."""
        self.heard = min(self.heard + 1, 256)
        self.reward += (reward - self.reward) / self.heard
        if self.parent:
            self.parent.add_reward(reward)

    def chances(self) -> list[float]:
        """Return the probability of a touch at each age, given that the age is reached."""
        prior: Sequence[float] = self.parent.source.chance if self.parent else [0.0] * AGES
        at_risk = [
            (entered + touched + left) / 2  # those that are still at the age count half
            for entered, touched, left in zip(
                self.reached, self.touched, [*self.reached[1:], 0], strict=True
            )
        ]
        return [
            min((touched + PRIOR * before) / (exposed + PRIOR), 1.0)
            for touched, exposed, before in zip(self.touched, at_risk, prior, strict=True)
        ]

    def hand_up(self) -> None:
        """Add the counts to the parent."""
        if self.parent:
            for age in range(AGES):
                self.parent.touched[age] += self.touched[age]
                self.parent.reached[age] += self.reached[age]


class Coarser(Row):
    """A group of classes; `touched` and `reached` are the sums of the current round."""

    def __init__(self, parent: "Coarser | None") -> None:
        super().__init__(parent)
        self.chance = [0.0] * AGES
        self.source = self  # the row whose chances it has

    def take_turn(self) -> bool:
        """Update the chances after all classes below have added their counts, if there are any."""
        if self.reached[0] == 0:
            self.source = self.parent.source if self.parent else self
            return False
        self.source = self
        self.chance = self.chances()
        self.hand_up()
        self.touched = [0] * AGES
        self.reached = [0] * AGES
        return True


class Class(Row):
    """A class, and the value of its pages."""

    parent: Coarser

    def __init__(self, parent: Coarser) -> None:
        super().__init__(parent)
        self.is_used = False
        self.value = 0.0
        self.sure = 0.0
        self.density = array("f", [0.0] * AGES)  # in single precision

    def reach(self, age: int) -> None:
        """Count a sample that reached an age."""
        self.reached[age] += WEIGHT

    def forget(self) -> None:
        """Halve the counts when they reach the limit."""
        if self.reached[0] >= FORGET:
            self.touched = [each // 2 for each in self.touched]
            self.reached = [each // 2 for each in self.reached]

    def expected_reward(self) -> float:
        """Return the expected reward of a touch, in disk reads."""
        return (self.reward * self.heard + 8 * self.parent.reward) / (self.heard + 8)

    def appraise(self, ages: int, border: int, rent: float) -> None:
        """Compute the value of the class's pages for the first `ages` ages."""
        reward = self.expected_reward()
        chances = self.chances()[:ages]
        times = [span(age) * (1 - 0.5 * chance) for age, chance in enumerate(chances)]
        value = 0.0
        for chance, time in reversed([*zip(chances, times, strict=True)]):
            value = max(chance * reward + (1 - chance) * value - rent * time, 0.0)
        observed = sum(self.touched[:border]) + self.reached[border]
        self.value = value
        self.sure = value * (observed / (observed + DOUBT))
        behind: list[tuple[float, float, float]] = []  # blocks: chance, time, survival
        for age in reversed(range(ages)):
            chance, time, survival = chances[age], times[age], 1 - chances[age]
            while behind and behind[-1][0] * time > chance * behind[-1][1]:
                its_chance, its_time, its_survival = behind.pop()
                chance += survival * its_chance
                time += survival * its_time
                survival *= its_survival
            behind.append((chance, time, survival))
            self.density[age] = chance * reward / time


def rows() -> list[Class | Coarser]:
    """Return the classes in order of their numbers, then the groups in theirs."""
    whole = Coarser(None)
    groups = {key: Coarser(whole) for key in product(range(2), range(4), range(27))}
    firsts = [Coarser(whole) for _write, _position, _rest in product(*map(range, (2, 4, 14)))]
    agains = [
        Coarser(groups[write, min(often, 3), gap // 2])
        for write, often, gap, _turn in product(*map(range, (2, 6, 53, 3)))
    ]
    classes = [Class(row) for row in firsts for _size in range(4)]
    classes += [Class(row) for row in agains for _heat in range(3)]
    return [*classes, *firsts, *agains, *groups.values(), whole]
