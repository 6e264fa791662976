"""Where objects lie: which kind follows which in order of address, and how far behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hybridsim.workloads.draws import Draws, Ints
from hybridsim.workloads.standin.classes import histogram
from hybridsim.workloads.standin.objects import Objects

if TYPE_CHECKING:
    from hybridsim.workloads.standin.lives import Lives

HEATS, AGES = 10, 24
NEAR = 64  # requests: births that are one event
STATES = 2 * HEATS * AGES


def states(size: Ints, count: Ints, birth: Ints) -> Ints:
    """Return what neighbours are told apart by: larger than a page, visits, birth."""
    heat = np.minimum((count + 1) // 2, HEATS - 1)
    found: Ints = ((size > 0) * HEATS + heat) * AGES + birth
    return found


def order(life: Lives) -> list[list[int]]:
    """Return how often an object of one state follows one of another: [state, next, number]."""
    state = states(life.size, life.count, life.birth)
    pairs, number = np.unique(state[:-1] * STATES + state[1:], return_counts=True)
    return [[pair // STATES, pair % STATES, n] for pair, n in zip(pairs.tolist(), number.tolist())]


def gaps(objects: Objects, life: Lives) -> list[list[list[int]]]:
    """Return a histogram of the pages before an object, of one page and of more."""
    gap = np.diff(objects.page, prepend=0) - np.append(0, objects.pages[:-1])
    return [histogram(np.maximum(gap, 0)[(life.size > 0) == larger]) for larger in (0, 1)]


def born_together(life: Lives) -> float:
    """Return of neighbours that are born in the same slice the share born one after the other."""
    same = life.birth[1:] == life.birth[:-1]
    if not same.any():
        return 0.0
    near = np.abs(np.diff(life.begin))[same] <= NEAR
    return float(f"{near.mean():.4g}")


def laid_out(state: Ints, followers: list[list[int]], draws: Draws) -> Ints:
    """Return the objects in an order of address in which states follow as they are told to."""
    pools = [np.flatnonzero(state == each).tolist() for each in range(STATES)]
    nexts: list[tuple[list[int], list[float]]] = []
    for each in range(STATES):
        mine = [(to, number) for origin, to, number in followers if origin == each]
        nexts.append(([to for to, _ in mine], np.cumsum([number for _, number in mine]).tolist()))
    chances = iter(draws.uniform(len(state)).tolist())
    found = []
    now = int(state[0])
    left = [len(pool) for pool in pools]
    for chance in chances:
        targets, sums = nexts[now]
        if targets:
            now = targets[int(np.searchsorted(sums, chance * sums[-1], "right"))]
        if not left[now]:
            now = max(range(STATES), key=left.__getitem__)
        left[now] -= 1
        found.append(pools[now][left[now]])
    return np.array(found, np.int64)
