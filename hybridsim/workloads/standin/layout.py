"""Addresses of objects: the sequence of kinds in order of address, and the gaps between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hybridsim.workloads.draws import Draws, Ints
from hybridsim.workloads.standin.classes import histogram
from hybridsim.workloads.standin.objects import Objects

if TYPE_CHECKING:
    from hybridsim.workloads.standin.lives import Lives

HEATS, AGES = 10, 24
NEAR = 64  # requests between two births that are one event
STATES = 2 * HEATS * AGES


def states(size: Ints, count: Ints, birth: Ints) -> Ints:
    """Return the state of each object: larger than one page or not, visits, birth."""
    heat = np.minimum((count + 1) // 2, HEATS - 1)
    state: Ints = ((size > 0) * HEATS + heat) * AGES + birth
    return state


def order(life: Lives) -> list[list[int]]:
    """Return the number of transitions between neighbours: [state, next state, number]."""
    state = states(life.size, life.count, life.birth)
    pairs, number = np.unique(state[:-1] * STATES + state[1:], return_counts=True)
    return [[pair // STATES, pair % STATES, n] for pair, n in zip(pairs.tolist(), number.tolist())]


def gaps(objects: Objects, life: Lives) -> list[list[list[int]]]:
    """Return histograms of the gap in pages before an object, for one page and for more."""
    gap = np.diff(objects.page, prepend=0) - np.append(0, objects.pages[:-1])
    return [histogram(np.maximum(gap, 0)[(life.size > 0) == larger]) for larger in (0, 1)]


def born_together(life: Lives) -> float:
    """Return the share of same-age neighbours (same birth class) that are born together."""
    same = life.birth[1:] == life.birth[:-1]
    if not same.any():
        return 0.0
    near = np.abs(np.diff(life.begin))[same] <= NEAR
    return float(f"{near.mean():.4g}")


def laid_out(state: Ints, followers: list[list[int]], draws: Draws) -> Ints:
    """Return an order of the objects whose state transitions follow `followers`."""
    pools = [np.flatnonzero(state == each).tolist() for each in range(STATES)]
    nexts: list[tuple[list[int], list[float]]] = []
    for each in range(STATES):
        mine = [(to, number) for origin, to, number in followers if origin == each]
        nexts.append(([to for to, _ in mine], np.cumsum([number for _, number in mine]).tolist()))
    chances = iter(draws.uniform(len(state)).tolist())
    placed = []
    now = int(state[0])
    remaining = [len(pool) for pool in pools]
    for chance in chances:
        targets, sums = nexts[now]
        if targets:
            now = targets[int(np.searchsorted(sums, chance * sums[-1], "right"))]
        if not remaining[now]:
            now = max(range(STATES), key=remaining.__getitem__)
        remaining[now] -= 1
        placed.append(pools[now][remaining[now]])
    return np.array(placed, np.int64)
