"""The price of a fill: a higher one never leads to more fills, nor to a point more of hits."""

from itertools import pairwise

import numpy as np
import pytest

from hybridsim import hits

PRICES = (0, 0.25, 0.5, 1, 2, 4, 16, 64, 256)  # disk reads
ACCESSES = 40_000


def pages(seed):
    """Return accesses by a Zipf law, with scans, and in every second trace a hot set that moves."""
    random = np.random.default_rng(seed)
    count = int(random.integers(2_000, 20_000))
    weights = np.cumsum(np.arange(1, count + 1) ** -random.uniform(0.5, 1.2))
    rank = np.searchsorted(weights / weights[-1], random.random(ACCESSES))
    page = random.permutation(count)[rank]
    scanned = ACCESSES // 20
    for _ in range(random.integers(4)):
        begin = random.integers(ACCESSES - scanned)
        first = random.integers(count)
        page[begin : begin + scanned] = (first + np.arange(scanned)) % count
    if seed % 2:
        page[ACCESSES // 2 :] = (page[ACCESSES // 2 :] + count // 2) % count
    return page


@pytest.mark.parametrize("seed", range(4))
def test_a_higher_price_leads_to_fewer_fills_and_not_to_more_hits(seed):
    trace = pages(seed)
    fills, ratios = [], []
    for price in PRICES:
        (row,) = hits(
            trace,
            "10%",
            "learned",
            "learned",
            "64KiB",
            write_price_per_thousand=round(1000 * price),
        )
        fills.append(row.admitted)
        ratios.append(row.page_hit_ratio)
    assert fills == sorted(fills, reverse=True)
    assert fills[-1] < fills[0] / 2
    assert all(later <= before + 0.01 for before, later in pairwise(ratios))
