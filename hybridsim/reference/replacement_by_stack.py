"""LIRS and W-TinyLFU (2.4.2), plain."""

from collections import OrderedDict

from hybridsim.reference.policies import Replacement
from hybridsim.reference.replacement import Order, oldest, pop_oldest


class Frequencies:
    """How often pages were used lately: every 10 cache sizes of uses, all counts are halved."""

    def __init__(self, pages: int) -> None:
        self.period = 10 * max(pages, 1)
        self.uses: dict[int, int] = {}
        self.counted = 0

    def count(self, page: int) -> bool:
        """Count a use, up to 15; tell whether all were halved after it."""
        self.uses[page] = min(self.uses.get(page, 0) + 1, 15)
        self.counted += 1
        if self.counted % self.period:
            return False
        self.uses = {page: uses // 2 for page, uses in self.uses.items()}
        return True

    def of(self, page: int) -> int:
        """The uses of a page."""
        return self.uses.get(page, 0)


class WTinyLfu(Replacement):
    """A window, and a main cache of two segments that only better pages enter."""

    def __init__(self, pages: int) -> None:
        self.window_share = max(pages // 100, 1)
        self.protected_share = max(pages - self.window_share, 0) * 8 // 10
        self.window: Order = OrderedDict()
        self.probation: Order = OrderedDict()
        self.protected: Order = OrderedDict()
        self.frequencies = Frequencies(pages)

    def missed(self, page: int) -> None:
        """Count."""
        self.frequencies.count(page)

    def admit(self, page: int) -> None:
        """Enter the window; its oldest page goes on if it is too long."""
        self.window[page] = None
        if len(self.window) > self.window_share:
            self.probation[pop_oldest(self.window)] = None

    def touch(self, page: int) -> None:
        """Count, and rise from probation."""
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
        """Forget a page."""
        for each in (self.window, self.probation, self.protected):
            each.pop(page, None)

    def evict(self) -> int:
        """The oldest of the window against the oldest of the main cache."""
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
    """The stack S and queue Q of the paper, and the order in which pages became non-resident."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.lir_share = max(pages - max(pages // 100, 1), 0)
        self.s: Order = OrderedDict()  # the top is the end
        self.q: Order = OrderedDict()
        self.gone: Order = OrderedDict()  # in S, not resident
        self.returning: set[int] = set()  # in S, missed since it was gone
        self.lir: set[int] = set()

    def missed(self, page: int) -> None:
        """A page that is still in S comes back."""
        if page in self.gone:
            del self.gone[page]
            self.returning.add(page)
            self.s.move_to_end(page)

    def admit(self, page: int) -> None:
        """LIR if it came back or there are too few; HIR else."""
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
        """A HIR page that is in S becomes LIR."""
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
        """In exchange for the LIR page at the bottom of S, if there are too many."""
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
        """Let the bottom of S be a LIR page."""
        while self.s and oldest(self.s) not in self.lir:
            page = pop_oldest(self.s)
            self.gone.pop(page, None)
            self.returning.discard(page)

    def limit(self) -> None:
        """Let S hold at most twice the cache, as far as non-resident pages can go."""
        while len(self.s) > 2 * self.pages and self.gone:
            del self.s[pop_oldest(self.gone)]

    def remove(self, page: int) -> None:
        """Forget a page."""
        self.q.pop(page, None)
        self.lir.discard(page)
        if page in self.s:
            del self.s[page]
            self.prune()

    def evict(self) -> int:
        """The first of Q; it stays in S, non-resident."""
        if not self.q and self.lir:
            self.demote()
        page = pop_oldest(self.q)
        if page in self.s:
            self.gone[page] = None
        return page
