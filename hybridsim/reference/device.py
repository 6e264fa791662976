"""The interfaces of what takes requests: devices, what may be the slow tier, and caches."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any

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


class Store(ABC):
    """An array, or an array with what is in front of it."""

    clock: Clock
    capacity_bytes: int
    devices: Sequence[Device]
    counters: Counter[str]
    outstanding = 0  # requests not complete

    @property
    def is_idle(self) -> bool:
        """Whether every request is complete, including those that it made itself."""
        return self.outstanding == 0

    @abstractmethod
    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request (its op with flags); `done` is called later, when it completes."""

    def submit_background(
        self, op: int, offset: int, length: int, done: Done, let_in: Done | None = None
    ) -> bool:
        """Take a write that nobody waits for, or a FLUSH whose sender sleeps while it waits.

        Return whether it waits, until `let_in` is called.
        """
        self.submit(op, offset, length, done)
        return False


class Front(Store):
    """What is in front of an array, and takes its place."""

    def __init__(self, clock: Clock, parameters: Any, array: Store) -> None:
        self.clock = clock
        self.parameters = parameters
        self.array = array
        self.capacity_bytes = array.capacity_bytes
        self.devices = array.devices
        self.counters = Counter()


class Cache:
    """Sits between the source and the tiers."""

    parameters: Any

    def __init__(self, clock: Clock, parameters: Any, slow: Store, fast: Store) -> None:
        self.clock = clock
        self.parameters = parameters
        self.slow = slow
        self.fast = fast
        self.counts: Counter[str] = Counter()
