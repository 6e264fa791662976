"""The load that goes on after a capture, and how far off forecasts of its past were.

The first EARLIER part of a capture lets forecast what the rest of it brings.  Two caches of the
PANEL, a small one and a large one, run through both.  A load whose past was forecast well is
trusted to go on as it is forecast; one whose past was not gets wider intervals
(answers/forecast.py).  The panel is the same for all machines that a capture is replayed on, so
that all of them are judged alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

from hybridsim.answers.dirt import marks
from hybridsim.answers.forecast import HORIZON, deviation
from hybridsim.answers.judge import Both, gain_after
from hybridsim.answers.metrics import Collector, Counters, Later
from hybridsim.answers.result import sides
from hybridsim.caches.page.preload import COLD_START
from hybridsim.engine.machine import Machine
from hybridsim.foundation.errors import ScenarioError
from hybridsim.requests.continuation import continuation
from hybridsim.requests.rows import joined
from hybridsim.scenario import DISKS, Scenario, building, identity
from hybridsim.studies.batches import Sent, batches
from hybridsim.studies.disks_alone import Ran
from hybridsim.studies.machine_run import Pump
from hybridsim.studies.runs import (
    LATER_SAMPLES,
    Build,
    Pairs,
    Progress,
    RecordedLatencies,
    Task,
    pumped,
    take_batch,
)
from hybridsim.traces.trace import Trace, in_memory

FEWEST, MOST = 40, 300_000  # requests of a capture that is continued; the most limit the time
CHUNK_ROWS = 1 << 13  # after each it is seen whether the machines keep up
BEHIND = 1 << 12  # requests outstanding, of a machine that does not
_loads: WeakKeyDictionary[Trace, dict[int, Continued | None]] = WeakKeyDictionary()
EARLIER = 0.3  # of the requests
BACK_MOST = 30_000  # requests of a capture that is looked back at; tried with up to 21,000
PANEL = {"cache.kind": "page", "cache.mode": "write-back"}
SHARES = (0.05, 0.8)  # of what the capture touches: the sizes of the panel
_deviations: WeakKeyDictionary[Trace, dict[str, float | None]] = WeakKeyDictionary()


@dataclass
class Continued(Sent):
    """The requests of a capture, and those after it."""

    captured: int = 0  # the first of the rows
    end_bytes: int = 0


def continued(trace: Trace, scenario: Scenario, end_bytes: int) -> Continued | None:
    """Return a capture with HORIZON times as many requests after it; None if it has no such.

    The volume, of `end_bytes` in the capture, grows to twice its size at most, if the disks of the
    scenario have the room.
    """
    room_bytes = _room(scenario, end_bytes)
    known = _loads.setdefault(trace, {})
    if room_bytes not in known:
        known[room_bytes] = _continued(trace, room_bytes)
    return known[room_bytes]


def _continued(trace: Trace, room_bytes: int) -> Continued | None:
    rows = joined(list(trace.from_first()))
    half = rows.rows // 2
    if not (rows.length_bytes[:half].any() and rows.length_bytes[half:].any()):
        return None
    end_bytes = int((rows.offset_bytes + rows.length_bytes).max())
    more = continuation(rows, round(HORIZON * rows.rows), end_bytes=room_bytes)
    end_bytes = max(end_bytes, int((more.offset_bytes + more.length_bytes).max()))
    return Continued(trace.name, joined([rows, more]), CHUNK_ROWS, rows.rows, end_bytes)


def _room(scenario: Scenario, end_bytes: int) -> int:
    """Return up to where a load may go on."""
    try:
        scenario.backing.member_bytes(2 * end_bytes)
    except ScenarioError:
        return end_bytes
    return 2 * end_bytes


def go_on(task: Task, mode: str, builds: Sequence[Build], pumps: Sequence[Pump | Ran]) -> None:
    """Find what the load that goes on after the capture costs each machine, if that is not known.

    The machines begin anew, with the capture.  No load goes on after one with events, after one
    that is too short, or after one so long that it would take too much time; nor on a machine that
    cannot keep up with it, as its backlog would say how long it went on, and nothing else.
    """
    summary, scenario = task.summary, task.scenario
    if scenario.events or not FEWEST <= summary.requests <= MOST:
        return
    waiting = [(build, pump) for build, pump in zip(builds, pumps) if pump.collector.later is None]
    load = continued(task.trace, scenario, summary.max_end_bytes) if waiting else None
    if load is None:
        return
    end_bytes = max(load.end_bytes, task.begin.end_bytes if task.begin else 0)
    span_ns = int(load.rows.arrival_ns[-1] / scenario.replay.speed)
    step_ns = max(span_ns // LATER_SAMPLES, 1)
    able = [(Pump(build(end_bytes), step_ns, collector=Pairs()), pump) for build, pump in waiting]
    done = 0
    with ThreadPoolExecutor(len(able)) as threads:
        for batch in batches(load, scenario.replay.speed, mode == "think"):
            take_batch(threads, [run for run, _ in able], batch)
            able = [each for each in able if each[0].backlog <= BEHIND]
            if not able:
                return
            done += len(batch.arrival_ns)
            if task.report:
                now_ns = able[0][0].run.now_ns
                task.report(Progress(done, load.rows.rows, now_ns, is_later=True))
    for run, pump in able:
        pump.collector.later = Later(run.collector.ledger, run.counters(), load.captured)


def look_back(task: Task, mode: str, plain: Pump | Ran) -> None:
    """Find how far forecasts of the load were off, for the disks alone that ran through it."""
    if plain.collector.later is None or plain.collector.off is not None:
        return
    if task.summary.requests > BACK_MOST:
        return
    known = _deviations.setdefault(task.trace, {})
    which = f"{mode} {identity(task.scenario, DISKS)}"
    if which not in known:
        known[which] = _off(task, mode, plain)
    plain.collector.off = known[which]


def _off(task: Task, mode: str, plain: Pump | Ran) -> float | None:
    """Return the root mean square over the panel, in allowances; None if nothing is known."""
    rows = joined(list(task.trace.from_first()))
    cut = round(EARLIER * rows.rows)
    if cut < FEWEST:
        return None
    early = in_memory(task.trace.name, rows.between(0, cut), task.trace.is_generated)
    sites = [_site(task.scenario, round(share * task.summary.footprint_bytes)) for share in SHARES]
    volume_bytes, adapts = task.summary.max_end_bytes, mode != "open"
    before = task._replace(trace=early, summary=early.summary(), report=None, begin=None)
    if before.summary.reads + before.summary.writes == 0:
        return None
    builds = [partial(_built, sites[0], mode, is_plain=True)]
    builds += [partial(_built, site, mode, is_plain=False) for site in sites]
    seen, came = (
        pumped(part, mode, [build(volume_bytes) for build in some], RecordedLatencies(), None, True)
        for part, some in ((before, builds), (task._replace(report=None), builds[1:]))
    )
    assert seen is not None
    assert came is not None
    go_on(before, mode, builds, seen)
    squares = []
    for site, at_first, whole in zip(sites, seen[1:], came):
        about = _about(site)
        both = Both(*sides(_known_of(seen[0]), _known_of(at_first), about, "time", adapts))
        if both.cached.later is None or both.too_short(both.half):
            return None
        runs = sides(_known_of(plain), _known_of(whole), about, "time", adapts)
        gain = gain_after(*runs, cut, adapts)
        if gain is None:
            return None
        squares.append(deviation(both.course("time", adapts), gain) ** 2)
    return math.sqrt(sum(squares) / len(squares))


def _site(scenario: Scenario, size_bytes: int) -> Scenario:
    """Return a cache of the panel in front of a scenario's disks."""
    size_bytes = max(size_bytes, Scenario.default().cache.page_bytes)
    cache = Scenario.default().with_values(PANEL | {"cache.size": f"{size_bytes}"}).cache
    return dataclasses.replace(scenario, cache=cache)


def _built(site: Scenario, mode: str, volume_bytes: int, is_plain: bool) -> Machine:
    pages = 0 if is_plain else site.cache.pages(0)
    return building.machine(site, mode, volume_bytes, pages, COLD_START)


def _known_of(run: Pump | Ran) -> tuple[Collector, Counters]:
    return run.collector, Counters(run.counters())


def _about(site: Scenario) -> dict[str, object]:
    """Return what the judge knows of a cache."""
    cache, pages = site.cache, site.cache.pages(0)
    size_bytes = pages * cache.page_bytes
    return {
        "cache_kind": cache.kind,
        "cache_pages": pages,
        "cache_bytes": size_bytes,
        "dirty_marks": marks(cache, size_bytes),
    }
