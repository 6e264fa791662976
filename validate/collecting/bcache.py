"""bcache's counters: exact ones from its tracepoints, and its own from sysfs.

Its own counters are updated every 13.6 s, and each increment is kept modulo 65536.  Both count a
read as a hit if it was cached completely.  inserts_dirty and inserts_clean count attempted inserts
by writes and by read misses; cache_inserts counts those that succeeded.  An invalidation is a write
that bypassed the cache.  The file of its own counters also has the amount of dirty data, the
writeback rate, and the share of buckets that are free or clean.
"""

from __future__ import annotations

from validate import layout, tracepoints
from validate.collecting import Subject
from validate.tracepoints import Count

OWN = ("cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses", "bypassed")
BESIDE = ("dirty_data", "state", "writeback_rate", "cache/cache_available_percent")
# column: tracepoint, condition
EVENTS = {
    "cache_hits": ("bcache/bcache_read", "cache_hit == 1 && bypass == 0"),
    "cache_misses": ("bcache/bcache_read", "cache_hit == 0 && bypass == 0"),
    "cache_bypass_hits": ("bcache/bcache_read", "cache_hit == 1 && bypass == 1"),
    "cache_bypass_misses": ("bcache/bcache_read", "cache_hit == 0 && bypass == 1"),
    "inserts_dirty": ("bcache/bcache_write", "writeback == 1"),
    "inserts_clean": ("bcache/bcache_write", "writeback == 0 && bypass == 0"),
    "invalidations": ("bcache/bcache_write", "writeback == 0 && bypass == 1"),
    "bypass_sequential": ("bcache/bcache_bypass_sequential", ""),
    "bypass_congested": ("bcache/bcache_bypass_congested", ""),
    "written_back": ("bcache/bcache_writeback", ""),
    "gc": ("bcache/bcache_gc_start", ""),
    "cache_inserts": ("bcache/bcache_cache_insert", ""),
    "allocations": ("bcache/bcache_alloc", ""),
    "failed_allocations": ("bcache/bcache_alloc_fail", ""),
    "invalidated_buckets": ("bcache/bcache_invalidate", ""),
}


class Events:
    """Counters from tracepoints, which `hybridsim compare` reads."""

    file = layout.BCACHE_TRUE
    separator = " "

    def __init__(self, subject: Subject) -> None:
        """Start to count.  Raises MissingError if the kernel refuses."""
        self._counts: list[Count] = []
        try:
            for event, condition in EVENTS.values():
                condition = _of_this_device(event, condition, subject)
                self._counts.append(Count(event, condition, subject.system))
        except BaseException:
            self.close()
            raise

    def header(self) -> str:
        """Name the columns."""
        return " ".join(["uptime", *EVENTS])

    def sample(self) -> list[str]:
        """Return one line."""
        return [" ".join(str(count.value()) for count in self._counts)]

    def close(self) -> None:
        """Stop to count."""
        for count in self._counts:
            count.close()


def _of_this_device(event: str, condition: str, subject: Subject) -> str:
    """Limit the condition to our backing device, if the tracepoint has a device field."""
    if "dev" not in tracepoints.fields(event, subject.system):
        return condition
    major, minor = map(int, subject.numbers["origin"].split(":"))
    mine = f"dev == {major << 20 | minor}"
    return f"{condition} && {mine}" if condition else mine


class Own:
    """bcache's own counters; column names are paths in sysfs."""

    file = layout.BCACHE_SYSFS
    separator = " "

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def header(self) -> str:
        """Name the columns."""
        return " ".join(["uptime", *(f"stats_total/{name}" for name in OWN), *BESIDE])

    def sample(self) -> list[str]:
        """Return one line."""
        read, folder = self._subject.system.read, self._subject.backing
        values = [read(folder / "stats_total" / name, "-") for name in OWN]
        return [" ".join(values + [read(folder / name, "-") for name in BESIDE])]

    def close(self) -> None:
        """Do nothing: no file is open."""


def of(subject: Subject) -> list[Events | Own]:
    """Return both collectors for a bcache."""
    return [Events(subject), Own(subject)] if subject.kind == "bcache" else []
