"""The parameters of a pattern as arrays for the generator."""

from __future__ import annotations

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.workloads.fio.pattern import Distribution, Generator, Pattern, Stream
from hybridsim.workloads.fio.random import seeded


def tables_of(pattern: Pattern) -> tuple[Ints, Ints, Ints]:
    """Return the parameters of each direction, its splits and its zones."""
    by_direction = np.zeros((3, 7), np.int64)
    splits = np.zeros((3, max(1, *(len(each.split) for each in pattern.sizes)), 2), np.int64)
    zones = np.zeros((3, max(1, *(len(each) for each in pattern.zones)), 3), np.int64)
    size = pattern.map_bytes
    for kind, sizes in enumerate(pattern.sizes):
        used = [each for each in sizes.split if each[1]]
        last = (size - max(sizes.minimum - sizes.unit, 0)) // sizes.unit
        by_direction[kind] = (
            sizes.minimum, sizes.maximum, sizes.unit, len(used), pattern.random_percent[kind],
            len(pattern.zones[kind]), last,
        )  # fmt: skip
        for row, (length, percent) in enumerate(used):
            splits[kind, row] = percent, length
        begin = 0
        is_share = pattern.distribution == Distribution.ZONED
        for row, (share, extent) in enumerate(pattern.zones[kind]):
            end = begin + extent
            if is_share:
                zones[kind, row] = share, begin * last // 100, extent * last // 100
            else:
                first = begin // sizes.unit
                zones[kind, row] = share, first, end // sizes.unit - first
            begin = end
    return by_direction, splits, zones


def streams_of(pattern: Pattern) -> Ints:
    """Return the first states of all streams, by row."""
    seeds = pattern.seeds()
    sizes = [Stream.READ_SIZE, Stream.WRITE_SIZE, Stream.TRIM_SIZE]
    wide = [*sizes, Stream.BLOCK] if pattern.generator == Generator.TAUSWORTHE64 else []
    rows = [*sizes, Stream.MIX, Stream.BLOCK, Stream.ZONE, *[Stream.IS_RANDOM] * 3]
    return np.stack([seeded(seeds[row], row in wide) for row in rows])
