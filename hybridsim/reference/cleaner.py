"""The cleaner of a page cache that writes back (2.3.4): dirty pages on their way to the disks."""

from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Op
from hybridsim.reference.clock import Parts
from hybridsim.reference.limits import Bucket
from hybridsim.reference.page import Page, runs
from hybridsim.reference.parameters import LimitParameters

if TYPE_CHECKING:
    from hybridsim.reference.cache import PageCache


class Cleaner:
    """Knows the dirty pages, and writes them to the slow tier in the background."""

    def __init__(self, cache: "PageCache") -> None:
        self.cache = cache
        self.clock = cache.clock
        self.parameters = cache.parameters
        self.dirty: set[int] = set()  # pages
        self.waiting: dict[int, Page] = {}  # those of which no clean is under way, oldest first
        self.under_way = 0
        self.is_limited = False
        self.last = 0  # when the last request came
        self.position = 0
        self.timers: set[str] = set()
        self.bucket: Bucket | None = None
        if cache.parameters.clean_rate:
            self.bucket = Bucket(LimitParameters([Op.WRITE], 1, cache.parameters.clean_rate))

    def has_dirtied(self, page: Page) -> None:
        """Hear that granules of a page became dirty."""
        if page.number not in self.dirty:
            self.dirty.add(page.number)
            self.is_limited |= len(self.dirty) >= self.parameters.dirty_high
        if not page.is_being_cleaned and page.number not in self.waiting:
            self.waiting[page.number] = page

    def has_cleaned(self, page: Page) -> None:
        """Hear that granules of a page may no longer be dirty."""
        if page.number in self.dirty and not page.dirty:
            self.dirty.remove(page.number)
            self.waiting.pop(page.number, None)
            self.is_limited &= len(self.dirty) > self.parameters.dirty_low

    @property
    def has_reason(self) -> bool:
        """Whether it is time to clean: many pages wait, or nothing else is to be done."""
        is_idle = self.clock.now - self.last >= self.parameters.idle_ns
        return is_idle or len(self.waiting) > self.parameters.clean_above

    @property
    def allowed_from(self) -> int:
        """When the rate allows the next clean."""
        return self.clock.now if self.bucket is None else max(self.clock.now, self.bucket.free)

    @property
    def can_begin(self) -> bool:
        """Whether a page waits and not too many are under way."""
        return bool(self.waiting) and self.under_way < self.parameters.cleans_max

    def go_on(self) -> None:
        """Begin what may be begun; see to it that this is looked at again."""
        while self.can_begin and self.has_reason and self.allowed_from <= self.clock.now:
            self.begin(self.choose())
        if self.can_begin:
            if self.has_reason:
                self.set_timer("rate", self.allowed_from)
            else:
                self.set_timer("idle", self.last + self.parameters.idle_ns)

    def set_timer(self, name: str, time: int) -> None:
        """Go on at that time, unless such a timer is set."""
        if name in self.timers:
            return
        self.timers.add(name)

        def come() -> None:
            self.timers.remove(name)
            self.go_on()

        self.clock.at(time, come)

    def choose(self) -> Page:
        """Choose the next in disk order among those that have waited for longest."""
        oldest = list(self.waiting.values())[: self.parameters.clean_window]
        ahead = [page for page in oldest if page.number >= self.position]
        return min(ahead or oldest, key=lambda page: page.number)

    def clean_at_once(self, page: Page) -> None:
        """Clean a page that is in the way."""
        if page.number in self.waiting and self.under_way < self.parameters.cleans_max:
            self.begin(page)

    def with_neighbours(self, page: Page) -> list[Page]:
        """The page with those before and behind it that can be written in one go."""
        pages = [page]
        while len(pages) < self.parameters.merge_pages:
            before = self.waiting.get(pages[0].number - 1)
            if before is None or not self.are_joined(before, pages[0]):
                break
            pages.insert(0, before)
        while len(pages) < self.parameters.merge_pages:
            behind = self.waiting.get(pages[-1].number + 1)
            if behind is None or not self.are_joined(pages[-1], behind):
                break
            pages.append(behind)
        return pages

    def are_joined(self, page: Page, next_page: Page) -> bool:
        """Tell whether both are dirty where they meet."""
        return max(page.granules) in page.dirty and 0 in next_page.dirty

    def begin(self, page: Page) -> None:
        """Begin a clean: read what is dirty from the fast tier."""
        fast = self.cache.fast
        assert fast is not None
        pages = self.with_neighbours(page)
        self.under_way += 1
        self.position = pages[-1].number + 1
        for each in pages:
            del self.waiting[each.number]
            each.is_being_cleaned = True
            each.flying = set(each.dirty)
        if self.bucket is not None:
            granules = sum(len(each.flying) for each in pages)
            self.bucket.charge(self.clock.now, granules * self.cache.sizes.granule_bytes)
        parts = Parts(lambda: self.write(pages))
        for each in pages:
            for first, last in runs(each.flying):
                start, end = each.range_of(first, last)
                fast.submit(Op.READ, each.at + start - each.start, end - start, parts.another())

    def write(self, pages: list[Page]) -> None:
        """Write what was not overwritten since, in as few pieces as it takes."""
        ranges: list[list[int]] = []
        for page in pages:
            for first, last in runs(page.flying):
                start, end = page.range_of(first, last)
                if ranges and ranges[-1][1] == start:
                    ranges[-1][1] = end
                else:
                    ranges.append([start, end])
        if not ranges:
            self.end(pages)
            return
        parts = Parts(lambda: self.end(pages))
        for start, end in ranges:
            self.cache.counters["write_backs"] += 1
            self.cache.counters["cleaned_bytes"] += end - start
            self.cache.slow.submit(Op.WRITE, start, end - start, parts.another())

    def end(self, pages: list[Page]) -> None:
        """Take what was written, and not overwritten since, as clean."""
        self.under_way -= 1
        for page in pages:
            page.is_being_cleaned = False
            page.dirty -= page.flying
            page.flying = set()
            self.has_cleaned(page)
            if page.dirty:
                self.waiting[page.number] = page
            self.cache.let_go(page)
        self.go_on()
