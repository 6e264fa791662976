"""Caches of the kernel on simulated devices, which take the requests when they came."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.rows import Requests
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import batch_of
from hybridsim.studies.watch.kept import regrown
from hybridsim.studies.watch.real import COUNTED, served
from hybridsim.studies.watch.shadow import Shadow, share

FOREVER = 1 << 62
BACKLOG_MAX = 1 << 16  # requests outstanding: bounds memory
FACTS = 1 << 12
NAME = "the watched requests"


class KernelCache:
    """A cache and its devices as in a simulation; time 0 is that of the first state or request.

    Between requests the machine's time stands at the last one: what would have happened since
    happens when the next one comes.
    """

    rate = 1.0

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
        batch = batch_of(rows, 1.0, None, self._number, False, NAME)
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
        """Return the machine and the size of the volume."""
        return [self._site.to_toml(), self._volume_bytes]

    def state(self) -> Any:
        """Return the machine and what is counted."""
        counted = self._origin_ns, self._number, *self._before, self._done, self._waited_ns
        return self._run.machine, counted

    def go_on(self, state: list[Any]) -> None:
        """Continue with a saved machine."""
        machine, rest = regrown(self.state(), iter(state))
        self._run = Run(machine, FACTS)
        self._origin_ns, self._number, accesses, hits, self._done, self._waited_ns = rest
        self._before = accesses, hits
