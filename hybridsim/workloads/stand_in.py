"""A stand-in for a capture: requests with the same behaviour, generated from distributions alone.

An object is a sequence of 64 KiB pages that are used together: a page with random reads, a file
that is read sequentially, a journal.  A visit is one run of requests through a part of an object.
Each object has a size, a number of visits, a birth and a life; the pauses between its visits,
relative to their mean, are drawn from those of objects with a similar number of visits.  Pauses
determine the miss-ratio curve, births the first accesses, counts the popularity (P. J. Denning,
"The working set model for program behavior", CACM 11(5), 1968: misses follow from the times between
references).

The table has the distributions, as `hybridsim trace fit` writes them.  Below it are what measures
them, and the generation: of objects, their visits, the requests of visits, and arrival times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from hybridsim.foundation.codes import Op
from hybridsim.foundation.toml.table import Part, Size, Time
from hybridsim.requests.rows import Requests, requests_with
from hybridsim.workloads.draws import Draws, Floats, Ints, Weighted
from hybridsim.workloads.load import BLOCK_ROWS, WORKER_BITS, Count

Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Quantiles = list[float]
Whole = Annotated[int, Field(ge=-99, lt=2**53)]
Pair = Annotated[list[Whole], Field(min_length=2, max_length=2)]
Triple = Annotated[list[Whole], Field(min_length=3, max_length=3)]
Five = Annotated[list[Whole], Field(min_length=5, max_length=5)]
Six = Annotated[list[Whole], Field(min_length=6, max_length=6)]


class StandIn(Part):
    """A load that draws its requests from the distributions of a capture."""

    kind: Literal["stand-in"] = "stand-in"
    name: str = ""
    at: Size = 0
    begin: Time = 0
    accesses: Count  # requests that read or write data
    objects: list[Six] = Field(min_length=1)  # size, visits, writes, birth, life; number of objects
    sizes: list[Quantiles]  # pages, by class
    counts: list[list[Quantiles]]  # visits; for one page and for more, by class
    pauses: list[list[list[Pair]]]  # relative to the mean pause; as counts
    serial: list[Annotated[float, Field(ge=0, le=1)]]  # correlation of consecutive pauses
    written: list[Share]  # mean share of visits that write, by class
    starts: list[Five] = Field(min_length=1)  # group, earlier visits, pause, start; number
    repeats: list[Share]  # same length at a repeated start, by group
    from_begin: list[list[Share]]  # visits that start at the object's begin, by group
    together: Share  # visits together with one to the hottest neighbour
    shapes: list[Five] = Field(min_length=1)  # class, length, alignment, requests; number
    pace: list[list[Pair]]  # requests between two of a visit
    order: list[Triple]  # transitions of states in order of address
    born_together: Share  # same-age neighbours that are born together
    gaps: list[list[Pair]]  # pages between neighbours
    reach: Count  # pages up to the end of the last
    bursts: list[Triple]  # transitions of octaves of gaps
    parts: list[Share] = Field(min_length=1)  # duration of each 1/64 of the requests, in seconds
    flushes: Share  # per write

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for classes without a distribution, as after an edit."""
        for column, key in ((0, "sizes"), (1, "serial")):
            table = getattr(self, key)
            if any(not 0 <= row[column] < len(table) for row in self.objects):
                yield key, f"{key} has no entry for a class that objects refers to"
        for key in ("counts", "pauses"):
            sizes = [len(each) for each in getattr(self, key)]
            if len(sizes) != 2 or any(row[1] >= sizes[row[0] > 0] for row in self.objects):
                yield key, f"{key} has no entry for a class that objects refers to"

    @property
    def ends(self) -> bool:
        """Return True: the load has an end."""
        return True

    def load(self) -> StandIn:
        """Return the source of the requests."""
        return self

    def requests(self, seed: int, number: int) -> Iterator[Requests]:
        """Yield the requests; all are generated before the first, some 200 bytes each."""
        rows = generated(self, seed, number)
        rows.arrival_ns[:] += self.begin
        rows.offset_bytes[:] += self.at
        rows.stream[:] = number << WORKER_BITS
        for start in range(0, rows.rows, BLOCK_ROWS):
            yield rows.between(start, start + BLOCK_ROWS)


# --- the distributions of a capture -------------------------------------------------------------

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
        shares.append(float((np.abs(key[nearest(key, wanted)] - wanted) <= NEAR).mean()))
    return rounded(max(shares[0] - shares[1], 0) / max(1 - shares[1], 1e-9))


