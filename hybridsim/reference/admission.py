"""Admission policies (2.4.3) with more state than counts of touches."""

from collections import OrderedDict, deque
from fractions import Fraction

from hybridsim.reference.policies import Admission, Order, mixed, pop_oldest
from hybridsim.reference.replacement import Frequencies


class RejectFirst(Admission):
    """Admits a page at its second miss, if its first miss is still remembered."""

    def __init__(self, pages: int) -> None:
        self.limit = pages
        self.refused: Order = OrderedDict()
        self.admitted: set[int] = set()

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Return whether the page is admitted; remember a refusal."""
        if page in self.admitted:
            return True
        if page in self.refused:
            del self.refused[page]
            self.admitted.add(page)
            return True
        self.refused[page] = None
        while len(self.refused) > self.limit:
            pop_oldest(self.refused)
        return False

    def evicted(self, page: int) -> None:
        """Make the page miss twice again before it is admitted."""
        self.admitted.discard(page)


class Larc(RejectFirst):
    """Adapts the number of remembered misses; sizes are in units of 2^-16 page, rounded down."""

    ONE = 1 << 16

    def __init__(self, pages: int) -> None:
        super().__init__(pages)
        self.c = pages * self.ONE
        self.cr = self.c // 10

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Adapt the number remembered, then return whether the page is admitted."""
        if page in self.admitted:
            self.cr = max(self.cr - self.c * self.ONE // max(self.c - self.cr, 1), self.c // 10)
            return True
        self.cr = min(self.cr + self.c * self.ONE // max(self.cr, 1), self.c * 9 // 10)
        self.limit = max(self.cr // self.ONE, 1)
        return super().consider(now, page, write, full)


class TinyLfu(Admission):
    """Admits pages used more often than evicted ones, by a running mean in sixteenths."""

    def __init__(self, pages: int) -> None:
        self.frequencies = Frequencies(pages)
        self.mean = 0

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Count the access and compare it with the mean."""
        if self.frequencies.count(page):
            self.mean //= 2
        return not full or self.frequencies.of(page) > Fraction(self.mean, 16)

    def evicted(self, page: int) -> None:
        """Move the mean by a sixteenth of the difference."""
        self.mean += (self.frequencies.of(page) * 16 - self.mean) // 16


class SieveStore(Admission):
    """Admits a page at its third use within the current part of the window and the three before."""

    def __init__(self, pages: int) -> None:
        self.part_accesses = max(pages, 64)
        self.accesses = 0
        self.parts: dict[int, deque[tuple[int, int]]] = {}  # page: (part, uses in it up to 15)

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Count the access and sum the uses of the last four parts."""
        part = self.accesses // self.part_accesses
        self.accesses += 1
        counts = self.parts.setdefault(page, deque(maxlen=4))
        if counts and counts[-1][0] == part:
            counts.append((part, min(counts.pop()[1] + 1, 15)))
        else:
            counts.append((part, 1))
        return sum(uses for at, uses in counts if at > part - 4) >= 3


class Probabilistic(Admission):
    """Admits `per_million` of a million pages at random, from a seed."""

    def __init__(self, per_million: int, seed: int) -> None:
        self.per_million = per_million
        self.seed = seed
        self.decisions = 0

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Draw the decision."""
        drawn = mixed(mixed(self.seed) ^ self.decisions)
        self.decisions += 1
        return drawn * 1_000_000 // 2**31 < self.per_million


class RequestSize(Admission):
    """Admits the pages of requests of at most `limit_bytes`."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.length = 0

    def request(self, offset: int, length: int, write: bool) -> None:
        """Record the size of the request."""
        self.length = length

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Compare the size with the limit."""
        return self.length <= self.limit_bytes
