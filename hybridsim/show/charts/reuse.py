"""Reuse times: how long a cache must keep a page to get its next hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.foundation.units import parse_size
from hybridsim.requests.pages import Accesses, Chunked, Ids, accesses
from hybridsim.show.charts import Axis, Chart, Line

PER_OCTAVE = 4  # bins
OCTAVES = 56  # from 1 us up
SHORTEST_NS = 1000
UNUSED = -1


@dataclass(frozen=True)
class ReuseTimes:
    """Accesses by the time since the one before to the same page; bins are logarithmic."""

    page_bytes: int
    edges_ns: list[float]  # upper edges
    counts: list[int]
    first_uses: int

    @property
    def within(self) -> list[float]:
        """The share of all accesses with a reuse time up to each edge."""
        total = sum(self.counts) + self.first_uses
        shares: list[float] = (np.cumsum(self.counts) / max(total, 1)).tolist()
        return shares


def reuse_times(trace: Chunked, page: str | int = "64KiB") -> ReuseTimes:
    """Read a trace once and return its reuse times, for pages of `page` bytes."""
    page_bytes = parse_size(page)
    ids, last = Ids(), np.full(1, UNUSED, np.int64)
    counts = np.zeros(PER_OCTAVE * OCTAVES, np.int64)
    first_uses = 0
    for part in accesses(trace, page_bytes):
        assert isinstance(part, Accesses)
        seen = ids.of(part.numbers)
        last = longer(last, max(ids.capacity, len(last)), UNUSED)
        arrival_ns = np.repeat(part.arrival_ns, np.diff(part.ends, prepend=0))
        lags = _lags(seen, arrival_ns, last)
        first_uses += int((lags == UNUSED).sum())
        octaves = np.log2(np.maximum(lags[lags != UNUSED], SHORTEST_NS) / SHORTEST_NS)
        bins = np.minimum(octaves * PER_OCTAVE, len(counts) - 1).astype(np.int64)
        counts += np.bincount(bins, minlength=len(counts))
    used = np.flatnonzero(counts)
    first, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    edges = SHORTEST_NS * 2.0 ** (np.arange(first + 1, end + 1) / PER_OCTAVE)
    return ReuseTimes(page_bytes, edges.tolist(), counts[first:end].tolist(), first_uses)


def _lags(ids: Int32s, arrival_ns: Ints, last: Ints) -> Ints:
    """Return the time since each page's last access, and update `last`."""
    order = np.argsort(ids, kind="stable")
    sorted_ids, times = ids[order], arrival_ns[order]
    is_first = np.append(True, sorted_ids[1:] != sorted_ids[:-1])
    before = np.where(is_first, last[sorted_ids], np.append(UNUSED, times[:-1]))
    last[sorted_ids] = times  # the latest of several is kept
    lags: Ints = np.where(before == UNUSED, UNUSED, times - before)
    return lags


def reuse_chart(several: Mapping[str, ReuseTimes]) -> Chart:
    """Return the cumulative share of accesses by reuse time, one line per trace."""
    lines = [
        Line(f"reuse-{name}", name, each.edges_ns, each.within, "steps")
        for name, each in several.items()
    ]
    x = Axis("time since the last access", "s", 1e9, log=True)
    return Chart("reuse", "Reuse times", x, Axis.shares("share of the accesses"), lines)
