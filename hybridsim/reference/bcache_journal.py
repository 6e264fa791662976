"""bcache's journal (2.12.1)."""

from collections import deque

from hybridsim.foundation.codes import FUA, PREFLUSH, Op
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.tier import Tier
from hybridsim.reference.timers import expiry


class Journal:
    """Collects keys; writes them when a request waits, an entry is full or 100 ms have passed."""

    def __init__(self, clock: Clock, fast: Tier, begin: int, size: int, block: int) -> None:
        self.clock = clock
        self.fast = fast
        self.begin, self.size, self.block = begin, size, block
        self.cursor = 0
        self.keys = 0
        self.dirty = self.due = self.timed = self.writing = False
        self.allocator_waits: Done | None = None
        self.waiting: list[Done] = []
        self.written: deque[Done] = deque()
        self.count = 0

    def add(self, keys: int, waits: Done | None = None, allocator: bool = False) -> None:
        """Add keys to the journal; `waits` is called when they are on the medium."""
        self.keys += keys
        if waits:
            if allocator:
                self.allocator_waits = waits
            else:
                self.waiting.append(waits)
            self.due = True
        elif not self.dirty:
            self.dirty = True
            if not self.timed:
                self.timed = True
                self.clock.at(expiry(self.clock.now, 100_000_000), self.time_is_up)
        if 240 + 24 * self.keys > 32 * 1024:
            self.due = True
        self.write()

    def time_is_up(self) -> None:
        """Write the pending keys when the timer expires."""
        self.timed = False
        if self.dirty:
            self.due = True
            self.write()

    def write(self) -> None:
        """Write the current entry if it is due, one entry at a time."""
        if not self.due or self.writing:
            return
        length = -(-(240 + 24 * self.keys) // self.block) * self.block
        length = min(length, self.size)
        if self.cursor + length > self.size:
            self.cursor = 0
        at = self.begin + self.cursor
        self.cursor += length
        allocator, waiting = self.allocator_waits, self.waiting
        self.allocator_waits, self.waiting = None, []
        self.keys = 0
        self.dirty = self.due = False
        self.writing = True
        self.count += 1

        def written() -> None:
            self.writing = False
            if allocator:
                allocator()
            if waiting:
                if not self.written:
                    self.clock.at(self.clock.now, self.complete_one)
                self.written.extend(waiting)
            self.write()

        self.fast.submit(Op.WRITE | PREFLUSH | FUA, at, length, written)

    def complete_one(self) -> None:
        """Complete one waiter."""
        waits = self.written.popleft()
        if self.written:
            self.clock.at(self.clock.now, self.complete_one)
        waits()
