"""Arrival times of requests at a rate: evenly spaced, or a Poisson process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import loop
from hybridsim.workloads.fio.pattern import MASK32, Stream
from hybridsim.workloads.fio.random import draw, seeded

MICROSECOND, SECOND = 10**3, 10**9
STREAMS = (Stream.POISSON_READ, Stream.POISSON_WRITE, Stream.POISSON_TRIM)  # by direction


class Poisson:
    """Due times of one direction of a job with rate_process=poisson, as fio 3.33 draws them.

    A gap is the mean, in whole microseconds, times the negative logarithm of a uniform number in
    (0, 1]; verified against the times in fio's logs (benchmarks/RESULTS.md).
    """

    def __init__(self, seed: int, requests_per_s: int) -> None:
        self._states = seeded(seed & MASK32).reshape(1, -1)
        self._mean_us = np.float32(10**6 // max(requests_per_s, 1))
        self._next_us = 0

    @property
    def next_ns(self) -> int:
        """Due time of the next request in ns."""
        return self._next_us * MICROSECOND

    def due_ns(self, count: int) -> Ints:
        """Return the due times of the next `count` requests, in ns."""
        bits = np.zeros(count, np.int64)
        draw_each(self._states, bits)
        even = ((bits + 1) / (MASK32 + 1)).astype(np.float32)
        gaps = (self._mean_us * -np.log(even)).astype(np.int64)
        ends = self._next_us + np.cumsum(gaps)
        due = np.append(self._next_us, ends)[:-1]
        self._next_us = int(ends[-1]) if count else self._next_us
        return np.asarray(due * MICROSECOND, np.int64)


@dataclass(frozen=True)
class Pace:
    """Completed requests of a real run over time: the pace of its simulation."""

    time_ns: Ints  # since the first request
    done: Ints

    def due_ns(self, first: int, count: int, depth: int) -> Ints:
        """Return issue times in ns: a request is issued when the one `depth` before completes."""
        before = np.arange(first, first + count) - depth
        return np.asarray(np.interp(before, self.done, self.time_ns), np.int64)


def evenly_ns(before: Ints, per_s: int) -> Ints:
    """Return the time in ns by which `before` units are done at a rate of `per_s`."""
    return np.asarray(before // per_s * SECOND + before % per_s * SECOND // per_s, np.int64)


@loop
def draw_each(states: Ints, bits: Ints) -> None:
    """Fill an array with the next 32 bits of a stream."""
    for at in range(len(bits)):
        bits[at] = draw(states, 0)
