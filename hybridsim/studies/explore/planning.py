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


def lines(axes: Sequence[Axis]) -> list[Place]:
    """Return the scenario, and each cache at the ends and the middle of its sizes."""
    names = [axis.name for axis in axes]
    cache, size = names.index(CACHE), names.index(SIZE)
    last = len(axes[size].choices) - 1
    result = [own_place(axes)]
    for number, at in itertools.product(range(len(axes[cache].choices)), (last, 0, last // 2)):
        place = list(own_place(axes))
        place[cache], place[size] = number, at
        result.append(tuple(place))
    return list(dict.fromkeys(result))


def spread(
    axes: Sequence[Axis],
    where: Coordinates,
    number: int,
    taken: Sequence[Place],
    able: Callable[[Place], bool],
    seed: int,
) -> list[Place]:
    """Return places that are far from each other and from those that are taken."""
    chosen: list[Place] = []
    candidates = drawn(axes, set(taken), able, seed)
    parameters = np.array([FIRST[each] for each in where.kinds])
    unsure = np.ones(len(candidates))
    for each in taken:
        unsure *= _left(where, parameters, candidates, each)
    while len(chosen) < number and len(candidates):
        best = int(np.argmax(unsure))
        if unsure[best] <= 0:
            break
        chosen.append(tuple(int(one) for one in candidates[best]))
        unsure = unsure * _left(where, parameters, candidates, chosen[-1])
        unsure[best] = 0.0
    return chosen


def doubtful(
    axes: Sequence[Axis],
    surfaces: Iterable[Surface],
    number: int,
    taken: Sequence[Place],
    able: Callable[[Place], bool],
    seed: int,
    own: bool = False,
) -> list[Place]:
    """Return the places where the bands of the surfaces are widest, of all or of `around`."""
    candidates = around(axes, set(taken), able) if own else drawn(axes, set(taken), able, seed)
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
    axes: Sequence[Axis],
    figures: Sequence[Mapping[Place, float]],
    number: int,
    taken: Sequence[Place],
    able: Callable[[Place], bool],
    seed: int,
) -> list[Place]:
    """Return places between two sizes of a cache where a figure jumps most: there may be a cliff.

    A surface does not expect a cliff that no replay shows.  Half of these places have the
    scenario's own SSD, disks and load, which are looked at most.  Each of `figures` is known at
    replays, in the scale of its interpolation; a jump counts in standard deviations of its figure.
    """
    names = [axis.name for axis in axes]
    cache, size = names.index(CACHE), names.index(SIZE)
    gaps: dict[tuple[int, int, int], float] = {}
    for known in figures:
        by_size: dict[int, dict[int, list[float]]] = {}
        for place, value in _of_cache_and_size(axes, known).items():
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
        numbers = [int(draw.integers(len(axis.choices))) for axis in axes]
        if draw.random() < OWN_SHARE:
            numbers = list(own_place(axes))
        numbers[cache], numbers[size] = kind, (low + high) // 2
        between = tuple(numbers)
        if between not in used and able(between):
            chosen.append(between)
        if len(chosen) == number:
            break
    return chosen


def _of_cache_and_size(axes: Sequence[Axis], known: Mapping[Place, float]) -> dict[Place, float]:
    """Return a figure without what load, disks and SSD make of it, in standard deviations.

    What these make of it is linear in their places, and apart for each mode, whose writes wait for
    the disks or do not.
    """
    if not known:
        return {}
    where = Coordinates(axes)
    places = np.array(list(known), np.int64)
    values = np.array(list(known.values()))
    names = [axis.name for axis in axes]
    cache, size = names.index(CACHE), names.index(SIZE)
    modes = where.mode_of(places)
    # Each cache has a level and a slope by size, which stay; each mode slopes by the other axes.
    caches = (places[:, cache][:, None] == np.arange(len(axes[cache].choices))).astype(np.float64)
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


def around(
    axes: Sequence[Axis], taken: set[Place], able: Callable[[Place], bool]
) -> npt.NDArray[np.int64]:
    """Return the free places of all caches and sizes with the scenario's SSD, disks, load."""
    names = [axis.name for axis in axes]
    cache, size = names.index(CACHE), names.index(SIZE)
    found = []
    for kind, at in itertools.product(
        range(len(axes[cache].choices)), range(len(axes[size].choices))
    ):
        place = list(own_place(axes))
        place[cache], place[size] = kind, at
        if tuple(place) not in taken and able(tuple(place)):
            found.append(place)
    return np.array(found, np.int64).reshape(-1, len(axes))


def drawn(
    axes: Sequence[Axis], taken: set[Place], able: Callable[[Place], bool], seed: int
) -> npt.NDArray[np.int64]:
    """Return places that are free and can be built: all, or CANDIDATES random ones."""
    numbers = [len(axis.choices) for axis in axes]
    every: Iterable[Place]
    if all_places(axes) <= CANDIDATES:
        every = itertools.product(*map(range, numbers))
    else:
        draw = np.random.default_rng(seed)
        columns = [draw.integers(0, each, CANDIDATES) for each in numbers]
        every = dict.fromkeys(zip(*(column.tolist() for column in columns)))
    found = [each for each in every if each not in taken and able(each)]
    return np.array(found, np.int64).reshape(-1, len(axes))


def _left(
    where: Coordinates, parameters: Floats, candidates: npt.NDArray[np.int64], taken: Place
) -> Floats:
    """Return the share of the doubt about candidates that a replay at `taken` leaves."""
    alike = where.alike(where.apart(candidates, [taken]), parameters)[:, 0]
    result: Floats = 1 - alike**2
    return result
