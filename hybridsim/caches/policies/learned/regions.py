"""Regions of the volume: whether a request continues a run, and how long its region was idle.

`rest` is the time since the region's last request, for first accesses.  `pace` is the usual one: a
single gap says little about how hot a region is, so for later accesses it is smoothed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.learned.halfoctaves import eighths
from hybridsim.foundation.arrays import Ints, Records, records
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed
from hybridsim.jit.octaves import octave
from hybridsim.jit.prefetch import prefetch

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
