"""Requests that wait because the task that submits them sleeps in an earlier one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
UNKNOWN = -1  # a task that the trace does not name

FIRST, LAST, IS_GOING_ON = range(3)


@state_machine
class Sleepers(NamedTuple):
    """These requests, in the order in which they came, linked by `requests.last_promoted`.

    IS_GOING_ON: an event is scheduled that submits one of them.
    """

    state: Ints  # [FIRST, LAST, IS_GOING_ON]

    @classmethod
    def new(cls) -> Sleepers:
        """Return no requests."""
        return cls(np.array([NOTHING, NOTHING, 0]))

    @method
    def any(self):
        """Return whether a request waits."""
        return self.state[FIRST] != NOTHING

    @method
    def has(self, task, until, requests):
        """Return whether a request of a task waits, before `until` (-1: anywhere)."""
        slot = self.state[FIRST]
        while slot != until and task != UNKNOWN:
            if requests.stream[slot] == task:
                return True
            slot = requests.last_promoted[slot]
        return False

    @method
    def add(self, slot, requests):
        """Append a request."""
        requests.last_promoted[slot] = NOTHING
        if self.state[FIRST] == NOTHING:
            self.state[FIRST] = slot
        else:
            requests.last_promoted[self.state[LAST]] = slot
        self.state[LAST] = slot

    @method
    def remove(self, slot, requests):
        """Remove a request."""
        before = NOTHING
        at = self.state[FIRST]
        while at != slot:
            before = at
            at = requests.last_promoted[at]
        following = requests.last_promoted[slot]
        if before == NOTHING:
            self.state[FIRST] = following
        else:
            requests.last_promoted[before] = following
        if self.state[LAST] == slot:
            self.state[LAST] = before
