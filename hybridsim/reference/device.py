"""The interface of all devices."""

from abc import ABC, abstractmethod
from collections import Counter

from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.reference.clock import Clock, Done


class Device(ABC):
    """Takes requests for byte ranges and completes each by a later event."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.counters: Counter[str] = Counter()

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request; `done` is called when it completes, never from within this call."""
        what = op & OP_MASK
        if what == Op.READ:
            self.counters["read_bytes"] += length
        elif what == Op.WRITE:
            self.counters["write_bytes"] += length
        self.accept(op, offset, length, done)

    def totals(self) -> Counter[str]:
        """Return the counters up to now."""
        return self.counters

    @abstractmethod
    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Implement `submit` for one kind of device; `op` may carry FUA and PREFLUSH."""
