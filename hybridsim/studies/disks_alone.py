"""Results of the disks without a cache, kept for other replays of the same trace.

Replays that differ only in their caches share them, as most points of a sweep do.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.requests.inflight import Batch
from hybridsim.scenario import DISKS, Scenario, identity

if TYPE_CHECKING:
    from hybridsim.answers.metrics import Collector
    from hybridsim.studies.runs import Pump

KEPT_MAX = 4


class Ran:
    """The results of a machine that has already replayed this trace, in place of a Pump."""

    def __init__(self, pump: Pump | Ran) -> None:
        """Keep the results of a machine."""
        self.collector: Collector = pump.collector
        self.backlogs: list[int] = pump.backlogs
        self._counters = pump.counters()
        self._batches = 0

    def take(self, batch: Batch) -> None:
        """Count the batch; its results exist already."""
        self._batches += 1

    @property
    def backlog(self) -> int:
        """Requests outstanding after the batches taken so far."""
        return self.backlogs[self._batches - 1]

    def counters(self) -> dict[str, Any]:
        """Return the counters over time, by name."""
        return self._counters


class Alone:
    """The most recent results, by the identity of the disks."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Ran] = OrderedDict()

    @staticmethod
    def which(scenario: Scenario, mode: str, volume_bytes: int) -> str:
        """Return the identity of a scenario's disks: all that determines their results."""
        cache = f"{scenario.cache.kind} {scenario.cache.page_bytes}"  # how requests are counted
        return f"{mode} {volume_bytes} {cache} {identity(scenario, DISKS)}"

    def get(self, which: str) -> Ran | None:
        """Return the results of these disks; None if there are none."""
        known = self._known.get(which)
        if known is not None:
            self._known.move_to_end(which)
        return None if known is None else Ran(known)

    def keep(self, which: str, pump: Pump | Ran) -> None:
        """Keep the results of these disks; drop the least recently used beyond KEPT_MAX."""
        self._known[which] = Ran(pump)
        self._known.move_to_end(which)
        while len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)


class SharedAlone(Alone):
    """Results that processes share by files, for replays of one trace.

    Caches of all kinds share them too: the disks do the same beside each, and only the pages that
    their requests touch are counted by the pages of the cache, so that these are of any of them.
    The files are trusted: the folder is to be one that nobody else can write.
    """

    def __init__(self, folder: str) -> None:
        """Keep results in a folder."""
        super().__init__()
        self._folder = Path(folder)

    @staticmethod
    def which(scenario: Scenario, mode: str, volume_bytes: int) -> str:
        """Return the identity of a scenario's disks, whatever the cache in front of them."""
        return f"{mode} {volume_bytes} {identity(scenario, DISKS)}"

    def get(self, which: str) -> Ran | None:
        """Return the results of these disks; None if no process has them yet."""
        known = super().get(which)
        if known is None and (file := self._file(which)).exists():
            ran: Ran = pickle.loads(zlib.decompress(file.read_bytes()))
            super().keep(which, ran)
            known = Ran(ran)
        return known

    def keep(self, which: str, pump: Pump | Ran) -> None:
        """Keep the results of these disks for all processes."""
        super().keep(which, pump)
        file = self._file(which)
        if not file.exists():
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(zlib.compress(pickle.dumps(Ran(pump)), 1))
            part.replace(file)

    def _file(self, which: str) -> Path:
        return self._folder / hashlib.sha256(which.encode()).hexdigest()[:32]
