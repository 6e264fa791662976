"""The threads of Open CAS's queues (2.13.6)."""

from collections import deque
from collections.abc import Callable, Iterator

from hybridsim.reference.clock import Clock, Done, Parts

# Sends a request, with what to call when it is complete, and when it is let in if it waits.
Send = Callable[[Done, Done], bool]


class Thread:
    """Does one thing after another, unless it sleeps."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.asleep = False
        self.called = False
        self.high: deque[Done] = deque()
        self.low: deque[Done] = deque()

    @property
    def busy(self) -> bool:
        """Whether what comes now has to wait."""
        return self.asleep or bool(self.high or self.low)

    def do(self, what: Done) -> None:
        """Go on with a job, now or when the thread has time."""
        if self.busy:
            self.high.append(what)
        else:
            what()

    def later(self, what: Done) -> Done:
        """Return a callback that goes on with a job."""
        return lambda: self.do(what)

    def start(self, what: Done) -> None:
        """Start a request, behind all that goes on."""
        if self.busy:
            self.low.append(what)
        else:
            what()

    def take(self) -> None:
        """Do the first thing that waits."""
        self.called = False
        if not self.asleep:
            (self.high or self.low).popleft()()
            self.call()

    def call(self) -> None:
        """Have it take something in this instant, if something waits."""
        if not self.asleep and not self.called and self.busy:
            self.called = True
            self.clock.at(self.clock.now, self.take)

    def send(self, what: Send, done: Done) -> None:
        """Send one request, and sleep until it is let in."""
        self.asleep = what(done, self.let_in)

    def let_in(self) -> None:
        """Wake up."""
        self.asleep = False
        self.call()

    def send_all(self, requests: Iterator[Send], done: Done) -> None:
        """Send requests, and sleep whenever one waits; `done` when all are complete, or none is."""
        parts = Parts(done)
        unsent = parts.another()

        def send_rest() -> None:
            for each in requests:
                self.asleep = each(parts.another(), woken)
                if self.asleep:
                    return
            unsent()

        def woken() -> None:
            self.asleep = False
            send_rest()
            self.call()

        send_rest()
