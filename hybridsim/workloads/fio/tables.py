"""The parameters of a pattern as arrays for the generator."""

from __future__ import annotations

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.workloads.fio.pattern import MASK32, Distribution, Pattern, Stream


def tables_of(pattern: Pattern) -> tuple[Ints, Ints, Ints]:
    """Return the parameters of each direction, its splits and its zones."""
    by_direction = np.zeros((3, 6), np.int64)
    splits = np.zeros((3, max(1, *(len(each.split) for each in pattern.sizes)), 2), np.int64)
    zones = np.zeros((3, max(1, *(len(each) for each in pattern.zones)), 3), np.int64)
    size = pattern.file_bytes
    for kind, sizes in enumerate(pattern.sizes):
        used = [each for each in sizes.split if each[1]]
        by_direction[kind] = (
            sizes.least, sizes.most, sizes.unit, len(used), pattern.random_percent[kind],
            len(pattern.zones[kind]),
        )  # fmt: skip
        for row, (length, percent) in enumerate(used):
            splits[kind, row] = percent, length
        begin = 0
        for row, (share, extent) in enumerate(pattern.zones[kind]):
            zones[kind, row] = share, begin, extent
            if pattern.distribution == Distribution.ZONED:
                zones[kind, row] = share, begin * size // 100, extent * size // 100
            begin += extent
    return by_direction, splits, zones


def seeds_of(pattern: Pattern) -> Ints:
    """Return the seed of each row of the streams."""
    seeds = pattern.seeds()
    rows = [Stream.READ_SIZE, Stream.WRITE_SIZE, Stream.TRIM_SIZE, Stream.MIX, Stream.BLOCK]
    rows += [Stream.ZONE, *[Stream.IS_RANDOM] * 3]
    return np.array([seeds[row] & MASK32 for row in rows], np.int64)
