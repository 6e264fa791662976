"""Replacement policies (2.4.2), each as its paper tells it, with lists to be searched through."""

from collections import OrderedDict
from collections.abc import Iterable

from hybridsim.reference.policies import Replacement

Order = OrderedDict[int, None]  # pages, the oldest first


def oldest(pages: Iterable[int]) -> int:
    """The first of some pages, or -1."""
    return next(iter(pages), -1)


def pop_oldest(pages: Order) -> int:
    """Take out the first page; -1 if there is none."""
    return pages.popitem(last=False)[0] if pages else -1


class Fifo(Replacement):
    """The page that came first goes."""

    def __init__(self) -> None:
        self.pages: Order = OrderedDict()

    def admit(self, page: int) -> None:
        """Line up."""
        self.pages[page] = None

    def touch(self, page: int) -> None:
        """Make nothing of it."""

    def remove(self, page: int) -> None:
        """Forget a page."""
        del self.pages[page]

    def evict(self) -> int:
        """Give up the first."""
        return pop_oldest(self.pages)


class SecondChance(Fifo):
    """The first page that was not used goes; those before it line up again, their mark gone."""

    def __init__(self) -> None:
        super().__init__()
        self.used: set[int] = set()

    def admit(self, page: int) -> None:
        """Line up without a mark."""
        super().admit(page)
        self.used.discard(page)

    def touch(self, page: int) -> None:
        """Mark a page."""
        self.used.add(page)

    def evict(self) -> int:
        """Turn the clock."""
        while (page := pop_oldest(self.pages)) in self.used:
            self.used.discard(page)
            self.pages[page] = None
        return page


class Sieve(SecondChance):
    """A hand walks from oldest to newest; marked pages lose their mark and stay in place."""

    def __init__(self) -> None:
        super().__init__()
        self.hand = -1  # the page that is looked at next; -1: the oldest

    def after(self, page: int) -> int:
        """The page that came next after this one, or -1."""
        order = list(self.pages)
        return oldest(order[order.index(page) + 1 :])

    def remove(self, page: int) -> None:
        """Forget a page; the hand moves on if it was there."""
        if page == self.hand:
            self.hand = self.after(page)
        super().remove(page)

    def evict(self) -> int:
        """Walk to the first page without a mark."""
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
    """Four lists in order of use; a hit raises a page into the next one."""

    def __init__(self, pages: int) -> None:
        self.share = pages // 4
        self.segments: list[Order] = [OrderedDict() for _ in range(4)]

    def admit(self, page: int) -> None:
        """Enter at the lowest segment that has room, or at the lowest."""
        roomy = [each for each in self.segments if len(each) < self.share]
        (roomy or self.segments)[0][page] = None

    def touch(self, page: int) -> None:
        """Rise by one, at most to the top; what is too much above sinks by one."""
        at = next(i for i, each in enumerate(self.segments) if page in each)
        del self.segments[at][page]
        to = min(at + 1, 3)
        self.segments[to][page] = None
        for i in range(to, 0, -1):
            if len(self.segments[i]) > self.share:
                self.segments[i - 1][pop_oldest(self.segments[i])] = None

    def remove(self, page: int) -> None:
        """Forget a page."""
        for each in self.segments:
            each.pop(page, None)

    def evict(self) -> int:
        """Give up the oldest of the lowest segment that has any."""
        return next((pop_oldest(each) for each in self.segments if each), -1)


class Lfu(Replacement):
    """The page with the fewest uses goes, of several the one that was used longest ago."""

    def __init__(self) -> None:
        self.pages: dict[int, tuple[int, int]] = {}  # page: uses, moment of the last one
        self.moment = 0

    def admit(self, page: int) -> None:
        """Count the first use."""
        self.pages[page] = (0, 0)
        self.touch(page)

    def touch(self, page: int) -> None:
        """Count a use."""
        self.moment += 1
        self.pages[page] = (self.pages[page][0] + 1, self.moment)

    def remove(self, page: int) -> None:
        """Forget a page."""
        del self.pages[page]

    def evict(self) -> int:
        """Give up the least of all."""
        if not self.pages:
            return -1
        page = min(self.pages, key=lambda each: self.pages[each])
        del self.pages[page]
        return page


