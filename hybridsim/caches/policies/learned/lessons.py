"""The state of a learned policy in words: the results of its classes of accesses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridsim.caches.policies.learned.habits import (
    AGAIN,
    CLASSES,
    COUNTS,
    FIRST,
    GAPS,
    HEATS,
    RESTS,
    SIZES,
    STARTS,
    TURNS,
    age_of,
)
from hybridsim.caches.policies.learned.policy import Learned
from hybridsim.caches.policies.learned.reuse import (
    BORDER,
    HORIZON,
    MEAN_BITS,
    READING,
    RENT,
    WRITING,
)
from hybridsim.foundation.arrays import Floats

OFTEN = ("for the 2nd time", "for the 3rd time", "for the 4th or 5th time")
MORE = "more often"


@dataclass(frozen=True)
class Lesson:
    """The results of some classes of accesses."""

    accesses: str  # in words
    share: float  # of the accesses that were sampled
    is_touched_again: float  # share, before a page of that age is usually evicted
    worth_reads: float  # disk reads that caching the page saves, less the rent of its space
    is_wanted: float  # share that is worth a fill


@dataclass(frozen=True)
class Learning:
    """The state of a learned policy at the end."""

    price_reads: float  # of a fill
    pages_stay: int  # accesses from a page's last use to its eviction
    rent_reads: float  # rent of a page's space during that time
    lessons: tuple[Lesson, ...]


def learning(policy: Learned) -> Learning:
    """Return the lessons of a policy; classes without samples are left out."""
    state, worth = policy.reuse.state, policy.reuse.worth
    stays, price = (
        int(state[HORIZON]) >> MEAN_BITS,
        float(worth.state[WRITING] + worth.state[READING]),
    )
    seen = policy.reuse.seen.astype(float)
    border = int(state[BORDER])
    touched = policy.reuse.touched[:, :border].sum(axis=1)
    enough = touched + policy.reuse.reached[:, border]
    come_again = np.divide(touched, enough, out=np.zeros(len(enough)), where=enough > 0)
    groups, names = _groups(stays)
    lessons = []
    for number, name in enumerate(names):
        mine = groups == number
        total = seen[mine].sum()
        if total:
            wanted = seen[mine] @ (worth.sure[mine] >= price)
            lessons.append(
                Lesson(
                    name,
                    float(total / seen.sum()),
                    float(seen[mine] @ come_again[mine]) / total,
                    float(seen[mine] @ worth.value[mine]) / total,
                    float(wanted / total),
                )
            )
    lessons.sort(key=lambda each: -each.share)
    return Learning(price, stays, float(worth.state[RENT]) * stays, tuple(lessons))


def _groups(stays: int) -> tuple[Floats, list[str]]:
    """Return the number of the group of each class, and the names of the groups."""
    number = np.arange(CLASSES)
    first, later = number[: 2 * FIRST], number[2 * FIRST :] - 2 * FIRST
    in_run = first // (RESTS * SIZES) % (FIRST // (RESTS * SIZES)) > 0
    group = later // (TURNS * HEATS)
    gap, often = group % GAPS, np.minimum(group // GAPS % COUNTS, len(OFTEN))
    is_late = np.array(STARTS)[np.maximum(gap - 1, 0)] >= STARTS[age_of(max(stays, 1))]
    of_first = 2 * (first >= FIRST) + in_run
    of_later = 4 + (2 * (later >= AGAIN * HEATS) + is_late) * (len(OFTEN) + 1) + often
    names = [
        f"{op} for the first time, {how}"
        for op in ("read", "written")
        for how in ("alone", "in a sequential run")
    ]
    names += [
        f"{op} {often}, gap {length} than the stay"
        for op in ("read", "written")
        for length in ("shorter", "longer")
        for often in (*OFTEN, MORE)
    ]
    return np.concatenate([of_first, of_later]), names
