"""LIRS and W-TinyLFU (2.4.2)."""

from collections import OrderedDict

from hybridsim.reference.policies import Replacement
from hybridsim.reference.replacement import Order, oldest, pop_oldest


class Frequencies:
    """Recent use counts of pages; all counts are halved every 10 cache sizes of uses."""

    def __init__(self, pages: int) -> None:
        self.period = 10 * max(pages, 1)
        self.uses: dict[int, int] = {}
        self.counted = 0

    def count(self, page: int) -> bool:
        """Count a use, up to 15; return whether all counts were halved after it."""
        self.uses[page] = min(self.uses.get(page, 0) + 1, 15)
        self.counted += 1
        if self.counted % self.period:
            return False
        self.uses = {page: uses // 2 for page, uses in self.uses.items()}
        return True

    def of(self, page: int) -> int:
        """Return the use count of a page."""
        return self.uses.get(page, 0)


class WTinyLfu(Replacement):
    """A window, and a main cache of two segments that only more frequently used pages enter."""

    def __init__(self, pages: int) -> None:
        self.window_share = max(pages // 100, 1)
        self.protected_share = max(pages - self.window_share, 0) * 8 // 10
        self.window: Order = OrderedDict()
        self.probation: Order = OrderedDict()
        self.protected: Order = OrderedDict()
        self.frequencies = Frequencies(pages)

    def missed(self, page: int) -> None:
        """Count the use."""
        self.frequencies.count(page)

    def admit(self, page: int) -> None:
        """Insert a page into the window; an excess page moves to probation."""
        self.window[page] = None
        if len(self.window) > self.window_share:
            self.probation[pop_oldest(self.window)] = None

    def touch(self, page: int) -> None:
        """Count the use; promote a page in probation."""
        self.frequencies.count(page)
        if page in self.window:
            self.window.move_to_end(page)
        elif page in self.protected:
            self.protected.move_to_end(page)
        else:
            del self.probation[page]
            self.protected[page] = None
            if len(self.protected) > self.protected_share:
                self.probation[pop_oldest(self.protected)] = None

    def remove(self, page: int) -> None:
        """Remove a page."""
        for each in (self.window, self.probation, self.protected):
            each.pop(page, None)

    def evict(self) -> int:
        """Evict the oldest page of the window or of the main cache, whichever has fewer uses."""
        main = self.probation or self.protected
        if main and len(self.window) < self.window_share:
            return pop_oldest(main)
        candidate, victim = oldest(self.window), oldest(main)
        if main and self.window:
            if self.frequencies.of(candidate) > self.frequencies.of(victim):
                pop_oldest(main)
                self.probation[pop_oldest(self.window)] = None
                return victim
        return pop_oldest(self.window)


class Lirs(Replacement):
    """The stack S and queue Q of the paper, and the non-resident pages in order."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.lir_share = max(pages - max(pages // 100, 1), 0)
        self.s: Order = OrderedDict()  # the top is last
        self.q: Order = OrderedDict()
        self.non_resident: Order = OrderedDict()  # in S, non-resident, oldest first
        self.returning: set[int] = set()  # in S, missed since their eviction
        self.lir: set[int] = set()

    def missed(self, page: int) -> None:
        """Record the return of a page that is still in S."""
        if page in self.non_resident:
            del self.non_resident[page]
            self.returning.add(page)
            self.s.move_to_end(page)

    def admit(self, page: int) -> None:
        """Insert a page: LIR if it returned or there are too few LIR pages, otherwise HIR."""
        self.s[page] = None
        self.s.move_to_end(page)
        if page in self.returning:
            self.returning.discard(page)
            self.become_lir(page)
        elif len(self.lir) < self.lir_share:
            self.lir.add(page)
        else:
            self.q[page] = None
        self.limit()

    def touch(self, page: int) -> None:
        """Record a use; a HIR page that is in S becomes LIR."""
        was_in_s = page in self.s
        self.s[page] = None
        self.s.move_to_end(page)
        if page in self.lir:
            self.prune()
        elif was_in_s:
            del self.q[page]
            self.become_lir(page)
        else:
            self.q.move_to_end(page)
        self.limit()

    def become_lir(self, page: int) -> None:
        """Make a page LIR; demote the LIR page at the bottom of S if there are too many."""
        self.lir.add(page)
        if len(self.lir) > self.lir_share:
            self.demote()

    def demote(self) -> None:
        """Make the LIR page at the bottom of S a HIR page at the end of Q."""
        self.prune()
        page = pop_oldest(self.s)
        self.lir.discard(page)
        self.q[page] = None
        self.prune()

    def prune(self) -> None:
        """Remove pages from the bottom of S until a LIR page is there."""
        while self.s and oldest(self.s) not in self.lir:
            page = pop_oldest(self.s)
            self.non_resident.pop(page, None)
            self.returning.discard(page)

    def limit(self) -> None:
        """Limit S to twice the cache size by removing non-resident pages."""
        while len(self.s) > 2 * self.pages and self.non_resident:
            del self.s[pop_oldest(self.non_resident)]

    def remove(self, page: int) -> None:
        """Remove a page."""
        self.q.pop(page, None)
        self.lir.discard(page)
        if page in self.s:
            del self.s[page]
            self.prune()

    def evict(self) -> int:
        """Evict the first page of Q; it stays in S as non-resident."""
        if not self.q and self.lir:
            self.demote()
        page = pop_oldest(self.q)
        if page in self.s:
            self.non_resident[page] = None
        return page
