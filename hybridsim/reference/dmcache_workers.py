"""The workers and commits of dm-cache (2.14.2, 2.14.3)."""

from collections import deque
from collections.abc import Callable, Iterator

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier

LOG_BYTES, SUPERBLOCK_BYTES = 16 * 1024, 4 * 1024
SENT_MAX = 256
DEMOTIONS, BIOS = range(2)  # the order in which they resume after a commit


class Worker:
    """Processes one item per event until none remains."""

    def __init__(self, clock: Clock, delay: int, take: Callable[[], bool]) -> None:
        self.clock = clock
        self.delay = delay
        self.take = take
        self.awake = False
        self.is_held = False

    def wake(self) -> None:
        """Schedule the worker, unless it is scheduled."""
        if not self.awake:
            self.awake = True
            self.clock.at(self.clock.now + self.delay, self.run)

    def run(self) -> None:
        """Process one item; run again if there was one, unless that holds the worker."""
        if not self.take():
            self.awake = False
        elif not self.is_held:
            self.clock.at(self.clock.now, self.run)

    def let_go(self) -> None:
        """Run again if an item held the worker."""
        if self.is_held:
            self.is_held = False
            self.clock.at(self.clock.now, self.run)


class Copier:
    """Copies parts of blocks: one thread, which sleeps while the disk holds back its write."""

    def __init__(self, slow: Slow, fast: Tier) -> None:
        self.slow, self.fast = slow, fast
        self.to_begin: deque[Done] = deque()
        self.to_send: deque[Done] = deque()
        self.written: deque[Done] = deque()
        self.sent = 0
        self.sleeps = self.works = False

    def copy(self, promotes: bool, at_slow: int, at_fast: int, length: int, done: Done) -> None:
        """Queue a part to be read and written; `done` is called by the thread when it works."""

        def completed() -> None:
            self.sent -= 1
            self.written.append(done)
            self.work()

        def write() -> None:
            if promotes:
                self.fast.submit(Op.WRITE, at_fast, length, completed)
            else:
                self.sleeps = self.slow.submit_background(
                    Op.WRITE, at_slow, length, completed, self.wake
                )

        def was_read() -> None:
            self.sent -= 1
            self.to_send.append(write)
            self.work()

        def read() -> None:
            if promotes:
                self.slow.submit(Op.READ, at_slow, length, was_read)
            else:
                self.fast.submit(Op.READ, at_fast, length, was_read)

        self.to_begin.append(read)

    def wake(self) -> None:
        """Continue after a write that was held back."""
        self.sleeps = False
        self.work()

    def work(self) -> None:
        """Do all that is queued, until it sleeps; calls from within have no effect."""
        if self.works:
            return
        self.works = True
        while True:
            while self.to_send and not self.sleeps and self.sent < SENT_MAX:
                self.sent += 1
                self.to_send.popleft()()
            if self.sleeps or self.to_send or not (self.written or self.to_begin):
                break
            while self.written:
                self.written.popleft()()
            self.to_send.extend(self.to_begin)
            self.to_begin.clear()
        self.works = False


class Commits:
    """Writes the metadata, once for all waiters, and keeps them locked meanwhile (2.14.3)."""

    def __init__(
        self, clock: Clock, delay: int, fast: Tier, start: int, unlocked: Callable[[], None]
    ) -> None:
        self.clock, self.delay = clock, delay
        self.fast = fast
        self.start = start
        self.unlocked = unlocked
        self.changed = False
        self.awake = False
        self.under_way = False
        self.waiting: list[tuple[int, Done]] = []
        self.locked: list[Done] = []  # changes of the metadata that wait for the end
        self.count = 0

    def wait(self, rank: int, done: Done) -> None:
        """Call `done` when all changes up to now are on the medium; lower ranks first."""
        self.waiting.append((rank, done))
        if not self.awake:
            self.awake = True
            if not self.under_way:
                self.clock.at(self.clock.now + self.delay, self.begin)

    def begin(self) -> None:
        """Begin a commit for all that wait."""
        self.awake = False
        served = sorted(self.waiting, key=lambda each: each[0])
        self.waiting = []
        if not self.changed:
            self.serve(served)
            return
        self.changed = False
        self.under_way = True
        self.count += 1
        steps = self.steps()

        def completed() -> None:
            self.clock.at(self.clock.now + self.delay, go_on)

        def go_on() -> None:
            step = next(steps, None)
            if step is not None:
                self.fast.submit(*step, completed)
            else:
                self.end(served)

        go_on()

    def end(self, served: list[tuple[int, Done]]) -> None:
        """Unlock the metadata, resume the waiters, and begin again if some came meanwhile."""
        self.under_way = False
        follows = self.awake
        locked, self.locked = self.locked, []
        for change in locked:
            change()
        self.unlocked()
        self.serve(served)
        if follows:
            self.begin()

    def steps(self) -> Iterator[tuple[Op, int, int]]:
        """Yield the requests of a commit, issued one after another."""
        yield Op.WRITE, self.start, LOG_BYTES
        yield Op.FLUSH, 0, 0
        yield Op.WRITE, self.start + LOG_BYTES, SUPERBLOCK_BYTES
        yield Op.FLUSH, 0, 0

    def serve(self, served: list[tuple[int, Done]]) -> None:
        """Resume the waiters."""
        for _, done in served:
            done()
