"""Where requests go: does one continue a run, and how long was its neighbourhood at rest?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed

REGION_BITS = 20  # bytes
PLACES = 1 << 14  # regions that share one are as one
NEVER = -1
PLACE, REST, SIZE = range(3)
RUNS, RESTS, SIZES = 4, 14, 4  # how many are told apart


@state_machine
class Regions(NamedTuple):
    """What was last done in each region, and what the request under way is."""

    touched: Ints  # by place: clock
    end: Ints  # by place: of the last request there, bytes
    run: Ints  # by place: pages of the run that goes on there
    state: Ints  # of the request: [PLACE, REST, SIZE]

    @classmethod
    def new(cls) -> Regions:
        """Know no region."""
        return cls(
            np.full(PLACES, NEVER, np.int64),
            np.full(PLACES, NEVER, np.int64),
            np.zeros(PLACES, np.int64),
            np.zeros(3, np.int64),
        )

    @method
    def request(self, offset, length, clock):
        """Hear of a request before its pages."""
        place = mixed(offset >> REGION_BITS) % PLACES
        before = mixed((offset - 1) >> REGION_BITS) % PLACES
        last = mixed((offset + length - 1) >> REGION_BITS) % PLACES
        run = self.run[before] if self.end[before] == offset else 0
        self.state[PLACE] = last
        self.state[REST] = self.rest(clock, self.touched[place])
        self.state[SIZE] = int(length > 4096) + int(length > 16384) + int(length > 65536)
        self.touched[place] = clock
        self.touched[last] = clock
        self.end[last] = offset + length
        self.run[last] = run

    @method
    def rest(self, clock, touched):
        """Return how long a region was at rest, in steps of two octaves; 0 if never touched."""
        if touched == NEVER:
            return 0
        rest, time = 1, clock - touched
        while time > 1 and rest < RESTS - 1:
            time >>= 2
            rest += 1
        return rest

    @method
    def page(self):
        """Hear of a page of the request; return what is known of it if it was never touched."""
        place = self.state[PLACE]
        run = self.run[place]
        self.run[place] = run + 1
        position = int(run > 0) + int(run > 3) + int(run > 31)
        return (position * RESTS + self.state[REST]) * SIZES + self.state[SIZE]