class Returning(Replacement):
    """Remembers pages that were missed while a list of departed pages still knew them."""

    def __init__(self) -> None:
        self.returning: set[int] = set()

    def came_back(self, page: int, departed: Order) -> bool:
        """Take a page off a list of departed ones, if it is there, and note its return."""
        if page not in departed:
            return False
        del departed[page]
        self.returning.add(page)
        return True

    def returns(self, page: int) -> bool:
        """Tell, once, whether a page had come back."""
        known = page in self.returning
        self.returning.discard(page)
        return known


class TwoQ(Returning):
    """A1in, A1out and Am of the paper."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.kin, self.kout = pages // 4, pages // 2
        self.a1in: Order = OrderedDict()
        self.a1out: Order = OrderedDict()
        self.am: Order = OrderedDict()

    def missed(self, page: int) -> None:
        """See whether it left lately."""
        self.came_back(page, self.a1out)

    def admit(self, page: int) -> None:
        """Enter."""
        (self.am if self.returns(page) else self.a1in)[page] = None

    def touch(self, page: int) -> None:
        """Keep Am in order of use."""
        if page in self.am:
            self.am.move_to_end(page)

    def remove(self, page: int) -> None:
        """Forget a page."""
        for each in (self.a1in, self.am):
            each.pop(page, None)

    def evict(self) -> int:
        """From A1in if it is longer than its share, or there is nothing else; else from Am."""
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
        """See whether it left lately."""
        self.came_back(page, self.ghost)

    def admit(self, page: int) -> None:
        """Enter: main if it came back, or if small is full before anything was evicted."""
        self.uses[page] = 0
        first_fill = not self.has_evicted and len(self.small) >= self.small_share
        (self.main if self.returns(page) or first_fill else self.small)[page] = None

    def touch(self, page: int) -> None:
        """Count up to three."""
        self.uses[page] = min(self.uses[page] + 1, 3)

    def remove(self, page: int) -> None:
        """Forget a page."""
        for each in (self.small, self.main):
            each.pop(page, None)

    def evict(self) -> int:
        """From main if it is too long, else from small; if that yields none, from the other."""
        self.has_evicted = True
        page = -1
        if len(self.main) <= self.main_share:
            page = self.evict_small()
        if page < 0:
            page = self.evict_main()
        return page if page >= 0 else self.evict_small()

    def evict_small(self) -> int:
        """Pages used twice go to main; the first other one goes, and is remembered."""
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
        """Used pages go round, with one use less."""
        while self.main:
            page = pop_oldest(self.main)
            if self.uses[page] == 0:
                return page
            self.uses[page] -= 1
            self.main[page] = None
        return -1


class Arc(Returning):
    """T1, T2, B1, B2 and p of the paper; p in parts of 2^-20 page."""

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
        """Cases II and III adapt p."""
        b1, b2 = len(self.b1), len(self.b2)
        self.last_miss = "new"
        if self.came_back(page, self.b1):
            self.last_miss = "b1"
            self.p = min(self.p + max(b2 * self.ONE // b1, self.ONE), self.c * self.ONE)
        elif self.came_back(page, self.b2):
            self.last_miss = "b2"
            self.p = max(self.p - max(b1 * self.ONE // b2, self.ONE), 0)

    def admit(self, page: int) -> None:
        """T2 if it came back."""
        (self.t2 if self.returns(page) else self.t1)[page] = None

    def touch(self, page: int) -> None:
        """Case I."""
        self.t1.pop(page, None)
        self.t2[page] = None
        self.t2.move_to_end(page)

    def remove(self, page: int) -> None:
        """Forget a page."""
        self.t1.pop(page, None)
        self.t2.pop(page, None)

    def evict(self) -> int:
        """Case IV for a new page, and REPLACE."""
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
