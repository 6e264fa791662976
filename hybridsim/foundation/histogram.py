"""Latency distributions in fio's bins: 64 per power of two, so the error is at most 1/128.

Below 128 ns a bin is one nanosecond wide; above, each doubling has 64 equal bins.  29 groups
of 64 reach 17 s, and the last bin holds all slower requests.  Histograms of the same layout add
up, so the distribution of an hour is the sum of those of its seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hybridsim.foundation.arrays import Ints

BITS = 6
GROUPS = 29
BINS = GROUPS << BITS
TOP_NS = (1 << (BITS + GROUPS - 1)) - 1  # the largest value that is not clipped


def bin_of(values: Ints) -> Ints:
    """Return the index of the bin of each value in ns."""
    # A float64 holds every value up to TOP_NS exactly, so its exponent is the number of bits.
    clipped = np.clip(values, 0, TOP_NS)
    bits = np.frexp(clipped.astype(np.float64))[1].astype(np.int64)
    group = np.maximum(bits - (BITS + 1), 0)
    index: Ints = (group << BITS) + (clipped >> group)
    return index


def value_of(index: Ints) -> Ints:
    """Return the value in ns that represents each bin: its middle."""
    index = np.asarray(index, np.int64)
    group = np.maximum((index >> BITS) - 1, 0)
    value: Ints = ((index - (group << BITS)) << group) + ((1 << group) >> 1)
    return value


VALUES = value_of(np.arange(BINS, dtype=np.int64))


@dataclass(frozen=True)
class Distribution:
    """A distribution of latencies: exact count, sum and maximum in ns, and counts by bin."""

    count: int = 0
    total_ns: int = 0
    max_ns: int = 0
    bins: Ints = field(default_factory=lambda: np.zeros(BINS, np.int64))

    @classmethod
    def of(cls, values: Ints) -> Distribution:
        """Return the distribution of these values in ns."""
        values = np.asarray(values, np.int64)
        bins = np.bincount(bin_of(values), minlength=BINS).astype(np.int64)
        return cls(len(values), int(values.sum()), int(values.max(initial=0)), bins)

    def __repr__(self) -> str:
        from hybridsim.foundation.wording import counted, latency  # which import this module

        number = counted(self.count, "latency", "latencies")
        p99 = latency(self.percentile(99))
        return f"<Distribution of {number}: mean {latency(self.mean_ns)}, p99 {p99}>"

    def __add__(self, other: Distribution) -> Distribution:
        return Distribution(
            self.count + other.count,
            self.total_ns + other.total_ns,
            max(self.max_ns, other.max_ns),
            self.bins + other.bins,
        )

    @property
    def mean_ns(self) -> float | None:
        """Exact mean in ns; None if there are no requests."""
        return self.total_ns / self.count if self.count else None

    def percentile(self, percent: float) -> int | None:
        """Return the percentile in ns as fio computes it, at most the maximum; None if empty."""
        if not self.count:
            return None
        needed = percent / 100 * self.count
        place = int(np.searchsorted(np.cumsum(self.bins), needed))
        # Rounding may make `needed` a little larger than the count, or zero.
        place = min(place, int(np.flatnonzero(self.bins)[-1]))
        place = max(place, int(np.flatnonzero(self.bins)[0]))
        return min(int(VALUES[place]), self.max_ns)

    def by_value(self) -> dict[str, int]:
        """Return the counts of the bins in use by their middle in ns, as in fio's json+."""
        used = np.flatnonzero(self.bins)
        return {str(VALUES[i]): int(self.bins[i]) for i in used}
