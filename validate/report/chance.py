"""How far runs of one model differ by chance: twins whose loads begin at other moments.

A cache with threads and timers, on a disk that turns, is chaotic: requests that come a millisecond
later meet other ones, and seconds later the run is another.  Two real runs differ so, and two twins
do.  A bound that such twins exceed among themselves says nothing about the model; one that they
keep, and the real run does not, shows an error of the model or a run that was disturbed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations

from hybridsim.answers.comparison.rows import Comparison, Row
from hybridsim.answers.measurements.measurement import Name
from validate.twin.calibrate import calibrated
from validate.twin.record import Record
from validate.twin.simulate import Twin, twin

SPREAD_NS = 100_000_000  # longer than a jiffy, a rotation, and a rest of bcache's gc
TURN = 0.618_034  # of the spread, from one twin to the next: they fill it evenly, however many
LIKELY = 0.1  # a figure that so many pairs of twins exceed is beyond its bound by chance
Compared = Callable[[Twin, Twin], Comparison]  # of one as the real run, with the other


def others(record: Record, number: int) -> Iterator[Twin]:
    """Yield so many twins of a run whose loads begin up to 0.1 s later."""
    devices = calibrated(record)
    for which in range(1, number + 1):
        yield twin(record, devices, round(which * TURN % 1 * SPREAD_NS))


def beyond(rows: Sequence[Row], twins: Sequence[Twin], compared: Compared) -> dict[Name, float]:
    """Return the share of pairs of twins that differ by more than the bound of each checked row."""
    bounds = {row.name: max(row.tolerance, row.slack) for row in rows if row.tolerance is not None}
    found: Mapping[Name, list[bool]] = defaultdict(list)
    for one, other in permutations(twins, 2):
        for row in compared(one, other).rows:
            has_none = row.error is None and row.real is None  # a time that this one lacks
            if row.name in bounds and not has_none:
                is_beyond = row.error is None or abs(row.error) > bounds[row.name]
                found[row.name].append(is_beyond)
    return {name: sum(each) / len(each) for name, each in found.items()}
