"""The warm start of a page cache (2.3.5): what it keeps, and what it loads from the disks."""

from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Done, Parts
from hybridsim.reference.limits import Bucket
from hybridsim.reference.page import Page, State
from hybridsim.reference.parameters import LimitParameters

if TYPE_CHECKING:
    from hybridsim.reference.cache import PageCache


class Preloader:
    """Loads the pages of a list in the background, if there is one."""

    def __init__(self, cache: "PageCache") -> None:
        self.cache = cache
        self.clock = cache.clock
        self.parameters = cache.parameters
        self.left = list(cache.parameters.preload)
        self.bucket: Bucket | None = None
        if cache.parameters.preload_rate:
            self.bucket = Bucket(LimitParameters([Op.READ], 1, cache.parameters.preload_rate))

    def start(self) -> None:
        """Have what was kept, and see to it that the rest is loaded."""
        cache = self.cache
        for number, valid in self.parameters.kept:
            page = cache.page(number)
            page.valid = {granule for granule in range(64) if valid >> granule & 1}
            page.slot = cache.slots.take()
            page.state = State.PRESENT
            page.is_fresh = True
            cache.counters["pages_kept"] += 1
            cache.replacement.missed(number)
            cache.replacement.admit(number)
        if self.left:
            self.clock.at(self.parameters.preload_idle_ns, self.go_on)

    @property
    def quiet(self) -> int:
        """From when on the time counts as idle, unless a request comes."""
        return self.cache.cleaner.last + self.parameters.preload_idle_ns

    def go_on(self) -> None:
        """Begin a round if that may be, or look again later."""
        now = self.clock.now
        if self.cache.slow.is_idle and self.quiet <= now:
            self.begin()
        elif self.bucket is not None and self.bucket.free <= now:
            length = self.begin()
            if length:
                self.bucket.charge(now, length)
        else:
            again = self.quiet if self.quiet > now else now + self.parameters.preload_idle_ns
            if self.bucket is not None:
                again = min(again, self.bucket.free)
            self.clock.at(again, self.go_on)

    def begin(self) -> int:
        """Begin a round of reads; returns how many bytes, 0 if it is over."""
        round_pages: list[Page] = []
        parts = Parts(lambda: self.write(round_pages))
        total = 0
        for _ in range(self.parameters.preload_reads):
            pages = self.next_pages()
            if not pages:
                break
            round_pages += pages
            start = pages[0].start
            length = pages[-1].sizes.page_end(pages[-1].number) - start
            total += length
            self.cache.counters["preload_reads"] += 1
            self.cache.counters["preload_bytes"] += length
            self.read(pages, start, length, parts.another())
        return total

    def next_pages(self) -> list[Page]:
        """Take the next pages that have no slot and can be read in one go."""
        pages: list[Page] = []
        while self.left:
            page = self.cache.page(self.left[0])
            if page.state == State.ABSENT:
                if pages and not self.joins(pages, page):
                    break
                if not self.cache.slots.have_one:
                    break
                self.take(page)
                pages.append(page)
            self.left.pop(0)
        return pages

    def joins(self, pages: list[Page], page: Page) -> bool:
        """Tell whether a page can be read in one go with some before it."""
        size = self.parameters.page_bytes
        hole = (page.number - pages[-1].number - 1) * size
        whole = (page.number - pages[0].number + 1) * size
        return (
            0 <= hole <= self.parameters.preload_gap_bytes
            and whole <= self.parameters.preload_chunk_bytes
        )

    def take(self, page: Page) -> None:
        """Give a page a slot, to be filled by a read that begins."""
        self.cache.replacement.missed(page.number)
        page.slot = self.cache.slots.take()
        page.state = State.FILLING
        page.filling = page.granules
        page.is_being_filled = page.is_being_preloaded = page.is_fresh = True

    def read(self, pages: list[Page], start: int, length: int, done: Done) -> None:
        """Read a range that has these pages."""
        self.cache.slow.submit(Op.READ, start, length, done)

    def write(self, pages: list[Page]) -> None:
        """Write what was not overwritten since to the slots; then go on."""
        for page in pages:
            self.cache.fills.write(page, lambda: None)
        self.go_on()
