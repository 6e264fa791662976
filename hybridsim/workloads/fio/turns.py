"""The order in which requests go to several files: in turn, one file at a time, or at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.workloads.fio.pattern import MASK32, Pattern, Service, Stream
from hybridsim.workloads.fio.random import draw_below, seed_stream
from hybridsim.workloads.fio.spread import Spread

IN_TURN, IN_A_ROW, AT_RANDOM = (
    int(each) for each in (Service.ROUNDROBIN, Service.SEQUENTIAL, Service.RANDOM)
)
FINE_BITS = 10  # skewed orders draw with this many bits below the file's index
# Indices of the state.
FILE, REMAINING, IS_ON, NEXT, REMAINING_FILES = range(5)
DONE, CLEARED = 1, 2  # states of a file in a pass


@state_machine
class Turns(NamedTuple):
    """The order of a job's files."""

    kind: int
    files: int
    requests: int  # consecutive requests to a file
    seed: int
    spread: Spread
    streams: Ints
    state: Ints

    @classmethod
    def new(cls, pattern: Pattern) -> Turns:
        """Create the order of a pattern's files."""
        seed = pattern.seeds()[Stream.FILE] & MASK32
        spread = Spread.of_files(pattern, pattern.files << FINE_BITS, seed)
        turns = cls(
            int(pattern.service), pattern.files, pattern.service_requests, seed, spread,
            np.zeros((1, 3), np.int64), np.zeros(5, np.int64),
        )  # fmt: skip
        turns.state[REMAINING_FILES] = pattern.files
        seed_stream(turns.streams, 0, seed)
        return turns

    @method
    def is_by_share(self):
        """Return whether the order is skewed."""
        return self.kind > AT_RANDOM

    @method
    def next(self, is_done):
        """Return the next file; at least one file must not be done."""
        state = self.state
        if self.files == 1:
            return 0
        if state[IS_ON] == 1:
            if self.kind == IN_A_ROW:
                return state[FILE]
            if state[REMAINING] > 0:
                state[REMAINING] -= 1
                return state[FILE]
        file = self.chosen()
        while is_done[file] == DONE:
            file = self.chosen()
        state[FILE], state[IS_ON], state[REMAINING] = file, 1, self.requests - 1
        return file

    @method
    def chosen(self):
        """Return the next file of the order, done or not."""
        if self.kind == AT_RANDOM:
            return draw_below(self.streams, 0, self.files)
        if self.is_by_share():
            return self.spread.next(0) >> FINE_BITS
        file = self.state[NEXT]
        self.state[NEXT] = (file + 1) % self.files
        return file

    @method
    def ended(self, file, is_done):
        """Note that a file's pass is complete; return whether the file restarts instead.

        In skewed orders a file restarts once, so that its share of requests is kept.
        """
        self.state[IS_ON] = 0
        if self.is_by_share() and is_done[file] != CLEARED:
            is_done[file] = CLEARED
            return True
        is_done[file] = DONE
        self.state[REMAINING_FILES] -= 1
        return False

    @method
    def has_any(self):
        """Return whether a file has requests left in this pass."""
        return self.state[REMAINING_FILES] > 0

    @method
    def begin_again(self, is_done, is_reseeded):
        """Start another pass."""
        is_done[:] = 0
        self.state[REMAINING_FILES] = self.files
        self.state[IS_ON] = 0
        if is_reseeded:
            seed_stream(self.streams, 0, self.seed)
