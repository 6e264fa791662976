"""A write budget (2.4.4): admission limited to the fills that remain."""

from dataclasses import dataclass

from hybridsim.reference.learned import Learned
from hybridsim.reference.policies import Admission, Replacement

ACCESS = 2**20


@dataclass
class Budget:
    """The number of fills that remain."""

    pages: int  # additional fills of an empty cache
    interval: int
    burst: int
    counts_accesses: bool

    def __post_init__(self) -> None:
        self.fills = self.pages + self.burst
        self.clock = 0
        self.paid: int | None = None

    def go_on(self, now: int) -> None:
        """Advance the clock and add the fills that have accrued."""
        self.clock = self.clock + ACCESS if self.counts_accesses else max(self.clock, now)
        if self.paid is None:
            self.paid = self.clock
        while self.clock - self.paid >= self.interval:
            self.paid += self.interval
            if self.fills < self.burst:
                self.fills += 1

    @property
    def overprice(self) -> float:
        """The surcharge on a fill, which grows as the budget is used up."""
        return max(self.burst - self.fills, 0) / max(self.fills, 1)


class Budgeted(Admission, Replacement):
    """Two policies, or one that is both, within a write budget."""

    def __init__(self, admission: Admission, replacement: Replacement, budget: Budget) -> None:
        self.admission = admission
        self.replacement = replacement
        self.budget = budget
        self.last_victim: int | None = None

    def request(self, offset: int, length: int, write: bool) -> None:
        """Forward to the policy."""
        self.admission.request(offset, length, write)

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Refuse every page when no fill remains."""
        self.last_victim = None
        self.budget.go_on(now)
        if isinstance(self.admission, Learned):
            self.admission.overprice = self.budget.overprice
        return self.admission.consider(now, page, write, full) and self.budget.fills > 0

    def evicted(self, page: int) -> None:
        """Forward to the policy."""
        self.admission.evicted(page)

    def missed(self, page: int) -> None:
        """Charge a fill, unless the page was just chosen as a victim and could not be evicted."""
        if page != self.last_victim:
            self.budget.fills -= 1
        self.replacement.missed(page)

    def admit(self, page: int) -> None:
        """Forward to the policy."""
        self.replacement.admit(page)

    def touch(self, page: int) -> None:
        """Forward to the policy."""
        self.replacement.touch(page)

    def remove(self, page: int) -> None:
        """Forward to the policy."""
        self.replacement.remove(page)

    def evict(self) -> int:
        """Return the victim of the replacement policy, and remember it."""
        page = self.replacement.evict()
        self.last_victim = page
        return page
