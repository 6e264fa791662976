"""The served cache: requests of clients, carried out on the two devices as the page cache decides.

Only clean copies are ever on the fast device.  An error of it costs the copies that it concerns:
reads continue on the slow device.  After ERRORS_MAX of them it is left alone.

Reads and writes of a device that overlap are carried out in order of submission, others in
parallel.  So each device has the contents that it would have if all took effect when they were
submitted, which the cache assumes (DESIGN.md 2.3).
"""

from __future__ import annotations

import errno
import mmap
import os
import queue
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hybridsim.answers.measurements.own_json import SERVED
from hybridsim.engine.serving import FAST, SLOW, Decisions, Order
from hybridsim.foundation.codes import FUA, OP_MASK, Op, Path
from hybridsim.foundation.prometheus import Metric, exposition
from hybridsim.serving.claims import Claim
from hybridsim.serving.nbd import Remote

OPS = ("read", "write", "discard", "flush")  # by codes.Op
READS = ("read_hits", "read_misses", "read_bypasses")  # bypasses are among the misses
SAMPLED = (*READS, "writes", "fills_done", "evictions", "pages_present")


class Figures:
    """Totals since the start; changed with the lock of the cache held."""

    def __init__(self, decisions: Decisions) -> None:
        """Begin with zeros."""
        self.decisions = decisions
        self.start_ns = time.monotonic_ns()
        self.start_unix_ns = time.time_ns()
        self.requests = [0] * len(OPS)
        self.bytes = [0] * len(OPS)
        self.failed = [0] * len(OPS)
        self.latency_sum_ns = [0] * len(OPS)
        self.read_hits = self.read_bypasses = 0
        self.fast_errors = self.slow_errors = 0
        self.detached_because = ""
        self.pages_warm = 0  # kept from before a restart
        self._series: list[tuple[int, ...]] = []
        self.sample()

    @property
    def is_detached(self) -> bool:
        """Whether the fast device is no longer used."""
        return self.detached_because != ""

    def add(self, op: int, length: int, begin_ns: int, error: int, path: int) -> None:
        """Count an answered request; `path` is the way that it took (codes.Path)."""
        self.requests[op] += 1
        self.bytes[op] += length
        self.failed[op] += error != 0
        self.latency_sum_ns[op] += time.monotonic_ns() - begin_ns
        self.read_hits += op == Op.READ and path == Path.HIT
        self.read_bypasses += op == Op.READ and path == Path.BYPASS

    def counters(self) -> dict[str, int]:
        """Return the counters of the cache, by the names that a simulation has for them."""
        return self.decisions.cache.totals()

    def sample(self) -> None:
        """Record the counters of now."""
        counters = self.counters()
        now = [self.read_hits, self.requests[Op.READ] - self.read_hits, self.read_bypasses]
        now += [self.requests[Op.WRITE], *(counters[name] for name in SAMPLED[4:])]
        self._series.append((time.monotonic_ns() - self.start_ns, *now))

    def document(self, setting: dict[str, Any]) -> dict[str, Any]:
        """Return all figures as a JSON document; `setting` says what is served."""
        self.sample()
        columns = [list(each) for each in zip(*self._series)]
        return {
            "schema": SERVED,
            **setting,
            "start_unix_ns": self.start_unix_ns,
            "seconds": (time.monotonic_ns() - self.start_ns) / 1e9,
            "requests": {
                name: {
                    "n": self.requests[op],
                    "bytes": self.bytes[op],
                    "failed": self.failed[op],
                    "mean_ns": self.latency_sum_ns[op] / max(self.requests[op], 1),
                }
                for op, name in enumerate(OPS)
            },
            "read_hits": self.read_hits,
            "read_bypasses": self.read_bypasses,
            "counters": self.counters(),
            "pages_warm": self.pages_warm,
            "fast_errors": self.fast_errors,
            "slow_errors": self.slow_errors,
            "detached_because": self.detached_because or None,
            "series": dict(zip(("time_ns", *SAMPLED), columns)),
        }

    def prometheus(self) -> str:
        """Return the totals in Prometheus' text format."""

        def by_op(values: list[Any]) -> list[Any]:
            return [({"op": name}, value) for name, value in zip(OPS, values)]

        counters, seconds = self.counters(), [each / 1e9 for each in self.latency_sum_ns]
        errors = [({"device": "fast"}, self.fast_errors), ({"device": "slow"}, self.slow_errors)]
        metrics: list[Metric] = [
            ("requests_total", "Requests answered.", by_op(self.requests)),
            ("bytes_total", "Bytes of these requests.", by_op(self.bytes)),
            ("failed_requests_total", "Requests answered by an error.", by_op(self.failed)),
            ("latency_seconds_total", "Time from arrival to answer of all requests.",
             by_op(seconds)),
            ("read_hits_total", "Reads of which the fast device had every byte.", self.read_hits),
            ("device_errors_total", "Failed reads and writes of a device.", errors),
            ("detached", "1 if the fast device is no longer used, as it failed.",
             int(self.is_detached)),
            ("pages_present", "Pages on the fast device.", counters["pages_present"]),
            ("pages", "Pages that the fast device has room for.", self.decisions.cache.pages),
            ("fills_total", "Pages copied to the fast device.", counters["fills_done"]),
            ("evictions_total", "Pages evicted for others.", counters["evictions"]),
        ]  # fmt: skip
        return exposition((f"serve_{name}", text, values) for name, text, values in metrics)


