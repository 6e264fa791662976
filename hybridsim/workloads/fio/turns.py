"""Which of several files a request goes to: in turn, one after the other, or by chance."""

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
FINE_BITS = 10  # of a file's number, below it, where some files come more often
# The state.
FILE, LEFT, IS_ON, NEXT, LEFT_FILES = range(5)
DONE, CLEARED = 1, 2  # of a file in this pass


@state_machine
class Turns(NamedTuple):
    """The order of files."""

    kind: int
    files: int
    requests: int  # to a file before another one is chosen
    seed: int
    spread: Spread
    streams: Ints
    state: Ints

    @classmethod
    def new(cls, pattern: Pattern) -> Turns:
        """Make the order that a pattern asks for."""
        seed = pattern.seeds()[Stream.FILE] & MASK32
        spread = Spread.of_files(pattern, pattern.files << FINE_BITS, seed)
        turns = cls(
            int(pattern.service), pattern.files, pattern.service_requests, seed, spread,
            np.zeros((1, 3), np.int64), np.zeros(5, np.int64),
        )  # fmt: skip
        turns.state[LEFT_FILES] = pattern.files
        seed_stream(turns.streams, 0, seed)
        return turns

    @method
    def is_by_share(self):
        """Tell whether some files come more often than others."""
        return self.kind > AT_RANDOM

    @method
    def next(self, is_done):
        """Return the file that is next, of those that are not done; one at least is not."""
        state = self.state
        if self.files == 1:
            return 0
        if state[IS_ON] == 1:
            if self.kind == IN_A_ROW:
                return state[FILE]
            if state[LEFT] > 0:
                state[LEFT] -= 1
                return state[FILE]
        file = self.chosen()
        while is_done[file] == DONE:
            file = self.chosen()
        state[FILE], state[IS_ON], state[LEFT] = file, 1, self.requests - 1
        return file

    @method
    def chosen(self):
        """Return another file."""
        if self.kind == AT_RANDOM:
            return draw_below(self.streams, 0, self.files)
        if self.is_by_share():
            return self.spread.next(0) >> FINE_BITS
        file = self.state[NEXT]
        self.state[NEXT] = (file + 1) % self.files
        return file

    @method
    def ended(self, file, is_done):
        """Note that a file has nothing left in this pass; return whether it begins anew instead.

        It does where some files come more often than others, so that it goes on to do so.
        """
        self.state[IS_ON] = 0
        if self.is_by_share() and is_done[file] != CLEARED:
            is_done[file] = CLEARED
            return True
        is_done[file] = DONE
        self.state[LEFT_FILES] -= 1
        return False

    @method
    def has_any(self):
        """Tell whether a file has something left in this pass."""
        return self.state[LEFT_FILES] > 0

    @method
    def begin_again(self, is_done, is_reseeded):
        """Begin another pass."""
        is_done[:] = 0
        self.state[LEFT_FILES] = self.files
        self.state[IS_ON] = 0
        if is_reseeded:
            seed_stream(self.streams, 0, self.seed)
