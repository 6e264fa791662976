"""How far runs of one model differ by chance: twins whose loads begin at other moments.

A cache with threads and timers, on a disk that turns, is chaotic: requests that come a millisecond
later meet other ones, and seconds later the run is another.  Two real runs differ so, and two twins
do.  A bound that such twins exceed among themselves says nothing about the model; one that they
keep, and the real run does not, shows an error of the model or a run that was disturbed.

A page cache has no timers, so that a later begin changes nothing.  Its twins have a longer path to
the disk instead, by at most a tenth of a millisecond: answers of the lab's disks come two to five
tenths late, by chance, and what the arm serves next depends on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from hybridsim.answers.comparison import Comparison, Row
from hybridsim.answers.measurements.measurement import Name
from hybridsim.foundation.units import parse_time
from validate.twin.calibrate import Calibration, calibrated
from validate.twin.record import Record
from validate.twin.simulate import AGELESS, Twin, twin

SPREAD_NS = 100_000_000  # longer than a jiffy, a rotation, and a rest of bcache's gc
PATH_SPREAD_NS = 100_000  # for a cache without timers
TURN = 0.618_034  # of the spread, from one twin to the next: they fill it evenly, however many
LIKELY = 0.1  # a figure that so many pairs of twins exceed is beyond its bound by chance
Compared = Callable[[Twin, Twin], Comparison]  # of one as the real run, with the other


def others(record: Record, number: int) -> Iterator[Twin]:
    """Yield so many twins of a run, with a later load or, of a page cache, a longer path."""
    devices = calibrated(record)
    for which in range(1, number + 1):
        share = which * TURN % 1
        if record.cache.get("kind") in AGELESS:
            yield twin(record, with_longer_path(devices, round(share * PATH_SPREAD_NS)))
        else:
            yield twin(record, devices, round(share * SPREAD_NS))


def with_longer_path(devices: Calibration, longer_ns: int) -> Calibration:
    """Return devices with a path to the disk that takes so much longer."""
    backing = devices.tables["backing"]
    path_ns = parse_time(str(backing.get("path_latency", "0ns"))) + longer_ns
    tables = devices.tables | {"backing": backing | {"path_latency": f"{path_ns}ns"}}
    return replace(devices, tables=tables)


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
