"""Classes of accesses, by what is known at that moment about page, request and region.

Regions of the volume: whether a request continues a run, and how long its region was idle.  `rest`
is the time since the region's last request, for first accesses.  `pace` is the usual one: a single
gap says little about how hot a region is, so for later accesses it is smoothed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, Records, records
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.instructions import octave, prefetch
from hybridsim.jit.mixing import mixed

AGES = 52
STARTS = [0, *((2 + (age & 1)) << (age >> 1) >> 1 for age in range(2, AGES + 2))]
"""The first time of each age, and at the end the end of the last age; times in accesses."""

EIGHTHS_MAX = 4 * (AGES + 1) - 1


@kernel
def eighths(time):
    """Return 8 log2 of a time of at least 1, interpolated linearly and rounded down."""
    whole = octave(time)
    return min(8 * whole + ((time << 3) >> whole) - 8, EIGHTHS_MAX)


@kernel
def age_of(time):
    """Return the age for a time."""
    return max(eighths(max(time, 1)) >> 2, 1) - 1


REGION_BITS = 20  # bytes
PLACES = 1 << 14  # entries of the table; regions that share an entry count as one
NEVER = -1
PACE_BITS = 3  # weight of the last gap: 1/8; and bits of a pace below the eighths
NO_PACE = 0
PACE_MAX = 255  # eighths: of a region that was never touched
PLACE, REST, SIZE, PACE = range(4)
RUNS, RESTS, SIZES = 4, 14, 4  # number of values of each

REGION = np.dtype(
    [
        ("touched", np.int64),  # clock of the last request
        ("end", np.int64),  # end of the last request, bytes
        ("run", np.int64),  # pages of the run that ends there
        ("pace", np.int64),  # mean gap between requests, in 64ths of an octave
    ],
    align=True,
)


@state_machine
class Regions(NamedTuple):
    """The last request in each region, and properties of the current request."""

    places: Records  # REGION
    state: Ints  # of the current request: [PLACE, REST, SIZE, PACE in eighths of an octave]

    @classmethod
    def new(cls) -> Regions:
        """Return an empty table."""
        return cls(
            records(REGION, PLACES, touched=NEVER, end=NEVER, pace=NO_PACE),
            np.zeros(4, np.int64),
        )

    @method
    def request(self, offset, length, clock):
        """Take a request before its pages."""
        place = self.place(offset)
        before = self.places[self.place(offset - 1)]
        last = self.place(offset + length - 1)
        run = before.run if before.end == offset else 0
        self.state[PLACE] = last
        self.state[REST] = self.rest(clock, self.places[place].touched)
        self.state[PACE] = self.paced(self.places[place], clock)
        self.state[SIZE] = int(length > 4096) + int(length > 16384) + int(length > 65536)
        self.places[place].touched = clock
        self.places[last].touched = clock
        self.places[last].end = offset + length
        self.places[last].run = run

    @method
    def place(self, offset):
        """Return the place of a region in the table."""
        return mixed(offset >> REGION_BITS) % PLACES

    @method
    def fetch(self, offset):
        """Fetch the state of a region from memory, for a request that comes soon."""
        prefetch(self.places, self.place(offset))

    @method
    def rest(self, clock, touched):
        """Return how long a region was idle, in steps of two octaves; 0 if never touched."""
        if touched == NEVER:
            return 0
        return min(1 + (octave(clock - touched) + 1 >> 1), RESTS - 1)

    @method
    def paced(self, region, clock):
        """Update the pace of a region; return it in eighths of an octave."""
        if region.touched == NEVER:
            return PACE_MAX
        pace, gap = region.pace, eighths(max(clock - region.touched, 1)) << PACE_BITS
        pace = gap if pace == NO_PACE else pace + ((gap - pace) >> PACE_BITS)
        region.pace = max(pace, 1)
        return pace >> PACE_BITS

    @method
    def page(self):
        """Count a page of the request; return its class if it was never touched."""
        region = self.places[self.state[PLACE]]
        run = region.run
        region.run = run + 1
        position = int(run > 0) + int(run > 3) + int(run > 31)
        return (position * RESTS + self.state[REST]) * SIZES + self.state[SIZE]


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
def habit(stamp, clock):
    """Return the accesses to a page, this one included, with the mean gap in the higher bits.

    After a gap much longer than the mean the page is used at another rate: what was known of it
    counts as one access.
    """
    count, low = stamp >> COUNT_AT & (1 << COUNT_BITS) - 1, stamp >> MEAN_AT & (1 << LOW_BITS) - 1
    half_octaves = (class_of(stamp) - 2 * FIRST) // (TURNS * HEATS) % GAPS  # the mean of its class
    mean = half_octaves << LOW_BITS | low
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
