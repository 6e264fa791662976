"""The state of a learned policy that survives a restart, so that the next one need not start anew.

The state of classes of accesses and of regions is kept completely; that of single pages only for
specified pages, usually those that the cache held.  Open samples are dropped, and so is the state
of other pages: it brings nothing (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.policies.budget import Budgeted
from hybridsim.caches.policies.learned import Learned, habits
from hybridsim.caches.policies.learned.policy import CLOCK, TAKEN
from hybridsim.caches.policies.learned.reuse import BORDER, HORIZON, MEAN_FOURS, RENT, ROW, SHARE
from hybridsim.foundation.arrays import Ints

VERSION = 4  # raise it when the meaning of a class changes
NEVER = -1
CLOCK_END = 1 << 62 - habits.CLOCK_AT  # half of the range of a stamp
PACE_LIMIT = (habits.EIGHTHS_MAX + 1 << habits.PACE_BITS) - 1
# Fields that belong to pages, samples, the current request or the scenario are not kept.
LEFT = {
    "pages", "held", "held_stamp", "drawn", "promised", "parent", "starts", "sample",
    "samples", "passed", "pending", "kept", "span", "work",
}  # fmt: skip
STATES = {"policy": (CLOCK, TAKEN), "regions": (), "worth": (RENT,),
          "reuse": (HORIZON, BORDER, SHARE, ROW, MEAN_FOURS)}  # fmt: skip
ROLES = ((True, True), (True, False), (False, True))  # (admits, replaces)
Columns = dict[str, NDArray[Any]]


class Memory(NamedTuple):
    """Pages by number, the stamp of the last access to each, and the learned state."""

    numbers: Ints
    stamps: Ints  # NEVER if there was no access
    learned: Columns

    def of_first(self, pages: int) -> Memory:
        """Return the same for the first `pages` pages."""
        return self._replace(numbers=self.numbers[:pages], stamps=self.stamps[:pages])

    def is_of(self, admits: bool, replaces: bool) -> bool:
        """Return whether a policy of this version with these roles can continue from it."""
        stored = self.learned.get("form", np.zeros(0))
        return bool(np.array_equal(stored, form(admits, replaces)))


def learner(admission: Any, replacement: Any) -> Learned | None:
    """Return the learned policy of a cache, with or without a budget; None if it has none."""
    if isinstance(admission, Budgeted):
        admission, replacement = admission.admission, admission.replacement
    return next((each for each in (admission, replacement) if isinstance(each, Learned)), None)


def form(admits: bool, replaces: bool) -> list[int]:
    """Return the values that must agree for one policy to continue from another."""
    return [VERSION, habits.CLASSES, habits.AGES, habits.PLACES, int(admits), int(replaces)]


def remembered(policy: Learned) -> Columns:
    """Return copies of all learned state of a policy, by name."""
    columns = {name: part[...].copy() for name, part in _arrays(policy)}
    for name, part in _parts(policy).items():
        columns[f"{name}.state"] = part.state[list(STATES[name])].copy()
    return columns | {"form": np.array(form(bool(policy.admits), not policy.is_alone))}


def stamps_of(policy: Learned, ids: Ints) -> Ints:
    """Return the stamps of pages, without their marks of open samples."""
    stamps = policy.pages.stamp[ids]
    return np.where(stamps == NEVER, NEVER, stamps & ~(1 << habits.SAMPLED_AT))


def recall(policy: Learned, memory: Memory) -> None:
    """Load the state of another policy into a new one; the ids of the pages are 0, 1, ..."""
    for name, part in _arrays(policy):
        part[...] = memory.learned[name]
    for name, part in _parts(policy).items():
        part.state[list(STATES[name])] = memory.learned[f"{name}.state"]
    policy.pages.stamp[: len(memory.stamps)] = memory.stamps


def is_compatible(memory: Memory) -> bool:
    """Return whether some policy of this version can continue from it."""
    return any(memory.is_of(admits, replaces) for admits, replaces in ROLES)


def is_valid(memory: Memory) -> bool:
    """Return whether the content of a file is a possible state of a policy of this version."""
    fresh = Learned.new(1, 1)
    expected, stored = remembered(fresh), memory.learned
    if stored.keys() != expected.keys() or memory.stamps.shape != memory.numbers.shape:
        return False
    if any(stored[name].shape != column.shape for name, column in expected.items()):
        return False
    if any(stored[name].dtype != column.dtype for name, column in expected.items()):
        return False
    clock, taken = stored["policy.state"].tolist()
    horizon, border, share, row, fours = stored["reuse.state"].tolist()
    stamps = memory.stamps[memory.stamps != NEVER]
    return bool(
        0 <= clock < CLOCK_END
        and min(taken, horizon, share, fours) >= 0
        and 0 <= border < habits.AGES
        and 0 <= row < len(fresh.reuse.parent)
        and np.all(stamps & habits.CLASS_MAX < habits.CLASSES)
        and np.all((stamps >> habits.CLOCK_AT >= 0) & (stamps >> habits.CLOCK_AT <= clock))
        and np.all(stored["reuse.heard"] >= 0)
        and np.all(
            (stored["reuse.source"] >= 0) & (stored["reuse.source"] < len(fresh.reuse.source))
        )
        and np.all(stored["worth.expected"] > 0)
        and np.all((stored["regions.pace"] >= 0) & (stored["regions.pace"] <= PACE_LIMIT))
        and all(np.isfinite(stored[name]).all() for name in stored)
    )


def _parts(policy: Learned) -> dict[str, Any]:
    reuse = policy.reuse
    return {"policy": policy, "regions": policy.regions, "reuse": reuse, "worth": reuse.worth}


def _arrays(policy: Learned) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, part in _parts(policy).items():
        for field in part._fields:
            array = getattr(part, field)
            if not isinstance(array, np.ndarray) or field == "state" or field in LEFT:
                continue
            for column in array.dtype.names or ():
                yield f"{name}.{column}", array[column]
            if array.dtype.names is None:
                yield f"{name}.{field}", array
