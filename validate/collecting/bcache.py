"""bcache's counters: the true ones from its tracepoints, and its own beside them.

Its own move every 13.6 s, and each step is kept modulo 65536.  Both count a read as hit where all
of it was cached.  Inserts dirty and clean are those of writes and of what read misses brought, with
or without success; those that found room are cache_inserts.  An invalidation is a write that
bypassed the cache.  Beside its own stand how much is dirty, how fast that is written back, and the
share of buckets that were free or clean.
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
    """Counts of tracepoints: what `hybridsim compare` takes."""

    file = layout.BCACHE_TRUE

    def __init__(self, subject: Subject) -> None:
        """Begin to count.  Raises MissingError where the kernel does not let us."""
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
        """Count no more."""
        for count in self._counts:
            count.close()


def _of_this_device(event: str, condition: str, subject: Subject) -> str:
    """Add that the request is one to our backing device, where the tracepoint tells."""
    if "dev" not in tracepoints.fields(event, subject.system):
        return condition
    major, minor = map(int, subject.numbers["origin"].split(":"))
    mine = f"dev == {major << 20 | minor}"
    return f"{condition} && {mine}" if condition else mine


class Own:
    """Its files in sysfs, with names that tell where they are."""

    file = layout.BCACHE_SYSFS

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
        """Nothing is open."""


def of(subject: Subject) -> list[Events | Own]:
    """Return them for a bcache."""
    return [Events(subject), Own(subject)] if subject.kind == "bcache" else []
