"""Could a job with rates make these requests, if the time chose the direction of each attempt?

In a mix with rates the time decides whether a read or a write is next.  A log shows the direction
of each request, but not of the attempts between them that found no place: each of those ends a
pass or a file, and takes numbers from the random streams.  So their directions are searched.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import numpy as np

from hybridsim.workloads.fio.generator import FILE_SHIFT, Generator
from hybridsim.workloads.fio.pattern import READ, SYNC, WRITE, Pattern
from hybridsim.workloads.fio.requests import PLAIN

ATTEMPTS = 5  # that are searched for one request
UNKNOWN = -1  # file of a request in a log without files
Row = tuple[int, int, int, int]  # kind, offset, length, file


class _Undecided(Exception):  # noqa: N818 - nothing went wrong
    """A further attempt is made whose direction is open."""


class _Chosen(Generator):
    """A generator each of whose attempts has a chosen direction; it runs in plain Python."""

    directions: list[int]

    def in_time(self, kind: int) -> int:
        """Return the next chosen direction."""
        if not self.directions:
            raise _Undecided
        return self.directions.pop(0)


def can_make(pattern: Pattern, rows: Sequence[Row], has_syncs: bool, is_cut: bool) -> bool:
    """Return whether some directions of the attempts give these requests.

    Without `has_syncs` the rows have none of the job's syncs; with `is_cut` the job may go on.
    """
    with np.errstate(over="ignore"):
        branches = [iter([_Chosen(*Generator.new(pattern))])]
        while branches:
            before = next(branches[-1], None)
            if before is None:
                branches.pop()
            elif len(branches) <= len(rows):
                branches.append(_after(before, rows[len(branches) - 1], has_syncs))
            elif is_cut or any(_after(before, None, has_syncs)):
                return True
    return False


def _after(before: _Chosen, row: Row | None, has_syncs: bool) -> Iterator[_Chosen]:
    """Yield the generators that have made this row next, or for None: that have ended."""
    tried: list[tuple[int, ...]] = [()]
    while tried:
        directions = tried.pop(0)
        after = copy.deepcopy(before)
        after.directions = list(directions)
        try:
            made = _made(after, has_syncs)
        except _Undecided:
            first = WRITE if row is not None and row[0] == WRITE else READ
            if len(directions) < ATTEMPTS:
                tried += [(*directions, each) for each in (first, READ + WRITE - first)]
            continue
        if made is None or row is None:
            is_same = made is row
        else:
            is_same = made[:3] == row[:3] and row[3] in (made[3], UNKNOWN)
        if is_same:
            yield after


def _made(generator: _Chosen, has_syncs: bool) -> Row | None:
    """Return the next request, None at the end."""
    kind, offset, length = np.zeros(1, np.uint8), *np.zeros((2, 1), np.int64)
    while generator.next(kind, offset, length, 0):
        plain = int(PLAIN[kind[0]])
        if plain != SYNC or has_syncs:
            at = int(offset[0])
            return plain, at & ((1 << FILE_SHIFT) - 1), int(length[0]), at >> FILE_SHIFT
    return None
