"""Admission by chance, the same with each run: a page that is missed often gets in sooner or later.

The cheapest way to spare an SSD writes; the yardstick that any cleverer filter has to beat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import MASK, mixed

MILLION = 1_000_000


@state_machine
class Probabilistic(NamedTuple):
    """A seed and a count of the decisions made."""

    per_million: int
    seed: int
    decisions: Ints

    @classmethod
    def new(
        cls, ids: int, pages: int, probability_per_million: int = 100_000, seed: int = 1
    ) -> Probabilistic:
        """Want that share of the pages."""
        return cls(probability_per_million, seed & MASK, np.zeros(1, np.int64))

    def grown(self, ids: int) -> Probabilistic:
        """Return the same policy: it knows nothing of pages."""
        return self

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Draw a number."""
        drawn = mixed(mixed(self.seed) ^ self.decisions[0])
        self.decisions[0] += 1
        return drawn * MILLION >> 31 < self.per_million

    @method
    def evicted(self, page):
        """Hear that a page had to leave."""
