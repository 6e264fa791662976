"""Admission policies (2.4.3) that remember more than counts of touches, plain."""

from collections import OrderedDict, deque
from fractions import Fraction

from hybridsim.reference.policies import Admission
from hybridsim.reference.replacement import Order, pop_oldest
from hybridsim.reference.replacement_by_stack import Frequencies


class RejectFirst(Admission):
    """Wants a page at its second miss, if the first is among those remembered."""

    def __init__(self, pages: int) -> None:
        self.most = pages
        self.refused: Order = OrderedDict()
        self.let_in: set[int] = set()

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Look the page up."""
        if page in self.let_in:
            return True
        if page in self.refused:
            del self.refused[page]
            self.let_in.add(page)
            return True
        self.refused[page] = None
        while len(self.refused) > self.most:
            pop_oldest(self.refused)
        return False

    def evicted(self, page: int) -> None:
        """Begin anew."""
        self.let_in.discard(page)


class Larc(RejectFirst):
    """Adapts how many are remembered; sizes in parts of 2^-16 page, rounded down."""

    ONE = 1 << 16

    def __init__(self, pages: int) -> None:
        super().__init__(pages)
        self.c = pages * self.ONE
        self.cr = self.c // 10

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Adapt, then look the page up."""
        if page in self.let_in:
            self.cr = max(self.cr - self.c * self.ONE // max(self.c - self.cr, 1), self.c // 10)
            return True
        self.cr = min(self.cr + self.c * self.ONE // max(self.cr, 1), self.c * 9 // 10)
        self.most = max(self.cr // self.ONE, 1)
        return super().consider(now, page, write, full)


class TinyLfu(Admission):
    """Wants what was used more than those that left, on a running mean in 16ths."""

    def __init__(self, pages: int) -> None:
        self.frequencies = Frequencies(pages)
        self.mean = 0

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Count and compare."""
        if self.frequencies.count(page):
            self.mean //= 2
        return not full or self.frequencies.of(page) > Fraction(self.mean, 16)

    def evicted(self, page: int) -> None:
        """Move the mean a sixteenth of the way."""
        self.mean += (self.frequencies.of(page) * 16 - self.mean) // 16


class SieveStore(Admission):
    """Wants a page at its third use in the current part of the window and the three before it."""

    def __init__(self, pages: int) -> None:
        self.part_accesses = max(pages, 64)
        self.accesses = 0
        self.parts: dict[int, deque[tuple[int, int]]] = {}  # page: (part, uses in it up to 15)

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Count and look back."""
        part = self.accesses // self.part_accesses
        self.accesses += 1
        counts = self.parts.setdefault(page, deque(maxlen=4))
        if counts and counts[-1][0] == part:
            counts.append((part, min(counts.pop()[1] + 1, 15)))
        else:
            counts.append((part, 1))
        return sum(uses for at, uses in counts if at > part - 4) >= 3


class Probabilistic(Admission):
    """Wants so many of a million pages; the draws follow from the seed."""

    def __init__(self, per_million: int, seed: int) -> None:
        self.per_million = per_million
        self.seed = seed
        self.decisions = 0

    @staticmethod
    def mixed(x: int) -> int:
        """The mixing of 2.4.3."""
        x %= 2**31
        x = (x ^ x >> 16) * 0x21F0AAAD % 2**31
        x = (x ^ x >> 15) * 0x735A2D97 % 2**31
        return x ^ x >> 15

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Draw."""
        drawn = self.mixed(self.mixed(self.seed) ^ self.decisions)
        self.decisions += 1
        return drawn * 1_000_000 // 2**31 < self.per_million


class RequestSize(Admission):
    """Wants the pages of requests up to a size."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.length = 0

    def request(self, offset: int, length: int, write: bool) -> None:
        """Note the size."""
        self.length = length

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Compare."""
        return self.length <= self.most_bytes
