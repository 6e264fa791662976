"""Policies of libCacheSim (`pip install libcachesim`, for this benchmark alone) as further anchors.

    HYBRIDSIM_DATA=shared/data python benchmarks/policies.py --anchors
    HYBRIDSIM_DATA=shared/data python benchmarks/policies.py --anchors same

The first adds those that hybridsim lacks, and W-TinyLFU, to the baselines.  The second adds those
of the same name, and compares their page hits with ours.

Each page is an object of size 1, at the library's defaults, with two exceptions: GLCache trains by
the clock, here the number of the access, and does so once in a twentieth of the trace (its default
is a day of seconds); the window of W-TinyLFU, 1 % of the cache, has at least one page.  All fill a
page at each miss.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s
from hybridsim.requests.pages import Accesses

PREFIX = "libCacheSim "
NEWEST = {  # our name for it: the library's class
    "3L-Cache": "ThreeLCache", "Clock2Q+": "Clock2QPlus", "Cacheus": "Cacheus", "LeCaR": "LeCaR",
    "GLCache": "GLCache", "LRB": "LRB", "w-tinylfu": "WTinyLFU",
}  # fmt: skip
SAME = {
    "fifo": "FIFO", "lru": "LRU", "lfu": "LFU", "arc": "ARC", "lirs": "LIRS", "2q": "TwoQ",
    "s3-fifo": "S3FIFO", "sieve": "Sieve", "lhd": "LHD",
}  # fmt: skip
TRAININGS = 20  # of GLCache in a trace
BY_TIME = {"GLCache", "LRB", "ThreeLCache"}
HASH_BITS = 17  # of its table of objects


def library_version() -> str:
    """Return the version of the library, which results depend on."""
    return version("libcachesim")


def hits(kind: str, pages: int, ids: Int32s) -> Bytes:
    """Return for each access whether the library's policy hit."""
    import libcachesim

    options: dict[str, Any] = {"cache_size": pages, "hashpower": HASH_BITS}
    if kind == "GLCache":
        options["retrain_intvl"] = max(len(ids) // TRAININGS, 1)
    if kind == "WTinyLFU":
        options["window_size"] = max(0.01, 1.001 / pages)
    cache = getattr(libcachesim, kind)(**options)
    request = libcachesim.Request()
    request.obj_size = 1
    get = cache._cache.get  # without a Python frame per access
    result = []
    for at, page in enumerate(ids.tolist()):
        request.obj_id = page
        if kind in BY_TIME:
            request.clock_time = at
        result.append(get(request))
    return np.array(result, np.uint8)


def counts(part: Accesses, hit: Bytes, page_bytes: int) -> dict[str, int]:
    """Return what a part adds to the counts of Cache.result(), if all misses fill a page."""
    ends, starts = part.ends, part.ends - np.diff(part.ends, prepend=0)
    whole = np.ones(len(hit), np.bool_)
    whole[starts] &= part.offset % page_bytes == 0
    whole[ends - 1] &= (part.offset + part.length) % page_bytes == 0
    read = np.repeat(part.write == 0, ends - starts)
    return {
        "page_accesses": len(hit),
        "page_hits": int(np.count_nonzero(hit)),
        "read_page_accesses": int(np.count_nonzero(read)),
        "read_page_hits": int(np.count_nonzero(hit[read])),
        "requests": len(ends),
        "request_hits": int(np.count_nonzero(np.minimum.reduceat(hit, starts))),
        "fills": int(np.count_nonzero(hit == 0)),
        "re_reads": int(np.count_nonzero((hit == 0) & ~whole)),
    }


def compared(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield by policy how many more page hits the library's has than ours, in points."""
    ratios = {
        (row["trace"], row["page_bytes"], row["share"], row["policy"]): row["page_hits"]
        / row["page_accesses"]
        for row in rows
        if row["level"] == "hits"
    }
    for name in (*SAME, "w-tinylfu"):
        more = {
            cell: 100 * (ratio - ratios[(*cell[:3], name)])
            for cell, ratio in ratios.items()
            if cell[3] == PREFIX + name and (*cell[:3], name) in ratios
        }
        if more:
            worst = max(more, key=lambda cell: more[cell])
            trace, page, share, _ = worst
            yield (
                f"  {name:10} mean {np.mean(list(more.values())):+5.2f}, "
                f"{min(more.values()):+6.2f} to {more[worst]:+5.2f} "
                f"({trace} {page} {share:.0%}); above half a point in "
                f"{sum(each > 0.5 for each in more.values())} of {len(more)} cells"
            )
