"""Writeback throttling (2.16): background writes wait while the reads of a disk are slow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import isqrt

from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.foundation.machine_parameters import ThrottleParameters
from hybridsim.reference.clock import JIFFY, Clock, Done, Step, in_turn
from hybridsim.reference.device import Front, Store

MS = 10**6


@dataclass(eq=False)
class Queue:
    """Who waits, and how many are past it."""

    for_discards: bool = False
    inflight: int = 0
    # since when, what to do, whom to call then
    waiting: deque[tuple[int, Done, Done | None]] = field(default_factory=deque)


class Throttle(Front[ThrottleParameters]):
    """Takes the place of the slow tier, which lies behind it and is one device."""

    def __init__(self, clock: Clock, parameters: ThrottleParameters, array: Store) -> None:
        super().__init__(clock, parameters, array)
        self.background, self.discards = Queue(), Queue(for_discards=True)
        self.step = 0
        self.full = False
        self.unknown = 0
        self.armed: int | None = None  # the length of the window
        self.last_issue = self.last_comp = -(10**9)
        self.began: dict[object, int] = {}  # reads under way: since when
        self.watched: object = None
        self.read_samples: list[int] = []
        self.write_samples = 0
        self.counters.update(
            slow_held_writes=0, slow_held_ns=0, slow_throttle_windows=0, slow_throttled_windows=0
        )

    @property
    def is_idle(self) -> bool:
        """Whether every request is complete."""
        return self.array.is_idle and not (self.background.waiting or self.discards.waiting)

    # Depths.

    @staticmethod
    def depth(queue_depth: int, step: int) -> tuple[int, bool]:
        """How deep the queue is for writes at a step; whether it cannot be deeper."""
        if queue_depth == 1:
            return (1, False) if step > 0 else (2, True)
        d = min(16, queue_depth)
        if step > 0:
            return 1 + ((d - 1) >> min(31, step)), False
        if step < 0:
            d = 1 + (d - 1) * 2**-step
            if d > 3 * queue_depth // 4:
                return 3 * queue_depth // 4, True
        return d, False

    @property
    def limits(self) -> tuple[int, int, int]:
        """Depth, normal and background."""
        d, _ = self.depth(self.parameters.queue_depth, self.step)
        return (d, d, 1) if d <= 2 else (d, (d + 1) // 2, (d + 3) // 4)

    def limit(self, queue: Queue) -> int:
        """How many of a queue may be past it now."""
        _, normal, background = self.limits
        jiffies = self.clock.now // JIFFY
        if queue.for_discards or jiffies < max(self.last_issue, self.last_comp) + 25:
            return background
        return normal

    # Requests.

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request; reads and the writes that somebody waits for pass."""
        plain = op & OP_MASK
        if plain == Op.FLUSH or length == 0:
            self.submit_background(op, offset, length, done)
        elif plain == Op.READ:
            in_turn(self.reading(op, offset, length), done)
        elif plain == Op.DISCARD:
            in_turn(self.limited(self.discards, op, offset, length), done)
        else:
            in_turn(self.writing(op, offset, length), done)

    def submit_background(
        self, op: int, offset: int, length: int, done: Done, let_in: Done | None = None
    ) -> bool:
        """Take a write that nobody waits for, or a FLUSH; each waits in the same queue."""
        is_flush = op & OP_MASK == Op.FLUSH or length == 0
        if is_flush and not self.parameters.has_write_cache:
            self.array.submit(op, offset, length, done)
            return False
        in_turn(self.limited(self.background, op, offset, length, let_in), done)
        return bool(self.background.waiting)

    def reading(self, op: int, offset: int, length: int) -> Iterator[Step]:
        """Send a read, and see how long it takes."""
        now, me = self.clock.now, object()
        self.last_issue = now // JIFFY
        self.began[me] = now
        self.watched = self.watched or me
        yield partial(self.array.submit, op, offset, length)
        took = self.clock.now - self.began.pop(me)
        if self.watched is me:
            self.watched = None
        self.last_comp = self.clock.now // JIFFY
        if self.armed is not None:
            self.read_samples.append(took)

    def writing(self, op: int, offset: int, length: int) -> Iterator[Step]:
        """Send a write that somebody waits for."""
        yield partial(self.array.submit, op, offset, length)
        self.write_samples += self.armed is not None

    def limited(
        self, queue: Queue, op: int, offset: int, length: int, let_in: Done | None = None
    ) -> Iterator[Step]:
        """Send what counts, when it is let in."""
        if queue.waiting or queue.inflight >= self.limit(queue):
            yield lambda go: queue.waiting.append((self.clock.now, go, let_in))
        queue.inflight += 1
        yield partial(self.send, op, offset, length)
        if length and op & OP_MASK != Op.FLUSH:
            self.write_samples += self.armed is not None
        self.left(queue)

    def send(self, op: int, offset: int, length: int, done: Done) -> None:
        """Send what counts, and begin a window."""
        self.array.submit(op, offset, length, done)
        if self.armed is None:
            self.arm()

    def left(self, queue: Queue) -> None:
        """One of a queue is complete."""
        queue.inflight -= 1
        _, normal, background = self.limits
        w = normal
        if queue.for_discards:
            w = background
        elif self.parameters.has_write_cache:
            w = 0
        if queue.inflight and queue.inflight >= w:
            return
        if not queue.inflight or w - queue.inflight >= background // 2:
            self.wake(queue)

    def wake(self, queue: Queue) -> None:
        """Let those that wait pass, in order."""
        while queue.waiting and queue.inflight < self.limit(queue):
            since, go, let_in = queue.waiting.popleft()
            self.counters["slow_held_writes"] += 1
            self.counters["slow_held_ns"] += self.clock.now - since
            go()
            if let_in is not None:
                self.clock.at(self.clock.now, let_in)

    # Windows.

    def arm(self) -> None:
        """Begin a window."""
        self.armed = 100 * MS
        if self.step > 0:
            self.armed = 100 * MS * 16 // isqrt((self.step + 1) * 256)
        self.clock.at((self.clock.now // JIFFY + self.armed // JIFFY + 1) * JIFFY, self.fire)

    def fire(self) -> None:
        """End a window."""
        window, self.armed = self.armed or 0, None
        n = self.background.inflight + self.discards.inflight
        self.counters["slow_throttle_windows"] += 1
        self.counters["slow_throttled_windows"] += self.step > 0
        reads, self.read_samples = self.read_samples, []
        writes, self.write_samples = self.write_samples, 0
        target = self.parameters.target_ns
        late = self.clock.now - self.began[self.watched] if self.watched else 0
        if late > window or (late > target and not reads):
            self.down()
        elif not reads or writes < 3:
            if writes or n:
                self.up()
            else:
                self.nothing_known()
        elif min(reads) > target:
            self.down()
        else:
            self.up()
        if self.armed is None and (self.step or n):
            self.arm()

    def nothing_known(self) -> None:
        """Nothing happened in a window."""
        self.unknown += 1
        if self.unknown >= 5 and self.step > 0:
            self.up()
        elif self.unknown >= 5 and self.step < 0:
            self.go_to(self.step + 1)

    def down(self) -> None:
        """Let fewer writes in."""
        if self.limits[0] > 1:
            self.go_to(0 if self.step < 0 else self.step + 1)

    def up(self) -> None:
        """Let more writes in."""
        if self.full:
            return
        self.go_to(self.step - 1)
        self.full = self.depth(self.parameters.queue_depth, self.step)[1]
        self.wake(self.background)
        self.wake(self.discards)

    def go_to(self, step: int) -> None:
        """Change the step."""
        self.step = step
        self.unknown = 0
        self.full = False
