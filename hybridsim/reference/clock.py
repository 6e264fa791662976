"""Time and order (2.1): SimPy's environment counting whole nanoseconds, and a kernel's timers."""

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
        event = self.event()
        event._ok = True
        event._value = None
        event.callbacks.append(lambda _: action())
        self.schedule(event, EventPriority(NORMAL + 1 + number), delay=time - self.now)


class Alarm:
    """A call that is scheduled at most once at a time."""

    def __init__(self, clock: Clock, action: Done) -> None:
        self.clock = clock
        self.action = action
        self.is_set = False

    def set(self, time: int | None = None) -> None:
        """Schedule the call for `time`, or for now, unless it is scheduled."""
        if not self.is_set:
            self.is_set = True
            self.clock.at(self.clock.now if time is None else time, self.ring)

    def ring(self) -> None:
        """Make the call; it may be scheduled again from within."""
        self.is_set = False
        self.action()


class Parts:
    """The parts of a request; `done` is called when the last part completes."""

    def __init__(self, done: Done) -> None:
        self.done = done
        self.outstanding = 0

    def another(self) -> Done:
        """Count one more part; return the callback for its completion."""
        self.outstanding += 1
        return self._completed

    def _completed(self) -> None:
        self.outstanding -= 1
        if self.outstanding == 0:
            self.done()


def each_of(steps: Iterable[Step], done: Done) -> None:
    """Begin all steps; call `done` after the last of them has ended, at once if there are none."""
    steps = list(steps)
    parts = Parts(done)
    for step, ended in [(step, parts.another()) for step in steps]:
        step(ended)
    if not steps:
        done()


def nothing() -> None:
    """Do nothing, after what nobody waits for."""


def in_turn(steps: Iterator[Step], done: Done = nothing) -> None:
    """Carry out steps, each when the one before has ended; then call `done`."""
    step = next(steps, None)
    if step is None:
        done()
    else:
        step(lambda: in_turn(steps, done))


# Timers of a Linux kernel.
JIFFY = 4_000_000  # ns
LEVELS = [(63, 1), (504, 8), (4032, 64), (32_256, 512)]  # shorter than; granularity; in jiffies
COARSEST = 4096


def expiry(now: int, delay: int) -> int:
    """Return the end of a wait that begins at `now`; one of 0 ends at once.  All in ns."""
    if delay <= 0:
        return now
    jiffies = -(-delay // JIFFY)
    granularity = next((grain for limit, grain in LEVELS if jiffies < limit), COARSEST)
    target = now // JIFFY + jiffies
    return (target - target % granularity + granularity) * JIFFY
