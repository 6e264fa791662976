"""Replacement policies (2.4.2), each as in its paper, with plain lists."""

from collections import OrderedDict
from collections.abc import Iterable

from hybridsim.reference.policies import Replacement

Order = OrderedDict[int, None]  # pages, the oldest first


def oldest(pages: Iterable[int]) -> int:
    """Return the first page, or -1."""
    return next(iter(pages), -1)


def pop_oldest(pages: Order) -> int:
    """Remove and return the first page; -1 if there is none."""
    return pages.popitem(last=False)[0] if pages else -1


class Fifo(Replacement):
    """Evicts the page admitted first."""

    def __init__(self) -> None:
        self.pages: Order = OrderedDict()

    def admit(self, page: int) -> None:
        """Append a page."""
        self.pages[page] = None

    def touch(self, page: int) -> None:
        """Ignore the use."""

    def remove(self, page: int) -> None:
        """Remove a page."""
        del self.pages[page]

    def evict(self) -> int:
        """Evict the first page."""
        return pop_oldest(self.pages)


class SecondChance(Fifo):
    """Evicts the first unmarked page; marked pages before it move to the end, unmarked."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[int] = set()

    def admit(self, page: int) -> None:
        """Append a page without a mark."""
        super().admit(page)
        self.used.discard(page)

    def touch(self, page: int) -> None:
        """Mark a page."""
        self.used.add(page)

    def evict(self) -> int:
        """Advance to the first page without a mark and evict it."""
        while (page := pop_oldest(self.pages)) in self.used:
            self.used.discard(page)
            self.pages[page] = None
        return page


class Sieve(SecondChance):
    """A hand walks from oldest to newest; marked pages lose their mark and stay in place."""

    def __init__(self) -> None:
        super().__init__()
        self.hand = -1  # the next page to examine; -1: the oldest

    def after(self, page: int) -> int:
        """Return the page admitted next after this one, or -1."""
        order = list(self.pages)
        return oldest(order[order.index(page) + 1 :])

    def remove(self, page: int) -> None:
        """Remove a page; the hand moves on if it pointed to it."""
        if page == self.hand:
            self.hand = self.after(page)
        super().remove(page)

    def evict(self) -> int:
        """Advance the hand to the first page without a mark and evict it."""
        if not self.pages:
            return -1
        page = self.hand if self.hand >= 0 else oldest(self.pages)
        while page in self.used:
            self.used.discard(page)
            page = self.after(page)
            if page < 0:
                page = oldest(self.pages)
        self.hand = self.after(page)
        del self.pages[page]
        return page


class Slru(Replacement):
    """Four segments in order of use; a hit promotes a page to the next one."""

    def __init__(self, pages: int) -> None:
        self.share = pages // 4
        self.segments: list[Order] = [OrderedDict() for _ in range(4)]

    def admit(self, page: int) -> None:
        """Insert a page into the lowest segment that has room, else into the lowest one."""
        roomy = [each for each in self.segments if len(each) < self.share]
        (roomy or self.segments)[0][page] = None

    def touch(self, page: int) -> None:
        """Promote a page by one segment; the excess of each segment is demoted by one."""
        at = next(i for i, each in enumerate(self.segments) if page in each)
        del self.segments[at][page]
        to = min(at + 1, 3)
        self.segments[to][page] = None
        for i in range(to, 0, -1):
            if len(self.segments[i]) > self.share:
                self.segments[i - 1][pop_oldest(self.segments[i])] = None

    def remove(self, page: int) -> None:
        """Remove a page."""
        for each in self.segments:
            each.pop(page, None)

    def evict(self) -> int:
        """Evict the oldest page of the lowest segment that is not empty."""
        return next((pop_oldest(each) for each in self.segments if each), -1)


class Lfu(Replacement):
    """Evicts the page with the fewest uses; of equals the least recently used."""

    def __init__(self) -> None:
        self.pages: dict[int, tuple[int, int]] = {}  # page: (uses, time of the last one)
        self.time = 0

    def admit(self, page: int) -> None:
        """Insert a page with its first use."""
        self.pages[page] = (0, 0)
        self.touch(page)

    def touch(self, page: int) -> None:
        """Count a use."""
        self.time += 1
        self.pages[page] = (self.pages[page][0] + 1, self.time)

    def remove(self, page: int) -> None:
        """Remove a page."""
        del self.pages[page]

    def evict(self) -> int:
        """Evict the least used page."""
        if not self.pages:
            return -1
        page = min(self.pages, key=lambda each: self.pages[each])
        del self.pages[page]
        return page


class Returning(Replacement):
    """Records pages that were missed while still in a list of evicted pages."""

    def __init__(self) -> None:
        self.returning: set[int] = set()

    def came_back(self, page: int, evicted: Order) -> bool:
        """Remove a page from a list of evicted pages and record its return; False if not there."""
        if page not in evicted:
            return False
        del evicted[page]
        self.returning.add(page)
        return True

    def returns(self, page: int) -> bool:
        """Return whether a page has returned, and clear that record."""
        returned = page in self.returning
        self.returning.discard(page)
        return returned


class TwoQ(Returning):
    """A1in, A1out and Am of the paper."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.kin, self.kout = pages // 4, pages // 2
        self.a1in: Order = OrderedDict()
        self.a1out: Order = OrderedDict()
        self.am: Order = OrderedDict()

    def missed(self, page: int) -> None:
        """Record the return of a recently evicted page."""
        self.came_back(page, self.a1out)

    def admit(self, page: int) -> None:
        """Insert a page: Am if it has returned, else A1in."""
        (self.am if self.returns(page) else self.a1in)[page] = None

    def touch(self, page: int) -> None:
        """Keep Am in order of use."""
        if page in self.am:
            self.am.move_to_end(page)

    def remove(self, page: int) -> None:
        """Remove a page."""
        for each in (self.a1in, self.am):
            each.pop(page, None)

    def evict(self) -> int:
        """Evict from A1in if it exceeds its share or Am is empty; otherwise from Am."""
        if len(self.a1in) <= self.kin and self.am:
            return pop_oldest(self.am)
        page = pop_oldest(self.a1in)
        if page >= 0:
            self.a1out[page] = None
            if len(self.a1out) > self.kout:
                pop_oldest(self.a1out)
        return page


