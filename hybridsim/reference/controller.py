"""The RAID controller (2.11): DRAM between the cache and the slow tier."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import ControllerParameters
from hybridsim.reference.clock import Alarm, Clock, Done, Parts, Step, in_turn
from hybridsim.reference.device import Front, Store
from hybridsim.reference.runs import Runs, covered, runs, split, touched

SECTOR = 512
NEVER = 2**62


class Link:
    """The link between DRAM and host, which carries one transfer at a time."""

    def __init__(self, clock: Clock, latency_ns: int, bytes_per_s: int) -> None:
        self.clock = clock
        self.latency_ns = latency_ns
        self.bytes_per_s = bytes_per_s
        self.free = 0
        self.transfers: deque[tuple[int, Done]] = deque()  # (completion time, callback)
        self.completing = Alarm(clock, self.complete)

    def send(self, size: int, done: Done) -> None:
        """Transfer bytes after all transfers requested before."""
        self.free = max(self.free, self.clock.now) + size * 10**9 // self.bytes_per_s
        self.transfers.append((self.free + self.latency_ns, done))
        self.completing.set(self.transfers[0][0])

    def complete(self) -> None:
        """Schedule the next transfer, then report the completion of this one."""
        _, done = self.transfers.popleft()
        if self.transfers:
            self.completing.set(self.transfers[0][0])
        done()


@dataclass
class Window:
    """A range of the array that is read ahead."""

    number: int
    start: int
    end: int
    is_doomed: bool = False  # to be discarded on arrival
    waiting: list[tuple[int, Done]] = field(default_factory=list)  # (bytes, callback)


@dataclass
class Line:
    """Written sectors that are not yet on the array, by their sector number."""

    dirty: set[int] = field(default_factory=set)
    flying: set[int] = field(default_factory=set)

    @property
    def waits(self) -> bool:
        """Whether the line can be destaged."""
        return bool(self.dirty) and not self.flying


@dataclass
class Queued:
    """A request in the queue."""

    steps: Iterator[bool]  # yields as long as it has to wait: whether for DRAM to be drained
    done: Done  # called after the last step


class Controller(Front[ControllerParameters]):
    """A RAID controller in front of the slow tier."""

    def __init__(self, clock: Clock, parameters: ControllerParameters, array: Store) -> None:
        super().__init__(clock, parameters, array)
        self.link = Link(clock, parameters.latency_ns, parameters.rate)
        self.windows: dict[int, Window] = {}
        self.recent: OrderedDict[int, None] = OrderedDict()  # windows read, most recent last
        self.runs = Runs(parameters.streams)
        self.lines: dict[int, Line] = {}
        self.waiting: list[int] = []  # lines that wait, longest first
        self.queue: deque[Queued] = deque()
        self.drains = self.flushes = False  # for the first request of the queue
        self.last = 0  # time of the last request
        self.row = 0  # row of the last destage
        self.destages = 0  # destages under way
        self.is_crowded = False
        self.timer = Alarm(clock, self.go_on)

    @property
    def is_idle(self) -> bool:
        """Whether every request is complete, including those to the array."""
        return self.outstanding == 0 and self.array.is_idle

    def submit(self, op: int, offset: int, length: int, done: Done) -> None:
        """Answer from DRAM what is there, or may be; pass the rest on to the array."""
        self.last = self.clock.now
        self.outstanding += 1

        def complete() -> None:
            self.outstanding -= 1
            done()

        kind = Op(op & OP_MASK)
        if kind == Op.FLUSH or length == 0:
            self.flush(complete)
        elif kind == Op.READ:
            self.read(op, offset, length, complete)
        elif kind == Op.WRITE and self.parameters.lines:
            self.write(op, offset, length, complete)
        else:
            if kind == Op.DISCARD:
                self.discard(offset, offset + length)

            def passed() -> None:
                self.invalidate(offset, offset + length)
                complete()

            self.array.submit(op, offset, length, passed)
            self.go_on()

    # Reads.

    def read(self, op: int, offset: int, length: int, done: Done) -> None:
        """Read sectors from DRAM, pending windows or the array; read ahead of sequential runs."""
        sectors = touched(offset, offset + length, SECTOR)
        parts = Parts(done)
        in_dram = 0
        missing: list[int] = []
        coming: Counter[int] = Counter()
        for sector in sectors:
            window = self.window_of(sector)
            if self.is_written(sector):
                in_dram += SECTOR
            elif window is None:
                missing.append(sector)
            elif window.number in self.recent:
                self.recent.move_to_end(window.number)
                in_dram += SECTOR
            else:
                coming[window.number] += SECTOR
        for number, count in coming.items():
            self.windows[number].waiting.append((count, parts.another()))
        end = sectors.stop * SECTOR
        for number in touched(offset, end, self.parameters.window_bytes):
            if number in self.windows and self.windows[number].end <= end:
                self.drop_window(number)
        if in_dram:
            self.link.send(in_dram, parts.another())
        if missing:
            start = max(offset, missing[0] * SECTOR)
            stop = min(offset + length, (missing[-1] + 1) * SECTOR)
            self.array.submit(op, start, stop - start, parts.another())
        self.counters["dram_read_bytes"] += in_dram
        self.counters["waited_bytes"] += coming.total()
        if self.parameters.windows:
            run = self.runs.extend(offset, length)
            if run.requests >= self.parameters.sequential_after:
                self.read_ahead(end)

    def is_written(self, sector: int) -> bool:
        """Whether a sector is in the write-back DRAM."""
        line = self.lines.get(sector * SECTOR // self.parameters.line_bytes)
        return line is not None and (sector in line.dirty or sector in line.flying)

    def window_of(self, sector: int) -> Window | None:
        """Return the window that holds a sector or will hold it, or None."""
        window = self.windows.get(sector * SECTOR // self.parameters.window_bytes)
        if window is None or window.is_doomed or sector * SECTOR < window.start:
            return None
        return window

    def read_ahead(self, at: int) -> None:
        """Request the following windows, as far as there is room for them."""
        p = self.parameters
        stop = min(at + p.read_ahead_bytes, self.capacity_bytes)
        if at >= stop:
            return
        for number, start, _ in split(at, stop, p.window_bytes):
            if number in self.windows:
                continue
            if len(self.windows) == p.windows:
                if not self.recent:
                    return
                victim, _ = self.recent.popitem(last=False)
                del self.windows[victim]
            end = min((number + 1) * p.window_bytes, self.capacity_bytes)
            window = self.windows[number] = Window(number, start, end)
            self.counters["ahead_bytes"] += end - start
            self.array.submit(Op.READ, start, end - start, partial(self.arrived, window))

    def arrived(self, window: Window) -> None:
        """Send what waits for a window that is read."""
        for size, done in window.waiting:
            self.link.send(size, done)
        if window.is_doomed:
            del self.windows[window.number]
        else:
            self.recent[window.number] = None

    def drop_window(self, number: int) -> None:
        """Drop a window."""
        window = self.windows[number]
        if number in self.recent:
            del self.windows[number]
            del self.recent[number]
        else:
            window.is_doomed = True

    def invalidate(self, start: int, end: int) -> None:
        """Drop the windows that overlap a range."""
        size = self.parameters.window_bytes
        for number in list(self.windows):
            if number * size < end and start < self.windows[number].end:
                self.drop_window(number)

    # Writes.

    def flush(self, done: Done) -> None:
        """Make all completed writes durable."""
        if not self.parameters.lines:
            self.array.submit(Op.FLUSH, 0, 0, done)
        elif self.parameters.protected:
            self.link.send(0, done)
        else:
            self.queue.append(Queued(self.draining(), done))
            self.go_on()

    def write(self, op: int, offset: int, length: int, done: Done) -> None:
        """Queue a write into DRAM."""
        parts = Parts(done)
        steps = self.writing(op, offset, length, parts)
        self.queue.append(Queued(steps, parts.another()))
        self.go_on()

    def writing(self, op: int, offset: int, length: int, parts: Parts) -> Iterator[bool]:
        """Mark sectors dirty as there is room for their lines, with drains as the flags require."""
        p = self.parameters
        if op & PREFLUSH and not p.protected:
            yield from self.draining()
        for sector in touched(offset, offset + length, SECTOR):
            number = sector * SECTOR // p.line_bytes
            while number not in self.lines and len(self.lines) == p.lines:
                yield False
            line = self.lines.setdefault(number, Line())
            self.counters["write_back_bytes"] += SECTOR
            self.counters["overwritten_bytes"] += SECTOR * (sector in line.dirty)
            line.dirty.add(sector)
            self.note_waiting(number)
        self.link.send(length, parts.another())
        if op & FUA and not p.protected:
            yield from self.draining()

    def draining(self) -> Iterator[bool]:
        """Wait until DRAM holds no written data, then for a FLUSH of the array."""
        while self.lines:
            yield True
        self.flushes = True
        self.array.submit(Op.FLUSH, 0, 0, self.flushed)
        while self.flushes:
            yield True

    def flushed(self) -> None:
        """Go on with the first request, and all others before its callback."""
        self.flushes = False
        first = self.queue[0]
        is_over = self.ends()
        self.go_on()
        if is_over:
            first.done()

    def ends(self) -> bool:
        """Go on with the first request; return whether it was over, and left the queue."""
        waits = next(self.queue[0].steps, None)
        self.drains = waits is True
        if waits is None:
            self.queue.popleft()
        return waits is None

    def discard(self, start: int, end: int) -> None:
        """Drop the dirty sectors that a range covers entirely."""
        whole = covered(start, end, SECTOR)
        for number, line in list(self.lines.items()):
            dropped = {sector for sector in line.dirty if sector in whole}
            line.dirty -= dropped
            self.counters["discarded_bytes"] += len(dropped) * SECTOR
            self.note_waiting(number)

    def note_waiting(self, number: int) -> None:
        """Update the list of waiting lines; delete an empty line."""
        line = self.lines[number]
        if line.waits and number not in self.waiting:
            self.waiting.append(number)
        elif not line.waits and number in self.waiting:
            self.waiting.remove(number)
        if not line.dirty and not line.flying:
            del self.lines[number]

    # Destaging.

    def go_on(self) -> None:
        """Serve the queue, destage, and set the idle timer."""
        p = self.parameters
        while self.queue:
            first = self.queue[0]
            if not self.ends():
                break
            first.done()
        if not self.lines:
            self.is_crowded = False
            return
        if len(self.lines) >= p.high_lines:
            self.is_crowded = True
        if len(self.lines) <= p.low_lines:
            self.is_crowded = False
        idle = self.clock.now - self.last >= p.idle_ns
        if self.is_crowded or idle or self.drains:
            for _ in range(2):
                if self.destages < p.max_destages and self.waiting:
                    in_turn(self.destaging(self.choose_row()))
        if p.idle_ns < NEVER and not idle:
            self.timer.set(self.last + p.idle_ns)

    def row_of(self, line: int) -> int:
        """Return the array row of a line."""
        return line * self.parameters.line_bytes // self.parameters.stripe_bytes

    def choose_row(self) -> int:
        """Return the row of the line waiting longest, or the next row in order of address."""
        if len(self.lines) > self.parameters.oldest_above_lines:
            return self.row_of(self.waiting[0])
        rows = {self.row_of(line) for line in self.waiting}
        return min(rows, key=lambda row: (row < self.row, row))

    def destaging(self, row: int) -> Iterator[Step]:
        """Write the first run of dirty sectors of a row to the array."""
        p = self.parameters
        self.row = row
        sectors = {s for n in self.waiting if self.row_of(n) == row for s in self.lines[n].dirty}
        start, end = next(runs(sectors))
        numbers = touched(start * SECTOR, end * SECTOR, p.line_bytes)
        for number in numbers:
            line = self.lines[number]
            line.flying = line.dirty & set(range(start, end))
            line.dirty -= line.flying
            self.note_waiting(number)
        length = (end - start) * SECTOR
        self.destages += 1
        self.counters["destages"] += 1
        self.counters["destaged_bytes"] += length
        self.counters["full_stripes"] += length == p.stripe_bytes
        yield partial(self.array.submit, Op.WRITE, start * SECTOR, length)
        self.destages -= 1
        for number in numbers:
            self.lines[number].flying = set()
            self.note_waiting(number)
        self.invalidate(start * SECTOR, end * SECTOR)
        self.go_on()
