"""The order in which requests go to several files: in turn, one file at a time, or at random."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method, state_machine
from hybridsim.workloads.fio.pattern import Generator, Pattern, Service, Stream
from hybridsim.workloads.fio.random import draw_below, restart, seeded
from hybridsim.workloads.fio.spread import Spread

IN_A_ROW, AT_RANDOM = int(Service.SEQUENTIAL), int(Service.RANDOM)
FINE_BITS = 10  # skewed orders draw with this many bits below the file's index
# Indices of the state.
FILE, REMAINING, IS_ON, NEXT, REMAINING_FILES, OPEN = range(6)
DONE = 1


@state_machine
class Turns(NamedTuple):
    """The order of a job's files."""

    kind: int
    files: int
    requests: int  # consecutive requests to a file
    open_files: int  # at most this number is open at a time
    repeats_files: int  # else what is done stays done in the next pass
    first: Ints  # random state at the start of a pass
    first_spread: Ints
    spread: Spread
    streams: Ints
    is_open: Bytes  # by file
    state: Ints

    @classmethod
    def new(cls, pattern: Pattern) -> Turns:
        """Create the order of a pattern's files."""
        seed = pattern.seeds()[Stream.FILE]
        spread = Spread.of_files(pattern, pattern.files << FINE_BITS, seed)
        first = seeded(seed, pattern.generator == Generator.TAUSWORTHE64).reshape(1, -1)
        turns = cls(
            int(pattern.service), pattern.files, pattern.service_requests,
            pattern.open_files or pattern.files, int(pattern.repeats_files),
            first, spread.states.copy(), spread, first.copy(),
            np.zeros(pattern.files, np.uint8), np.zeros(6, np.int64),
        )  # fmt: skip
        turns.state[REMAINING_FILES] = pattern.files
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
        while is_done[file] == DONE or not self.can_open(file):
            file = self.chosen()
        if self.is_open[file] == 0:
            self.is_open[file] = 1
            state[OPEN] += 1
        state[FILE], state[IS_ON], state[REMAINING] = file, 1, self.requests - 1
        return file

    @method
    def can_open(self, file):
        """Return whether a file is open or may be opened."""
        return self.is_open[file] == 1 or self.state[OPEN] < self.open_files

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
        """Close a file without a further request; in skewed orders it is opened again."""
        self.state[IS_ON] = 0
        if self.is_open[file] == 1:
            self.is_open[file] = 0
            self.state[OPEN] -= 1
        if not self.is_by_share():
            is_done[file] = DONE
            self.state[REMAINING_FILES] -= 1

    @method
    def has_any(self):
        """Return whether a file has requests left in this pass."""
        return self.state[REMAINING_FILES] > 0

    @method
    def begin_again(self, is_done, is_reseeded):
        """Start another pass."""
        is_done[:] = 0
        self.is_open[:] = 0
        self.state[OPEN] = 0
        if self.repeats_files == 1:
            self.state[REMAINING_FILES] = self.files
        self.state[IS_ON] = 0
        if is_reseeded:
            restart(self.streams, self.first)
            restart(self.spread.states, self.first_spread)
