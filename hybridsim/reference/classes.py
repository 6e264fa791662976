"""Classes of accesses (2.4.1), plain: by the page's habits, its request and its region."""

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
    """Two ages an octave, those below two accesses as one."""
    return min(bisect_right(STARTS, time) - 1, AGES - 1)


def span(age: int) -> int:
    """So many accesses is it long."""
    return STARTS[age + 1] - STARTS[age]


def eighths(time: int) -> int:
    """The logarithm of a time, in eighths of an octave."""
    octave = time.bit_length() - 1
    return min(8 * octave + (8 * time >> octave) - 8, 211)


def exceeded(count: int, bounds: tuple[int, ...]) -> int:
    """How many of the bounds a count exceeds."""
    return sum(count > bound for bound in bounds)


class Regions:
    """Runs, and when each region was touched; regions whose numbers mix alike are as one."""

    def __init__(self) -> None:
        self.touched: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.run: dict[int, int] = {}
        self.here = self.rest = self.size = 0

    def request(self, offset: int, length: int, clock: int) -> None:
        """Note where it goes."""

        def place(byte: int) -> int:
            return mixed(byte // 2**20) % 2**14

        before, first, self.here = place(offset - 1), place(offset), place(offset + length - 1)
        run = self.run[before] if self.end.get(before) == offset else 0
        self.rest = 0
        if first in self.touched:
            octaves = (clock - self.touched[first]).bit_length()
            self.rest = min(1 + octaves // 2, 13)
        self.size = exceeded(length, (4096, 16384, 65536))
        self.touched[first] = self.touched[self.here] = clock
        self.end[self.here] = offset + length
        self.run[self.here] = run

    def position(self) -> int:
        """How far in a run the next page lies."""
        run = self.run.get(self.here, 0)
        self.run[self.here] = run + 1
        return exceeded(run, (0, 3, 31))


@dataclass
class Page:
    """The habits of a page."""

    clock: int  # of its last access
    kind: int  # the class of that
    count: int = 1
    mean: int = 0  # of its gaps: 32 log2

    def come_again(self, clock: int, write: int, rest: int) -> None:
        """Be accessed; the gap before it counts for the class already."""
        gap = eighths(clock - self.clock)
        if self.count == 1:
            self.mean = 4 * gap
        else:
            self.mean += (4 * gap - self.mean) // 2 ** (1 + exceeded(self.count, (2, 7, 16)))
        usual = self.mean // 4
        turn = 0 if gap < usual - 12 else 2 if gap > usual + 4 else 1
        often = exceeded(self.count, (1, 2, 4, 8, 16))
        heat = exceeded(rest, (4, 6))
        group = (write * 6 + often) * 50 + min(usual // 4, 49)
        self.kind = 448 + (group * 3 + turn) * 3 + heat
        self.count = min(self.count + 1, 17)
        self.clock = clock


def first_kind(write: int, position: int, rest: int, size: int) -> int:
    """The class of a page's first access."""
    return ((write * 4 + position) * 14 + rest) * 4 + size


class Row:
    """What is known of a class, or of several."""

    def __init__(self, parent: "Coarser | None") -> None:
        self.parent = parent
        self.touched = [0] * AGES
        self.reached = [0] * AGES
        self.reward = 0.0  # of a touch, in reads of the disks
        self.heard = 0

    def tell(self, reward: float) -> None:
        """A touch brought so much."""
        self.heard = min(self.heard + 1, 256)
        self.reward += (reward - self.reward) / self.heard
        if self.parent:
            self.parent.tell(reward)

    def chances(self) -> list[float]:
        """The chance of a touch at each age that was reached."""
        known: Sequence[float] = self.parent.chance if self.parent else [0.0] * AGES
        return [
            min((touched + PRIOR * before) / (reached + PRIOR), 1.0)
            for touched, reached, before in zip(self.touched, self.reached, known, strict=True)
        ]

    def hand_up(self) -> None:
        """Let the parent gather what is known."""
        if self.parent:
            for age in range(AGES):
                self.parent.touched[age] += self.touched[age]
                self.parent.reached[age] += self.reached[age]


class Coarser(Row):
    """Several classes; `touched` and `reached` are what was gathered in this round."""

    def __init__(self, parent: "Coarser | None") -> None:
        super().__init__(parent)
        self.chance = [0.0] * AGES

    def take_turn(self) -> None:
        """All below have been gathered."""
        self.chance = self.chances()
        self.hand_up()
        self.touched = [0] * AGES
        self.reached = [0] * AGES


class Class(Row):
    """A class, and what its pages are worth."""

    parent: Coarser

    def __init__(self, parent: Coarser) -> None:
        super().__init__(parent)
        self.is_used = False
        self.value = 0.0
        self.sure = 0.0
        self.density = array("f", [0.0] * AGES)  # in single precision

    def reach(self, age: int) -> None:
        """A sample has come to an age."""
        self.reached[age] += WEIGHT

    def forget(self) -> None:
        """What is long ago counts less and less."""
        if self.reached[0] >= FORGET:
            self.touched = [each // 2 for each in self.touched]
            self.reached = [each // 2 for each in self.reached]

    def appraise(self, ages: int, border: int, rent: float) -> None:
        """Compute what its pages are worth, for as many ages."""
        reward = (self.reward * self.heard + 8 * self.parent.reward) / (self.heard + 8)
        chances = self.chances()[:ages]
        times = [span(age) * (1 - 0.5 * chance) for age, chance in enumerate(chances)]
        value = 0.0
        for chance, time in reversed([*zip(chances, times, strict=True)]):
            value = max(chance * reward + (1 - chance) * value - rent * time, 0.0)
        known = sum(self.touched[:border]) + self.reached[border]
        self.value = value
        self.sure = value * (known / (known + DOUBT))
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
    """The classes in the order of their numbers, then the coarser ones in theirs."""
    whole = Coarser(None)
    groups = {key: Coarser(whole) for key in product(range(2), range(4), range(25))}
    firsts = [Coarser(whole) for _write, _position, _rest in product(*map(range, (2, 4, 14)))]
    agains = [
        Coarser(groups[write, min(often, 3), gap // 2])
        for write, often, gap, _turn in product(*map(range, (2, 6, 50, 3)))
    ]
    classes = [Class(row) for row in firsts for _size in range(4)]
    classes += [Class(row) for row in agains for _heat in range(3)]
    return [*classes, *firsts, *agains, *groups.values(), whole]
