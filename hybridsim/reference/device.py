"""The interfaces of what takes requests: devices, what may be the slow tier, and caches."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from hybridsim.foundation.codes import OP_MASK, Op, Restart
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


P = TypeVar("P")  # the parameters


class Front(Store, Generic[P]):
    """What is in front of an array, and takes its place."""

    def __init__(self, clock: Clock, parameters: P, array: Store) -> None:
        self.clock = clock
        self.parameters = parameters
        self.array = array
        self.capacity_bytes = array.capacity_bytes
        self.devices = array.devices
        self.counters = Counter()


class Cache(Generic[P]):
    """Sits between the source and the tiers; `fast` is None if the cache has no pages."""

    def __init__(self, clock: Clock, parameters: P, slow: Store, fast: Store) -> None:
        self.clock, self.parameters = clock, parameters
        self.slow, self.fast = slow, fast
        self.counts: Counter[str] = Counter()

    @property
    def counters(self) -> dict[str, int]:
        """What it has counted."""
        return self.counts

    def after(self, old: Any, how: Restart) -> None:
        """Start now, after another one that has stopped (2.17): its counts continue."""
        self.counts.update(old.counts)


Of = TypeVar("Of", bound=Cache[Any])


class Part(Generic[Of, P]):
    """A part of a cache, with what the cache was given."""

    def __init__(self, cache: Of) -> None:
        self.cache = cache
        self.clock = cache.clock
        self.parameters: P = cache.parameters
        self.slow, self.fast = cache.slow, cache.fast
        self.counts: Counter[str] = cache.counts


class Copier(Part[Of, P], ABC):
    """Copies in the background: a thread that sleeps while the disk holds back its write."""

    sleeps = False

    def write_back(self, offset: int, length: int, done: Done) -> None:
        """Write to the slow tier; sleep until the write is let in."""
        self.sleeps = self.slow.submit_background(Op.WRITE, offset, length, done, self.wake)

    def wake(self) -> None:
        """Work on."""
        self.sleeps = False
        self.work()

    @abstractmethod
    def work(self) -> None:
        """Do what is to be done, until it sleeps."""
