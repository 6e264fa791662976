"""Events during a replay: the steps of a machine, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hybridsim.answers.life import UNITS, Lost, Taken
from hybridsim.engine.life import Happened, LivedRun
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import OP_MASK, Change, Op
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.machine_parameters import EventParameters
from hybridsim.foundation.wording import span
from hybridsim.requests.inflight import Batch
from hybridsim.requests.source import PASS_BYTES
from hybridsim.scenario.event import Event, members

if TYPE_CHECKING:
    from hybridsim.studies.machine_run import Pump

PERCENTS = (50, 99)
SECOND = 10**9


CHANGES = {
    "detach": Change.DETACH,
    "ssd": Change.SSD_DIES,
    "disk": Change.DISK_FAILS,
    "rebuild": Change.REBUILD,
    "backup": Change.PASS,
}


def steps_of(events: Sequence[Event], volume_bytes: int) -> dict[Event, EventParameters]:
    """Return what each event of a scenario does to a machine with a volume of that size."""
    of_array = members(events)
    result = {}
    for event in events:
        change = Change.REBOOT if event.reboot == "clean" else Change.CRASH
        change = CHANGES.get(event.what, change)
        member = of_array.get(event, 0)
        every_ns = max(PASS_BYTES * SECOND // event.backup, 1) if event.backup else 1
        end_bytes = volume_bytes if event.backup else 0
        numbers = (event.down_ns, member, *event.rates, every_ns, end_bytes)
        result[event] = EventParameters(event.at_ns, change, *numbers)
    return result


def steps(events: Sequence[Event], volume_bytes: int, has_cache: bool) -> list[EventParameters]:
    """Return the steps of a machine; without a cache only those of the machine itself."""
    of_cache = ("detach", "ssd")
    found = steps_of(events, volume_bytes)
    return [found[each] for each in events if has_cache or each.what not in of_cache]


def check_happened(pump: Pump, events: Sequence[Event]) -> None:
    """Raise UsageError if the load ended before an event."""
    run = pump.run
    if not isinstance(run, LivedRun) or not run.to_come:
        return
    missed = run.to_come[0]
    text = next(each.text for each in events if each.at_ns == missed.at_ns)
    end_ns = run.now_ns - run.shift_ns
    raise UsageError(
        f"--event {text}: the load ends after {span(end_ns)}, before this event; "
        "specify an earlier time"
    )


def taken(
    pump: Pump,
    events: Sequence[Event],
    page_bytes: int,
    volume_bytes: int,
    load: Iterable[Batch],
) -> list[Taken]:
    """Return what happened to the machine; `load` are its requests, as they were fed."""
    run = pump.run
    if not isinstance(run, LivedRun):
        return []
    found = steps_of(events, volume_bytes)
    texts = {step: (each.what, each.text) for each, step in found.items()}
    result = []
    for each in run.happened:
        what, how = texts[each.step]
        present = each.cached_pages * page_bytes
        removed = each.removed_load_ns
        lost = None
        if each.step.change == Change.SSD_DIES:
            lost = _lost(each, pump.writes(), load)
        result.append(
            Taken(
                what,
                how,
                each.step.at_ns,
                each.held_ns - each.begun_ns,
                each.step.down_ns,
                present,
                each.dirty_bytes,
                each.cached_after_pages * page_bytes,
                each.dirty_after_bytes,
                removed,
                lost,
                pump.backup if what == "backup" else None,
            )
        )
    return result


def _lost(event: Happened, writes: tuple[Ints, Ints], load: Iterable[Batch]) -> Lost:
    """Return what was lost, how old it was, and the reads that needed it."""
    total = int(event.lost[:, 1].sum())
    unit = next((each for each in UNITS if not (event.lost % each).any()), UNITS[-1])
    units = _units(event.lost, unit)
    written_ns = np.full(len(units), -1, np.int64)
    is_lost = np.ones(len(units), np.bool_)
    numbers, issue_ns = writes
    errors = reads_after = 0
    for batch in load:
        number = int(batch.state[2]) + np.arange(len(batch.offset))
        op = batch.op & OP_MASK
        was_issued = (number < event.next_number) & ~np.isin(number, event.not_issued)
        reads_after += int(((op == Op.READ) & ~was_issued).sum())
        end = batch.offset + batch.length
        first = np.searchsorted(units, batch.offset // unit)
        last = np.searchsorted(units, -(-end // unit))
        touches = (last > first) & (batch.length > 0) & ((op == Op.READ) | (op == Op.WRITE))
        place = np.minimum(np.searchsorted(numbers, number), max(len(numbers) - 1, 0))
        for row in np.flatnonzero(touches):
            a, b = first[row], last[row]
            if was_issued[row]:
                if op[row] == Op.WRITE:
                    written_ns[a:b] = issue_ns[place[row]]
            elif op[row] == Op.READ:
                errors += bool(is_lost[a:b].any())
            else:  # units that the write covers in part stay lost
                covered = units[a:b] * unit >= batch.offset[row]
                covered &= (units[a:b] + 1) * unit <= end[row]
                is_lost[a:b] &= ~covered
    ages = event.step.at_ns - written_ns[written_ns >= 0]
    p50, p99 = (int(np.percentile(ages, each)) if len(ages) else None for each in PERCENTS)
    return Lost(total, p50, p99, errors, reads_after)


def _units(ranges: Ints, unit: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the units of ranges, in order."""
    counts = ranges[:, 1] // unit
    starts = (
        np.repeat(ranges[:, 0] // unit - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        if len(ranges)
        else np.zeros(0, np.int64)
    )
    return np.sort(starts + np.arange(int(counts.sum())))
