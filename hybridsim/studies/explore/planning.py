"""Which machines to replay: first spread over all axes, then where the surfaces are least sure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hybridsim.studies.explore.axes import AT_CACHE, AT_SIZE, Axis, Place, moved
from hybridsim.studies.explore.surface import FIRST, LINEAR, Coordinates, Surface

CANDIDATES = 4000  # places that are looked at in each step
CLOSE = 0.03  # an error that is good enough, of the figure
CLOSE_SHARE = 0.01  # of a share
MOST = 10.0  # times CLOSE: a larger error of one figure counts no more
OWN_SHARE = 0.5  # of the places between two sizes, that have the scenario's own disks, SSD and load

Floats = npt.NDArray[np.float64]


def all_places(axes: Sequence[Axis]) -> int:
    """Return the number of places."""
    return math.prod(len(axis.choices) for axis in axes)


def own_place(axes: Sequence[Axis]) -> Place:
    """Return the place of the scenario itself, or the one nearest to it."""
    return tuple(axis.base for axis in axes)


class Planner:
    """Chooses places of some axes, of those that are free and can be built."""

    def __init__(self, axes: Sequence[Axis], able: Callable[[Place], bool]) -> None:
        """`able` returns whether the machine at a place can be built."""
        self.axes, self.able = axes, able
        self.where = Coordinates(axes)
        self.own = own_place(axes)

    def lines(self) -> list[Place]:
        """Return the scenario, and each cache at the ends and the middle of its sizes."""
        last = len(self.axes[AT_SIZE].choices) - 1
        return list(dict.fromkeys([self.own, *self._own_with((last, 0, last // 2))]))

    def _own_with(self, sizes: Iterable[int]) -> Iterator[Place]:
        """Yield the places of the scenario with each cache and these sizes."""
        for kind, size in itertools.product(range(len(self.axes[AT_CACHE].choices)), sizes):
            yield moved(self.own, {AT_CACHE: kind, AT_SIZE: size})

    def spread(self, number: int, taken: Sequence[Place], seed: int) -> list[Place]:
        """Return places that are far from each other and from those that are taken."""
        chosen: list[Place] = []
        candidates = self.drawn(set(taken), seed)
        parameters = np.array([FIRST[each] for each in self.where.kinds])
        unsure = np.ones(len(candidates))
        for each in taken:
            unsure *= _left(self.where, parameters, candidates, each)
        while len(chosen) < number and unsure.max(initial=0.0) > 0:
            best = int(np.argmax(unsure))
            chosen.append(tuple(candidates[best].tolist()))
            unsure *= _left(self.where, parameters, candidates, chosen[-1])
            unsure[best] = 0.0
        return chosen

    def doubtful(
        self,
        surfaces: Iterable[Surface],
        number: int,
        taken: Sequence[Place],
        seed: int,
        own: bool = False,
    ) -> list[Place]:
        """Return the places where the bands of the surfaces are widest, of all or of `around`."""
        candidates = self.around(set(taken)) if own else self.drawn(set(taken), seed)
        if not len(candidates):
            return []
        wide = np.zeros(len(candidates))
        several = list(surfaces)
        for each in several:
            _, half = each.raw(candidates)
            close = CLOSE_SHARE if each.scale == LINEAR else CLOSE
            wide += np.minimum(half / close, MOST)
        chosen: list[Place] = []
        while len(chosen) < min(number, len(candidates)):
            best = int(np.argmax(wide))
            chosen.append(tuple(candidates[best].tolist()))
            for each in several[:1]:
                wide *= _left(each.where, each.parameters, candidates, chosen[-1])
            wide[best] = -1.0
        return chosen

    def jumps(
        self,
        figures: Sequence[Mapping[Place, float]],
        number: int,
        taken: Sequence[Place],
        seed: int,
    ) -> list[Place]:
        """Return places between two sizes of a cache where a figure jumps most: at a cliff, maybe.

        A surface does not expect a cliff that no replay shows.  Half of these places have the
        scenario's own SSD, disks and load, which are looked at most.  Each of `figures` is known at
        replays, in the scale of its interpolation; a jump counts in standard deviations of its
        figure.
        """
        gaps: dict[tuple[int, int, int], float] = {}
        for known in figures:
            by_size: dict[int, dict[int, list[float]]] = {}
            for place, value in self._of_cache_and_size(known).items():
                by_size.setdefault(place[AT_CACHE], {}).setdefault(place[AT_SIZE], []).append(value)
            for kind, values in by_size.items():
                means = {at: float(np.mean(each)) for at, each in values.items()}
                for low, high in itertools.pairwise(sorted(means)):
                    if high - low > 1:
                        gap = abs(means[high] - means[low])
                        gaps[kind, low, high] = max(gap, gaps.get((kind, low, high), 0.0))
        draw = np.random.default_rng(seed)
        used, chosen = set(taken), list[Place]()
        for kind, low, high in sorted(gaps, key=lambda each: (gaps[each], each), reverse=True):
            around = tuple(int(draw.integers(len(axis.choices))) for axis in self.axes)
            if draw.random() < OWN_SHARE:
                around = self.own
            between = moved(around, {AT_CACHE: kind, AT_SIZE: (low + high) // 2})
            if between not in used and self.able(between):
                chosen.append(between)
            if len(chosen) == number:
                break
        return chosen

    def _of_cache_and_size(self, known: Mapping[Place, float]) -> dict[Place, float]:
        """Return a figure without what load, disks and SSD make of it, in standard deviations.

        What these make of it is linear in their places, and apart for each mode, whose writes wait
        for the disks or do not.
        """
        if not known:
            return {}
        places = np.array(list(known), np.int64)
        values = np.array(list(known.values()))
        modes = self.where.mode_of(places)
        # Each cache has a level and a slope by size, which stay; each mode slopes by other axes.
        is_of = places[:, AT_CACHE][:, None] == np.arange(len(self.axes[AT_CACHE].choices))
        caches = is_of.astype(np.float64)
        stay = np.column_stack([caches, caches * places[:, AT_SIZE][:, None]])
        others = [
            (modes == mode) * (places[:, axis] - places[:, axis].mean())
            for axis, each in enumerate(self.axes)
            if axis not in (AT_CACHE, AT_SIZE) and each.varies
            for mode in range(int(modes.max()) + 1)
        ]  # fmt: skip
        if others:
            columns = np.column_stack(others)
            found = np.linalg.lstsq(np.column_stack([columns, stay]), values, rcond=None)[0]
            values = values - columns @ found[: columns.shape[1]]
        spread = float(values.std()) or 1.0
        return {place: float(value) / spread for place, value in zip(known, values)}

    def around(self, taken: set[Place]) -> npt.NDArray[np.int64]:
        """Return the free places of all caches and sizes with the scenario's SSD, disks, load."""
        return self._free(self._own_with(range(len(self.axes[AT_SIZE].choices))), taken)

    def drawn(self, taken: set[Place], seed: int) -> npt.NDArray[np.int64]:
        """Return places that are free and can be built: all, or CANDIDATES random ones."""
        numbers = [len(axis.choices) for axis in self.axes]
        if all_places(self.axes) <= CANDIDATES:
            return self._free(itertools.product(*map(range, numbers)), taken)
        draw = np.random.default_rng(seed)
        columns = [draw.integers(0, each, CANDIDATES) for each in numbers]
        return self._free(dict.fromkeys(zip(*(column.tolist() for column in columns))), taken)

    def _free(self, places: Iterable[Place], taken: set[Place]) -> npt.NDArray[np.int64]:
        found = [each for each in places if each not in taken and self.able(each)]
        return np.array(found, np.int64).reshape(-1, len(self.axes))


def _left(
    where: Coordinates, parameters: Floats, candidates: npt.NDArray[np.int64], taken: Place
) -> Floats:
    """Return the share of the doubt about candidates that a replay at `taken` leaves."""
    alike = where.alike(where.apart(candidates, [taken]), parameters)[:, 0]
    result: Floats = 1 - alike**2
    return result
