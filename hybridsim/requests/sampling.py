"""Spatial samples: what is kept is decided by a hash of its number, alike in every pass.

SHARDS: C. A. Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015.
"""

from __future__ import annotations

import numpy as np

from hybridsim.foundation.arrays import Ints

SPAN = 1 << 40  # of the hash: a share is a threshold of this many
GROUPS = 8  # of a sample, by hash, each simulated by itself: their spread is its error
REGIONS = 0x5851F42D4C957F2D  # separates the hashes of regions from those of pages


def hashed(numbers: Ints) -> Ints:
    """Return a number below SPAN for each page: the finaliser of splitmix64 (public domain)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(24)).astype(np.int64)


def hashed_regions(numbers: Ints, seed: int) -> Ints:
    """Return a number below SPAN for each region; another seed takes other regions."""
    mixed = (REGIONS ^ (seed * 0x9E3779B97F4A7C15)) & (1 << 64) - 1
    return hashed((numbers.astype(np.uint64) ^ np.uint64(mixed)).astype(np.int64))
