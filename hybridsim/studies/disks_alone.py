"""What the disks did without a cache, kept for other replays of the same trace.

Replays that differ in their caches alone share it: most of a sweep's points do.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario
from hybridsim.scenario.identity import DISKS, identity

if TYPE_CHECKING:
    from hybridsim.answers.metrics import Collector
    from hybridsim.studies.machine_run import Pump

KEPT_MAX = 4


class Ran:
    """A machine that has run over this trace before, in the place of one that runs now."""

    def __init__(self, pump: Pump | Ran) -> None:
        """Keep what a machine did."""
        self.collector: Collector = pump.collector
        self.backlogs: list[int] = pump.backlogs
        self._counters = pump.counters()
        self._batches = 0

    def take(self, batch: Batch) -> None:
        """Do nothing: what the batch leads to is known."""
        self._batches += 1

    @property
    def backlog(self) -> int:
        """How many requests were outstanding after as many batches."""
        return self.backlogs[self._batches - 1]

    def counters(self) -> dict[str, Any]:
        """Return the counters over time, by name."""
        return self._counters


class Alone:
    """The last few of them, by all that decides what they do."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Ran] = OrderedDict()

    def get(self, which: str) -> Ran | None:
        """Return the disks as if they were to run again; None if they never did."""
        known = self._known.get(which)
        if known is not None:
            self._known.move_to_end(which)
        return None if known is None else Ran(known)

    def keep(self, which: str, pump: Pump | Ran) -> None:
        """Keep what the disks did."""
        self._known[which] = Ran(pump)
        self._known.move_to_end(which)
        while len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)


def disks(scenario: Scenario, mode: str, volume_bytes: int) -> str:
    """Return all that decides what the disks of a scenario do alone."""
    cache = f"{scenario.cache.kind} {scenario.cache.page_bytes}"  # how requests are counted
    return f"{mode} {volume_bytes} {cache} {identity(scenario, DISKS)}"
