"""Policies (2.4): which pages are worth caching, and which must go."""

from abc import ABC, abstractmethod
from collections import OrderedDict


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
