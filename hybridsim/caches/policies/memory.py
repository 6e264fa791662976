"""What a learned policy knew before a restart, so that the next one need not begin anew.

What it had learned of classes of accesses and of regions goes on whole; of single pages only those
that are named, usually those that the cache held.  Samples that were under observation are given
up, and so is what was known of other pages: it brings nothing (benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.policies.budget import Budgeted
from hybridsim.caches.policies.learned import Learned
from hybridsim.caches.policies.learned.habits import CLASS_MAX, CLASSES, CLOCK_AT, SAMPLED_AT
from hybridsim.caches.policies.learned.halfoctaves import AGES
from hybridsim.caches.policies.learned.policy import CLOCK, TAKEN
from hybridsim.caches.policies.learned.regions import PLACES
from hybridsim.caches.policies.learned.reuse import BORDER, HORIZON, ROW, SHARE
from hybridsim.caches.policies.learned.worth import RENT
from hybridsim.foundation.arrays import Ints

VERSION = 1  # to be raised when a class means something else
NEVER = -1
CLOCK_END = 1 << 62 - CLOCK_AT  # half of what a stamp has room for
# What belongs to pages, to samples, to the request under way or to the scenario is left out.
LEFT = {
    "stamp", "position", "held", "held_stamp", "drawn", "promised", "parent", "starts", "sample",
    "sample_page", "sample_class", "sample_clock", "sample_age", "passed", "pending", "kept",
    "span", "work",
}  # fmt: skip
STATES = {"policy": (CLOCK, TAKEN), "regions": (), "reuse": (HORIZON, BORDER, SHARE, ROW),
          "worth": (RENT,)}  # fmt: skip
ROLES = ((True, True), (True, False), (False, True))  # admits, replaces
Columns = dict[str, NDArray[Any]]


class Memory(NamedTuple):
    """Pages by number, what was noted of the last access to each, and what was learned."""

    numbers: Ints
    stamps: Ints  # NEVER where there was none
    learned: Columns

    def of_first(self, pages: int) -> Memory:
        """Return the same of fewer pages."""
        return self._replace(numbers=self.numbers[:pages], stamps=self.stamps[:pages])

    def is_of(self, admits: bool, replaces: bool) -> bool:
        """Tell whether a policy of this version that does these can go on from it."""
        said = self.learned.get("form", np.zeros(0))
        return bool(np.array_equal(said, form(admits, replaces)))


def learner(admission: Any, replacement: Any) -> Learned | None:
    """Return the learned policy of a cache, held to a budget or not; None if it has none."""
    if isinstance(admission, Budgeted):
        admission, replacement = admission.admission, admission.replacement
    return next((each for each in (admission, replacement) if isinstance(each, Learned)), None)


def form(admits: bool, replaces: bool) -> list[int]:
    """Return what two policies must have in common for one to go on from the other."""
    return [VERSION, CLASSES, AGES, PLACES, int(admits), int(replaces)]


def remembered(policy: Learned) -> Columns:
    """Return copies of all that a policy has learned, by name."""
    found = {name: part[...].copy() for name, part in _arrays(policy)}
    for name, part in _parts(policy).items():
        found[f"{name}.state"] = part.state[list(STATES[name])].copy()
    return found | {"form": np.array(form(bool(policy.admits), not policy.is_alone))}


def noted(policy: Learned, ids: Ints) -> Ints:
    """Return the stamps of pages, none of them under observation."""
    found = policy.stamp[ids]
    return np.where(found == NEVER, NEVER, found & ~(1 << SAMPLED_AT))


def recall(policy: Learned, memory: Memory) -> None:
    """Let a new policy know what another knew; the ids of the pages are 0, 1, ... in order."""
    for name, part in _arrays(policy):
        part[...] = memory.learned[name]
    for name, part in _parts(policy).items():
        part.state[list(STATES[name])] = memory.learned[f"{name}.state"]
    policy.stamp[: len(memory.stamps)] = memory.stamps


def is_of_now(memory: Memory) -> bool:
    """Tell whether some policy of this version can go on from it."""
    return any(memory.is_of(admits, replaces) for admits, replaces in ROLES)


def is_sound(memory: Memory) -> bool:
    """Tell whether what a file says can have been known by a policy of this version."""
    fresh = Learned.new(1, 1)
    known, said = remembered(fresh), memory.learned
    if said.keys() != known.keys() or memory.stamps.shape != memory.numbers.shape:
        return False
    if any(said[name].shape != column.shape for name, column in known.items()):
        return False
    if any(said[name].dtype != column.dtype for name, column in known.items()):
        return False
    clock, taken = said["policy.state"].tolist()
    horizon, border, share, row = said["reuse.state"].tolist()
    stamps = memory.stamps[memory.stamps != NEVER]
    return bool(
        0 <= clock < CLOCK_END
        and min(taken, horizon, share) >= 0
        and 0 <= border < AGES
        and 0 <= row < len(fresh.reuse.parent)
        and np.all(stamps & CLASS_MAX < CLASSES)
        and np.all((stamps >> CLOCK_AT >= 0) & (stamps >> CLOCK_AT <= clock))
        and np.all(said["reuse.heard"] >= 0)
        and all(np.isfinite(said[name]).all() for name in said)
    )


def _parts(policy: Learned) -> dict[str, Any]:
    reuse = policy.reuse
    return {"policy": policy, "regions": policy.regions, "reuse": reuse, "worth": reuse.worth}


def _arrays(policy: Learned) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, part in _parts(policy).items():
        for field in part._fields:
            array = getattr(part, field)
            if isinstance(array, np.ndarray) and field != "state" and field not in LEFT:
                yield f"{name}.{field}", array
