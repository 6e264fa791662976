"""dm-cache as Linux runs it: fixed blocks, the policy smq, copies in the background.

Requests are split at block borders into bios; a bio is looked up when it is mapped, not when it
ends.  A miss goes to the origin; if the policy promotes its block, the whole block is then read
again and written to the cache.  Writes go to both (write-through) or to the cache only
(write-back).  Details: DESIGN.md 2.14.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.dmcache.bios import COMMITTED
from hybridsim.caches.dmcache.mapping import Mapping
from hybridsim.caches.dmcache.migrations import (
    BIO,
    COMMITTER,
    COPIER,
    COPY_READ,
    COPY_WRITE,
    COUNTERS,
    DEFERRER,
    DEFERRER_AWAKE,
    DEMOTIONS,
    DIRTY,
    MIGRATOR,
    PROMOTIONS,
    SENT_MAX,
    WAKER,
    Migrations,
)
from hybridsim.caches.dmcache.smq import FREE_SLOTS
from hybridsim.caches.dmcache.work import USED
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, Op, Path, Reason, Restart
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import JIFFY_NS

NOTHING = -1
# The waker is set for 250 jiffies of 4 ms; so long a timer fires on the next multiple of 8 jiffies
# after that (kernel/time/timer.c: LVL_GRAN of level 1): 256 jiffies after the previous one.
WAKE_NS = 1_024_000_000

READ, WRITE, DISCARD, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.DISCARD), int(Op.FLUSH)
HIT, BYPASS = int(Path.HIT), int(Path.BYPASS)
NONE, WRITTEN = int(Reason.NONE), int(Reason.WRITE)
FLUSHED, DISCARDED = int(Reason.FLUSH), int(Reason.DISCARD)
NO_CACHE = int(Reason.NO_CACHE)

IS_ARMED, WAKES, SINCE_NS = range(3)


@state_machine
class DmCache(NamedTuple):
    """Splits requests into bios, with a clock; `mapping` processes the bios."""

    page_bytes: int  # of a block
    mapping: Mapping
    state: Ints  # [IS_ARMED, WAKES, SINCE_NS: when its table was loaded]

    @classmethod
    def new(cls, parameters: DmCacheParameters, origin_bytes: int, room: int = 256) -> DmCache:
        """Return an empty cache, resumed at time 0, with initial room for `room` bios."""
        block_bytes = parameters.block_bytes
        migrations = Migrations.new(parameters, origin_bytes, room)
        whole_blocks = origin_bytes // block_bytes
        mapping = Mapping(block_bytes, whole_blocks, migrations, np.ones(1, np.int64))
        return cls(block_bytes, mapping, np.zeros(3, np.int64))

    def size(self) -> int:
        """Return the number of bios there is room for."""
        return len(self.mapping.migrations.bios.request)

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts in one step: of a request or of the copier."""
        return longest_bytes // self.page_bytes + 2 + SENT_MAX

    def grown(self, room: int) -> DmCache:
        """Return the same cache with room for `room` bios."""
        old = self.mapping.migrations
        cells = old.cells.grown(len(old.cells.holders) + room)
        migrations = old._replace(bios=old.bios.grown(room), cells=cells)
        return self._replace(mapping=self.mapping._replace(migrations=migrations))

    def totals(self) -> dict[str, int]:
        """Return the counters so far by name, as `dmsetup status` counts them."""
        counts = self.mapping.migrations.counts
        named = dict(zip(COUNTERS, counts.tolist(), strict=True))
        free = int(self.mapping.migrations.smq.state[FREE_SLOTS])
        return named | {
            "used_blocks": self.mapping.migrations.blocks - free,
            "fills_started": int(counts[PROMOTIONS]),
            "fills_done": int(counts[PROMOTIONS]),
            "fills_doomed": 0,
            "evictions": int(counts[DEMOTIONS]),
        }

    def is_at_rest(self) -> bool:
        """Return whether nothing is in progress, so that the cache can be stopped."""
        migrations = self.mapping.migrations
        return bool(migrations.bios.are_none()) and migrations.smq.work.state[USED] == 0

    def reloaded(self, now_ns: int) -> DmCache:
        """Return the cache stopped and restarted at that time; it must be at rest.

        The times of the wakes stay; in reality they restart with the table.
        """
        old = self.mapping.migrations
        smq = old.smq.reloaded(now_ns // JIFFY_NS)
        return self._replace(mapping=self.mapping._replace(migrations=old._replace(smq=smq)))

    # Restarts (DESIGN.md 2.17).

    def restarted(self, now_ns: int, how: Restart) -> DmCache:
        """Return the cache after its table is loaded at that time, without bios in flight."""
        migrations = self.mapping.migrations.loaded(now_ns, how)
        mapping = self.mapping._replace(migrations=migrations, state=np.ones(1, np.int64))
        return self._replace(mapping=mapping, state=np.array([1, 0, now_ns]))

    def resume(self, now_ns: int, below: Any) -> None:
        """Schedule the first wake of a restarted cache, which is at once."""
        below.events.push(now_ns, CACHE, WAKER)

    def dirty_bytes(self) -> int:
        """Return how much is dirty."""
        return int(self.mapping.migrations.counts[DIRTY]) * self.page_bytes

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each dirty block, one row each."""
        smq = self.mapping.migrations.smq
        begin = np.sort(smq.table.number[np.flatnonzero(smq.is_dirty)]) * self.page_bytes
        return np.stack([begin, np.full(len(begin), self.page_bytes)], axis=1)

    @method
    def room(self):
        """Return how many more bios can be taken."""
        return min(self.mapping.migrations.bios.free[1], self.mapping.migrations.cells.free[1])

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host."""
        self.wind(now, below.events)
        op = requests.op[slot]
        offset = requests.offset[slot]
        length = requests.length[slot]
        requests.path[slot] = BYPASS
        if op == DISCARD and length > 0:
            requests.reason[slot] = DISCARDED
            self.defer(now, slot, DISCARD, offset, length, requests, below.events)
            return
        if op == FLUSH or length == 0:
            requests.reason[slot] = FLUSHED
            self.defer(now, slot, FLUSH, 0, 0, requests, below.events)
            return
        end = offset + length
        requests.pages[slot] = (end - 1) // self.page_bytes - offset // self.page_bytes + 1
        if op != READ:
            requests.reason[slot] = WRITTEN
        elif end > self.mapping.whole_blocks * self.page_bytes:
            requests.reason[slot] = NO_CACHE
        else:
            requests.path[slot] = HIT
            requests.reason[slot] = NONE
        if op == WRITE and requests.flags[slot] & PREFLUSH != 0:
            self.defer(now, slot, FLUSH, 0, 0, requests, below.events)
        else:
            self.cut(now, slot, requests, below)

    @method
    def cut(self, now, slot, requests, below):
        """Create a bio for each part of a request that lies in one block."""
        op = requests.op[slot]
        start = requests.offset[slot]
        end = start + requests.length[slot]
        is_fua = op == WRITE and requests.flags[slot] & FUA != 0
        while start < end:
            upto = min((start // self.page_bytes + 1) * self.page_bytes, end)
            if is_fua and start // self.page_bytes < self.mapping.whole_blocks:
                self.defer(now, slot, WRITE | FUA, start, upto - start, requests, below.events)
            else:
                requests.pending[slot] += 1
                flagged = WRITE | FUA if is_fua else op
                bio = self.mapping.migrations.bios.take(slot, flagged, start, upto - start)
                self.mapping.map(now, bio, requests, below)
            start = upto

    @method
    def defer(self, now, slot, op, start, length, requests, events):
        """Create a bio and leave it to the worker."""
        requests.pending[slot] += 1
        bio = self.mapping.migrations.bios.take(slot, op, start, length)
        self.mapping.migrations.deferred.append(bio, self.mapping.migrations.bios.following)
        self.mapping.migrations.wake_deferrer(now, events)

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        what = tag & 3
        number = tag >> 2
        if what == BIO:
            return self.end_part(now, number, requests, below)
        if what == COPY_READ:
            self.mapping.migrations.part_read(now, number, below)
        elif what == COPY_WRITE:
            self.mapping.migrations.part_written(now, number, below)
        else:
            self.mapping.migrations.wake_committer(now, below)
        return NOTHING

    @method
    def finished(self, now, slot, requests, below):
        """Do nothing when a request is complete."""

    @method
    def wake(self, now, number, requests, below):
        """Run an event of the cache; no request completes by it."""
        if number == MIGRATOR:
            self.mapping.migrations.migrate(now, below)
        elif number == DEFERRER:
            self.take_deferred(now, requests, below)
        elif number == COPIER:
            self.mapping.migrations.copier_woken(now, below)
        elif number == COMMITTER:
            self.mapping.migrations.commit_on(now, below)
        else:
            self.woken(now, below.events)
        return NOTHING

    # The clock.

    @method
    def wind(self, now, events):
        """Run the ticks that were skipped while the clock was off, and set the timer."""
        state = self.state
        if state[IS_ARMED] == 1:
            return
        while state[SINCE_NS] + state[WAKES] * WAKE_NS <= now:
            self.mapping.migrations.smq.tick(state[SINCE_NS] + state[WAKES] * WAKE_NS)
            state[WAKES] += 1
        state[IS_ARMED] = 1
        events.push(state[SINCE_NS] + state[WAKES] * WAKE_NS, CACHE, WAKER)

    @method
    def woken(self, now, events):
        """Run the periodic tick of about a second; stop the clock if no work is left."""
        state, migrations = self.state, self.mapping.migrations
        migrations.smq.tick(now)
        state[WAKES] += 1
        is_busy = not migrations.bios.are_none() or migrations.smq.work.state[USED] > 0
        if not is_busy and not migrations.can_write_back():
            state[IS_ARMED] = 0
            return
        migrations.wake_migrator(now, events)
        events.push(now + WAKE_NS, CACHE, WAKER)

    # Bios.

    @method
    def take_deferred(self, now, requests, below):
        """Take one deferred bio, and schedule the next one at the same time."""
        migrations, bios = self.mapping.migrations, self.mapping.migrations.bios
        if migrations.deferred.is_empty():
            migrations.state[DEFERRER_AWAKE] = 0
            return
        bio = migrations.deferred.pop(bios.following)
        if bios.op[bio] == DISCARD:
            migrations.discards.set(bios.offset[bio], bios.length[bio])
            self.mapping.send(now, bio, below)
        elif bios.extra[bio] == COMMITTED:
            self.mapping.send_committed(now, bio, below)
        elif bios.op[bio] == FLUSH:
            self.mapping.wait_for_commit(now, bio, below)
        else:
            self.mapping.map(now, bio, requests, below)
        below.events.push(now, CACHE, DEFERRER)

    @method
    def end_part(self, now, bio, requests, below):
        """Count a completed part; return the slot of a request that ends with it, or -1."""
        bios = self.mapping.migrations.bios
        bios.parts[bio] -= 1
        if bios.parts[bio] > 0:
            return NOTHING
        self.mapping.end(now, bio, below)
        slot = bios.request[bio]
        if bios.op[bio] == FLUSH and requests.op[slot] == WRITE and requests.length[slot] > 0:
            self.cut(now, slot, requests, below)  # this was the flush before its write
        bios.release(bio)
        requests.pending[slot] -= 1
        return slot if requests.pending[slot] == 0 else NOTHING
