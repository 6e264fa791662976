"""The interfaces of admission and replacement policies (2.4), and the simplest policies."""

from abc import ABC, abstractmethod
from collections import OrderedDict

Order = OrderedDict[int, None]  # pages, the oldest first


def mixed(x: int) -> int:
    """Return the 31-bit hash of 2.4.3."""
    x %= 2**31
    x = (x ^ x >> 16) * 0x21F0AAAD % 2**31
    x = (x ^ x >> 15) * 0x735A2D97 % 2**31
    return x ^ x >> 15


def pop_oldest(pages: Order) -> int:
    """Remove and return the first page; -1 if there is none."""
    return pages.popitem(last=False)[0] if pages else -1


class Admission(ABC):
    """Decides whether a page that is not cached is admitted."""

    def request(self, offset: int, length: int, write: bool) -> None:  # noqa: B027
        """Record a READ or WRITE before its pages are considered."""

    @abstractmethod
    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Record an access before its effect; return whether the page, if absent, is admitted.

        `full`: every slot has been used at least once.
        """

    def evicted(self, page: int) -> None:  # noqa: B027 - optional
        """Record that a page was evicted."""


class Touches(Admission):
    """Admits a page from its n-th access on."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.accesses: dict[int, int] = {}

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Count the access."""
        self.accesses[page] = min(self.accesses.get(page, 0) + 1, 255)
        return self.accesses[page] >= self.n


class Replacement(ABC):
    """Chooses the victim among the cached pages."""

    def missed(self, page: int) -> None:  # noqa: B027 - optional
        """Record that an absent page is about to be reserved; `evict` may follow."""

    @abstractmethod
    def admit(self, page: int) -> None:
        """Record that a page is now cached."""

    @abstractmethod
    def touch(self, page: int) -> None:
        """Record that a cached page was used."""

    @abstractmethod
    def remove(self, page: int) -> None:
        """Remove a page that is no longer cached."""

    @abstractmethod
    def evict(self) -> int:
        """Choose a victim, remove it and return it; -1 if there is none."""


class Listed(Replacement):
    """Has the cached pages in some lists."""

    def __init__(self, count: int = 1) -> None:
        self.lists: list[Order] = [OrderedDict() for _ in range(count)]

    def remove(self, page: int) -> None:
        """Remove a page."""
        for each in self.lists:
            each.pop(page, None)


class Fifo(Listed):
    """Evicts the page admitted first."""

    @property
    def pages(self) -> Order:
        """The cached pages."""
        return self.lists[0]

    def admit(self, page: int) -> None:
        """Append a page."""
        self.pages[page] = None

    def touch(self, page: int) -> None:
        """Ignore the use."""

    def evict(self) -> int:
        """Evict the first page."""
        return pop_oldest(self.pages)


class Lru(Fifo):
    """Evicts the least recently used page."""

    def touch(self, page: int) -> None:
        """Make a page the most recently used."""
        self.pages.move_to_end(page)
