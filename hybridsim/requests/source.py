"""When requests are issued: as recorded, at a queue depth, or after the recorded think times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import Replay
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import Heap
from hybridsim.jit.instructions import along

OPEN, CLOSED, THINK = int(Replay.OPEN), int(Replay.CLOSED), int(Replay.THINK)
NOTHING = -1
NEVER = 1 << 62
WANTS_BATCH = -1
WINDOW = 4096  # think: requests loaded and not complete
LOOKBACK = 1 << 16  # think: maximum distance of a parent, in requests
OUTSTANDING, LOADED, OTHERS = range(3)
# A sequential pass of reads beside the load (DESIGN.md 2.17): numbers from here on, its process,
# and its limits.
PASS_FROM = 1 << 60
PASS_STREAM = 1 << 40
PASS_DEPTH = 16
PASS_BYTES = 1 << 20


@state_machine
class Source(NamedTuple):
    """Issues the requests of batches (DESIGN.md 2.2)."""

    mode: int
    depth: int
    counts: Ints  # [OUTSTANDING, LOADED, OTHERS: reads of a pass that are under way]
    ready: Heap  # think: slots of requests that only wait for their time, by time and number
    slot_of: Int32s  # think: ring by number: slot of a request not complete, or NOTHING
    done_ns: Ints  # think: ring by number: when it completed
    first_child: Int32s  # think, by slot: requests that wait for this one
    next_child: Int32s
    gap_ns: Ints  # think, by slot

    @classmethod
    def new(cls, mode: int, depth: int) -> Source:
        """Return a source that has issued nothing."""
        think = mode == THINK
        window = WINDOW + PASS_DEPTH if think else 1
        lookback = LOOKBACK if think else 1
        return cls(
            mode,
            depth,
            np.zeros(3, np.int64),
            Heap.new(window),
            np.full(lookback, NOTHING, np.int32),
            np.zeros(lookback, np.int64),
            np.full(window, NOTHING, np.int32),
            np.full(window, NOTHING, np.int32),
            np.zeros(window, np.int64),
        )

    @property
    def outstanding(self) -> int:
        """Number of requests issued and not complete."""
        return int(self.counts[OUTSTANDING])

    @property
    def slots(self) -> int:
        """Initial number of request slots."""
        return 2 * WINDOW if self.mode == THINK else 256

    def delay(self, by_ns: int) -> None:
        """Delay everything that is scheduled, or will be scheduled after a completion (2.17)."""
        self.ready.time_ns[: self.ready.used[0]] += by_ns
        self.done_ns[:] += by_ns

    @method
    def is_idle(self):
        """Return whether every request issued is complete."""
        return self.counts[OUTSTANDING] + self.counts[OTHERS] == 0

    @method
    def begins_other(self, arrival_ns):
        """Count a read of a pass; return False if none may begin: the load is over, or too many."""
        is_over = arrival_ns >= NEVER and self.counts[OUTSTANDING] == 0
        if is_over or self.counts[OTHERS] >= PASS_DEPTH:
            return False
        self.counts[OTHERS] += 1
        return True

    @method
    def next_ns(self, now, batch, requests):
        """Return when the next request is issued, NEVER, or WANTS_BATCH if that is unknown."""
        if self.mode == THINK:
            return self.next_ready_ns(now, batch, requests)
        if self.mode == CLOSED and self.counts[OUTSTANDING] >= self.depth:
            return NEVER
        if batch.left() == 0:
            return NEVER if batch.is_last() else WANTS_BATCH
        return now if self.mode == CLOSED else max(now, batch.arrival_ns[batch.state[0]])

    @method
    def issue(self, now, batch, requests):
        """Issue the request that `next_ns` returned the time of; return its slot."""
        self.counts[OUTSTANDING] += 1
        if self.mode == THINK:
            slot = self.ready.what[0]
            self.ready.pop()
        else:
            slot = requests.take(batch)
        requests.issue_ns[slot] = now
        return slot

    @method
    def completed(self, now, slot, requests):
        """Record the completion of a request; its children become ready."""
        if requests.number[slot] >= PASS_FROM:
            self.counts[OTHERS] -= 1
            return
        self.counts[OUTSTANDING] -= 1
        if self.mode != THINK:
            return
        self.counts[LOADED] -= 1
        ring = requests.number[slot] % LOOKBACK
        if self.slot_of[ring] == slot:  # else its number is too old to be a parent
            self.slot_of[ring] = NOTHING
            self.done_ns[ring] = now
        for child in along(self.first_child[slot], self.next_child):
            self.ready.push(now + self.gap_ns[child], requests.number[child], child)

    @method
    def next_ready_ns(self, now, batch, requests):
        """Load requests while there is room; return when the first of them is issued."""
        while self.counts[LOADED] < WINDOW and batch.left() > 0:
            self.load(now, batch, requests)
        if self.counts[LOADED] < WINDOW and not batch.is_last():
            return WANTS_BATCH
        return NEVER if self.ready.is_empty() else self.ready.time_ns[0]

    @method
    def load(self, now, batch, requests):
        """Take a request from the batch; let it wait for its parent or for its time."""
        row = batch.state[0]
        slot = requests.take(batch)
        number = requests.number[slot]
        self.counts[LOADED] += 1
        self.first_child[slot] = NOTHING
        parent = batch.parent[row]
        ready_ns = batch.arrival_ns[row]
        waits_for = NOTHING
        if parent >= 0:
            self.gap_ns[slot] = batch.gap_ns[row]
            waits_for = self.slot_of[parent % LOOKBACK]
            ready_ns = self.done_ns[parent % LOOKBACK] + batch.gap_ns[row]
        self.slot_of[number % LOOKBACK] = slot  # may overwrite the parent's entry in the ring
        if waits_for == NOTHING:
            self.ready.push(max(now, ready_ns), number, slot)
            return
        self.next_child[slot] = self.first_child[waits_for]
        self.first_child[waits_for] = slot
