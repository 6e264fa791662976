"""Dirty data: what a write-back cache has yet to write to the disks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.units import parse_percent

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BCACHE_CUTOFF = 0.4  # share of the cache: above it bcache defers only writes that request it
OPEN_CAS_COUNTS = 4096  # bytes: the unit of its statistics, whatever the size of its lines


def dirty(kind: str, page_bytes: int, counters: Mapping[str, npt.ArrayLike]) -> Ints:
    """Return the dirty bytes at each sample of the counters, from the counters of that kind.

    A page, a block or a line of `page_bytes` counts as a whole if any of it is dirty.
    """
    rows = len(np.atleast_1d(np.asarray(counters.get("time_ns", [0]))))

    def column(name: str) -> Ints:
        result = counters.get(name)
        return np.zeros(rows, np.int64) if result is None else np.asarray(result, np.int64)

    if kind == "page":
        return column("dirty_pages") * page_bytes
    if kind == "dm-cache":
        return column("dirty_blocks") * page_bytes
    if kind == "bcache":
        return column("dirty_data")
    if kind == "open-cas":
        return column("dirty") * OPEN_CAS_COUNTS
    if kind == "dm-writecache":  # a block is in it until it is written back
        return column("pages_present") * page_bytes
    return np.zeros(rows, np.int64)


def filled(kind: str, marks: Sequence[int], counters: Mapping[str, npt.ArrayLike]) -> Floats | None:
    """Return how near a cache in write-back is to where its writes cease to be cheap; 1: there.

    One figure for each row of counters, from 0; None for a cache that puts no writes off.  It is
    the dirty level over the first of the marks.  For bcache it is the share of buckets in use over
    BCACHE_CUTOFF: a bucket holds clean and dirty data alike, and beyond that writes bypass it.
    """
    level = np.asarray(counters.get("dirty_bytes", [0]), np.float64)
    if not level.any():
        return None
    if kind == "bcache":
        available = counters.get("cache_available_percent")
        if available is None:
            return None
        result: Floats = (100 - np.asarray(available, np.float64)) / (100 * BCACHE_CUTOFF)
        return result
    if not marks or marks[0] <= 0:
        return None
    shares: Floats = level / marks[0]
    return shares


def marks(cache: object, cache_bytes: int) -> list[int]:
    """Return the levels of dirty bytes at which a cache changes its behaviour, ascending.

    Below the first mark a cache accepts writes without cleaning; there it begins to clean, and at
    the last mark it is full.  `cache` is the [cache] table of a scenario.
    """
    kind = getattr(cache, "kind", "none")
    shares = [1.0]
    if kind == "page":
        shares = [
            float(parse_percent(getattr(cache, name))) for name in ("clean_above", "dirty_high")
        ]
    elif kind == "bcache":
        shares = [getattr(cache, "writeback_percent", 0) / 100, BCACHE_CUTOFF]
    elif kind == "dm-writecache":
        shares = [float(parse_percent(getattr(cache, "high_watermark", "50%"))), 1.0]
    return sorted(round(each * cache_bytes) for each in shares)
