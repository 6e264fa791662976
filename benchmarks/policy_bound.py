"""Upper bound for all policies, if a hit counts 1 and a fill (page write) costs a price.

The value of a run is hits - price x fills.  An offline policy chooses for each page after which of
its accesses to hold it until the next one.  Each such interval of d accesses is a hit and occupies
d page-accesses of space; consecutive intervals of a page cost one fill.  At most C pages are held
at any time, so all intervals together occupy at most C x N in N accesses.  The bound uses only this
weaker rule: **it bounds every cache that holds C pages on average over the trace**, hence every
cache of C pages, with any admission and any replacement.

With a rent L per page-access of space the pages are independent, and the best choice for each
follows from one pass (dynamic programming over "held" and "not held").  For any rent L >= 0

    best(L) + L x C x N  >=  the value of any policy               (Lagrangian, weak duality)

and the bound is the minimum of these over L, which is convex.  A search that stops early gives a
larger bound, which is still valid.

For all prices p together: a policy with W fills has at most min over p of (bound(p) + p x W) hits.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import loop

PRICES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # hits that a fill costs
FIRST = 0  # instead of a gap: the first access to the page


def gaps(ids: Int32s) -> Ints:
    """Return by page the number of accesses since its previous access, or FIRST."""
    order = np.argsort(ids, kind="stable")
    result = np.diff(order, prepend=0)
    result[np.diff(ids[order], prepend=-1) != 0] = FIRST
    return result


def bound(gaps: Ints, pages: int, price: float) -> float:
    """Return the upper bound of hits - price x fills for a cache of `pages` pages."""
    budget = pages * len(gaps)

    def above(log_rent: float) -> float:
        rent = math.exp(log_rent)
        return float(best_value(gaps, price, rent)) + rent * budget

    # At a rent of 1 no interval has a gain; below the minimum space is practically free.
    minimum_rent = 1e-3 / max(budget, 1)
    result = minimize_scalar(
        above, bounds=(math.log(minimum_rent), 0.0), method="bounded", options={"xatol": 1e-3}
    )
    return min(float(result.fun), float(best_value(gaps, price, 0.0)))


@loop
def best_value(gaps, price, rent):
    """Return the value of the best choice of intervals at this rent.

    `held` is the value of holding the page now, relative to not holding it: at least -price, as it
    can be filled, and at most 0, as it can be dropped.
    """
    total = held = 0.0
    for gap in gaps:
        if gap == FIRST:
            held = -price
            continue
        hit = held + 1.0 - rent * gap
        total += max(hit, 0.0)
        held = max(min(hit, 0.0), -price)
    return total


def most_hits(bounds: dict[float, float], fills: int) -> float:
    """Return the upper bound of hits for a number of fills, from the bounds at several prices."""
    return min(value + price * fills for price, value in bounds.items())
