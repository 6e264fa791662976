"""Classes of each object (size, visits, birth, life), and the pauses between its visits."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.workloads.draws import Floats, Ints
from hybridsim.workloads.standin.classes import (
    BIRTH_EDGES,
    COUNT_EDGES,
    LIFE_EDGES,
    SIZE_EDGES,
    WRITE_EDGES,
    class_of,
    histogram,
    quantiles,
    size_group,
)
from hybridsim.workloads.standin.objects import Objects, Visits

FEW = 50  # fewer pauses than this give no correlation


class Lives:
    """The classes of each object; visits are sorted by object."""

    def __init__(self, objects: Objects, visits: Visits, accesses: int) -> None:
        self.visits = np.bincount(visits.object, minlength=len(objects.page))
        self.last = np.cumsum(self.visits) - 1
        self.first = self.last + 1 - self.visits
        self.begin = visits.first[self.first]
        self.span = visits.first[self.last] - self.begin
        self.size = class_of(objects.pages, SIZE_EDGES)
        self.count = class_of(self.visits, COUNT_EDGES)
        self.birth = class_of(self.begin / accesses, BIRTH_EDGES)
        self.life = class_of(self.span / np.maximum(accesses - self.begin, 1), LIFE_EDGES)
        writes = np.add.reduceat(visits.is_write.astype(np.int64), self.first)
        self.writes = class_of(writes / self.visits, WRITE_EDGES)
        self._writes = writes
        self._visits = visits
        self.number = np.repeat(np.arange(len(self.visits)), self.visits)  # of each visit
        self.nth = np.arange(len(visits.first)) - self.first[self.number]
        self.group = size_group(self.size)[self.number]

    def table(self) -> list[list[int]]:
        """Return the number of objects of each combination of classes."""
        columns = np.stack([self.size, self.count, self.writes, self.birth, self.life])
        rows, number = np.unique(columns, axis=1, return_counts=True)
        table: list[list[int]] = np.vstack([rows, number]).T.tolist()
        return table

    def written(self) -> list[float]:
        """Return the mean share of visits that write, by class of that share."""
        number = np.maximum(np.bincount(self.writes, self.visits, len(WRITE_EDGES)), 1)
        means = np.bincount(self.writes, self._writes, len(WRITE_EDGES)) / number
        return [float(f"{each:.4g}") for each in means]

    def counts(self) -> list[list[list[float]]]:
        """Return quantiles of the number of visits by class, for one page and for more."""
        return [
            by_class(self.visits[larger], self.count[larger], len(COUNT_EDGES), 9)
            for larger in (self.size == 0, self.size > 0)
        ]

    def serial(self) -> list[float]:
        """Return the correlation of consecutive pauses, by class of count.

        It is the rank correlation among all pauses of the class.
        """
        correlations = []
        after = np.flatnonzero(self.nth > 1)
        share = self._shares()
        for each in range(int(self.count.max()) + 1):
            mine = after[self.count[self.number[after]] == each]
            related = 0.0
            if len(mine) > FEW:
                ranks = np.argsort(np.argsort(np.stack([share[mine - 1], share[mine]]), axis=1))
                related = float(np.asarray(np.corrcoef(ranks))[0, 1])
            correlations.append(float(f"{max(related, 0):.3g}"))
        return correlations

    def pauses(self) -> list[list[list[list[int]]]]:
        """Return histograms of pauses over the object's mean pause, in the order of `counts`."""
        later = np.flatnonzero(self.nth > 0)
        number = self.number[later]
        share, count, larger = self._shares()[later], self.count[number], self.size[number] > 0
        return [
            [
                histogram(share[(count == each) & (larger == which)])
                for each in range(int(self.count.max()) + 1)
            ]
            for which in (False, True)
        ]

    def _shares(self) -> Floats:
        """Return the pause before each visit, relative to the mean pause of its object."""
        mean = self.span / np.maximum(self.visits - 1, 1)
        pause = np.diff(self._visits.first, prepend=0)
        shares: Floats = pause / np.maximum(mean, 1)[self.number]
        return shares


def by_class(values: Any, classes: Ints, count: int, points: int) -> list[list[float]]:
    """Return the quantiles of each class, up to the last class that is not empty."""
    table = [quantiles(values[classes == each], points) for each in range(count)]
    while table and not table[-1]:
        table.pop()
    return table
