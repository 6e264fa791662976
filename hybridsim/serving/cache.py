"""The served cache: requests of clients, carried out on the two devices as the page cache decides.

Only clean copies are ever on the fast device.  An error of it costs the copies that it concerns:
reads continue on the slow device.  After ERRORS_MAX of them it is left alone.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from hybridsim.engine.serving import FAST, SLOW, Decisions, Order
from hybridsim.foundation.codes import OP_MASK, Op, Path
from hybridsim.serving.figures import Figures
from hybridsim.serving.lines import Job, Line, Medium, buffer

ERRORS_MAX = 16  # of the fast device
NOTHING = -1
FAULT = 70  # exit code: an error of the program itself
Answer = Callable[[int], None]  # receives 0 or an errno


@dataclass
class Request:
    """A request of a client, from its arrival to its answer."""

    op: int  # codes.Op
    offset: int
    data: memoryview  # to be written or, of a read, to be filled
    answer: Answer
    begin_ns: int
    length: int
    passes: bool = False  # the cache does not see it
    error: int = 0  # errno
    wide: list[tuple[int, memoryview]] = field(default_factory=list)  # reads of whole pages

    def part(self, at: int, length: int) -> memoryview:
        """Return the data of a range of the volume."""
        return self.data[at - self.offset : at - self.offset + length]

    def within(self, order: Order) -> Order:
        """Return what the client wants of a read of the disk that is wider."""
        begin = max(order.at, self.offset)
        end = min(order.at + order.length, self.offset + self.length)
        return order._replace(offset=begin, length=end - begin, at=begin)

    def whole(self, at: int, length: int) -> memoryview:
        """Return the data of a page, which was read or is to be written; shorter at the end."""
        for begin, data in self.wide:
            if begin <= at < begin + len(data):
                return data[at - begin : at - begin + length]
        return self.part(at, length)


class ServedCache:
    """A volume whose data are on a slow device, with copies on a fast one.  For several threads."""

    def __init__(
        self, decisions: Decisions, slow: Medium, fast: Medium, slots: int, threads: int
    ) -> None:
        """Start `threads` threads that read and write; `slots` is that of `decisions`."""
        self.figures = Figures(decisions)
        self.decisions = decisions
        self._media = {SLOW: slow, FAST: fast}
        self._lines = {SLOW: Line(), FAST: Line()}
        self._requests: dict[int, Request] = {}  # by slot
        self._free = list(range(slots))
        self._images: dict[int, memoryview] = {}  # data of pages that are being filled, by page
        self._lock = threading.Lock()
        self._has_room = threading.Condition(self._lock)
        self._count = 0
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=all_or_nothing(self._work), daemon=True, name=f"i/o {number}")
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def is_detached(self) -> bool:
        """Whether the fast device is no longer used, as it failed too often."""
        return self.figures.is_detached

    def submit(
        self, op: int, flags: int, offset: int, length: int, data: memoryview, answer: Answer
    ) -> None:
        """Start a request; `answer` is called in another thread.  Waits while there are too many.

        `data` must not change before the answer, nor after it if it was written.
        """
        with self._has_room:
            while not self._free:
                self._has_room.wait()
            slot = self._free.pop()
            now_ns = time.monotonic_ns()
            request = Request(op, offset, data, answer, now_ns, length)
            self._requests[slot] = request
            number, self._count = self._count, self._count + 1
            if self.is_detached:
                request.passes = True
                orders = [Order(SLOW, slot << 3, op | flags, offset, length, offset)]
            else:
                orders = self.decisions.submit(now_ns, slot, number, op, flags, offset, length)
                if self.decisions.is_wrong():
                    self._detach("the replacement policy chose a page that is not cached")
            ready = self._taken(orders, request)
        for job in ready:
            self._jobs.put(job)

    def drain(self) -> None:
        """Wait until no request and no fill is in progress, and end the threads.

        Nothing may be submitted any more.
        """
        with self._has_room:
            while self._requests or self._images:
                self._has_room.wait()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _taken(self, orders: list[Order], request: Request | None) -> list[Job]:
        """Make jobs of orders, and return those that need not wait for others.

        `request` has the data of pages that are filled without being read.
        """
        ready = []
        for order in orders:
            job = Job(order, self._data(order, request))
            if self._lines[order.tier].add(job):
                ready.append(job)
        return ready

    def _data(self, order: Order, request: Request | None) -> memoryview:
        page, op = order.page, order.op & OP_MASK
        if op not in (Op.READ, Op.WRITE):
            return memoryview(b"")
        if page == NOTHING:
            mine = self._requests[order.slot]
            if mine.within(order).length < order.length:
                mine.wide.append((order.at, buffer(order.length)))
                return mine.wide[-1][1]
            return mine.part(order.at, order.length)
        page_bytes = self.decisions.page_bytes
        if page not in self._images:
            image = buffer(page_bytes)
            if op == Op.WRITE:
                assert request is not None
                part = request.whole(order.at, page_bytes)
                image = part if len(part) == page_bytes else _padded(part, image)
            self._images[page] = image
        at = order.at % page_bytes
        return self._images[page][at : at + order.length]

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            tier = job.order.tier
            if tier == FAST and (job.is_void or self.is_detached):
                job.error = errno.EIO
            else:
                job.carry_out(self._media[tier])
            self._end(job)

    def _end(self, job: Job) -> None:
        """Take a job that was carried out: continue what it is a part of."""
        order, done = job.order, None
        with self._has_room:
            ready = self._lines[order.tier].end(job)
            instead = self._failed(job) if job.error else None
            if not job.error and order.page == NOTHING and order.op & OP_MASK == Op.READ:
                self._hand_over(job)
            if instead is not None:
                ready += self._taken([instead], None)
            else:
                slot, more = self._continued(order)
                ready += more
                if slot != NOTHING:
                    done = self._requests.pop(slot)
                    self._free.append(slot)
                    path = Path.BYPASS if done.passes else self.decisions.path(slot)
                    self.figures.add(done.op, done.length, done.begin_ns, done.error, path)
            self._has_room.notify_all()
        for each in ready:
            self._jobs.put(each)
        if done is not None:
            done.answer(done.error)

    def _hand_over(self, job: Job) -> None:
        """Give a request its part of a read that was wider."""
        request = self._requests[job.order.slot]
        wanted = request.within(job.order)
        if wanted.length < job.order.length:
            begin = wanted.at - job.order.at
            request.part(wanted.at, wanted.length)[:] = job.data[begin : begin + wanted.length]

    def _continued(self, order: Order) -> tuple[int, list[Job]]:
        """Return the slot of a request that is complete now, or -1, and the jobs that follow."""
        request = self._requests.get(order.slot)
        if request is not None and request.passes:
            return order.slot, []
        slot, orders = self.decisions.complete(time.monotonic_ns(), order.tag)
        jobs = self._taken(orders, request)
        if order.page != NOTHING and not any(each.page == order.page for each in orders):
            del self._images[order.page]  # the fill has ended
        return slot, jobs

    def _failed(self, job: Job) -> Order | None:
        """Drop the copies that a failed job concerns; return what is to be done instead of it.

        A read is served by the slow device then, one that was wider once more without what only the
        cache wanted.  Its other errors are the client's.
        """
        order = job.order
        request = self._requests.get(order.slot)
        instead = None
        if order.tier == FAST:
            self._count_error(job)
            if order.op & OP_MASK == Op.READ:
                instead = order._replace(tier=SLOW, offset=order.at)
        else:
            self.figures.slow_errors += 1
            if request is not None and request.within(order).length < order.length:
                instead = request.within(order)
            elif request is not None:
                request.error = job.error
        if order.length and not (request and request.passes):
            self.decisions.drop(time.monotonic_ns(), order.at, order.length)
        return instead

    def _count_error(self, job: Job) -> None:
        if not job.is_void and not self.is_detached:
            self.figures.fast_errors += 1
            if self.figures.fast_errors >= ERRORS_MAX:
                self._detach(f"it had {ERRORS_MAX} errors; the last: {os.strerror(job.error)}")

    def _detach(self, why: str) -> None:
        self.figures.detached_because = why


def all_or_nothing(work: Callable[[], None]) -> Callable[[], None]:
    """Return the work of a thread; an unexpected error ends the process, as a crash would.

    That costs the copies, not data; a server without one of its threads would hang.
    """

    def run() -> None:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(FAULT)

    return run


def _padded(part: memoryview, whole: memoryview) -> memoryview:
    """Return `whole` with a part at its beginning: the last page of the volume."""
    whole[: len(part)] = part
    return whole
