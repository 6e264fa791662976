"""A write budget (2.4.4), plain: policies that let in no more than there is left to spend."""

from dataclasses import dataclass

from hybridsim.reference.learned import Learned
from hybridsim.reference.policies import Admission, Replacement

ACCESS = 2**20


@dataclass
class Budget:
    """What may be let in now."""

    pages: int  # that an empty cache takes beside all else
    interval: int
    burst: int
    counts_accesses: bool

    def __post_init__(self) -> None:
        self.fills = self.pages + self.burst
        self.clock = 0
        self.paid: int | None = None

    def go_on(self, now: int) -> None:
        """Let come in what the time brings."""
        self.clock = self.clock + ACCESS if self.counts_accesses else max(self.clock, now)
        if self.paid is None:
            self.paid = self.clock
        while self.clock - self.paid >= self.interval:
            self.paid += self.interval
            if self.fills < self.burst:
                self.fills += 1

    @property
    def overprice(self) -> float:
        """What a fill costs more than when all is left."""
        return max(self.burst - self.fills, 0) / max(self.fills, 1)


class Budgeted(Admission, Replacement):
    """Two policies, or one that is both, within a budget."""

    def __init__(self, admission: Admission, replacement: Replacement, budget: Budget) -> None:
        self.admission = admission
        self.replacement = replacement
        self.budget = budget
        self.given_up: int | None = None

    def request(self, offset: int, length: int, write: bool) -> None:
        """Pass it on."""
        self.admission.request(offset, length, write)

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Want nothing when nothing is left."""
        self.given_up = None
        self.budget.go_on(now)
        if isinstance(self.admission, Learned):
            self.admission.overprice = self.budget.overprice
        return self.admission.consider(now, page, write, full) and self.budget.fills > 0

    def evicted(self, page: int) -> None:
        """Pass it on."""
        self.admission.evicted(page)

    def missed(self, page: int) -> None:
        """Pay for a page, unless it was given up just now and cannot go."""
        if page != self.given_up:
            self.budget.fills -= 1
        self.replacement.missed(page)

    def admit(self, page: int) -> None:
        """Pass it on."""
        self.replacement.admit(page)

    def touch(self, page: int) -> None:
        """Pass it on."""
        self.replacement.touch(page)

    def remove(self, page: int) -> None:
        """Pass it on."""
        self.replacement.remove(page)

    def evict(self) -> int:
        """Pass it on; note who it was."""
        page = self.replacement.evict()
        self.given_up = page
        return page
