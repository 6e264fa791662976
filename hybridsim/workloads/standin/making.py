"""Generation of a stand-in: objects, their visits, the requests of visits, arrival times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests, requests_with
from hybridsim.workloads.draws import Draws, Floats, Ints, Weighted
from hybridsim.workloads.standin.measured import (
    BIRTH_EDGES,
    GROUPS,
    LAGS,
    LIFE_EDGES,
    NEW,
    OCTAVES,
    ON,
    PAGE_BYTES,
    PAUSE_EDGES,
    RUN_EDGES,
    STATES,
    WHOLE,
    anchors,
    drawn,
    from_histogram,
    pause_class,
    shape_class,
    size_group,
    states,
    within,
)

if TYPE_CHECKING:
    from hybridsim.workloads.stand_in import StandIn

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
        key = number * far + np.minimum(time, accesses)
        wanted = anchor[mine] * far + time[mine]
        after = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        before = np.maximum(after - 1, 0)
        is_after = np.abs(key[after] - wanted) < np.abs(key[before] - wanted)
        moved = time.copy()
        moved[mine] = time[np.where(is_after, after, before)] + 1
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
