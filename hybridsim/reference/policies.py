"""Policies (2.4): replacement (2.4.2), as in its paper, with plain lists; admission (2.4.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Iterable
from fractions import Fraction

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


def oldest(pages: Iterable[int]) -> int:
    """Return the first page, or -1."""
    return next(iter(pages), -1)


class Drawn(list[int]):
    """Pages of which some are drawn."""

    draws = 0  # numbers up to now

    def remove(self, page: int) -> None:
        """Remove a page; the last one takes its position."""
        self[self.index(page)] = self[-1]
        self.pop()

    def draw(self) -> list[int]:
        """Draw 32 pages."""
        numbers = range(self.draws, self.draws + 32)
        self.draws = numbers.stop
        return [self[mixed(number) * len(self) >> 31] for number in numbers]


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

    def touch(self, page: int) -> None:  # noqa: B027 - optional
        """Record that a cached page was used."""

    @abstractmethod
    def remove(self, page: int) -> None:
        """Remove a page that is no longer cached."""

    @abstractmethod
    def evict(self) -> int:
        """Choose a victim, remove it and return it; -1 if there is none."""


class Listed(Replacement):
    """Has the cached pages in some lists; evicts the first page of the first that has one."""

    def __init__(self, count: int = 1) -> None:
        self.lists: list[Order] = [OrderedDict() for _ in range(count)]

    def remove(self, page: int) -> None:
        """Remove a page."""
        for each in self.lists:
            each.pop(page, None)

    def evict(self) -> int:
        """Evict the first page."""
        return next((pop_oldest(each) for each in self.lists if each), -1)


class Fifo(Listed):
    """Evicts the page admitted first."""

    @property
    def pages(self) -> Order:
        """The cached pages."""
        return self.lists[0]

    def admit(self, page: int) -> None:
        """Append a page."""
        self.pages[page] = None


class Lru(Fifo):
    """Evicts the least recently used page."""

    def touch(self, page: int) -> None:
        """Make a page the most recently used."""
        self.pages.move_to_end(page)


# Replacement.


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


class Slru(Listed):
    """Four segments in order of use; a hit promotes a page to the next one."""

    def __init__(self, pages: int) -> None:
        super().__init__(4)
        self.share = pages // 4

    def admit(self, page: int) -> None:
        """Insert a page into the lowest segment that has room, else into the lowest one."""
        roomy = [each for each in self.lists if len(each) < self.share]
        (roomy or self.lists)[0][page] = None

    def touch(self, page: int) -> None:
        """Promote a page by one segment; the excess of each segment is demoted by one."""
        at = next(i for i, each in enumerate(self.lists) if page in each)
        del self.lists[at][page]
        to = min(at + 1, 3)
        self.lists[to][page] = None
        for i in range(to, 0, -1):
            if len(self.lists[i]) > self.share:
                self.lists[i - 1][pop_oldest(self.lists[i])] = None


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
        page = min(self.pages, key=lambda each: self.pages[each], default=-1)
        self.pages.pop(page, None)
        return page


class Returning(Listed):
    """Two lists: new pages, and those that were missed while still in a list of evicted pages."""

    def __init__(self) -> None:
        super().__init__(2)
        self.ghost: Order = OrderedDict()  # evicted pages
        self.returning: set[int] = set()

    def missed(self, page: int) -> None:
        """Record the return of a recently evicted page."""
        self.came_back(page, self.ghost)

    def admit(self, page: int) -> None:
        """Insert a page into the second list if it has returned, else into the first."""
        self.lists[self.returns(page)][page] = None

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
    """A1in, A1out (`ghost`) and Am of the paper."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.kin, self.kout = pages // 4, pages // 2
        self.a1in, self.am = self.lists

    def touch(self, page: int) -> None:
        """Keep Am in order of use."""
        if page in self.am:
            self.am.move_to_end(page)

    def evict(self) -> int:
        """Evict from A1in if it exceeds its share or Am is empty; otherwise from Am."""
        if len(self.a1in) <= self.kin and self.am:
            return pop_oldest(self.am)
        page = pop_oldest(self.a1in)
        if page >= 0:
            self.ghost[page] = None
            if len(self.ghost) > self.kout:
                pop_oldest(self.ghost)
        return page


