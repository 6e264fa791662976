"""A whole machine: source, cache and tiers, with pools for requests in flight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim import jit
from hybridsim.caches import CACHE_METHODS, PageCache
from hybridsim.caches.page.names import FILLS_STARTED, IS_WRONG, WRONG_AT, WRONG_FOR, WRONG_VICTIM
from hybridsim.caches.policies import ADMISSION_METHODS, REPLACEMENT_METHODS, reject_victim
from hybridsim.engine import loops
from hybridsim.engine.loops import EVENTS_DEMAND, FAST_DEMAND, NOW_NS, PAGES_DEMAND, SLOW_DEMAND
from hybridsim.foundation.arrays import Ints, doubled
from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.foundation.machine_parameters import HostParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import Events
from hybridsim.requests.host import Host
from hybridsim.requests.inflight import Batch, Facts, InFlight
from hybridsim.requests.jobs import JobBatch, Jobs
from hybridsim.requests.source import NEVER, PASS_FROM, Source
from hybridsim.storage.controller import Controller
from hybridsim.storage.devices import DEVICE_METHODS
from hybridsim.storage.raid import Tier
from hybridsim.storage.throttle import Throttle

FOREVER = (1 << 63) - 1  # later than NEVER: nothing is held


@state_machine
class Below(NamedTuple):
    """The parts below a cache."""

    slow: Any
    fast: Any
    events: Events

    def with_room(self, demand: Ints) -> Below:
        """Return the same parts, with room for a step that needs as much."""
        slow = self.slow.with_room(int(demand[SLOW_DEMAND]))
        fast = self.fast.with_room(int(demand[FAST_DEMAND]))
        wanted = int(demand[EVENTS_DEMAND]) + int(slow.reserved() + fast.reserved())
        return Below(slow, fast, self.events.with_room(wanted))

    @method
    def has_room(self, demand):
        """Return whether no pool can run out in a step that needs as much."""
        reserved = self.slow.reserved() + self.fast.reserved()
        return (
            self.events.heap.room() >= demand[EVENTS_DEMAND] + reserved
            and self.slow.has_room(demand[SLOW_DEMAND])
            and self.fast.has_room(demand[FAST_DEMAND])
        )


@state_machine
class Machine(NamedTuple):
    """All state of a simulation; a copy of it is a checkpoint."""

    source: Source | Jobs
    requests: InFlight
    cache: Any
    below: Below
    host: Host
    clock: Ints  # [NOW_NS, HOLD_NS: from then on no request is issued, PASS_NS ... PASS_NUMBER]
    demand: Ints  # the maximum that one step can need: [SLOW_DEMAND ... PAGES_DEMAND]

    @classmethod
    def new(
        cls,
        source: Source | Jobs,
        cache: Any,
        slow: Tier | Controller | Throttle,
        fast: Tier,
        host: Host | None = None,
    ) -> Machine:
        """Assemble an idle machine."""
        events = Events.new(256)
        slow.start(events)
        fast.start(events)
        if isinstance(cache, PageCache):
            cache.start(events)
        return cls(
            source,
            InFlight.new(source.slots),
            cache,
            Below(slow, fast, events),
            host or Host.new(HostParameters()),
            np.array([0, FOREVER, NEVER, 0, 0, 0, PASS_FROM]),
            np.zeros(4, np.int64),
        )

    @method
    def has_room(self):
        """Return whether no pool can run out in the next step."""
        has_pages = self.cache.room() >= self.demand[PAGES_DEMAND]
        return self.requests.free[1] > 0 and has_pages and self.below.has_room(self.demand)

    def expect(self, batch: Batch | JobBatch) -> None:
        """Raise the demand to the maximum that the largest request of a batch can need."""
        self.expect_length(int(batch.length[batch.op & OP_MASK <= Op.WRITE].max(initial=0)))

    def expect_length(self, longest: int) -> None:
        """Raise the demand to the maximum that a request of that length (bytes) can need."""
        page_bytes = self.cache.page_bytes
        pages = self.cache.demand(longest)
        slow, fast = self.below.slow, self.below.fast
        of_slow = slow.demand(longest) + pages * slow.demand(page_bytes)
        of_fast = pages * fast.demand(page_bytes)
        # a disk may complete a request and also move its arm; the host may hold a completion
        events = 2 * (of_slow + of_fast) + 1
        wanted = np.array([of_slow, of_fast, events, pages])
        np.maximum(self.demand, wanted, out=self.demand)

    def grown(self) -> Machine:
        """Return the same machine, with at least twice the room in each pool that is too small."""
        requests, cache, pages = self.requests, self.cache, int(self.demand[PAGES_DEMAND])
        if requests.free[1] == 0:
            requests = requests.grown(2 * len(requests.number))
        if cache.room() < pages:
            cache = cache.grown(doubled(cache.size(), cache.room(), pages))
        below = self.below.with_room(self.demand)
        return self._replace(requests=requests, cache=cache, below=below)


def check_parts(machine: Machine) -> None:
    """Raise TypeError for a cache, policy or device that lacks a required method."""
    cache, below = machine.cache, machine.below
    jit.check_part(cache, "a cache", CACHE_METHODS, ["demand", "size", "grown", "totals"])
    for device in (below.slow.device, below.fast.device):
        jit.check_part(device, "a device", DEVICE_METHODS, ["totals"])
    if isinstance(cache, PageCache):
        jit.check_part(cache.admission, "an admission policy", ADMISSION_METHODS, ["grown"])
        jit.check_part(cache.replacement, "a replacement policy", REPLACEMENT_METHODS, ["grown"])


class Run:
    """A running machine, fed batch by batch."""

    def __init__(
        self, machine: Machine, facts_rows: int = 1 << 16, interpreted: bool = False
    ) -> None:
        """Start a new machine, or continue from a checkpoint.

        `interpreted` runs the same source as plain Python: slow, for debugging.
        """
        check_parts(machine)
        self.machine = machine
        self.facts = Facts.new(facts_rows)
        self.batch: Batch | JobBatch = Batch.empty()
        self._loop = jit.fitting(loops.run, machine, interpreted)

    @property
    def now_ns(self) -> int:
        """The simulated time in ns."""
        return int(self.machine.clock[NOW_NS])

    def feed(self, batch: Batch | JobBatch) -> None:
        """Set the next batch of requests; raise ValueError unless the previous one is used up."""
        if self.batch.left():
            raise ValueError("the previous batch is not used up")
        self.machine.expect(batch)
        self.batch = batch

    def cache_totals(self) -> dict[str, int]:
        """Return the counters of the cache."""
        totals: dict[str, int] = self.machine.cache.totals()
        return totals

    def drained(self) -> Facts:
        """Return the facts not yet returned."""
        return self.facts.drained()

    def _check_victims(self) -> None:
        cache = self.machine.cache
        if isinstance(cache, PageCache) and cache.counts[IS_WRONG]:
            victim, page, at, fills = cache.counts[
                [WRONG_VICTIM, WRONG_FOR, WRONG_AT, FILLS_STARTED]
            ].tolist()
            number, access = int(cache.table.ids.number[page]), f"request {at}, counted from 0"
            reject_victim(cache.replacement, victim, page, number, access, fills)

    def advance(self, until_ns: int) -> tuple[int, Facts | None]:
        """Run until `until_ns`, or until the loop needs Python.

        Returns REACHED, NEEDS_BATCH, FINISHED or HELD with None, or FACTS_FULL with the facts so
        far.
        """
        while True:
            status = int(self._loop(self.machine, self.batch, self.facts, until_ns))
            self._check_victims()
            if status == loops.FACTS_FULL:
                return status, self.drained()
            if status != loops.NEEDS_ROOM:
                return status, None
            self.machine = self.machine.grown()
