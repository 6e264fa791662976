"""How far off forecasts of a load were, where it is known what came.

The first EARLIER part of a capture lets forecast what the rest of it brings.  Two caches of the
PANEL, a small one and a large one, run through both.  A load whose past was forecast well is
trusted to go on as it is forecast; one whose past was not gets wider intervals
(answers/forecast.py).  The panel is the same for all machines that a capture is replayed on, so
that all of them are judged alike.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from weakref import WeakKeyDictionary

from hybridsim.answers.dirt import marks
from hybridsim.answers.forecast import deviation
from hybridsim.answers.judge import Both, gain_after
from hybridsim.answers.metrics import Collector, Counters
from hybridsim.answers.result import sides
from hybridsim.caches.page.preload import COLD_START
from hybridsim.engine.machine import Machine
from hybridsim.requests.rows import joined
from hybridsim.scenario import DISKS, Scenario, building, identity
from hybridsim.studies.continued import FEWEST
from hybridsim.studies.disks_alone import Ran
from hybridsim.studies.machine_run import Pump
from hybridsim.studies.runs import RecordedLatencies, Task, go_on, pumped
from hybridsim.traces.trace import Trace, in_memory

EARLIER = 0.3  # of the requests
MOST = 30_000  # requests of a capture that is looked back at; it was tried with up to 21,000
PANEL = {"cache.kind": "page", "cache.mode": "write-back"}
SHARES = (0.05, 0.8)  # of what the capture touches: the sizes of the panel
_known: WeakKeyDictionary[Trace, dict[str, float | None]] = WeakKeyDictionary()


def look_back(task: Task, mode: str, plain: Pump | Ran) -> None:
    """Find how far forecasts of the load were off, for the disks alone that ran through it."""
    if plain.collector.later is None or plain.collector.off is not None:
        return
    if task.summary.requests > MOST:
        return
    known = _known.setdefault(task.trace, {})
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