class S3Fifo(Returning):
    """A small, a main and a ghost queue."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.small_share = pages // 10
        self.main_share = pages - self.small_share
        self.ghost_share = pages * 9 // 10
        self.small: Order = OrderedDict()
        self.main: Order = OrderedDict()
        self.ghost: Order = OrderedDict()
        self.uses: dict[int, int] = {}
        self.has_evicted = False

    def missed(self, page: int) -> None:
        """Record the return of a recently evicted page."""
        self.came_back(page, self.ghost)

    def admit(self, page: int) -> None:
        """Insert a page: main if it has returned, or if small is full before the first eviction."""
        self.uses[page] = 0
        first_fill = not self.has_evicted and len(self.small) >= self.small_share
        (self.main if self.returns(page) or first_fill else self.small)[page] = None

    def touch(self, page: int) -> None:
        """Count a use, up to 3."""
        self.uses[page] = min(self.uses[page] + 1, 3)

    def remove(self, page: int) -> None:
        """Remove a page."""
        for each in (self.small, self.main):
            each.pop(page, None)

    def evict(self) -> int:
        """Evict from main if it exceeds its share, else from small; fall back to the other."""
        self.has_evicted = True
        page = -1
        if len(self.main) <= self.main_share:
            page = self.evict_small()
        if page < 0:
            page = self.evict_main()
        return page if page >= 0 else self.evict_small()

    def evict_small(self) -> int:
        """Move pages used twice to main; evict the first other page into the ghost queue."""
        while self.small:
            page = pop_oldest(self.small)
            if self.uses[page] < 2:
                self.ghost[page] = None
                if len(self.ghost) > self.ghost_share:
                    pop_oldest(self.ghost)
                return page
            self.uses[page] = 0
            self.main[page] = None
        return -1

    def evict_main(self) -> int:
        """Move used pages to the end with one use less; evict the first unused one."""
        while self.main:
            page = pop_oldest(self.main)
            if self.uses[page] == 0:
                return page
            self.uses[page] -= 1
            self.main[page] = None
        return -1


class Arc(Returning):
    """T1, T2, B1, B2 and p of the paper; p in units of 2^-20 page."""

    ONE = 1 << 20

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.c = pages
        self.p = 0
        self.t1: Order = OrderedDict()
        self.t2: Order = OrderedDict()
        self.b1: Order = OrderedDict()
        self.b2: Order = OrderedDict()
        self.last_miss = "new"

    def missed(self, page: int) -> None:
        """Adapt p (cases II and III)."""
        b1, b2 = len(self.b1), len(self.b2)
        self.last_miss = "new"
        if self.came_back(page, self.b1):
            self.last_miss = "b1"
            self.p = min(self.p + max(b2 * self.ONE // b1, self.ONE), self.c * self.ONE)
        elif self.came_back(page, self.b2):
            self.last_miss = "b2"
            self.p = max(self.p - max(b1 * self.ONE // b2, self.ONE), 0)

    def admit(self, page: int) -> None:
        """Insert a page: T2 if it has returned, else T1."""
        (self.t2 if self.returns(page) else self.t1)[page] = None

    def touch(self, page: int) -> None:
        """Move a page to the end of T2 (case I)."""
        self.t1.pop(page, None)
        self.t2[page] = None
        self.t2.move_to_end(page)

    def remove(self, page: int) -> None:
        """Remove a page."""
        self.t1.pop(page, None)
        self.t2.pop(page, None)

    def evict(self) -> int:
        """Evict a page: case IV for a new page, and REPLACE."""
        if self.last_miss == "new":
            if len(self.t1) + len(self.b1) >= self.c:
                if not self.b1:
                    return pop_oldest(self.t1)
                pop_oldest(self.b1)
            elif len(self.t1) + len(self.b1) + len(self.t2) + len(self.b2) >= 2 * self.c:
                pop_oldest(self.b2)
        t1 = len(self.t1) * self.ONE
        from_t1 = t1 > self.p or (t1 == self.p and self.last_miss == "b2") or not self.t2
        if self.t1 and from_t1:
            page = pop_oldest(self.t1)
            self.b1[page] = None
        else:
            page = pop_oldest(self.t2)
            if page >= 0:
                self.b2[page] = None
        return page
