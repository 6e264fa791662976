"""Blocks of which some come more often than others: zipf, pareto, normal.

A rank is drawn and scattered over the file by a multiplication.  zipf is after J. Gray et al.,
Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994; normal is the mean of twelve
even numbers and one more within the deviation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hybridsim.arrays import Ints
from hybridsim.fio.pattern import MASK32, Distribution, Pattern
from hybridsim.fio.random import draw, draw_below, seed_stream
from hybridsim.jit import loop, method, state_machine

SCATTER = np.uint64(0x61C8864680B583EB)
TERMS_MAX = 10**7  # of zipf's sum
ZIPF, PARETO, NORMAL = (
    int(each) for each in (Distribution.ZIPF, Distribution.PARETO, Distribution.NORMAL)
)
EVEN_NUMBERS = 12


@state_machine
class Spread(NamedTuple):
    """One distribution over one file."""

    kind: int
    blocks: int
    width: int  # normal: twice the deviation
    shape: float
    zeta: float  # zipf: the sum of all weights
    shift: Ints  # [where rank 0 lies]
    states: Ints

    @classmethod
    def new(cls, pattern: Pattern) -> Spread:
        """Make what a pattern asks for."""
        kind = int(pattern.distribution)
        blocks = max(1, -(-pattern.file_bytes // pattern.block_bytes))
        shape = float(pattern.shape)
        shift, states = np.zeros(1, np.int64), np.zeros((1, 3), np.int64)
        seed_stream(states, 0, pattern.distribution_seed & MASK32)
        center = pattern.center
        if kind == NORMAL:
            width = min(math.ceil(blocks * shape / 100), blocks // 2)
            shift[0] = 0 if center is None else int(blocks * (center - 0.5))
            return cls(kind, blocks, width, shape, 0.0, shift, states)
        if kind not in (ZIPF, PARETO):
            return cls(kind, blocks, 0, shape, 0.0, shift, states)
        drawn = draw(states, 0)
        shift[0] = drawn if center is None else int(blocks * center)
        zeta = sum_of_weights(min(blocks, TERMS_MAX), shape) if kind == ZIPF else 0.0
        return cls(kind, blocks, 0, shape, zeta, shift, states)

    @method
    def next(self):
        """Return a block."""
        if self.kind == ZIPF:
            rank = self.zipf()
        elif self.kind == PARETO:
            power = math.log(self.shape) / math.log(1 - self.shape)
            rank = int((self.blocks - 1) * math.pow(draw(self.states, 0) / float(MASK32), power))
        else:
            rank = self.normal()
        place = np.uint64(rank) * SCATTER + np.uint64(self.shift[0])
        return np.int64(place % np.uint64(self.blocks))

    @method
    def zipf(self):
        """Return a rank, from 0."""
        share = draw(self.states, 0) / float(MASK32)
        second = 1.0 + math.pow(0.5, self.shape)
        if share * self.zeta < 1:
            return 0
        if share * self.zeta < second:
            return 1
        rest = 1 - self.shape
        eta = (1 - math.pow(2 / self.blocks, rest)) / (1 - second / self.zeta)
        return int(self.blocks * math.pow(eta * share - eta + 1, 1 / rest))

    @method
    def normal(self):
        """Return a block about the middle of the file."""
        mean = 0
        for _ in range(EVEN_NUMBERS):
            mean += draw(self.states, 0) % (self.blocks + 1)
        mean = (mean + EVEN_NUMBERS - 1) // EVEN_NUMBERS
        if self.width > 0:
            off = draw_below(self.states, 0, self.width) - self.width // 2
            while mean + off >= self.blocks:
                off //= 2  # it is above 0
            mean += off
        return mean


@loop
def sum_of_weights(terms, theta):
    """Return the sum of 1 / i^theta, the largest first."""
    total = 0.0
    for i in range(1, terms + 1):
        total += math.pow(1.0 / i, theta)
    return total
