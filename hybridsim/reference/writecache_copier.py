"""The worker that copies blocks of dm-writecache to the slow tier (2.15)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Done
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier

QUEUE_MAX = 256
READ_BYTES = 1280 * 1024


class Slot(Protocol):
    """A slot with a block."""

    number: int
    block: int


S = TypeVar("S", bound=Slot)


class Copier(Generic[S]):
    """Copies runs of slots in order; it sleeps while the disk holds back one of its writes."""

    def __init__(
        self,
        slow: Slow,
        fast: Tier,
        block_bytes: int,
        written: Callable[[int], None],
        report: Callable[[list[S]], None],
        idle: Done,
    ) -> None:
        self.slow, self.fast, self.size = slow, fast, block_bytes
        self.written = written  # takes the blocks of a completed write
        self.report, self.idle = report, idle
        self.to_read: deque[list[S]] = deque()
        self.to_write: deque[list[S]] = deque()
        self.done: deque[list[S]] = deque()
        self.reading = self.writing = 0
        self.sleeps = False

    def work(self) -> None:
        """Write what is read, read what is added, and report what is done, until it sleeps."""
        while self.to_write and self.writing < QUEUE_MAX and not self.sleeps:
            self.write(self.to_write.popleft())
        if self.sleeps or self.to_write:
            return
        while self.to_read and self.reading < QUEUE_MAX:
            self.read()
        if self.to_read:
            return
        while self.done:
            self.report(self.done.popleft())
        self.idle()

    @property
    def is_busy(self) -> bool:
        """Whether it sleeps, or waits for room in a queue."""
        return self.sleeps or bool(self.to_write or self.to_read)

    def read(self) -> None:
        """Read the first copy, and those behind it that lie in the next slots."""
        together = [self.to_read.popleft()]
        while self.to_read and self.to_read[0][0].number == together[-1][-1].number + 1:
            if (sum(map(len, together)) + len(self.to_read[0])) * self.size > READ_BYTES:
                break
            together.append(self.to_read.popleft())
        self.reading += 1

        def done() -> None:
            self.reading -= 1
            self.to_write.extend(together)
            self.work()

        at, blocks = together[0][0].number * self.size, sum(map(len, together))
        self.fast.submit(Op.READ, at, blocks * self.size, done)

    def write(self, copy: list[S]) -> None:
        """Write a copy, and sleep if the disk holds it back."""
        self.writing += 1

        def done() -> None:
            self.writing -= 1
            self.done.append(copy)
            self.written(len(copy))
            self.work()

        def let_in() -> None:
            self.sleeps = False
            self.work()

        start = copy[0].block * self.size
        length = min((copy[-1].block + 1) * self.size, self.slow.capacity_bytes) - start
        self.sleeps = self.slow.submit_background(Op.WRITE, start, length, done, let_in)
