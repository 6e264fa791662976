"""Dirty data: what a write-back cache has yet to write to the disks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Floats, Ints
from hybridsim.foundation.documents import Document
from hybridsim.foundation.units import parse_percent

SECOND = 10**9
BCACHE_CUTOFF = 0.4  # share of the cache: above it bcache defers only writes that request it
REGULATED = ("page", "dm-cache")  # kinds that write dirty data back before they need its room
PIECE = 4096
OPEN_CAS_COUNTS = 4096  # bytes: the unit of its statistics, whatever the size of its lines
LEVEL, WRITTEN_BACK = 0, 1  # places in a row of COUNTERS
# By kind of cache the counters of what is dirty and of what was written back, each with its unit in
# bytes (0: pages).
COUNTERS = {
    "page": (("dirty_pages", 0), ("cleaned_bytes", 1)),
    "dm-cache": (("dirty_blocks", 0), ("write_backs", 0)),
    "bcache": (("dirty_data", 1), ("written_back", 1)),
    "open-cas": (("dirty", OPEN_CAS_COUNTS), ("cleaned_blocks", OPEN_CAS_COUNTS)),
    # A block is in it until it is written back.
    "dm-writecache": (("pages_present", 0), ("blocks_written_back", 0)),
}
NONE = ("", 0), ("", 0)


def dirty(
    kind: str, page_bytes: int, counters: Mapping[str, npt.ArrayLike], which: int = LEVEL
) -> Ints:
    """Return the dirty bytes at each sample of the counters, from the counters of that kind.

    A page, a block or a line of `page_bytes` counts as a whole if any of it is dirty.  `which` is
    LEVEL, or WRITTEN_BACK for the bytes that were written back until then.
    """
    name, unit = COUNTERS.get(kind, NONE)[which]
    rows = len(np.atleast_1d(np.asarray(counters.get("time_ns", [0]))))
    return np.asarray(counters.get(name, np.zeros(rows)), np.int64) * (unit or page_bytes)


def filled(kind: str, marks: Sequence[int], counters: Mapping[str, npt.ArrayLike]) -> Floats | None:
    """Return how near a cache in write-back is to where its writes cease to be cheap; 1: there.

    One figure for each row of counters, from 0; None for a cache that defers no writes, and for the
    kinds REGULATED, which clean early enough that their writes stay cheap.  It is the dirty level
    over the first of the marks.  For bcache it is the share of buckets in use over
    BCACHE_CUTOFF: a bucket holds clean and dirty data alike, and beyond that writes bypass it.
    """
    level = np.asarray(counters.get("dirty_bytes", [0]), np.float64)
    available = counters.get("cache_available_percent")
    if not level.any() or kind in REGULATED:
        return None
    if kind == "bcache" and available is not None:
        return np.asarray((100 - np.asarray(available, np.float64)) / (100 * BCACHE_CUTOFF))
    if kind == "bcache" or not marks or marks[0] <= 0:
        return None
    return np.asarray(level / marks[0])


def marks(cache: object, cache_bytes: int) -> list[int]:
    """Return the levels of dirty bytes at which a cache changes its behaviour, ascending.

    Below the first mark a cache accepts writes without cleaning; there it begins to clean, and at
    the last mark it is full.  `cache` is the [cache] table of a scenario.
    """
    kind = getattr(cache, "kind", "none")
    shares = [1.0]
    if kind == "page":
        names = ("clean_above", "dirty_high")
        shares = [float(parse_percent(getattr(cache, name))) for name in names]
    elif kind == "bcache":
        shares = [getattr(cache, "writeback_percent", 0) / 100, BCACHE_CUTOFF]
    elif kind == "dm-writecache":
        shares = [float(parse_percent(getattr(cache, "high_watermark", "50%"))), 1.0]
    return sorted(round(each * cache_bytes) for each in shares)


@dataclass(frozen=True)
class Dirt(Document):
    """Dirty data over a run: how much, for how long, and how long a flush of them takes."""

    p50_bytes: int  # of the time
    p99_bytes: int
    max_bytes: int
    end_bytes: int  # when the load ended
    written_back_bytes: int
    # until a byte is written back, on average; None: too little was written back to say
    mean_stay_ns: int | None
    oldest_ns: int  # no dirty byte was ever older
    piece_bytes: int  # of one write of the flush
    flush_bytes_per_s: float | None = None  # of the disks without other load
    flush_ns: int | None = None  # of what is dirty at the end
    flush_p99_ns: int | None = None

    def flushed_at(self, bytes_per_s: float) -> Dirt:
        """Return it with the rate of a flush."""
        end, p99 = (round(each * SECOND / bytes_per_s) for each in (self.end_bytes, self.p99_bytes))
        return replace(self, flush_bytes_per_s=bytes_per_s, flush_ns=end, flush_p99_ns=p99)


def dirt(
    kind: str, page_bytes: int, written_bytes: int, counters: Mapping[str, npt.ArrayLike]
) -> Dirt | None:
    """Return what was dirty over a run; None if nothing ever was.

    `written_bytes` is the mean size of a write of the load: caches of extents or small blocks write
    back in such pieces, those of larger blocks whole blocks.  Levels are taken to stay from one
    sample to the next.
    """
    levels = dirty(kind, page_bytes, counters)
    times = np.atleast_1d(np.asarray(counters.get("time_ns", [0]), np.int64))
    if len(levels) < 2 or not levels.any():
        return None
    stay, held = np.diff(times), levels[:-1]
    order = np.argsort(held, kind="stable")
    passed = np.cumsum(stay[order])
    p50, p99 = (
        int(held[order][np.searchsorted(passed, share * passed[-1])]) for share in (0.5, 0.99)
    )
    back = int(np.atleast_1d(dirty(kind, page_bytes, counters, WRITTEN_BACK))[-1])
    is_clean = np.maximum.accumulate(np.where(levels == 0, times, times[0]))
    oldest_ns = int((times - is_clean).max())
    # Little's law, which holds once most of what was dirty has left.
    mean_ns = round(float((held.astype(float) * stay).sum()) / back) if back else None
    if mean_ns is not None and (back < levels.max() or mean_ns > oldest_ns):
        mean_ns = None
    piece = page_bytes
    if kind in ("bcache", "open-cas", "dm-writecache"):
        piece = max(-(-written_bytes // PIECE) * PIECE, PIECE)
    return Dirt(
        p50, p99, int(levels.max()), int(levels[-1]), back, mean_ns, oldest_ns, piece
    )  # fmt: skip