def anchors(page: Ints, visits: Ints) -> Ints:
    """Return for each object the most visited one in the same REGION_PAGES."""
    region = page // REGION_PAGES
    order = np.lexsort((np.arange(len(page)), -visits, region))
    _, begins, which = np.unique(region[order], return_index=True, return_inverse=True)
    anchor = np.empty(len(page), np.int64)
    anchor[order] = order[begins][which]
    return anchor


def nearest(keys: Ints | Floats, wanted: Ints | Floats) -> Ints:
    """Return the index of the sorted key that is nearest to each value; of two the lower one."""
    after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    before = np.maximum(after - 1, 0)
    is_after = np.abs(keys[after] - wanted) < np.abs(keys[before] - wanted)
    return np.where(is_after, after, before)


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
        lengths, often = np.unique(length[mine], return_counts=True)
        kept = np.sort(lengths[np.argsort(-often, kind="stable")[:SHAPES]])  # the most frequent
        kind = kept[nearest(kept, length[mine])]
        for value in np.unique(kind):
            these = mine[kind == value]
            align = _alignment(visits.start[these])
            for how_many, number in zip(*np.unique(amount[these], return_counts=True)):
                rows.append([int(each), int(value), align, int(how_many), int(number)])
    return rows


def shape_class(group: Ints, nth: Ints, visits: Ints, is_write: Any) -> Ints:
    """Return the class by group, frequent object or not, first visit or not, and write or not."""
    classes: Ints = ((group * 2 + (visits >= OFTEN)) * 2 + (nth > 0)) * 2 + is_write
    return classes


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


# --- generation ---------------------------------------------------------------------------------

LARGE_GAP = 16  # pages
CHAINS = 256  # of gaps between requests, drawn in parallel


class Pieces(NamedTuple):
    """The objects, one per row."""

    page: Ints
    pages: Ints
    group: Ints
    visits: Ints
    heat: Ints  # class of visits
    write_share: Floats
    begin: Floats  # in requests since the beginning of the trace
    span: Floats


def generated(table: StandIn, *key: int) -> Requests:
    """Return all requests of a stand-in; `key` seeds the random numbers."""
    pieces = _pieces(table, Draws(*key, 0))
    visits = _Visits(table, pieces, Draws(*key, 1))
    return _requests(table, pieces, visits, Draws(*key, 2))


def _pieces(table: StandIn, draws: Draws) -> Pieces:
    size, count, kind, birth, life, number = np.array(table.objects, np.int64).T
    row = np.repeat(np.arange(len(number)), number)
    size, count, kind, birth, life = (each[row] for each in (size, count, kind, birth, life))
    pages = _of_class(table.sizes, size, draws)
    visits = np.ones(len(size), np.int64)
    for which in (0, 1):
        mine = (size > 0) == which
        visits[mine] = _of_class(table.counts[which], count[mine], draws)
    share = np.array(table.written)[kind]
    order = _laid_out(states(size, count, birth), table.order, draws)
    begin = np.zeros(len(order))
    begin[order] = _births(birth[order], table.born_together, draws) * table.accesses
    span = within(life, LIFE_EDGES, draws) * (table.accesses - begin)
    gap = _by_size(table.gaps, size[order], np.zeros(len(order)), size >= 0, draws)
    before = _scaled(np.floor(gap).astype(np.int64), table.reach - int(pages.sum()))
    ends = np.cumsum(before + pages[order])
    page = np.zeros(len(order), np.int64)
    page[order] = ends - pages[order]
    return Pieces(page, pages, size_group(size), visits, count, share, begin, span)


def _scaled(gaps: Ints, room: int) -> Ints:
    """Return the gaps, the large ones scaled so that the sum is `room`."""
    large = gaps >= LARGE_GAP
    factor = (room - int(gaps[~large].sum())) / max(int(gaps[large].sum()), 1)
    return np.where(large, (gaps * max(factor, 0)).astype(np.int64), gaps)


def _births(birth: Ints, together: float, draws: Draws) -> Floats:
    """Return the birth of each object within its slice; some are born with their predecessor."""
    alone = within(birth, BIRTH_EDGES, draws)
    follows = np.append(False, birth[1:] == birth[:-1]) & draws.happens(together, len(birth))
    leader = np.maximum.accumulate(np.where(follows, 0, np.arange(len(birth))))
    return alone[leader]


