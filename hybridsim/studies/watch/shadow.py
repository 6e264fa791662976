"""Simulated caches beside a running disk, and what they show.

PageCaches are of some sizes and policies, scaled down to a sample of the pages.  A KernelCache is
one of the kernel on simulated devices, which take the requests when they came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.pages import SPAN, Accesses, PageReads, accesses, hashed
from hybridsim.requests.rows import Requests
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import Sent, batch_of
from hybridsim.studies.hits import Cache, Feed, check
from hybridsim.studies.page_sampling import NOT_SAMPLED, SMALL
from hybridsim.studies.watch.kept import regrown
from hybridsim.studies.watch.real import COUNTED, served, share

PAGES_MAX = 1 << 16  # of the largest cache in its sample: bounds memory and time
FOREVER = 1 << 62
BACKLOG_MAX = 1 << 16  # requests outstanding: bounds memory
FACTS = 1 << 12


@dataclass(frozen=True)
class Shadow:
    """One simulated cache, over the last interval and since the start.

    Accesses are those to pages of a page cache, and what the kernel counts of its own caches.
    """

    kind: str  # as in a scenario: page, bcache, dm-cache; none: the disks alone
    policy: str  # of replacement; "" for a cache of the kernel
    size_bytes: int
    page_bytes: int
    accesses: int  # since the start, of the sampled pages
    hits: int
    recent: float | None  # hit ratio of the last interval; None: it had no access
    # On simulated devices, else None:
    mean_ns: float | None = None  # latency of the requests of the last interval
    ssd_written_bytes: int | None = None  # since the start
    disk_busy_ns: int | None = None  # of all disks together, since the start

    @property
    def ratio(self) -> float | None:
        """Hit ratio since the start; None: no access yet."""
        return share(self.hits, self.accesses)

    @property
    def name(self) -> str:
        """What distinguishes it from a cache of the same size."""
        return self.policy or self.kind


class PageCaches:
    """Caches of pages; all see the same sample."""

    def __init__(self, sizes: list[int], policies: list[str], page_bytes: int) -> None:
        """Create empty caches; raise UsageError for sizes or policies that cannot be sampled."""
        check({}, "always", policies)
        self.page_bytes = page_bytes
        largest = max(sizes) // page_bytes
        self.threshold = min(SPAN, SPAN * PAGES_MAX // max(largest, 1))
        self.rate = self.threshold / SPAN  # share of the pages that is simulated
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
        for part in accesses(Sent("the stream", rows), self.page_bytes):
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
        """Return what a saved state must agree with, as JSON: the page size and the caches."""
        return [self.page_bytes, [list(each) for each in self._which]]

    def state(self) -> Any:
        """Return the pages seen, all caches, and what they served before the interval."""
        return (
            self._feed.ids.numbers,
            tuple(each.state for each in self._caches),
            tuple(self._before),
        )

    def go_on(self, state: list[Any]) -> None:
        """Continue with saved caches, given as the leaves of `state`."""
        numbers, caches, before = regrown(self.state(), iter(state))
        self._feed.ids.of(numbers)
        for cache, saved in zip(self._caches, caches):
            cache.state = saved
        self._before = list(before)


class KernelCache:
    """A cache and its devices as in a simulation; time 0 is that of the first state or request.

    Between requests the machine's time stands at the last one: what would have happened since
    happens when the next one comes.
    """

    rate = 1.0  # share of the pages that is simulated

    def __init__(self, site: Scenario, volume_bytes: int, origin_ns: int) -> None:
        """Build the scenario's cache, empty, on a volume of that size."""
        self._site, self._volume_bytes, self._origin_ns = site, volume_bytes, origin_ns
        self.kind = site.cache.kind
        self.page_bytes = site.cache.page_bytes
        pages = site.cache.pages(volume_bytes)
        self.size_bytes = pages * self.page_bytes
        machine = building.machine(site, "open", volume_bytes, pages)
        self._run = Run(machine, FACTS)
        self._number = 0
        self._before = (0, 0)
        self._done = self._waited_ns = 0  # of the interval

    def take(self, rows: Requests) -> None:
        """Simulate up to the arrival of the last of these requests."""
        if not rows.rows:
            return
        end = int((rows.offset_bytes + rows.length_bytes).max())
        if end > self._volume_bytes:
            raise UsageError(
                f"a request ends at byte {end:,} of the disk, which has "
                f"{human_size(self._volume_bytes)}: specify its size (--volume)"
            )
        batch = batch_of(rows, 1.0, None, self._number, False, "the watched requests")
        now_ns = self._run.now_ns
        if int(batch.arrival_ns[0]) - self._origin_ns < now_ns:  # after a reboot
            self._origin_ns = int(batch.arrival_ns[0]) - now_ns
        self._number += rows.rows
        self._run.feed(batch._replace(arrival_ns=batch.arrival_ns - self._origin_ns))
        status = loops.FACTS_FULL
        while status != loops.NEEDS_BATCH:
            status, facts = self._run.advance(FOREVER)
            if facts is not None:
                self._count(facts)
        self._count(self._run.drained())
        if self._run.machine.source.outstanding > BACKLOG_MAX:
            raise UsageError(
                f"{BACKLOG_MAX:,} requests wait for the simulated disks, which are slower than the "
                "watched one: describe it, such as with --set backing.members=24"
            )

    def _count(self, facts: Any) -> None:
        self._done += len(facts.done_ns)
        self._waited_ns += int(np.sum(facts.done_ns - facts.issue_ns))

    def now(self) -> list[Shadow]:
        """Return the state of the cache; a new interval begins."""
        machine, now_ns = self._run.machine, self._run.now_ns
        totals = machine.below.slow.device.totals(now_ns)
        busy_ns = int(totals["busy_ns"]) if "busy_ns" in totals else None
        accesses, hits = self._served()
        recent = share(hits - self._before[1], accesses - self._before[0])
        mean_ns = self._waited_ns / self._done if self._done else None
        self._before = accesses, hits
        self._done = self._waited_ns = 0
        return [
            Shadow(
                self.kind, "", self.size_bytes, self.page_bytes, accesses, hits, recent, mean_ns,
                int(machine.below.fast.device.totals(now_ns)["bytes_written"]),
                busy_ns,
            )
        ]  # fmt: skip

    def _served(self) -> tuple[int, int]:
        if self.kind not in COUNTED:
            return 0, 0
        return served(self.kind, self._run.cache_totals())

    def setting(self) -> list[Any]:
        """Return what a saved state must agree with, as JSON: machine and size of the volume."""
        return [self._site.to_toml(), self._volume_bytes]

    def state(self) -> Any:
        """Return the machine and what is counted."""
        counted = self._origin_ns, self._number, *self._before, self._done, self._waited_ns
        return self._run.machine, counted

    def go_on(self, state: list[Any]) -> None:
        """Continue with a saved machine, given as the leaves of `state`."""
        machine, rest = regrown(self.state(), iter(state))
        self._run = Run(machine, FACTS)
        self._origin_ns, self._number, accesses, hits, self._done, self._waited_ns = rest
        self._before = accesses, hits


Simulated = PageCaches | KernelCache  # one or more caches that take the same requests
