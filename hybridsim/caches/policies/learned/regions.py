"""Regions of the volume: whether a request continues a run, and how long its region was idle.

`rest` is the time since the region's last request, for first accesses.  `pace` is the usual one: a
single gap says little about how hot a region is, so for later accesses it is smoothed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.learned.halfoctaves import eighths
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed

REGION_BITS = 20  # bytes
PLACES = 1 << 14  # entries of the table; regions that share an entry count as one
NEVER = -1
PACE_BITS = 3  # weight of the last gap: 1/8; and bits of a pace below the eighths
NO_PACE = 0
PACE_MAX = 255  # eighths: of a region that was never touched
PLACE, REST, SIZE, PACE = range(4)
RUNS, RESTS, SIZES = 4, 14, 4  # number of values of each


@state_machine
class Regions(NamedTuple):
    """The last request in each region, and properties of the current request."""

    touched: Ints  # by place: clock of the last request
    end: Ints  # by place: end of the last request, bytes
    run: Ints  # by place: pages of the run that ends there
    pace: Ints  # by place: mean gap between requests, in 64ths of an octave
    state: Ints  # of the current request: [PLACE, REST, SIZE, PACE in eighths of an octave]

    @classmethod
    def new(cls) -> Regions:
        """Return an empty table."""
        return cls(
            np.full(PLACES, NEVER, np.int64),
            np.full(PLACES, NEVER, np.int64),
            np.zeros(PLACES, np.int64),
            np.full(PLACES, NO_PACE, np.int64),
            np.zeros(4, np.int64),
        )

    @method
    def request(self, offset, length, clock):
        """Take a request before its pages."""
        place = mixed(offset >> REGION_BITS) % PLACES
        before = mixed((offset - 1) >> REGION_BITS) % PLACES
        last = mixed((offset + length - 1) >> REGION_BITS) % PLACES
        run = self.run[before] if self.end[before] == offset else 0
        self.state[PLACE] = last
        self.state[REST] = self.rest(clock, self.touched[place])
        self.state[PACE] = self.paced(place, clock)
        self.state[SIZE] = int(length > 4096) + int(length > 16384) + int(length > 65536)
        self.touched[place] = clock
        self.touched[last] = clock
        self.end[last] = offset + length
        self.run[last] = run

    @method
    def rest(self, clock, touched):
        """Return how long a region was idle, in steps of two octaves; 0 if never touched."""
        if touched == NEVER:
            return 0
        rest, time = 1, clock - touched
        while time > 1 and rest < RESTS - 1:
            time >>= 2
            rest += 1
        return rest

    @method
    def paced(self, place, clock):
        """Update the pace of a region; return it in eighths of an octave."""
        if self.touched[place] == NEVER:
            return PACE_MAX
        pace, gap = self.pace[place], eighths(max(clock - self.touched[place], 1)) << PACE_BITS
        pace = gap if pace == NO_PACE else pace + ((gap - pace) >> PACE_BITS)
        self.pace[place] = max(pace, 1)
        return pace >> PACE_BITS

    @method
    def page(self):
        """Count a page of the request; return its class if it was never touched."""
        place = self.state[PLACE]
        run = self.run[place]
        self.run[place] = run + 1
        position = int(run > 0) + int(run > 3) + int(run > 31)
        return (position * RESTS + self.state[REST]) * SIZES + self.state[SIZE]