def _of_class(table: list[list[float]], classes: Ints, draws: Draws) -> Ints:
    """Draw whole numbers from the quantiles of the classes, at least 1."""
    values = np.ones(len(classes))
    for each in np.unique(classes):
        mine = classes == each
        values[mine] = drawn(table[each], draws, int(mine.sum()))
    return np.maximum(np.rint(values), 1).astype(np.int64)


class _Visits:
    """The visits, one per row, sorted by object and time."""

    def __init__(self, table: StandIn, pieces: Pieces, draws: Draws) -> None:
        self._table = table
        self._pieces = pieces
        self._draws = draws
        self.number = np.repeat(np.arange(len(pieces.visits)), pieces.visits)  # of the object
        self._first = np.cumsum(pieces.visits) - pieces.visits
        self._nth = np.arange(len(self.number)) - self._first[self.number]
        self._group = pieces.group[self.number]
        self._room = pieces.pages[self.number] * PAGE_BYTES
        self.is_write = draws.happens(pieces.write_share[self.number], len(self.number))
        self.length, align, self.requests = self._shapes()
        time = self._times()
        self.start = self._starts(time, align)
        self.time = self._together(time)

    def _times(self) -> Floats:
        """Return the times of visits: random pauses, scaled to the object's life."""
        number = self.number
        pieces = self._pieces
        pause = np.zeros(len(number))
        kinds = pieces.heat[number] * 2 + (self._group > 0)
        for kind in np.unique(kinds):
            each, larger = divmod(int(kind), 2)
            mine = np.flatnonzero((kinds == kind) & (self._nth > 0))
            if len(mine):
                share = self._spread(mine, self._table.serial[each])
                table = self._table.pauses[larger][each]
                pause[mine] = from_histogram(table, self._draws, len(mine), share)
        passed = np.cumsum(pause)
        passed -= passed[self._first][number]
        whole = passed[self._first + pieces.visits - 1]
        scale = np.where(whole > 0, pieces.span / np.where(whole > 0, whole, 1), 0)
        return pieces.begin[number] + passed * scale[number]

    def _spread(self, mine: Ints, serial: float) -> Floats:
        """Return the quantile of each of these pauses; the pauses of an object are stratified.

        Their order is random, with the serial correlation `serial` (the ranks of an autoregressive
        process of the first order).
        """
        from scipy.signal import lfilter  # takes a while to import

        nth = self._nth[mine]
        noise = self._draws.uniform(len(mine)) - 0.5
        noise = lfilter([1.0], [1.0, -serial], noise) if serial > 0 else noise
        order = np.lexsort((noise, self.number[mine]))
        pauses = np.diff(np.append(np.flatnonzero(nth == 1), len(mine)))
        rank = np.empty(len(mine))
        rank[order] = nth - 1  # both orders are grouped by object
        uniform = self._draws.uniform(len(mine))
        quantile: Floats = (rank + uniform) / np.repeat(pauses, pauses)
        return quantile

    def _shapes(self) -> tuple[Ints, Ints, Ints]:
        """Return the length of each visit's requests, their alignment, and their number."""
        rows = len(self.number)
        shapes = np.array(self._table.shapes, np.int64)
        visits = self._pieces.visits[self.number]
        classes = shape_class(self._group, self._nth, visits, self.is_write)
        chosen = np.zeros(rows, np.int64)
        for each in np.unique(classes):
            mine = np.flatnonzero(classes == each)
            fitting = np.flatnonzero(shapes[:, 0] == each)
            if not len(fitting):  # use those of the opposite direction
                fitting = np.flatnonzero(shapes[:, 0] == each ^ 1)
            if not len(fitting):
                fitting = np.arange(len(shapes))
            chosen[mine] = fitting[Weighted(shapes[fitting, 4]).choose(self._draws, len(mine))]
        _, length, align, amount, _ = shapes[chosen].T
        edge = np.minimum(amount, len(RUN_EDGES) - 1)
        low = RUN_EDGES[edge]
        end = np.append(RUN_EDGES[1:], RUN_EDGES[-1] * 2)[edge]
        requests = low + self._draws.below(end - low, rows)
        whole = np.maximum(self._room // length, 1)
        return length, align, np.where(amount == WHOLE, whole, np.minimum(requests, whole))

    def _starts(self, time: Floats, align: Ints) -> Ints:
        """Return the start of each visit in its object; a repeated one may repeat the length."""
        draws = self._draws
        nth = self._nth
        group = self._group
        rows = len(nth)
        pause = np.diff(time, prepend=0)
        columns = (group, np.minimum(nth, LAGS), pause_class(pause, nth))
        how = _how(np.array(self._table.starts, np.int64), columns, draws)
        place = self._new_places(how == NEW, align)
        share = np.array(self._table.from_begin)[group, (nth > 0).astype(np.int64)]
        place[draws.happens(np.where(group > 0, share, 0.0), rows)] = 0
        lag = np.minimum(np.where(how == ON, 1, np.maximum(how - ON, 0)), nth)
        me = np.arange(rows)
        alone = (self.requests == 1) & (self.requests[me - lag] == 1)
        as_long = draws.happens(np.array(self._table.repeats)[group], rows)
        as_long &= (how > ON) & alone
        like, _ = _traced(np.where(as_long, me - lag, me), np.zeros(rows, np.int64))
        self.length = self.length[like]
        added = np.where(how == ON, np.roll(self.length * self.requests, 1), 0)
        source, added = _traced(me - lag, added)
        return (place[source] + added) % self._room

    def _new_places(self, is_new: Any, align: Ints) -> Ints:
        """Return a start for each new place: one that its object has not had yet, while there are.

        Non-overlapping places of an object are taken in steps of the golden ratio.
        """
        seen = np.cumsum(is_new) - is_new
        turn = seen - seen[self._first][self.number]
        slots = np.maximum(self._room // self.length, 1)
        step = np.maximum((slots * 0.618).astype(np.int64), 1) | 1
        place: Ints = (turn * step + self.number) % slots * self.length // align * align
        return place

    def _together(self, time: Floats) -> Floats:
        """Move as many visits next to one of the most visited neighbour as in the capture."""
        number = self.number
        anchor = anchors(self._pieces.page, self._pieces.visits)[number]
        is_moved = self._draws.happens(self._table.together, len(number))
        mine = np.flatnonzero((anchor != number) & is_moved)
        accesses = self._table.accesses
        far = 2.0 * accesses
        key: Any = number * far + np.minimum(time, accesses)
        wanted = anchor[mine] * far + time[mine]
        moved = time.copy()
        moved[mine] = time[nearest(key, wanted)] + 1
        return moved


def _traced(source: Ints, added: Ints) -> tuple[Ints, Ints]:
    """Follow chains of sources to their origins, and add up what is added on the way."""
    while True:  # each iteration doubles the distance
        further = source[source]
        if (further == source).all():
            return source, added
        added = added + np.where(source != np.arange(len(source)), added[source], 0)
        source = further


def _how(rows: Ints, columns: tuple[Ints, Ints, Ints], draws: Draws) -> Ints:
    """Draw the start of each visit (NEW, ON, ON + lag) by group, earlier visits and pause."""
    shape = (GROUPS, LAGS + 1, len(PAUSE_EDGES) + 1)
    table = np.zeros((*shape, LAGS + 2))
    table[tuple(rows[:, :4].T)] = rows[:, 4]
    sums = np.cumsum(table.reshape(-1, LAGS + 2), axis=1)
    sums /= np.maximum(sums[:, -1:], 1)
    index = np.ravel_multi_index(columns, shape)
    chance = draws.uniform(len(index))
    how = np.zeros(len(index), np.int64)
    order = np.argsort(index, kind="stable")
    kinds, begins = np.unique(index[order], return_index=True)
    for kind, mine in zip(kinds, np.split(order, begins[1:])):
        how[mine] = np.searchsorted(sums[kind], chance[mine], "right")
    return np.where(how > LAGS + 1, NEW, how)


def _requests(table: StandIn, pieces: Pieces, visits: _Visits, draws: Draws) -> Requests:
    number = np.repeat(np.arange(len(visits.time)), visits.requests)
    begin = np.cumsum(visits.requests) - visits.requests
    nth = np.arange(len(number)) - begin[number]
    size, is_run = pieces.group[visits.number], visits.requests > 1
    pace = _by_size(table.pace, size, np.ones(len(visits.time)), is_run, draws)
    others = np.maximum(pace - 1, 0)  # between two requests
    time = visits.time[number] + nth * others[number]
    room: Ints = (pieces.pages * PAGE_BYTES)[visits.number][number]
    length = visits.length[number]
    place = np.minimum((visits.start[number] + nth * length) % room, np.maximum(room - length, 0))
    offset = pieces.page[visits.number][number] * PAGE_BYTES + place
    op = np.where(visits.is_write[number], np.uint8(Op.WRITE), np.uint8(Op.READ))
    order = np.argsort(time, kind="stable")
    return _arriving(table, offset[order], length[order], op[order], draws)


def _by_size(
    tables: list[list[list[int]]], size: Ints, values: Floats, wanted: Any, draws: Draws
) -> Floats:
    """Draw the wanted values from the histogram of objects of one page, or of larger ones."""
    for which in (0, 1):
        mine = ((size > 0) == which) & wanted
        if mine.any():
            values[mine] = from_histogram(tables[which], draws, int(mine.sum()))
    return values


def _arriving(table: StandIn, offset: Ints, length: Ints, op: Any, draws: Draws) -> Requests:
    """Return the requests with flushes inserted, and with arrival times."""
    flushes = np.zeros(len(op), np.int64)
    writes = op == Op.WRITE
    whole = int(table.flushes)
    flushes[writes] = whole + draws.happens(table.flushes - whole, int(writes.sum()))
    source = np.repeat(np.arange(len(op)), 1 + flushes)
    is_flush = np.append(False, source[1:] == source[:-1])
    return requests_with(
        len(source),
        arrival_ns=_arrivals(len(source), table.bursts, table.parts, draws),
        offset_bytes=np.where(is_flush, 0, offset[source]),
        length_bytes=np.where(is_flush, 0, length[source]),
        op=np.where(is_flush, np.uint8(Op.FLUSH), op[source]),
        stream=0,
    )


def _arrivals(count: int, bursts: list[list[int]], parts: list[float], draws: Draws) -> Ints:
    """Return `count` arrival times in ns."""
    gap = np.zeros(count)
    if bursts and count > 1:
        steps = -(-(count - 1) // CHAINS)
        octave = _chains(bursts, steps, draws).T.ravel()[: count - 1]
        low = np.where(octave > 0, 2.0 ** (octave - 1), 0.0)
        gap[1:] = low * (1 + draws.uniform(count - 1))
    at = np.linspace(0, count - 1, len(parts) + 1).astype(np.int64)
    time = np.cumsum(gap)
    arrival = np.zeros(count)
    begin = 0.0
    for low, high, seconds in zip(at, at[1:], parts):
        taken = time[low : high + 1] - time[low]
        scale = seconds * 1e9 / taken[-1] if taken[-1] else 0.0
        arrival[low : high + 1] = begin + taken * scale
        begin = arrival[high]
    return np.rint(arrival).astype(np.int64)


def _chains(bursts: list[list[int]], steps: int, draws: Draws) -> Ints:
    """Return octaves of gaps, one Markov chain per column."""
    table = np.zeros((OCTAVES, OCTAVES))
    for before, after, number in bursts:
        table[before, after] += number
    all_of_them = table.sum(axis=0)
    table[table.sum(axis=1) == 0] = all_of_them
    sums = np.cumsum(table, axis=1)
    sums /= sums[:, -1:]
    whole = np.cumsum(all_of_them) / all_of_them.sum()
    octave = np.zeros((steps, CHAINS), np.int64)
    octave[0] = np.searchsorted(whole, draws.uniform(CHAINS), "right")
    for step in range(1, steps):
        chance = draws.uniform(CHAINS)
        octave[step] = (sums[octave[step - 1]] <= chance[:, None]).sum(axis=1)
    return np.minimum(octave, OCTAVES - 1)


def _laid_out(state: Ints, followers: list[list[int]], draws: Draws) -> Ints:
    """Return an order of the objects whose state transitions follow `followers`."""
    pools = [np.flatnonzero(state == each).tolist() for each in range(STATES)]
    nexts: list[tuple[list[int], list[float]]] = []
    for each in range(STATES):
        mine = [(to, number) for origin, to, number in followers if origin == each]
        nexts.append(([to for to, _ in mine], np.cumsum([number for _, number in mine]).tolist()))
    placed = []
    now = int(state[0])
    remaining = [len(pool) for pool in pools]
    for chance in draws.uniform(len(state)).tolist():
        targets, sums = nexts[now]
        if targets:
            now = targets[int(np.searchsorted(sums, chance * sums[-1], "right"))]
        if not remaining[now]:
            now = max(range(STATES), key=remaining.__getitem__)
        remaining[now] -= 1
        placed.append(pools[now][remaining[now]])
    return np.array(placed, np.int64)
