"""The distributions of a capture: all that its stand-in is generated from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests
from hybridsim.workloads.draws import Draws, Floats, Ints

PAGE_BYTES = 1 << 16
SIZE_EDGES = np.array([1, *(2**power + 1 for power in range(24))])  # pages: 1, 2, 3-4, 5-8, ...
COUNT_EDGES = np.array(
    [1, 2, 3, *(edge for power in range(2, 40) for edge in (1 << power, 3 << power >> 1))]
)
# shares of the trace, with narrower slices at its beginning, where most objects are new
BIRTH_EDGES = np.array([0.0, *(2.0**-power for power in range(12, 4, -1)), *np.arange(1, 16) / 16])
# shares of the rest of the trace after an object's birth
LIFE_EDGES = np.array(
    [0.0, *(2.0**-power for power in range(24, 3, -1)), *np.arange(2, 16) / 16]
    + [1 - 2.0**-power for power in range(5, 9)]
)
WRITE_EDGES = np.array([0.0, 1e-9, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0])  # share of visits that write
QUANTILES = 9  # of a class
NOTHING = -99  # the half octave of values <= 0
GROUPS = 13  # of objects by size; the last is 2,049 pages and more


def class_of(values: ArrayLike, edges: NDArray[np.generic]) -> Ints:
    """Return the class of each value; class i begins at edges[i]."""
    return np.searchsorted(edges, values, "right").astype(np.int64) - 1


def size_group(size_class: Ints) -> Ints:
    """Return the group of a size class."""
    return np.minimum(size_class, GROUPS - 1)


def rounded(value: float) -> float:
    """Return a value with four digits."""
    return float(f"{value:.4g}")


def drawn(table: list[float], draws: Draws, rows: int) -> Floats:
    """Draw `rows` values from a distribution that is specified by its quantiles."""
    return np.interp(draws.uniform(rows), np.linspace(0, 1, len(table)), table)


def histogram(values: NDArray[Any]) -> list[list[int]]:
    """Return rows of [half octave, number of values in it].

    The half octave n begins at 2^(n/2); that of values <= 0 is NOTHING.
    """
    octave = np.floor(2 * np.log2(np.maximum(values.astype(np.float64), 1e-30)))
    octaves = np.where(values > 0, octave, NOTHING).astype(np.int64)
    rows: list[list[int]] = np.stack(np.unique(octaves, return_counts=True)).T.tolist()
    return rows


def from_histogram(
    table: list[list[int]], draws: Draws, rows: int, share: Floats | None = None
) -> Floats:
    """Draw `rows` values from a distribution that is specified by half octaves.

    `share` is the cumulative share of each value; it is random by default.
    """
    bins, number = np.array(table or [[NOTHING, 1]], np.int64).T
    below = np.cumsum(number)[:-1] / number.sum()
    bin = bins[np.searchsorted(below, draws.uniform(rows) if share is None else share, "right")]
    low = np.exp2(bin / 2)
    values: Floats = low * (1 + draws.uniform(rows) * (2**0.5 - 1))
    return np.where(bin == NOTHING, 0.0, values)


def within(classes: Ints, edges: Floats, draws: Draws) -> Floats:
    """Draw a share from each class, uniformly between its edges; the last one ends at 1."""
    ends = np.append(edges[1:], 1.0)
    return edges[classes] + draws.uniform(len(classes)) * (ends - edges)[classes]


Flags = NDArray[np.bool_]
WINDOW = 256  # largest distance of two requests of a run
LINKED = 0.5  # minimum share of runs that cross into the next page of the same object


class Visits(NamedTuple):
    """The visits, one per row, in order of their first requests."""

    object: Ints
    first: Ints  # index of the request
    last: Ints
    requests: Ints
    start: Ints  # bytes from the beginning of the object
    bytes: Ints
    length: Ints  # of its first request
    is_write: Flags


class Objects(NamedTuple):
    """The objects, one per row, in order of address."""

    page: Ints  # first page
    pages: Ints


def taken_apart(rows: Requests) -> tuple[Objects, Visits]:
    """Return the objects of a capture and the visits to them."""
    run = runs(rows)
    objects = _objects(rows, run)
    number = np.searchsorted(objects.page, rows.offset_bytes // PAGE_BYTES, "right") - 1
    key = run * len(objects.page) + number
    _, first, visit = np.unique(key, return_index=True, return_inverse=True)
    count = len(first)
    last, start = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(last, visit, np.arange(len(visit)))
    base = objects.page[number] * PAGE_BYTES
    np.minimum.at(start, visit, rows.offset_bytes - base)
    visits = Visits(
        number[first],
        first,
        last,
        np.bincount(visit, minlength=count),
        start,
        np.bincount(visit, rows.length_bytes, count).astype(np.int64),
        rows.length_bytes[first],
        rows.op[first] != Op.READ,
    )
    order = np.argsort(visits.first)
    return objects, Visits._make(column[order] for column in visits)


def runs(rows: Requests) -> Ints:
    """Return for each request the first request of its run.

    A request continues a run if one of the same direction, at most WINDOW requests before, ended
    at its offset.
    """
    count, is_write = rows.rows, rows.op != Op.READ
    place = np.concatenate([rows.offset_bytes + rows.length_bytes, rows.offset_bytes])
    is_start = np.repeat([False, True], count)
    number = np.tile(np.arange(count), 2)
    order = np.lexsort((~is_start, number, np.tile(is_write, 2), place))
    end_at = np.where(is_start[order], -1, np.arange(2 * count))
    latest = order[np.maximum(np.maximum.accumulate(end_at), 0)]
    start_at = np.flatnonzero(is_start[order])
    start, before = order[start_at], latest[start_at]
    same = (place[before] == place[start]) & ~is_start[before]
    me, before = start - count, before % count
    same &= (is_write[me] == is_write[before]) & (me > before)
    same &= me - before <= WINDOW
    me, before = me[same], before[same]
    me, before = me[np.argsort(me)], before[np.argsort(me)]
    _, once = np.unique(before, return_index=True)  # the first continuation of each
    first = np.arange(count)
    first[me[once]] = before[once]
    while True:
        further = first[first]
        if (further == first).all():
            return first
        first = further


def _objects(rows: Requests, run: Ints) -> Objects:
    """Join adjacent pages into objects where most runs cross from one to the next."""
    first = rows.offset_bytes // PAGE_BYTES
    last = (rows.offset_bytes + rows.length_bytes - 1) // PAGE_BYTES
    low = np.full(len(run), np.iinfo(np.int64).max)
    high = np.zeros(len(run), np.int64)
    np.minimum.at(low, run, first)
    np.maximum.at(high, run, last)
    heads = np.flatnonzero(run == np.arange(len(run)))
    low, width = low[heads], high[heads] - low[heads] + 1
    begin = np.cumsum(width) - width
    within = np.arange(int(width.sum())) - np.repeat(begin, width)
    touched = np.repeat(low, width) + within
    goes_on = within < np.repeat(width, width) - 1
    page, where = np.unique(touched, return_inverse=True)
    visits = np.bincount(where, minlength=len(page))
    crossings = np.bincount(where, goes_on, len(page))
    linked = np.append(
        (np.diff(page) == 1) & (crossings[:-1] >= LINKED * np.maximum(visits[:-1], visits[1:])),
        False,
    )
    begins = np.flatnonzero(~np.append(False, linked[:-1]))
    sizes = np.diff(np.append(begins, len(page)))
    is_entered = np.zeros(len(begins), np.bool_)  # others are only reached by the tails of requests
    is_entered[np.searchsorted(page[begins], first, "right") - 1] = True
    return Objects(page[begins][is_entered], sizes[is_entered])


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
        return [rounded(each) for each in means]

    def counts(self) -> list[list[list[float]]]:
        """Return quantiles of the number of visits by class, for one page and for more."""
        return [
            by_class(self.visits[larger], self.count[larger])
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


def by_class(values: Any, classes: Ints) -> list[list[float]]:
    """Return evenly spaced quantiles of each class, with four digits; [] of an empty class."""
    table = []
    for each in range(int(classes.max(initial=-1)) + 1):
        mine = values[classes == each].astype(np.float64)
        found = np.quantile(mine, np.linspace(0, 1, QUANTILES)) if len(mine) else []
        table.append([rounded(value) for value in found])
    return table


LAGS = 16  # how many visits back a repeated start may lie
NEW, ON = 0, 1  # start of a visit: new, at the end of the last visit; ON + lag: repeated
PAUSE_EDGES = np.array([64, 1024, 16384])  # requests
SHAPES = 48  # number of request lengths that are kept exactly
ALIGNS = [512 << power for power in range(8)]
SOUND = 0.95  # minimum share of visits that fit an alignment
RUN_EDGES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 4096])
OFTEN = 16  # visits
WHOLE = 99  # class of the number of requests: the whole object
NEAR = 64  # requests between two visits that occur together, or two births that are one event
REGION_PAGES = 16
HEATS, AGES = 10, 24  # of objects, in the order of their addresses
STATES = 2 * HEATS * AGES
PARTS = 64  # equal numbers of requests, each with its duration
OCTAVES = 48  # of gaps in nanoseconds


def starts(visits: Visits, life: Lives) -> tuple[list[list[int]], list[float]]:
    """Return how visits start, and by group how often a repeated start has the same length.

    The first result has rows of: group, number of earlier visits, class of the preceding pause,
    start (NEW, ON, ON + lag), number; the second one covers visits of one request.
    """
    how = np.zeros(len(visits.first), np.int64)
    end = visits.start + visits.bytes
    on = np.append(False, visits.start[1:] == end[:-1]) & (life.nth > 0)
    for lag in range(min(LAGS, len(how) - 1), 0, -1):
        again = np.append(np.zeros(lag, np.bool_), visits.start[lag:] == visits.start[:-lag])
        how[again & (life.nth >= lag)] = ON + lag
    how[on & (how == NEW)] = ON
    pause = np.diff(visits.first, prepend=0)
    columns = np.stack([life.group, np.minimum(life.nth, LAGS), pause_class(pause, life.nth), how])
    rows, number = np.unique(columns, axis=1, return_counts=True)
    later = np.flatnonzero(how > ON)
    before = later - (how[later] - ON)
    alone = (visits.requests[later] == 1) & (visits.requests[before] == 1)
    group = life.group[later[alone]]
    as_long = (visits.length[later] == visits.length[before])[alone]
    shares = np.bincount(group, as_long, GROUPS) / np.maximum(np.bincount(group, None, GROUPS), 1)
    return np.vstack([rows, number]).T.tolist(), [rounded(each) for each in shares]


def together(visits: Visits, objects: Objects, life: Lives, accesses: int) -> float:
    """Return the share of visits that occur together with one to the most visited neighbour.

    Coincidences are subtracted; they are estimated with the same visits shifted in time.
    """
    anchor = anchors(objects.page, life.visits)[life.number]
    mine = anchor != life.number
    if not mine.any():
        return 0.0
    key = life.number * (2 * accesses) + visits.first
    shares = []
    for late in (0, accesses // 7):
        time = (visits.first[mine] + late) % accesses
        wanted = anchor[mine] * (2 * accesses) + time
        shares.append(float((nearest_distance(key, wanted) <= NEAR).mean()))
    return rounded(max(shares[0] - shares[1], 0) / max(1 - shares[1], 1e-9))


def anchors(page: Ints, visits: Ints) -> Ints:
    """Return for each object the most visited one in the same REGION_PAGES."""
    region = page // REGION_PAGES
    order = np.lexsort((np.arange(len(page)), -visits, region))
    _, begins, which = np.unique(region[order], return_index=True, return_inverse=True)
    anchor = np.empty(len(page), np.int64)
    anchor[order] = order[begins][which]
    return anchor


def nearest_distance(keys: Ints | Floats, wanted: Ints | Floats) -> Any:
    """Return the distance from each wanted value to the nearest of the sorted keys."""
    after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    before = np.maximum(after - 1, 0)
    return np.minimum(np.abs(keys[after] - wanted), np.abs(keys[before] - wanted))


def pause_class(pause: Ints | Floats, nth: Ints) -> Ints:
    """Return the class of the pause before each visit; 0 for the first visit of an object."""
    return np.where(nth > 0, np.searchsorted(PAUSE_EDGES, pause, "right"), 0).astype(np.int64)


def from_begin(visits: Visits, life: Lives) -> list[list[float]]:
    """Return by group the share of first and of later visits that start at the object's begin."""
    at_begin = visits.start < 4096
    return [
        [
            rounded(at_begin[mine].mean()) if mine.any() else 1.0
            for mine in ((life.group == group) & ((life.nth > 0) == later) for later in (0, 1))
        ]
        for group in range(GROUPS)
    ]


