"""Admission at random, the same in each run: a page that is missed often enters sooner or later.

The cheapest way to save SSD writes, and the baseline for any other filter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method
from hybridsim.jit.mixing import MASK, mixed

MILLION = 1_000_000


@policy
class Probabilistic(NamedTuple):
    """A seed and the number of decisions so far."""

    per_million: int
    seed: int
    decisions: Ints

    @classmethod
    def new(
        cls, ids: int, pages: int, probability_per_million: int = 100_000, seed: int = 1
    ) -> Probabilistic:
        """Admit that share of the missed pages."""
        return cls(probability_per_million, seed & MASK, np.zeros(1, np.int64))

    @method
    def consider(self, now, page, write, full):
        """Decide by a random number."""
        drawn = mixed(mixed(self.seed) ^ self.decisions[0])
        self.decisions[0] += 1
        return drawn * MILLION >> 31 < self.per_million
