"""Fills of the page cache (2.3.2): what a miss makes it copy to the fast tier."""

from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Fill, Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.limits import Bucket
from hybridsim.reference.page import Page, Piece, State, runs
from hybridsim.reference.parameters import LimitParameters

if TYPE_CHECKING:
    from hybridsim.reference.cache import Job, PageCache

BURST_NS = 10**8


class Fills:
    """Begins fills as far as their number and their rate allow, and ends them."""

    def __init__(self, cache: "PageCache") -> None:
        self.cache = cache
        self.parameters = cache.parameters
        self.piggyback = cache.parameters.fill == Fill.PIGGYBACK
        self.under_way = 0
        self.bucket: Bucket | None = None
        if cache.parameters.fill_rate:
            self.bucket = Bucket(
                LimitParameters([Op.READ], 1, cache.parameters.fill_rate, BURST_NS)
            )

    def may_begin(self, piece: Piece) -> bool:
        """Tell whether a fill for a piece may begin, which is then paid for."""
        if self.under_way >= self.parameters.fills_max:
            return False
        if self.bucket is not None:
            now, size = self.cache.clock.now, self.parameters.page_bytes
            if self.bucket.free > now:
                self.cache.counters["fills_over_rate"] += 1
                return False
            if self.parameters.sub_page:
                size = len(piece.touched) * self.cache.sizes.granule_bytes
            self.bucket.charge(now, size)
        return True

    def begin(self, job: "Job", piece: Piece) -> None:
        """Reserve what is to be filled; the request does it when it is complete."""
        page = piece.page
        wanted = piece.touched if self.parameters.sub_page else page.granules
        page.filling = wanted - page.valid
        page.is_being_filled = True
        job.reserved.append(page)
        self.under_way += 1
        self.cache.counters["fills_started"] += 1

    def complete(self, job: "Job", piece: Piece) -> None:
        """Fill what a present page lacks, if that may be."""
        if not piece.page.is_being_filled and self.may_begin(piece):
            self.begin(job, piece)

    def fill(self, page: Page, job: "Job", done: Done) -> None:
        """Fill a page, with the data in hand if they are all that it takes."""

        def write() -> None:
            self.write(page, done)

        if not page.filling or (self.piggyback and job.op == Op.READ):
            write()
            return
        start, end = page.range_of(min(page.filling), max(page.filling))
        if job.offset <= start and end <= job.offset + job.length:
            write()
        else:
            self.read(page, start, write)

    def read(self, page: Page, start: int, done: Done) -> None:
        """Read what is still to be filled from a place on, piece by piece."""
        end = page.range_of(max(page.filling), max(page.filling))[1] if page.filling else 0
        if start >= end:
            done()
            return
        length = min(end - start, self.parameters.fill_piece_bytes or end - start)

        def go_on() -> None:
            self.read(page, start + length, done)

        self.cache.slow.submit(Op.READ, start, length, go_on)

    def write(self, page: Page, done: Done) -> None:
        """Write what is still to be filled to the slot."""

        def ended() -> None:
            self.end(page)
            done()

        if not page.filling:
            ended()
            return
        assert self.cache.fast is not None
        parts = Parts(ended)
        for first, last in runs(page.filling):
            start = self.cache.sizes.granule_start(first)
            size = self.cache.sizes.granule_start(last + 1) - start
            self.cache.fast.submit(Op.WRITE, page.at + start, size, parts.another())

    def end(self, page: Page) -> None:
        """Take what was filled as valid, unless it was overwritten meanwhile."""
        is_doomed = not page.filling
        if page.is_being_preloaded:
            self.cache.counters["preloads_doomed" if is_doomed else "pages_preloaded"] += 1
        else:
            self.under_way -= 1
            self.cache.counters["fills_doomed" if is_doomed else "fills_completed"] += 1
        page.is_being_filled = page.is_being_preloaded = False
        page.valid |= page.filling
        page.filling = set()
        if is_doomed:
            self.cache.let_go(page)
            return
        if page.state == State.FILLING:
            page.state = State.PRESENT
            self.cache.replacement.admit(page.number)