def shapes(visits: Visits, life: Lives, objects: Objects) -> list[list[int]]:
    """Return the joint distribution of request lengths and numbers of requests of visits.

    Rows of: class (shape_class), length, alignment, class of the number of requests, number.
    """
    length = np.rint(visits.bytes / visits.requests / 512).astype(np.int64) * 512
    length = np.maximum(np.where(visits.requests == 1, visits.length, length), 1)
    room = objects.pages[life.number] * PAGE_BYTES
    amount = class_of(visits.requests, RUN_EDGES)
    amount[(life.group > 0) & (visits.bytes * 16 >= room * 15)] = WHOLE
    classes = shape_class(life.group, life.nth, life.visits[life.number], visits.is_write)
    rows = []
    for each in np.unique(classes):
        mine = np.flatnonzero(classes == each)
        nearest = _commonest(length[mine])
        for value in np.unique(nearest):
            these = mine[nearest == value]
            align = _alignment(visits.start[these])
            for how_many, number in zip(*np.unique(amount[these], return_counts=True)):
                rows.append([int(each), int(value), align, int(how_many), int(number)])
    return rows


def shape_class(group: Ints, nth: Ints, visits: Ints, is_write: Any) -> Ints:
    """Return the class by group, frequent object or not, first visit or not, and write or not."""
    classes: Ints = ((group * 2 + (visits >= OFTEN)) * 2 + (nth > 0)) * 2 + is_write
    return classes


