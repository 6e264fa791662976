"""Classes of accesses, by what is known at that moment about page, request and region."""

from __future__ import annotations

import numpy as np

from hybridsim.caches.policies.learned.halfoctaves import eighths
from hybridsim.caches.policies.learned.regions import RESTS, RUNS, SIZES
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import kernel
from hybridsim.jit.octaves import octave

COUNTS, COARSE_COUNTS, GAPS, TURNS, HEATS = 6, 4, 53, 3, 3
COUNT_MAX = 17
WIDE_GAPS = (GAPS + 1) // 2
SHORTER, LONGER = 12, 4  # eighths of an octave from the mean gap
MUCH_LONGER = 32  # eighths: 16 times the mean gap
HOT, WARM = 64, 96  # eighths of an octave: maximum paces of such a region
FINE = 2  # bits of a mean gap below the eighths
FIRST = RUNS * RESTS * SIZES
AGAIN = COUNTS * GAPS * TURNS
CLASSES = 2 * FIRST + 2 * AGAIN * HEATS

# A stamp, from the lowest bits: class, accesses, the mean gap's bits below its class's, size of the
# request, whether it is sampled, clock.
CLASS_MAX, COUNT_BITS, LOW_BITS, SIZE_BITS = (1 << 13) - 1, 5, 4, 3
COUNT_AT, MEAN_AT, SIZE_AT, SAMPLED_AT, CLOCK_AT = 13, 18, 22, 25, 26
PAGE_COUNTS = 1 << SIZE_BITS  # sizes of a request in pages: by octave, the last one open
NONE = -1


def parents() -> Ints:
    """Return for each row the coarser row that includes it; the last row includes all.

    After the classes come the rows of first accesses of any size, of later ones with any pace of
    the region, then of later ones with any turn, in whole octaves and fewer counts.
    """
    first = 2 * FIRST // SIZES
    whatever_rest = CLASSES + first
    coarser = whatever_rest + 2 * AGAIN
    whole = coarser + 2 * COARSE_COUNTS * WIDE_GAPS
    group = np.arange(2 * AGAIN) // TURNS
    gap, count, write = group % GAPS, group // GAPS % COUNTS, group // (GAPS * COUNTS)
    coarse = (write * COARSE_COUNTS + np.minimum(count, COARSE_COUNTS - 1)) * WIDE_GAPS + gap // 2
    return np.concatenate(
        [
            CLASSES + np.arange(2 * FIRST) // SIZES,
            whatever_rest + np.arange(2 * AGAIN * HEATS) // HEATS,
            np.full(first, whole),
            coarser + coarse,
            np.full(whole - coarser, whole),
            [NONE],
        ]
    )


@kernel
def size_of(pages):
    """Return the size of a request of so many pages: its octave, at most 7."""
    return min(octave(pages), PAGE_COUNTS - 1)


@kernel
def class_of(stamp):
    """Return the class of the access with that stamp."""
    return stamp & CLASS_MAX


@kernel
def size_in(stamp):
    """Return the size of its request."""
    return stamp >> SIZE_AT & PAGE_COUNTS - 1


@kernel
def is_sampled(stamp):
    """Return whether it is sampled."""
    return stamp >> SAMPLED_AT & 1


@kernel
def clock_of(stamp):
    """Return its clock."""
    return stamp >> CLOCK_AT


@kernel
def gaps_of(group):
    """Return the mean gap of a class of later accesses, in half octaves."""
    return (group - 2 * FIRST) // (TURNS * HEATS) % GAPS


@kernel
def habit(stamp, clock):
    """Return the accesses to a page, this one included, with the mean gap in the higher bits.

    After a gap much longer than the mean the page is used at another rate: what was known of it
    counts as one access.
    """
    count, low = stamp >> COUNT_AT & (1 << COUNT_BITS) - 1, stamp >> MEAN_AT & (1 << LOW_BITS) - 1
    mean = gaps_of(class_of(stamp)) << LOW_BITS | low
    gap = eighths(clock - clock_of(stamp)) << FINE
    if count == 1:
        mean = gap
    else:
        if gap > mean + (MUCH_LONGER << FINE):
            count = 1
        mean += (gap - mean) >> (int(count > 2) + int(count > 7) + int(count > 16) + 1)
    return mean << COUNT_BITS | min(count + 1, COUNT_MAX)


@kernel
def first_class(write, region):
    """Return the class of the first access to a page, from the value of Regions.page()."""
    return write * FIRST + region


@kernel
def class_again(stamp, habit, write, pace, clock):
    """Return the class of a later access to a page."""
    count, mean = stamp >> COUNT_AT & (1 << COUNT_BITS) - 1, habit >> COUNT_BITS + FINE
    gap = eighths(clock - clock_of(stamp))
    turn = int(gap >= mean - SHORTER) + int(gap > mean + LONGER)
    often = int(count > 1) + int(count > 2) + int(count > 4) + int(count > 8) + int(count > 16)
    heat = int(pace > HOT) + int(pace > WARM)
    return (
        2 * FIRST + (((write * COUNTS + often) * GAPS + (mean >> 2)) * TURNS + turn) * HEATS + heat
    )


@kernel
def stamped(group, habits, size, is_observed, clock):
    """Return the stamp of an access; `habits` is the value of habit(), at the first access 1."""
    count, low = habits & (1 << COUNT_BITS) - 1, habits >> COUNT_BITS & (1 << LOW_BITS) - 1
    stamp = (clock << 1 | is_observed) << SIZE_BITS | size
    return ((stamp << LOW_BITS | low) << COUNT_BITS | count) << COUNT_AT | group
