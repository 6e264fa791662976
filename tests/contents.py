"""A page cache whose tiers hold contents: each byte is the number of the write that stored it.

A tier stores and returns data when a request is submitted: overlapping requests
take effect in the order of their submission (DESIGN.md 2.3).  Data that the cache holds
during a fill or a clean keep the contents that they had when they were read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scenarios import Scenario

from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.reference import Machine, PageCache
from hybridsim.reference.cache import Cleaner, Fills, Job, Page, Piece, Preloader, State
from hybridsim.reference.clock import Step

ANYTHING = -1  # contents after a discard
GARBAGE = -2  # contents that were never read
Bytes = Any


class Contents:
    """A tier that stores the contents that are written to it."""

    def __init__(self, tier: Any, size: int) -> None:
        self.tier = tier
        self.capacity_bytes = tier.capacity_bytes
        self.garbles = False  # discarded ranges
        self.bytes = np.zeros(size, np.int32)
        self.source: Callable[[int, int], Bytes] | None = None  # contents of the current write
        self.reads: list[tuple[int, Bytes]] = []
        self.submitted: list[int] = []  # ops

    @property
    def is_idle(self) -> bool:
        return self.tier.is_idle

    def submit(self, op: int, offset: int, length: int, done: Any) -> None:
        self.submitted.append(op)
        part = slice(offset, offset + length)
        if op & OP_MASK == Op.WRITE:
            assert self.source is not None
            self.bytes[part] = self.source(offset, length)
        elif op & OP_MASK == Op.READ:
            self.reads.append((offset, self.bytes[part].copy()))
        elif op & OP_MASK == Op.DISCARD and self.garbles:
            self.bytes[part] = GARBAGE
        self.tier.submit(op, offset, length, done)


class CheckedFills(Fills):
    """Fills that carry data."""

    def filling(self, page: Page, job: Job) -> Iterator[Step]:
        self.cache.image[page.number] = self.cache.in_hand(page, job)
        for step in super().filling(page, job):
            yield partial(self.read, page, step)

    def read(self, page: Page, step: Step, done: Any) -> None:
        reads = self.slow.reads
        before = len(reads)
        step(done)
        for offset, data in reads[before:]:
            if page.filling and offset == page.range_of(min(page.filling), 0)[0]:
                self.cache.image[page.number] = np.full(page.sizes.page_bytes, GARBAGE, np.int32)
            at = offset - page.start
            self.cache.image[page.number][at : at + len(data)] = data

    def writing(self, page: Page) -> Iterator[Step]:
        image = self.cache.image[page.number]
        for step in super().writing(page):
            yield partial(self.write, page, image, step)

    def write(self, page: Page, image: Bytes, step: Step, done: Any) -> None:
        with self.cache.writing(self.fast, lambda at, size: image[at - page.at :][:size]):
            step(done)


class CheckedCleaner(Cleaner):
    """Cleans that carry data."""

    def cleaning(self, page: Page) -> Iterator[Step]:
        steps, images = super().cleaning(page), {}
        yield partial(self.read, next(steps), images)
        self.order += sorted(images)
        for step in steps:
            yield partial(self.write, step, images)

    def read(self, step: Step, images: dict[int, Bytes], done: Any) -> None:
        size, before = self.cache.sizes.page_bytes, len(self.fast.reads)
        step(done)
        pages = {each.slot: each for each in self.cache.pages.values() if each.slot >= 0}
        for at, data in self.fast.reads[before:]:
            number = pages[at // size].number
            images.setdefault(number, np.full(size, GARBAGE, np.int32))
            images[number][at % size : at % size + len(data)] = data

    def write(self, step: Step, images: dict[int, Bytes], done: Any) -> None:
        start = min(images) * self.cache.sizes.page_bytes
        image = np.concatenate([images[number] for number in sorted(images)])
        with self.cache.writing(self.slow, lambda at, size: image[at - start :][:size]):
            step(done)


class CheckedPreloader(Preloader):
    """Preloads that carry data."""

    def read(self, pages: list[Page], done: Any) -> None:
        super().read(pages, done)
        start, data = self.slow.reads.pop()
        for page in pages:
            image = np.full(page.sizes.page_bytes, GARBAGE, np.int32)
            part = data[page.start - start :][: len(image)]
            image[: len(part)] = part
            self.cache.image[page.number] = image


class writing:  # noqa: N801 - a context, named as it reads
    """Within this context, data written to a tier come from `source`."""

    def __init__(self, tier: Contents, source: Callable[[int, int], Bytes]) -> None:
        self.tier, self.source = tier, source

    def __enter__(self) -> None:
        self.before, self.tier.source = self.tier.source, self.source

    def __exit__(self, *_: object) -> None:
        self.tier.source = self.before


class CheckedCache(PageCache):
    """Checks that every read returns the data of the last write."""

    writing = staticmethod(writing)

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.newest = np.zeros(self.slow.capacity_bytes, np.int32)
        self.slow = Contents(self.slow, self.slow.capacity_bytes)
        slots_bytes = self.parameters.pages * self.parameters.page_bytes
        self.fast = Contents(self.fast, max(slots_bytes, 1))
        self.fast.garbles = True
        self.fills = CheckedFills(self)
        self.cleaner = CheckedCleaner(self)
        self.cleaner.order = []  # of pages cleaned
        self.preloader = CheckedPreloader(self)
        self.image: dict[int, Bytes] = {}
        self.version = 0

    def submit(self, op: Op, offset: int, length: int, done: Any, flags: int = 0) -> Any:
        if op == Op.DISCARD:
            self.newest[offset : offset + length] = ANYTHING
        if op == Op.WRITE and self.parameters.pages == 0:
            return self.tagged(lambda: PageCache.submit(self, op, offset, length, done, flags))
        return super().submit(op, offset, length, done, flags)

    def tagged(self, action: Callable[[], Any]) -> Any:
        """Write data with a new version number."""
        self.version += 1
        version = self.version
        with writing(self.slow, lambda at, size: np.full(size, version)):
            return action()

    def write(self, job: Job, pieces: list[Piece]) -> None:
        job.version = self.version + 1
        self.newest[job.offset : job.offset + job.length] = job.version
        self.tagged(lambda: PageCache.write(self, job, pieces))

    def to_slow(self, job: Job, op: int, offset: int, length: int) -> None:
        if op & OP_MASK == Op.WRITE:
            version = self.version
            with writing(self.slow, lambda at, size: np.full(size, version)):
                super().to_slow(job, op, offset, length)
        else:
            super().to_slow(job, op, offset, length)
        if op == Op.READ:
            job.seen.append(self.slow.reads.pop())

    def to_fast(self, job: Job, op: int, piece: Piece) -> None:
        version = self.version
        with writing(self.fast, lambda at, size: np.full(size, version)):
            super().to_fast(job, op, piece)
        if op == Op.READ:
            job.seen.append((piece.start, self.fast.reads.pop()[1]))

    def read(self, job: Job, pieces: list[Piece]) -> Any:
        job.seen = []
        verdict = super().read(job, pieces)
        content = np.full(job.length, GARBAGE, np.int32)
        for offset, data in job.seen:
            first, last = max(offset, job.offset), min(offset + len(data), job.offset + job.length)
            content[first - job.offset : last - job.offset] = data[first - offset : last - offset]
        self.agree(content, slice(job.offset, job.offset + job.length))
        return verdict

    def in_hand(self, page: Page, job: Job) -> Bytes:
        """Return the bytes of a page that a request read or wrote."""
        image = np.full(page.sizes.page_bytes, GARBAGE, np.int32)
        is_write = job.op == Op.WRITE
        seen = [(job.offset, np.full(job.length, job.version))] if is_write else job.seen
        for offset, data in seen:
            first = max(offset, page.start)
            last = min(offset + len(data), page.start + len(image))
            if first < last:
                image[first - page.start : last - page.start] = data[first - offset : last - offset]
        return image

    def agree(self, data: Bytes, where: slice) -> None:
        """Compare bytes with the data of the last write."""
        wanted = self.newest[where]
        wrong = (data != wanted) & (wanted != ANYTHING)
        assert not wrong.any(), (where, data[wrong][:4], wanted[wrong][:4])

    def check(self) -> None:
        """Check that no data were lost: the newest version is where the next read gets it."""
        for page in self.pages.values():
            for granule in page.granules:
                start, end = page.range_of(granule, granule)
                where = slice(start, end)
                if granule in page.valid:
                    assert page.state == State.PRESENT
                    at = page.at + start - page.start
                    self.agree(self.fast.bytes[at : at + end - start], where)
                if granule not in page.dirty:
                    self.agree(self.slow.bytes[where], where)
        dirty = {page.number for page in self.pages.values() if page.dirty}
        assert dirty == self.cleaner.dirty


class CheckedMachine(Machine):
    """A machine whose page cache is checked."""

    def make_cache(self, parameters: Any) -> Any:
        admission = self.make_admission(parameters)
        replacement = self.make_replacement(parameters, admission)
        tiers = self.slow, self.tiers["fast"]
        return CheckedCache(admission, replacement, self.clock, parameters, *tiers)


def checked(scenario: Scenario) -> CheckedMachine:
    """Run a scenario; check every read when it is submitted, and all stored data at the end."""
    machine = CheckedMachine(
        scenario.requests,
        scenario.source,
        scenario.cache,
        scenario.slow,
        scenario.fast,
        scenario.host,
        scenario.controller,
    )
    machine.run()
    machine.cache.check()
    return machine
