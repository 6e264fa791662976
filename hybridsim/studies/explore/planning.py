"""Which machines to replay: first spread over all axes, then where the surfaces are least sure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from hybridsim.studies.explore.axes import CACHE, SIZE, Axis, Place
from hybridsim.studies.explore.surface import FIRST, LINEAR, Coordinates, Surface

CANDIDATES = 4000  # places that are looked at in each step
CLOSE = 0.03  # an error that is good enough, of the figure
CLOSE_SHARE = 0.01  # of a share
MOST = 10.0  # times CLOSE: a larger error of one figure counts no more
OWN_SHARE = 0.5  # of the places between two sizes, that have the scenario's own disks, SSD and load

Floats = npt.NDArray[np.float64]


def all_places(axes: Sequence[Axis]) -> int:
    """Return the number of places."""
    number = 1
    for axis in axes:
        number *= len(axis.choices)
    return number


def own_place(axes: Sequence[Axis]) -> Place:
    """Return the place of the scenario itself, or the one nearest to it."""
    return tuple(axis.base for axis in axes)


class Planner:
    """Chooses places of some axes, of those that are free and can be built."""

    def __init__(self, axes: Sequence[Axis], able: Callable[[Place], bool]) -> None:
        """`able` returns whether the machine at a place can be built."""
        self.axes, self.able = axes, able
        self.where = Coordinates(axes)
        names = [axis.name for axis in axes]
        self.cache, self.size = names.index(CACHE), names.index(SIZE)

    def lines(self) -> list[Place]:
        """Return the scenario, and each cache at the ends and the middle of its sizes."""
        last = len(self.axes[self.size].choices) - 1
        every = itertools.product(range(len(self.axes[self.cache].choices)), (last, 0, last // 2))
        places = [own_place(self.axes), *(self._own_with(*each) for each in every)]
        return list(dict.fromkeys(places))

    def _own_with(self, kind: int, at: int) -> Place:
        """Return the place of the scenario with another cache and size."""
        other = {self.cache: kind, self.size: at}
        return tuple(other.get(number, axis.base) for number, axis in enumerate(self.axes))

    def spread(self, number: int, taken: Sequence[Place], seed: int) -> list[Place]:
        """Return places that are far from each other and from those that are taken."""
        chosen: list[Place] = []
        candidates = self.drawn(set(taken), seed)
        parameters = np.array([FIRST[each] for each in self.where.kinds])
        unsure = np.ones(len(candidates))
        for each in taken:
            unsure *= _left(self.where, parameters, candidates, each)
        while len(chosen) < number and len(candidates):
            best = int(np.argmax(unsure))
            if unsure[best] <= 0:
                break
            chosen.append(tuple(int(one) for one in candidates[best]))
            unsure = unsure * _left(self.where, parameters, candidates, chosen[-1])
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
            chosen.append(tuple(int(one) for one in candidates[best]))
            for each in several[:1]:
                wide = wide * _left(each.where, each.parameters, candidates, chosen[-1])
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
        cache, size = self.cache, self.size
        gaps: dict[tuple[int, int, int], float] = {}
        for known in figures:
            by_size: dict[int, dict[int, list[float]]] = {}
            for place, value in self._of_cache_and_size(known).items():
                by_size.setdefault(place[cache], {}).setdefault(place[size], []).append(value)
            for kind, values in by_size.items():
                means = {at: float(np.mean(each)) for at, each in values.items()}
                for low, high in itertools.pairwise(sorted(means)):
                    if high - low > 1:
                        gap = abs(means[high] - means[low])
                        gaps[kind, low, high] = max(gap, gaps.get((kind, low, high), 0.0))
        draw = np.random.default_rng(seed)
        used, chosen = set(taken), list[Place]()
        for kind, low, high in sorted(gaps, key=lambda each: (gaps[each], each), reverse=True):
            numbers = [int(draw.integers(len(axis.choices))) for axis in self.axes]
            if draw.random() < OWN_SHARE:
                numbers = list(own_place(self.axes))
            numbers[cache], numbers[size] = kind, (low + high) // 2
            between = tuple(numbers)
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
        axes, cache, size = self.axes, self.cache, self.size
        places = np.array(list(known), np.int64)
        values = np.array(list(known.values()))
        modes = self.where.mode_of(places)
        # Each cache has a level and a slope by size, which stay; each mode slopes by other axes.
        is_of = places[:, cache][:, None] == np.arange(len(axes[cache].choices))
        caches = is_of.astype(np.float64)
        stay = np.column_stack([caches, caches * places[:, size][:, None]])
        others = [
            (modes == mode) * (places[:, axis] - places[:, axis].mean())
            for axis in range(len(axes)) if axis not in (cache, size) and axes[axis].varies
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
        numbers = (range(len(self.axes[each].choices)) for each in (self.cache, self.size))
        return self._free((self._own_with(*each) for each in itertools.product(*numbers)), taken)

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
