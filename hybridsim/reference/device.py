"""What every device has in common."""

from abc import ABC, abstractmethod
from collections import Counter

from hybridsim.codes import FUA, OP_MASK, Op
from hybridsim.reference.clock import Clock, Done


class Device(ABC):
    """Takes requests for byte ranges and completes them at some later event."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.counters: Counter[str] = Counter()

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request; `done` is called when it completes, never from within this call."""
        plain = Op(op & OP_MASK)
        if plain == Op.READ:
            self.counters["read_bytes"] += length
        elif plain == Op.WRITE:
            self.counters["write_bytes"] += length
        if plain == Op.WRITE and op & FUA:
            self.accept_through(offset, length, done)
        else:
            self.accept(plain, offset, length, done)

    @abstractmethod
    def accept(self, op: Op, offset: int, length: int, done: Done) -> None:
        """Do what `submit` promises; this is what a device defines."""

    def accept_through(self, offset: int, length: int, done: Done) -> None:
        """Take a WRITE with FUA; where nothing volatile is cached, one like any other."""
        self.accept(Op.WRITE, offset, length, done)
