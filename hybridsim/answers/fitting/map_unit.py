"""Whether a drive maps flash in units larger than 4 KiB, by its random writes of several sizes.

A drive of QLC saves memory by a coarse map: it programs whole units, so that any write of less
than a unit takes as long as a write of one.  A write of n units of 4 KiB takes s + p n (DESIGN.md
2.7), of a map with larger units s + p u, u the 4 KiB in all units that it touches.  Where writes
take equally long whatever their size, nothing is known: s may be large.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from hybridsim.answers.fitting.answer import Estimate
from hybridsim.answers.fitting.observed import Floats, Ints

DRIVE, KEY = "backing.drive", "map_unit"
KIB4 = 4096
UNITS_BYTES = tuple(KIB4 << power for power in range(5))  # 4 to 64 KiB
# A larger unit explains what 4 KiB does not: the error of 4 KiB is so many times that of the unit,
# and more than rates vary from run to run.
TIMES, LEAST = 3.0, 0.03
FLAT = 1.1  # longest time to shortest: sizes do not matter
CROWDED = 8  # writes outstanding, so that they keep the drive busy
HOW = "fio's random writes of 4, 8, 16, ... 128 KiB at depth 32 show it"


def estimate(length_bytes: Ints, busy_ns: Floats) -> Estimate:
    """Return the unit, from the mean time of the drive for random writes of each size."""
    if len(length_bytes) < 3:
        return unknown(f"{len(length_bytes)} sizes of random writes at depth {CROWDED} or more")
    if busy_ns.max() < FLAT * busy_ns.min():
        sizes = f"{length_bytes.min() // 1024} to {length_bytes.max() // 1024} KiB"
        return unknown(f"writes of {sizes} take equally long: a large unit or costly collection")
    errors = np.array([_error(length_bytes, busy_ns, unit) for unit in UNITS_BYTES])
    good = np.flatnonzero((errors * TIMES <= errors[0]) & (errors[0] >= LEAST))
    if not len(good):
        how = "random writes take longer with each 4 KiB"
        return Estimate(DRIVE, KEY, KIB4, "bytes", how=how)
    low, high = (UNITS_BYTES[good[place]] for place in (0, -1))
    how = "random writes of less take as long as writes of one"
    return Estimate(DRIVE, KEY, low, "bytes", low, high, how=how)


def unknown(why: str) -> Estimate:
    """Return the unit of most drives, assumed."""
    return Estimate(DRIVE, KEY, KIB4, "bytes", determined=False, how=f"{why}; {HOW}")


def _error(length_bytes: Ints, busy_ns: Floats, unit: int) -> float:
    """Return the relative error of s + p u, at the best s and p."""
    touched = -(-length_bytes // unit) * (unit // KIB4)
    line = np.stack([np.ones(len(touched)), touched], axis=1)
    _, rest = nnls(line / busy_ns[:, None], np.ones(len(busy_ns)))
    return float(rest) / float(np.sqrt(len(busy_ns)))
