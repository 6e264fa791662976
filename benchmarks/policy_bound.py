"""Upper bound for all policies, if a hit counts 1 and a fill (page write) costs a price.

The value of a run is hits - price x fills.  An offline policy chooses for each page after which of
its accesses to hold it until the next one: each such stretch of d accesses is a
hit and takes d page-accesses of room; stretches of a page in a row cost one fill.  At every moment
at most C pages are held, so all stretches together take at most C x N of N accesses.  The bound
keeps only this last, weaker rule: **it bounds every cache that holds C pages on average over the
trace**, hence every cache of C pages, with any admission and any replacement.

With a rent L for a page-access of room each page is on its own, and the best choice for it follows
from one pass (dynamic programming over "held" and "not held").  For any rent L >= 0

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
FIRST = 0  # in the place of a gap: the page was never accessed before


def gaps(ids: Int32s) -> Ints:
    """Return, page after page, how many accesses each access comes after the page's last one."""
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

    # At a rent of 1 no stretch gains anything; below the least one room is as good as free.
    least_rent = 1e-3 / max(budget, 1)
    result = minimize_scalar(
        above, bounds=(math.log(least_rent), 0.0), method="bounded", options={"xatol": 1e-3}
    )
    return min(float(result.fun), float(best_value(gaps, price, 0.0)))


@loop
def best_value(gaps, price, rent):
    """Return what the best choice of stretches is worth at this rent.

    `held` is how much better it is to hold the page now than not to: never less than -price, as it
    can be filled, and never above 0, as it can be dropped.
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