class S3Fifo(Returning):
    """A small, a main and a ghost queue."""

    def __init__(self, pages: int) -> None:
        super().__init__()
        self.small_share = pages // 10
        self.main_share = pages - self.small_share
        self.ghost_share = pages * 9 // 10
        self.small, self.main = self.lists
        self.uses: dict[int, int] = {}
        self.has_evicted = False

    def admit(self, page: int) -> None:
        """Insert a page: main if it has returned, or if small is full before the first eviction."""
        self.uses[page] = 0
        first_fill = not self.has_evicted and len(self.small) >= self.small_share
        (self.main if self.returns(page) or first_fill else self.small)[page] = None

    def touch(self, page: int) -> None:
        """Count a use, up to 3."""
        self.uses[page] = min(self.uses[page] + 1, 3)

    def evict(self) -> int:
        """Evict from main if it exceeds its share, else from small; fall back to the other."""
        self.has_evicted = True
        tries = [self.evict_small, self.evict_main]
        if len(self.main) > self.main_share:
            tries.reverse()
        return next((page for evict in tries if (page := evict()) >= 0), -1)

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
        self.t1, self.t2 = self.lists
        self.b1 = self.ghost
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

    def touch(self, page: int) -> None:
        """Move a page to the end of T2 (case I)."""
        self.t1.pop(page, None)
        self.t2[page] = None
        self.t2.move_to_end(page)

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


class WTinyLfu(Listed):
    """A window, and a main cache of two segments that only more frequently used pages enter."""

    def __init__(self, pages: int) -> None:
        super().__init__(3)
        self.window_share = max(pages // 100, 1)
        self.protected_share = max(pages - self.window_share, 0) * 8 // 10
        self.window, self.probation, self.protected = self.lists
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


AGES, CLASSES = 512, 16


def age_of(steps: int) -> int:
    """Return the age of a number of steps: 64 ages of 1 step, then 32 each of 2, 4, ... steps."""
    octave = max(steps.bit_length() - 6, 0)
    return min((steps >> octave) + 32 * octave, AGES - 1)


def steps_in(age: int) -> int:
    """Return the number of steps in an age."""
    return 1 << max(age // 32 - 1, 0)


class Lhd(Replacement):
    """Learns the hit density of each class and age; evicts the least dense of 32 drawn pages."""

    def __init__(self, pages: int) -> None:
        self.period = max(4 * pages, 1 << 14)
        self.clock = 0
        self.shift = (pages // 128).bit_length()
        self.hits = [[0] * AGES for _ in range(CLASSES)]
        self.evictions = [[0] * AGES for _ in range(CLASSES)]
        starts = [sum(map(steps_in, range(age))) for age in range(AGES)]
        self.density = [[(1 << 26) // (start + 1) for start in starts] for _ in range(CLASSES)]
        self.last: dict[int, int] = {}
        self.kind: dict[int, int] = {}
        self.held = Drawn()

    def steps(self, page: int) -> int:
        """Return the steps since the last use of a page."""
        return (self.clock - self.last[page]) >> self.shift

    def missed(self, page: int) -> None:
        """Count an access; learn at the end of each period."""
        self.clock += 1
        if self.clock % self.period == 0:
            self.learn()

    def admit(self, page: int) -> None:
        """Insert a page in class 0, never hit."""
        self.last[page] = self.clock
        self.kind[page] = 0
        self.held.append(page)

    def touch(self, page: int) -> None:
        """Record a hit and update the class."""
        self.missed(page)
        self.hits[self.kind[page]][age_of(self.steps(page))] += 1 << 7
        self.kind[page] = min(self.steps(page).bit_length() + 1, CLASSES - 1)
        self.last[page] = self.clock

    def remove(self, page: int) -> None:
        """Remove a page."""
        self.held.remove(page)

    def evict(self) -> int:
        """Draw 32 pages and evict the one of least density."""
        if not self.held:
            return -1
        victim = min(
            self.held.draw(),
            key=lambda page: self.density[self.kind[page]][age_of(self.steps(page))],
        )
        self.evictions[self.kind[victim]][age_of(self.steps(victim))] += 1 << 7
        self.remove(victim)
        return victim

    def learn(self) -> None:
        """Recompute the density of each age: expected hits over expected time."""
        for hits, evictions, density in zip(self.hits, self.evictions, self.density):
            to_come = events = time = 0
            for age in reversed(range(AGES)):
                to_come += hits[age]
                events += hits[age] + evictions[age]
                time += events * steps_in(age)
                if time:
                    density[age] = (to_come << 26) // time
            hits[:] = [each - (each >> 3) for each in hits]
            evictions[:] = [each - (each >> 3) for each in evictions]


# Admission.


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
