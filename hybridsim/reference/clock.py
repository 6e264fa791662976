"""Time and order (2.1): SimPy's environment counting whole nanoseconds."""

from collections.abc import Callable, Iterable, Iterator

import simpy
from simpy.events import NORMAL, EventPriority

Done = Callable[[], None]
Step = Callable[[Done], None]  # begins something, and is given what to call at its end


class Clock(simpy.Environment):
    """SimPy's environment, with arrivals.

    SimPy takes events by (time, priority, order of scheduling). Arrivals have a priority each, by
    their number, and all other events come before them: that is the order of 2.1. What the first
    arrival of an instant schedules for the same instant is thus taken before the second arrival.
    """

    @property
    def now(self) -> int:
        """The simulated time in nanoseconds."""
        return int(super().now)

    def at(self, time: int, action: Done) -> None:
        """Call `action` at `time`, after all events scheduled earlier for that time."""
        event = self.timeout(time - self.now)
        event.callbacks.append(lambda _: action())

    def arrive(self, time: int, number: int, action: Done) -> None:
        """Call `action` at `time`, after all events and the arrivals of lower number."""
        event = _Arrival(self, time - self.now, number)
        event.callbacks.append(lambda _: action())


class _Arrival(simpy.Event):
    """A timeout taken after all events of its instant and after arrivals of lower number."""

    def __init__(self, clock: Clock, delay: int, number: int) -> None:
        super().__init__(clock)
        self._ok = True
        self._value = None
        clock.schedule(self, EventPriority(NORMAL + 1 + number), delay=delay)


class Parts:
    """The parts of a request; `done` is called when the last part completes."""

    def __init__(self, done: Done) -> None:
        self.done = done
        self.number = self.outstanding = 0

    def another(self) -> Done:
        """Count one more part; return the callback for its completion."""
        self.number += 1
        self.outstanding += 1
        return self._completed

    def _completed(self) -> None:
        self.outstanding -= 1
        if self.outstanding == 0:
            self.done()


def each_of(steps: Iterable[Step], done: Done) -> None:
    """Begin all steps; call `done` after the last of them has ended, at once if there are none."""
    parts = Parts(done)
    for step in steps:
        step(parts.another())
    if parts.number == 0:
        done()


def in_turn(steps: Iterator[Step]) -> None:
    """Carry out steps, each when the one before has ended."""

    def go_on() -> None:
        step = next(steps, None)
        if step is not None:
            step(go_on)

    go_on()
