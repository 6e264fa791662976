"""The counters of a cache that runs: what it hit, beside what its simulation would have hit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybridsim.answers.check.observed import snapshot
from hybridsim.foundation.errors import MeasurementError
from hybridsim.studies.check import state_of
from hybridsim.traces.recording.disk import Disk, Host

SECTOR = 512
COUNTED = {  # names of the counters of hits, and of misses
    "dm-cache": (("read_hits", "write_hits"), ("read_misses", "write_misses")),
    "bcache": (("cache_hits",), ("cache_misses",)),
}
STATUS = re.compile(
    r"0 (?P<sectors>\d+) cache \d+ \d+/\d+ (?P<block>\d+) \d+/(?P<blocks>\d+)(?: \d+){7}"
    r" (?P<rest>.+)"
)


@dataclass(frozen=True)
class Real:
    """A running cache, over the last interval and since the start of the watch."""

    kind: str
    accesses: int
    hits: int
    recent: float | None

    @property
    def ratio(self) -> float | None:
        """Hit ratio since the start of the watch; None: no access yet."""
        return share(self.hits, self.accesses)


def share(hits: int, accesses: int) -> float | None:
    """Return a hit ratio; None without accesses."""
    return hits / accesses if accesses else None


def served(kind: str, counters: Mapping[str, int]) -> tuple[int, int]:
    """Return accesses and hits of the counters of a cache, real or simulated."""
    hits, misses = (sum(counters[name] for name in names) for names in COUNTED[kind])
    return hits + misses, hits


class Beside:
    """The growth of a real cache's counters."""

    def __init__(self) -> None:
        """Start without a reading."""
        self.kind = ""
        self._last = (0, 0)
        self._since = (0, 0)  # before the last interval
        self._total = (0, 0)

    def read(self, text: str) -> None:
        """Take the counters of a state as `dmsetup status` or sysfs prints it.

        Counters that fell began anew, with the cache; raises MeasurementError for other text.
        """
        seen = snapshot(text, "the counters of the cache")
        if seen.kind not in COUNTED:
            raise MeasurementError(f"{seen.kind}: its counters are not watched")
        now = served(seen.kind, seen.counters)
        if self.kind:
            began = now if min(now[0] - self._last[0], now[1] - self._last[1]) < 0 else (
                now[0] - self._last[0], now[1] - self._last[1]
            )  # fmt: skip
            self._total = self._total[0] + began[0], self._total[1] + began[1]
        self.kind, self._last = seen.kind, now

    def now(self) -> Real | None:
        """Return the cache's figures; a new interval begins.  None: nothing was read."""
        if not self.kind:
            return None
        new = self._total[0] - self._since[0], self._total[1] - self._since[1]
        self._since = self._total
        return Real(self.kind, *self._total, share(new[1], new[0]))

    def pause(self) -> None:
        """Begin anew with the next reading: what happens until then is not counted."""
        self._since, self.kind = self._total, ""

    def state(self) -> list[Any]:
        """Return all that changes, to be saved as JSON."""
        return [self.kind, *self._last, *self._since, *self._total]

    def go_on(self, state: list[Any]) -> None:
        """Continue from a saved state."""
        kind, *numbers = state
        last, last_hits, since, since_hits, total, hits = map(int, numbers)
        self.kind, self._last = str(kind), (last, last_hits)
        self._since, self._total = (since, since_hits), (total, hits)


def settings(text: str) -> tuple[dict[str, str], int] | None:
    """Return a dm-cache's settings as keys of a scenario, and the size of its volume in bytes.

    None: the text is not the status of a dm-cache with the policy smq.
    """
    match = next(filter(None, map(STATUS.search, text.splitlines())), None)
    if match is None:
        return None
    count, *words = match["rest"].split()
    features, rest = words[: int(count)], words[int(count) :]
    arguments, policy = rest[1 : 1 + int(rest[0])], rest[1 + int(rest[0])]
    if policy != "smq":
        return None
    block = int(match["block"]) * SECTOR
    found = {
        "cache.kind": "dm-cache",
        "cache.size": f"{block * int(match['blocks'])}B",
        "cache.block": f"{block}B",
        "cache.mode": features[0],
    }
    if "migration_threshold" in arguments:
        threshold = int(arguments[arguments.index("migration_threshold") + 1]) * SECTOR
        found["cache.migration_threshold"] = f"{threshold}B"
    return found, int(match["sectors"]) * SECTOR


def counters_of(disk: Disk, host: Host) -> Callable[[], str] | None:
    """Return what reads the state of a dm-cache or bcache; None: the disk is neither."""
    if (disk.folder / "bcache" / "stats_total").is_dir():
        return lambda: state_of("bcache", disk.path, ())
    name = disk.folder / "dm" / "name"
    if not name.is_file():
        return None
    path = str(Path("/dev/mapper") / name.read_text().strip())
    if not STATUS.search(state_of("dm-cache", path, ())):
        return None
    return lambda: state_of("dm-cache", path, ())
