"""Policies (2.4): which pages are worth caching, and which must go."""

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from dataclasses import dataclass


class Admission(ABC):
    """Decides whether a page that is not cached should be."""

    def request(self, offset: int, length: int, write: bool) -> None:  # noqa: B027
        """Hear of a READ or WRITE before its pages."""

    @abstractmethod
    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Hear of an access before its effect; answer whether the page is wanted if it is absent.

        `full` says that every slot has been used.
        """

    def evicted(self, page: int) -> None:  # noqa: B027 - a policy may not care
        """Hear that a page was evicted."""


class Touches(Admission):
    """Wants a page from its n-th access on."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.accesses: dict[int, int] = {}

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Count the access."""
        self.accesses[page] = min(self.accesses.get(page, 0) + 1, 255)
        return self.accesses[page] >= self.n


@dataclass
class Sample:
    """An access whose sequel is awaited."""

    page: int
    kind: int
    clock: int


class Learned(Admission):
    """Wants pages of those classes of accesses that turned out to come again soon enough (2.4.1).

    An access is sampled, and judged once `horizon` accesses have passed: was its page touched
    again? The horizon follows the age at which pages are evicted: who comes later finds it gone.
    """

    RING = 4096  # samples that may be waiting to be judged
    JUDGED_AT_ONCE = 4
    WEIGHT = 16  # of one sample
    ENOUGH = 256 * WEIGHT  # of a class; then the past counts half

    def __init__(self, pages: int) -> None:
        self.clock = 0  # accesses so far
        self.horizon = max(2 * pages, 64)
        self.samples: deque[Sample] = deque()
        self.last: dict[int, int] = {}  # clock of a page's last access
        self.count: dict[int, int] = {}  # a page's accesses, up to 7
        self.total = [2 * self.WEIGHT] * 512
        self.good = [1 * self.WEIGHT] * 512

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Judge old samples, perhaps take a new one, and answer by what was learned."""
        self.judge()
        kind = self.kind(page, write)
        period = self.horizon // 2048 + 1
        if self.clock % period == 0 and len(self.samples) < self.RING:
            self.samples.append(Sample(page, kind, self.clock))
        self.last[page] = self.clock
        self.count[page] = min(self.count.get(page, 0) + 1, 7)
        self.clock += 1
        if full:  # a fill costs half of what the hits of a page that comes again are worth
            return self.good[kind] * 2 >= self.total[kind]
        return self.good[kind] * 8 >= self.total[kind]  # a slot lies idle: be generous

    def judge(self) -> None:
        """Learn from samples old enough to be judged."""
        for _ in range(self.JUDGED_AT_ONCE):
            if not self.samples or self.clock - self.samples[0].clock < self.horizon:
                return
            sample = self.samples.popleft()
            self.total[sample.kind] += self.WEIGHT
            if self.last[sample.page] > sample.clock:
                self.good[sample.kind] += self.WEIGHT
            if self.total[sample.kind] >= self.ENOUGH:
                self.total[sample.kind] //= 2
                self.good[sample.kind] //= 2

    def kind(self, page: int, write: bool) -> int:
        """The class of an access: read or write, touched how often before, how long ago."""
        gap = 0
        if page in self.last:
            gap = min((self.clock - self.last[page]).bit_length(), 31)
        return int(write) * 256 + self.count.get(page, 0) * 32 + gap

    def evicted(self, page: int) -> None:
        """Let the horizon follow the age of what is evicted."""
        age = self.clock - self.last[page]
        self.horizon = max(self.horizon + (age - self.horizon) // 16, 64)


class Replacement(ABC):
    """Decides which cached page gives way."""

    def missed(self, page: int) -> None:  # noqa: B027 - a policy may not care
        """Hear that an absent page is about to be reserved; `evict` may follow."""

    @abstractmethod
    def admit(self, page: int) -> None:
        """Hear that a page is now cached."""

    @abstractmethod
    def touch(self, page: int) -> None:
        """Hear that a cached page was used."""

    @abstractmethod
    def remove(self, page: int) -> None:
        """Forget a page, which is no longer cached."""

    @abstractmethod
    def evict(self) -> int:
        """Choose a page, forget it and return it; -1 if there is none."""


class Lru(Replacement):
    """The least recently used page goes."""

    def __init__(self) -> None:
        self.pages: OrderedDict[int, None] = OrderedDict()  # the least recently used first

    def admit(self, page: int) -> None:
        """Take in a page as the most recently used."""
        self.pages[page] = None

    def touch(self, page: int) -> None:
        """Make a page the most recently used."""
        self.pages.move_to_end(page)

    def remove(self, page: int) -> None:
        """Forget a page."""
        del self.pages[page]

    def evict(self) -> int:
        """Give up the least recently used page."""
        if not self.pages:
            return -1
        page, _ = self.pages.popitem(last=False)
        return page