def buffer(length: int) -> memoryview:
    """Return zeroed memory that begins at a memory page, as direct I/O needs it."""
    return memoryview(mmap.mmap(-1, length)) if length else memoryview(b"")


Device = Claim | Remote
"""A claimed device or file, or an NBD export; errors are OSErrors."""


class Medium:
    """A device from `start` on."""

    def __init__(self, device: Device, start: int = 0) -> None:
        """Serve from a claimed device; `start` is in bytes."""
        self.device, self.start = device, start
        self.size_bytes = device.size_bytes - start

    def read(self, where: memoryview, offset: int) -> None:
        """Fill memory; raise OSError."""
        self.device.read(where, self.start + offset)

    def write(self, data: memoryview, offset: int, durable: bool = False) -> None:
        """Write memory, to the medium itself if `durable`; raise OSError."""
        self.device.write(data, self.start + offset, durable)

    def flush(self) -> None:
        """Wait until all completed writes are on the medium; raise OSError."""
        self.device.flush()

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the device can; its contents may be anything afterwards."""
        self.device.discard(self.start + offset, length)

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return bytes from the beginning of the device, not from `start`; raise OSError."""
        block = self.device.block_bytes
        first, end = offset // block * block, -(-(offset + length) // block) * block
        where = buffer(end - first)
        self.device.read(where, first)
        return bytes(where[offset - first : offset - first + length])


@dataclass(eq=False)
class Job:
    """An order with its data."""

    order: Order
    data: memoryview
    error: int = 0  # errno
    is_void: bool = False  # a read of what a failed write should have written
    waits: int = 0  # jobs that it waits for
    followers: list[Job] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Whether it changes the contents of its range."""
        return self.order.op & OP_MASK in (Op.WRITE, Op.DISCARD)

    def carry_out(self, medium: Medium) -> None:
        """Do it; `error` is set on failure."""
        op, at = self.order.op & OP_MASK, self.order.offset
        try:
            if op == Op.READ:
                medium.read(self.data, at)
            elif op == Op.WRITE:
                medium.write(self.data, at, bool(self.order.op & FUA))
            elif op == Op.FLUSH:
                medium.flush()
            else:
                medium.discard(at, self.order.length)
                if self.order.op & FUA:
                    medium.flush()
        except OSError as error:
            self.error = error.errno or errno.EIO


class Line:
    """The jobs of a device that are not complete."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def add(self, job: Job) -> bool:
        """Append a job; return whether it can be carried out now."""
        begin, end = job.order.offset, job.order.offset + job.order.length
        for other in self._jobs:
            at = other.order.offset
            if at < end and begin < at + other.order.length and (job.changes or other.changes):
                other.followers.append(job)
                job.waits += 1
        self._jobs.append(job)
        return job.waits == 0

    def end(self, job: Job) -> list[Job]:
        """Remove a job; return those that can be carried out now.

        What overlaps a failed write is unknown: later reads of it are void.
        """
        self._jobs.remove(job)
        for each in job.followers:
            each.waits -= 1
            each.is_void |= bool(job.error) and job.changes and not each.changes
        return [each for each in job.followers if each.waits == 0]


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

    def take_from(self, job: Job) -> None:
        """Copy what the client wants of a read of the disk that was wider."""
        wanted = self.within(job.order)
        if wanted.length < job.order.length:
            begin = wanted.at - job.order.at
            self.part(wanted.at, wanted.length)[:] = job.data[begin : begin + wanted.length]

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
            if self.figures.is_detached:
                request.passes = True
                orders = [Order(SLOW, slot << 3, op | flags, offset, length, offset)]
            else:
                orders = self.decisions.submit(now_ns, slot, number, op, flags, offset, length)
                if self.decisions.is_wrong():
                    why = "the replacement policy chose a page that is not cached"
                    self.figures.detached_because = why
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
                if len(part) == page_bytes:
                    image = part
                else:  # the last page of the volume
                    image[: len(part)] = part
            self._images[page] = image
        at = order.at % page_bytes
        return self._images[page][at : at + order.length]

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            tier = job.order.tier
            if tier == FAST and (job.is_void or self.figures.is_detached):
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
                self._requests[order.slot].take_from(job)
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
        figures = self.figures
        request = self._requests.get(order.slot)
        instead = None
        if order.tier == FAST:
            if not job.is_void and not figures.is_detached:
                figures.fast_errors += 1
                if figures.fast_errors >= ERRORS_MAX:
                    last = os.strerror(job.error)
                    figures.detached_because = f"it had {ERRORS_MAX} errors; the last: {last}"
            if order.op & OP_MASK == Op.READ:
                instead = order._replace(tier=SLOW, offset=order.at)
        else:
            figures.slow_errors += 1
            if request is not None and request.within(order).length < order.length:
                instead = request.within(order)
            elif request is not None:
                request.error = job.error
        if order.length and not (request and request.passes):
            self.decisions.drop(time.monotonic_ns(), order.at, order.length)
        return instead


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
