"""Events in the life of a machine: a reboot, the removal of its cache, the failure of a drive.

They happen between two calls of the event loop (DESIGN.md 2.17), so the loop costs the same with
and without them: the load is held, the cache is replaced by the same cache as it starts again, and
the rest of the load follows later by the time that it was held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridsim import jit
from hybridsim.caches import PageCache
from hybridsim.caches.nothing import NoCache
from hybridsim.engine import loops
from hybridsim.engine.loops import HOLD_NS, NOW_NS, PASS_AT, PASS_END, PASS_EVERY_NS, PASS_NS
from hybridsim.engine.machine import FOREVER, Machine, Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Change, Restart
from hybridsim.foundation.machine_parameters import EventParameters
from hybridsim.jit.events import CACHE, KIND_MASK, Events
from hybridsim.jit.instructions import along
from hybridsim.requests.inflight import Batch, Facts
from hybridsim.requests.jobs import JobBatch
from hybridsim.requests.source import NEVER, PASS_BYTES, Source
from hybridsim.storage.raid import Tier

POLL_NS = 10**9  # between two looks at whether a cache that is detached has become clean
AT_ONCE = (Change.DISK_FAILS, Change.REBUILD, Change.PASS)  # without holding the load
RESTARTS = {Change.REBOOT: Restart.CLEAN, Change.CRASH: Restart.UNCLEAN}
NO_RANGES = np.zeros((0, 2), np.int64)


@dataclass
class Happened:
    """A step that has happened: its times (ns) and the state of the cache before it."""

    step: EventParameters
    begun_ns: int  # simulated time, as are the others: no request is issued from here on
    held_ns: int  # all requests are complete
    resumed_ns: int  # the load goes on
    dirty_bytes: int  # before the step
    cached_pages: int
    dirty_after_bytes: int = 0  # when the load goes on
    cached_after_pages: int = 0
    removed_load_ns: int | None = None  # time of the load when the cache was out, after a detach
    # offset, length of what the SSD had alone
    lost: Ints = field(default_factory=lambda: NO_RANGES)
    not_issued: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # see `Run.numbers`
    next_number: int = 0  # requests from here on were not issued yet, nor were `not_issued`


class LivedRun(Run):
    """A run with events; feed it and advance it like any other."""

    def __init__(
        self,
        machine: Machine,
        steps: Iterable[EventParameters],
        facts_rows: int = 1 << 16,
        interpreted: bool = False,
    ) -> None:
        """Start a new machine, to which `steps` will happen."""
        super().__init__(machine, facts_rows, interpreted)
        self.happened: list[Happened] = []
        self.shift_ns = 0  # simulated time less that of the load
        self._steps = deque(sorted(steps, key=lambda step: step.at_ns))
        self._poll_ns: int | None = None  # when to look whether the cache is clean
        self._is_holding = False
        self._interpreted = interpreted
        self._totals: dict[str, int] | None = None  # of a cache that is out
        restarts = any(step.change in RESTARTS for step in self._steps)
        is_page = isinstance(machine.cache, PageCache)
        self._at_first = deepcopy(machine.cache) if restarts and is_page else None

    @property
    def to_come(self) -> list[EventParameters]:
        """The steps that have not happened."""
        return list(self._steps)

    def cache_totals(self) -> dict[str, int]:
        """Return the counters of the cache; those of one that is out stay, and its levels are 0."""
        return self.machine.cache.totals() if self._totals is None else self._totals

    def drained(self) -> Facts:
        """Return the facts not yet returned; their times are those of the load."""
        facts = super().drained()
        return facts._replace(
            issue_ns=facts.issue_ns - self.shift_ns, done_ns=facts.done_ns - self.shift_ns
        )

    def feed(self, batch: Batch | JobBatch) -> None:
        """Set the next batch of requests; raise ValueError unless the previous one is used up."""
        if self.shift_ns and isinstance(batch, Batch):
            batch = batch._replace(arrival_ns=batch.arrival_ns + self.shift_ns)
        super().feed(batch)

    def advance(self, until_ns: int) -> tuple[int, Facts | None]:
        """Run as `Run.advance`; steps that are due happen on the way."""
        while True:
            due_ns = self._due_ns()
            if not self._is_holding:
                if due_ns is None or until_ns <= due_ns:
                    return super().advance(until_ns)
                status, facts = super().advance(due_ns)
                if status != loops.REACHED:
                    return status, facts
                if self._poll_ns == due_ns and self.machine.cache.dirty_bytes() > 0:
                    self._poll_ns += POLL_NS
                    continue
                if self._poll_ns != due_ns and self._steps[0].change in AT_ONCE:
                    self._change_at_once(due_ns)
                    continue
                self._is_holding = True
                self.machine.clock[HOLD_NS] = due_ns
            assert due_ns is not None
            status, facts = super().advance(FOREVER)
            if status != loops.HELD:
                return status, facts
            self._is_holding = False
            self.machine.clock[HOLD_NS] = FOREVER
            self._happen(due_ns)

    def _due_ns(self) -> int | None:
        """Return the simulated time of the next step, or None."""
        due_ns = [self._steps[0].at_ns + self.shift_ns] if self._steps else []
        if self._poll_ns is not None:
            due_ns.append(self._poll_ns)
        return min(due_ns, default=None)

    def _change_at_once(self, due_ns: int) -> None:
        """Let a member fail, begin its rebuild, or begin a pass; the load is not held."""
        step = self._steps.popleft()
        dirty, present = self._contents()
        self.happened.append(Happened(step, due_ns, due_ns, due_ns, dirty, present, dirty, present))
        machine = self.machine
        below = machine.below
        if step.change == Change.PASS:
            machine.clock[PASS_NS], machine.clock[PASS_EVERY_NS] = due_ns, step.every_ns
            machine.clock[PASS_AT], machine.clock[PASS_END] = 0, step.end_bytes
            machine.expect_length(PASS_BYTES)
            return
        if step.change == Change.DISK_FAILS:
            array_of(below.slow).fail(step.member)
            return
        array = array_of(below.slow).replaced(due_ns, step.rebuild, below.events)
        slow = with_array(below.slow, array)
        more = slow.demand(0) - below.slow.demand(0)
        machine.demand[loops.SLOW_DEMAND] += more
        machine.demand[loops.EVENTS_DEMAND] += 2 * more
        self.machine = machine._replace(below=below._replace(slow=slow))

    def _contents(self) -> tuple[int, int]:
        """Return the dirty bytes and the pages in the cache."""
        cache = self.machine.cache
        return int(cache.dirty_bytes()), int(self.cache_totals().get("pages_present", 0))

    def _happen(self, due_ns: int) -> None:
        """Carry out what is due; the load is held and its requests are complete."""
        held_ns = max(due_ns, self.now_ns)
        cache = self.machine.cache
        if self._poll_ns == due_ns:
            self._poll_ns = None
            detach = next(one for one in self.happened if one.step.change == Change.DETACH)
            detach.removed_load_ns = due_ns - self.shift_ns
            self._resume(due_ns, self._quiet_ns(held_ns), None)
            return
        step = self._steps.popleft()
        dirty, present = self._contents()
        known = Happened(step, due_ns, held_ns, held_ns, dirty, present)
        self.happened.append(known)
        if step.change == Change.SSD_DIES:
            known.lost = cache.dirty_ranges()
            known.not_issued, known.next_number = self._not_issued()
            self._resume(due_ns, self._quiet_ns(held_ns), None)
        elif step.change == Change.DETACH and isinstance(cache, PageCache | NoCache):
            known.removed_load_ns = due_ns - self.shift_ns  # it has nothing to write back
            self._resume(due_ns, self._quiet_ns(held_ns), None)
        elif step.change == Change.DETACH:
            self._resume(due_ns, self._quiet_ns(held_ns), Restart.CLEANER)
            self._poll_ns = self.now_ns + POLL_NS
        else:
            resumed_ns = self._quiet_ns(held_ns) + step.down_ns
            self._resume(due_ns, resumed_ns, RESTARTS[step.change])
        known.resumed_ns = self.now_ns
        known.dirty_after_bytes, known.cached_after_pages = self._contents()

    def _quiet_ns(self, held_ns: int) -> int:
        """Stop the cache and complete its requests to the tiers; return when they are complete."""
        events = self.machine.below.events
        old, used = events.heap, int(events.heap.used[0])
        kept = Events.new(len(old.time_ns))
        for at in np.flatnonzero(old.what[:used] & KIND_MASK != CACHE):
            kept.heap.push(old.time_ns[at], old.rank[at], old.what[at])
        kept.scheduled[0] = events.scheduled[0]
        self.machine = self.machine._replace(below=self.machine.below._replace(events=kept))
        self.machine.clock[NOW_NS] = held_ns
        self._settle(0)
        return self.now_ns

    def _resume(self, due_ns: int, resumed_ns: int, how: Restart | None) -> None:
        """Let the load go on, with the cache restarted, or without it if `how` is None."""
        if resumed_ns > self.now_ns:
            self._settle(resumed_ns)
        machine = self.machine
        machine.clock[NOW_NS] = resumed_ns
        cache = machine.cache
        if how is None:
            totals = cache.totals()  # what it contained is gone
            self._totals = totals | {name: 0 for name in LEVELS if name in totals}
            self.machine = machine._replace(cache=NoCache(cache.page_bytes))
            self.machine.expect(self.batch)
            self._loop = jit.fitting(loops.run, self.machine, self._interpreted)
        elif isinstance(cache, PageCache):
            assert self._at_first is not None
            self.machine = machine._replace(cache=cache.emptied(self._at_first))
        else:
            self.machine = machine._replace(cache=cache.restarted(resumed_ns, how))
            while not self.machine.has_room():
                self.machine = self.machine.grown()
            self.machine.cache.resume(resumed_ns, self.machine.below)
        self._delay(resumed_ns - due_ns)

    def _delay(self, by_ns: int) -> None:
        """Delay the rest of the load; `drained` will subtract this from earlier facts too."""
        self.shift_ns += by_ns
        if self.machine.clock[PASS_NS] < NEVER:
            self.machine.clock[PASS_NS] += by_ns
        batch, source = self.batch, self.machine.source
        assert isinstance(batch, Batch)
        assert isinstance(source, Source)
        source.delay(by_ns)
        self.batch = batch._replace(arrival_ns=batch.arrival_ns + by_ns)
        used = int(self.facts.used[0])
        self.facts.issue_ns[:used] += by_ns
        self.facts.done_ns[:used] += by_ns

    def _settle(self, until_ns: int) -> None:
        loop = jit.fitting(loops.settle, self.machine.below, self._interpreted)
        while True:
            below, demand = self.machine.below, self.machine.demand
            if loop(below, self.machine.clock, demand, until_ns) != loops.NEEDS_ROOM:
                return
            self.machine = self.machine._replace(below=below.with_room(demand))

    def _not_issued(self) -> tuple[Ints, int]:
        """Return the numbers of requests loaded and not issued, and of the first not loaded."""
        requests, batch = self.machine.requests, self.batch
        is_free = np.zeros(len(requests.number), np.bool_)
        is_free[list(along(requests.free[0], requests.following))] = True
        assert isinstance(batch, Batch)
        return np.sort(requests.number[~is_free]), int(batch.state[2] + batch.state[0])


LEVELS = (
    "pages_present", "used_blocks", "dirty_blocks", "dirty_pages", "dirty_data", "cached_data",
    "keys", "dirty", "clean", "occupancy",
)  # fmt: skip


def array_of(slow: Any) -> Tier:
    """Return the array of a slow tier, which may be a controller's."""
    inner = getattr(slow, "array", None)
    return slow if inner is None else array_of(inner)


def with_array(slow: Any, array: Tier) -> Any:
    """Return the slow tier with another state of its array."""
    if isinstance(slow, Tier):
        return array
    return slow._replace(array=with_array(slow.array, array))
