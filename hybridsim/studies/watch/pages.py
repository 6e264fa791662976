"""Page caches of some sizes and policies, scaled down to a sample of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.pages import SPAN, Accesses, PageReads, accesses, hashed
from hybridsim.requests.rows import Requests
from hybridsim.studies.hits import Cache, Feed, check
from hybridsim.studies.page_sampling import NOT_SAMPLED, SMALL
from hybridsim.studies.watch.kept import regrown
from hybridsim.studies.watch.shadow import Shadow, share

PAGES_MAX = 1 << 16  # of the largest cache in its sample: bounds memory and time


class PageCaches:
    """The caches; all see the same sample."""

    def __init__(self, sizes: list[int], policies: list[str], page_bytes: int) -> None:
        """Create empty caches; raise UsageError for sizes or policies that cannot be sampled."""
        check({}, "always", policies)
        self.page_bytes = page_bytes
        largest = max(sizes) // page_bytes
        self.threshold = min(SPAN, SPAN * PAGES_MAX // max(largest, 1))
        self.rate = self.threshold / SPAN
        smallest = min(sizes) // page_bytes
        if smallest * self.rate < SMALL:
            raise UsageError(
                f"--cache-size {human_size(min(sizes))} is too small beside "
                f"{human_size(max(sizes))}: a cache needs {SMALL} pages of the sample; watch them "
                "separately, or take smaller pages (--page)"
            )
        for each in policies:
            if self.rate < 1 and each in NOT_SAMPLED:
                raise UsageError(
                    f"policy {each} {NOT_SAMPLED[each]}: watch caches of at most "
                    f"{human_size(PAGES_MAX * page_bytes)}"
                )
        self._which = [(policy, size) for policy in policies for size in sizes]
        self._caches = [
            Cache("always", policy, max(round(size // page_bytes * self.rate), 1), page_bytes)
            for policy, size in self._which
        ]
        self._feed = Feed(self._caches)
        self._before = [(0, 0)] * len(self._caches)

    def take(self, rows: Requests) -> None:
        """Process requests."""
        for part in accesses(_Chunk(rows), self.page_bytes):
            assert isinstance(part, Accesses)
            numbers = part.numbers
            if self.rate < 1:
                numbers = numbers[hashed(numbers) < self.threshold]
            if len(numbers):
                self._feed.take(PageReads(numbers, self.page_bytes))

    def now(self) -> list[Shadow]:
        """Return the state of the caches; a new interval begins."""
        out = []
        for (policy, size), cache, before in zip(self._which, self._caches, self._before):
            served, hits = cache.served()
            recent = share(hits - before[1], served - before[0])
            out.append(Shadow("page", policy, size, self.page_bytes, served, hits, recent))
        self._before = [each.served() for each in self._caches]
        return out

    def setting(self) -> list[Any]:
        """Return the page size and the caches."""
        return [self.page_bytes, [list(each) for each in self._which]]

    def state(self) -> Any:
        """Return the pages seen, all caches, and what they served before the interval."""
        return self._feed.numbers, tuple(each.state for each in self._caches), tuple(self._before)

    def go_on(self, state: list[Any]) -> None:
        """Continue with saved caches."""
        numbers, caches, before = regrown(self.state(), iter(state))
        self._feed.know(numbers)
        for cache, saved in zip(self._caches, caches):
            cache.state = saved
        self._before = list(before)


class _Chunk:
    """Some requests, as a trace."""

    name = "the stream"

    def __init__(self, rows: Requests) -> None:
        self._rows = rows

    def chunks(self) -> Iterator[Requests]:
        if self._rows.rows:
            yield self._rows
