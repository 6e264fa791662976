"""Skewed distributions of blocks: zipf, pareto, normal.

A rank is drawn and scattered over the file by a multiplication.  zipf follows J. Gray et al.,
Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994; normal is the mean of twelve
uniform numbers plus a uniform one within the deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import loop, method, state_machine
from hybridsim.workloads.fio.pattern import MASK32, Distribution, Pattern, Service
from hybridsim.workloads.fio.random import draw, draw_below, seeded

SCATTER = np.uint64(0x61C8864680B583EB)
TERMS_MAX = 10**7  # of the sum of zipf's weights
ZIPF, PARETO, NORMAL = (
    int(each) for each in (Distribution.ZIPF, Distribution.PARETO, Distribution.NORMAL)
)
UNIFORM_NUMBERS = 12
SERVED = {
    Service.ZIPF: Distribution.ZIPF,
    Service.PARETO: Distribution.PARETO,
    Service.NORMAL: Distribution.NORMAL,
}


@state_machine
class Spread(NamedTuple):
    """One distribution, over each of several files."""

    kind: int
    blocks: int
    width: int  # normal: twice the deviation
    shape: float
    zeta: float  # zipf: the sum of all weights
    is_scattered: bool  # consecutive ranks are scattered over the file
    shift: Ints  # by file: block of rank 0
    states: Ints  # random states, by file

    @classmethod
    def new(cls, pattern: Pattern) -> Spread:
        """Create the distribution of a pattern's blocks."""
        blocks = max(1, -(-pattern.file_bytes // pattern.rank_bytes))  # a partial block counts
        kind, shape, seeds = pattern.distribution, pattern.shape, pattern.distribution_seeds
        return cls._of(int(kind), blocks, shape, pattern.center, seeds, True)

    @classmethod
    def of_files(cls, pattern: Pattern, numbers: int, seed: int) -> Spread:
        """Create the distribution of a pattern's files, as `numbers` numbers for all files."""
        kind = SERVED.get(pattern.service, Distribution.RANDOM)
        return cls._of(int(kind), numbers, pattern.service_shape, None, [seed], False)

    @classmethod
    def _of(
        cls,
        kind: int,
        blocks: int,
        shape: float,
        center: float | None,
        seeds: Sequence[int],
        is_scattered: bool,
    ) -> Spread:
        shift = np.zeros(len(seeds), np.int64)
        states = np.stack([seeded(seed & MASK32) for seed in seeds])
        for file in range(len(seeds)):
            if kind in (ZIPF, PARETO):
                drawn = draw(states, file)
                shift[file] = drawn if center is None else int(blocks * center)
            elif kind == NORMAL and center is not None:
                shift[file] = int(blocks * (center - 0.5)) & MASK32
        width = min(math.ceil(blocks * shape / 100), blocks // 2) if kind == NORMAL else 0
        zeta = sum_of_weights(min(blocks, TERMS_MAX), shape) if kind == ZIPF else 0.0
        return cls(kind, blocks, width, float(shape), zeta, is_scattered, shift, states)

    @method
    def next(self, file):
        """Return the next block of a file."""
        if self.kind == ZIPF:
            rank = self.zipf(file)
        elif self.kind == PARETO:
            power = math.log(self.shape) / math.log(1 - self.shape)
            drawn = draw(self.states, file) / float(MASK32)
            rank = int((self.blocks - 1) * math.pow(drawn, power))
        else:
            rank = self.normal(file)
        place = np.uint64(rank)
        if self.is_scattered:
            place *= SCATTER
        return np.int64((place + np.uint64(self.shift[file])) % np.uint64(self.blocks))

    @method
    def zipf(self, file):
        """Return a zipf-distributed rank, from 0."""
        share = draw(self.states, file) / float(MASK32)
        second = 1.0 + math.pow(0.5, self.shape)
        if share * self.zeta < 1:
            return 0
        if share * self.zeta < second:
            return 1
        rest = 1 - self.shape
        eta = (1 - math.pow(2 / self.blocks, rest)) / (1 - second / self.zeta)
        return int(self.blocks * math.pow(eta * share - eta + 1, 1 / rest))

    @method
    def normal(self, file):
        """Return a normally distributed block around the middle of the file."""
        mean = 0
        for _ in range(UNIFORM_NUMBERS):
            mean += draw(self.states, file) % (self.blocks + 1)
        mean = (mean + UNIFORM_NUMBERS - 1) // UNIFORM_NUMBERS
        if self.width > 0:
            off = draw_below(self.states, file, self.width) - self.width // 2
            # As in fio, whose sum is unsigned; where fio itself would not end, off becomes 0.
            while (mean + off < 0 or mean + off >= self.blocks) and off != 0:
                off = (off + (off < 0)) // 2 if off < 0 else off // 2
            mean += off
        return mean


@loop
def sum_of_weights(terms, theta):
    """Return the sum of 1 / i^theta for i from 1 to `terms`, added in this order."""
    total = 0.0
    for i in range(1, terms + 1):
        total += math.pow(1.0 / i, theta)
    return total