def _commonest(length: Ints) -> Ints:
    """Return the nearest of the SHAPES most frequent lengths for each length."""
    values, number = np.unique(length, return_counts=True)
    kept = np.sort(values[np.argsort(-number, kind="stable")[:SHAPES]])
    above = np.minimum(np.searchsorted(kept, length), len(kept) - 1)
    below = np.maximum(above - 1, 0)
    is_above = kept[above] - length < length - kept[below]
    return np.where(is_above | (kept[above] == length), kept[above], kept[below])


def _alignment(start: Ints) -> int:
    fitting = [align for align in ALIGNS if (start % align == 0).mean() >= SOUND]
    return max(fitting, default=512)


def pace(visits: Visits, life: Lives) -> list[list[list[int]]]:
    """Return histograms of the requests between two of a visit, for one page and for more."""
    long = visits.requests > 1
    gap = (visits.last - visits.first)[long] / (visits.requests[long] - 1)
    return by_size(gap, life.group[long])


def by_size(values: Any, size: Ints) -> list[list[list[int]]]:
    """Return histograms of values of objects of one page, and of larger ones."""
    return [histogram(values[(size > 0) == larger]) for larger in (0, 1)]


def transitions(state: Ints, states: int) -> list[list[int]]:
    """Return the numbers of transitions between neighbours: [state, next state, number]."""
    pairs, number = np.unique(state[:-1] * states + state[1:], return_counts=True)
    return [[pair // states, pair % states, n] for pair, n in zip(pairs.tolist(), number.tolist())]


def states(size: Ints, count: Ints, birth: Ints) -> Ints:
    """Return the state of each object: larger than one page or not, visits, birth."""
    heat = np.minimum((count + 1) // 2, HEATS - 1)
    return ((size > 0) * HEATS + heat) * AGES + birth


def octaves(gaps_ns: Ints) -> Ints:
    """Return the octave of each gap; 0 is no gap."""
    _, exponent = np.frexp(gaps_ns.astype(np.float64))
    return np.minimum(exponent, OCTAVES - 1).astype(np.int64)


def measured(requests: Requests) -> dict[str, Any]:
    """Return the table of a stand-in for the requests of a capture."""
    is_data = requests.moves
    if not is_data.any():
        return {"accesses": 0}
    rows = requests.where(is_data)
    objects, visits = taken_apart(rows)
    visits = Visits._make(column[np.lexsort((visits.first, visits.object))] for column in visits)
    accesses = rows.rows
    life = Lives(objects, visits, accesses)
    how, repeats = starts(visits, life)
    same_age = life.birth[1:] == life.birth[:-1]
    born_near = np.abs(np.diff(life.begin))[same_age] <= NEAR
    gap = np.diff(objects.page, prepend=0) - np.append(0, objects.pages[:-1])
    flushes = requests.op == Op.FLUSH
    arrival = requests.arrival_ns[is_data | flushes]
    at = np.linspace(0, max(len(arrival) - 1, 0), PARTS + 1).astype(np.int64)
    return {
        "accesses": accesses,
        "objects": life.table(),
        "sizes": by_class(objects.pages, life.size),
        "counts": life.counts(),
        "pauses": life.pauses(),
        "serial": life.serial(),
        "written": life.written(),
        "starts": how,
        "repeats": repeats,
        "together": together(visits, objects, life, accesses),
        "from_begin": from_begin(visits, life),
        "shapes": shapes(visits, life, objects),
        "pace": pace(visits, life),
        "order": transitions(states(life.size, life.count, life.birth), STATES),
        "born_together": rounded(born_near.mean()) if same_age.any() else 0.0,
        "gaps": by_size(np.maximum(gap, 0), life.size),
        "reach": int(objects.page[-1] + objects.pages[-1]),
        "bursts": transitions(octaves(np.diff(arrival)), OCTAVES),
        "parts": [rounded(each / 1e9) for each in np.diff(arrival[at])],
        "flushes": rounded(int(flushes.sum()) / max(int((rows.op != Op.READ).sum()), 1)),
    }
