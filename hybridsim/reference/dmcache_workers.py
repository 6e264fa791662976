"""The workers and commits of dm-cache (2.14.2, 2.14.3)."""

from collections.abc import Callable, Iterator

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.tier import Tier

LOG_BYTES, SUPERBLOCK_BYTES = 16 * 1024, 4 * 1024
DEMOTIONS, BIOS = range(2)  # the order in which they resume after a commit


class Worker:
    """Processes one item per event until none remains."""

    def __init__(self, clock: Clock, delay: int, take: Callable[[], bool]) -> None:
        self.clock = clock
        self.delay = delay
        self.take = take
        self.awake = False

    def wake(self) -> None:
        """Schedule the worker, unless it is scheduled."""
        if not self.awake:
            self.awake = True
            self.clock.at(self.clock.now + self.delay, self.run)

    def run(self) -> None:
        """Process one item; run again if there was one."""
        if self.take():
            self.clock.at(self.clock.now, self.run)
        else:
            self.awake = False


class Commits:
    """Writes the metadata, once for all waiters (2.14.3)."""

    def __init__(self, fast: Tier, start: int) -> None:
        self.fast = fast
        self.start = start
        self.changed = False
        self.under_way = False
        self.waiting: list[tuple[int, Done]] = []
        self.count = 0

    def wait(self, rank: int, done: Done) -> None:
        """Call `done` when all changes up to now are on the medium; lower ranks first."""
        self.waiting.append((rank, done))
        self.begin()

    def begin(self) -> None:
        """Begin a commit, unless one is under way or there is no waiter."""
        if self.under_way or not self.waiting:
            return
        served = sorted(self.waiting, key=lambda each: each[0])
        self.waiting = []
        if not self.changed:
            self.serve(served)
            return
        self.changed = False
        self.under_way = True
        self.count += 1
        steps = self.steps()

        def go_on() -> None:
            step = next(steps, None)
            if step is not None:
                self.fast.submit(*step, go_on)
                return
            self.under_way = False
            self.serve(served)
            self.begin()

        go_on()

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
