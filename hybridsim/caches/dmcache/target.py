"""dm-cache as Linux runs it: fixed blocks, the policy smq, copies in the background.

Requests are split at block borders into bios; a bio is looked up when it is mapped, not when it
ends.  A miss goes to the origin; if the policy promotes its block, the whole block is then read
again and written to the cache.  Writes go to both (write-through) or to the cache only
(write-back).  Details: DESIGN.md 2.14.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.dmcache import migrations as work
from hybridsim.caches.dmcache.migrations import Bios, Cells, Discards
from hybridsim.caches.dmcache.smq import FREE_SLOTS, NOBODY, NOT_HOT, WRITES, Smq
from hybridsim.foundation.arrays import Int32s, Ints, filled, grown_pool, pool_of
from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, DmMode, Op, Path, Reason, Restart
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import JIFFY_NS
from hybridsim.jit.lists import NOTHING, Fifos, give_back

# The waker is set for 250 jiffies of 4 ms; so long a timer fires on the next multiple of 8 jiffies
# after that (kernel/time/timer.c: LVL_GRAN of level 1): 256 jiffies after the previous one.
WAKE_NS = 1_024_000_000


@state_machine
class DmCache(NamedTuple):
    """Splits requests into bios and maps these; with a clock, and the work in the background."""

    page_bytes: int  # of a block
    whole_blocks: int  # of the origin; a partial last block is never cached
    blocks: int
    mode: int
    migration_threshold_bytes: int
    worker_delay_ns: int  # from waking a kernel worker to its first step
    part_bytes: int  # maximum length of one read or write of a copy
    smq: Smq
    bios: Bios
    cells: Cells
    holders: Int32s  # by slot: number of bios in flight
    discards: Discards
    queues: Fifos  # work.DEFERRED ... WRITTEN
    counts: Ints  # work.COUNTERS
    state: Ints  # [work.ACCOUNTED ... WANTS_TICK]

    @classmethod
    def new(cls, parameters: DmCacheParameters, origin_bytes: int, room: int = 256) -> DmCache:
        """Return an empty cache, resumed at time 0, with initial room for `room` bios."""
        p = parameters
        return filled(
            cls,
            p.blocks,
            p,
            page_bytes=p.block_bytes,
            whole_blocks=origin_bytes // p.block_bytes,
            smq=Smq.new(p.blocks, p.block_bytes, origin_bytes, p.mode != DmMode.PASSTHROUGH),
            bios=pool_of(Bios, room),
            cells=Cells.new(room),
            discards=Discards.new(p.block_bytes, origin_bytes),
            queues=Fifos.new(work.QUEUES),
            counts=np.zeros(len(work.COUNTERS), np.int64),
            state=np.array(work.AT_FIRST),
        )

    def size(self) -> int:
        """Return the number of bios there is room for."""
        return len(self.bios.request)

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts in one step: of a request or of the copier."""
        return longest_bytes // self.page_bytes + 2 + work.SENT_MAX

    def grown(self, room: int) -> DmCache:
        """Return the same cache with room for `room` bios."""
        cells = self.cells.grown(len(self.cells.holders) + room)
        return self._replace(bios=grown_pool(self.bios, room), cells=cells)

    def totals(self) -> dict[str, int]:
        """Return the counters so far by name, as `dmsetup status` counts them."""
        return dict(zip(work.COUNTERS, self.counts.tolist(), strict=True)) | {
            "used_blocks": self.blocks - int(self.smq.state[FREE_SLOTS]),
            "fills_started": int(self.counts[work.PROMOTIONS]),
            "fills_done": int(self.counts[work.PROMOTIONS]),
            "fills_doomed": 0,
            "evictions": int(self.counts[work.DEMOTIONS]),
        }

    def reloaded(self, now_ns: int) -> DmCache:
        """Return the cache stopped and restarted at that time; it must be at rest.

        The times of the wakes stay; in reality they restart with the table.
        """
        return self._replace(smq=self.smq.loaded(now_ns // JIFFY_NS))

    # Restarts (DESIGN.md 2.17).

    def restarted(self, now_ns: int, how: Restart) -> DmCache:
        """Return the cache after its table is loaded at that time, without bios in flight."""
        smq = self.smq.loaded(
            now_ns // JIFFY_NS,
            has_hints=how == Restart.CLEAN,
            all_dirty=how == Restart.UNCLEAN,
            cleans=how == Restart.CLEANER,
        )
        discards = self.discards
        if how == Restart.UNCLEAN:
            discards = discards._replace(is_discarded=np.zeros_like(discards.is_discarded))
        counts, state = self.counts.copy(), np.array(work.AT_FIRST)
        counts[work.DIRTY] = int(smq.is_dirty.sum())
        state[work.IS_ARMED], state[work.SINCE_NS] = 1, now_ns
        return self._replace(
            mode=DmMode.WRITETHROUGH if how == Restart.CLEANER else self.mode,
            smq=smq,
            bios=pool_of(Bios, len(self.bios.request)),
            cells=Cells.new(len(self.cells.holders)),
            holders=np.zeros(self.blocks, np.int32),
            discards=discards,
            queues=Fifos.new(work.QUEUES),
            counts=counts,
            state=state,
        )

    def resume(self, now_ns: int, below: Any) -> None:
        """Schedule the first wake of a restarted cache, which is at once."""
        below.events.push(now_ns, CACHE, work.WAKER)

    def dirty_bytes(self) -> int:
        """Return how much is dirty."""
        return int(self.counts[work.DIRTY]) * self.page_bytes

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each dirty block, one row each."""
        begin = np.sort(self.smq.table.number[np.flatnonzero(self.smq.is_dirty)]) * self.page_bytes
        return np.stack([begin, np.full(len(begin), self.page_bytes)], axis=1)

    @method
    def room(self):
        """Return how many more bios can be taken."""
        return min(self.bios.free[1], self.cells.free[1])

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host."""
        self.wind(now, below.events)
        op = requests.op[slot]
        offset = requests.offset[slot]
        length = requests.length[slot]
        if op == Op.DISCARD and length > 0:
            self.defer(now, slot, Op.DISCARD, offset, length, requests, below.events)
            return
        if op == Op.FLUSH or length == 0:
            self.defer(now, slot, Op.FLUSH, 0, 0, requests, below.events)
            return
        end = offset + length
        requests.pages[slot] = (end - 1) // self.page_bytes - offset // self.page_bytes + 1
        if op == Op.READ and end > self.whole_blocks * self.page_bytes:
            requests.reason[slot] = Reason.NO_CACHE
        elif op == Op.READ:
            requests.path[slot] = Path.HIT
            requests.reason[slot] = Reason.NONE
        if op == Op.WRITE and requests.flags[slot] & PREFLUSH != 0:
            self.defer(now, slot, Op.FLUSH, 0, 0, requests, below.events)
        else:
            self.cut(now, slot, requests, below)

    @method
    def cut(self, now, slot, requests, below):
        """Create a bio for each part of a request that lies in one block."""
        op = requests.op[slot]
        start = requests.offset[slot]
        end = start + requests.length[slot]
        is_fua = op == Op.WRITE and requests.flags[slot] & FUA != 0
        while start < end:
            upto = min((start // self.page_bytes + 1) * self.page_bytes, end)
            if is_fua and start // self.page_bytes < self.whole_blocks:
                self.defer(now, slot, Op.WRITE | FUA, start, upto - start, requests, below.events)
            else:
                requests.pending[slot] += 1
                flagged = Op.WRITE | FUA if is_fua else op
                bio = self.bios.take(slot, flagged, start, upto - start)
                self.map(now, bio, requests, below)
            start = upto

    @method
    def defer(self, now, slot, op, start, length, requests, events):
        """Create a bio and leave it to the worker."""
        requests.pending[slot] += 1
        work.defer(self, now, self.bios.take(slot, op, start, length), events)

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        what = tag & 3
        number = tag >> 2
        if what == work.BIO:
            return self.end_part(now, number, requests, below)
        if what == work.METADATA:
            work.wake_committer(self, now, below)
        else:
            work.part_done(self, now, number, what, below)
        return NOTHING

    @method
    def finished(self, now, slot, requests, below):
        """Do nothing when a request is complete."""

    @method
    def wake(self, now, number, requests, below):
        """Run an event of the cache; no request completes by it."""
        if number == work.MIGRATOR:
            work.migrate(self, now, below)
        elif number == work.DEFERRER:
            self.take_deferred(now, requests, below)
        elif number == work.COPIER:
            self.state[work.COPIER_SLEEPS] = 0
            work.copy_on(self, now, below)
        elif number == work.COMMITTER:
            work.commit_on(self, now, below)
        else:
            self.woken(now, below.events)
        return NOTHING

    # Mapping (DESIGN.md 2.14.1).

    @method
    def map(self, now, bio, requests, below):
        """Send a bio to the place of its block, unless the block is locked."""
        bios = self.bios
        block = bios.offset[bio] // self.page_bytes
        if block >= self.whole_blocks:
            work.account(self, bio)
            self.send(now, bio, below)
            return
        slot = self.smq.table.find(block)
        item = work.item_of(self, block, slot)
        if item != NOTHING:
            lock = self.smq.work.lock[item]
            if lock > WRITES or (lock > NOBODY and bios.op[bio] != Op.READ):
                self.smq.work.parked.append(item, bio, bios.following)
                return
        if slot == NOTHING:
            self.miss(now, bio, block, item, requests, below)
        else:
            self.hit(now, bio, slot, requests, below)

    @method
    def hit(self, now, bio, slot, requests, below):
        """Send a bio to the cache; in write-through mode also to the origin."""
        bios, smq = self.bios, self.smq
        smq.hit(slot)
        self.holders[slot] += 1
        bios.holds[bio] = work.OF_SLOT
        bios.place[bio] = slot
        writes_through = False
        if bios.op[bio] == Op.READ:
            self.counts[work.READ_HITS] += 1
            requests.pages_hit[bios.request[bio]] += 1
        else:
            self.counts[work.WRITE_HITS] += 1
            self.discards.clear(bios.offset[bio])
            # After an unclean stop blocks are dirty in this mode too.
            writes_through = self.mode == DmMode.WRITETHROUGH and smq.is_dirty[slot] == 0
            if not writes_through and smq.is_dirty[slot] == 0:
                smq.set_dirty(slot)
                self.counts[work.DIRTY] += 1
        if writes_through:
            bios.parts[bio] = 2
            self.send(now, bio, below)
        if bios.op[bio] & FUA != 0:
            self.wait_as_fua(now, bio, below)
            return
        if writes_through:
            work.account(self, bio)
        else:
            self.mark(bio)
        self.send_fast(now, bio, below)

    @method
    def miss(self, now, bio, block, item, requests, below):
        """Pass a miss to the policy, and send the bio to the origin."""
        bios, smq = self.bios, self.smq
        is_write = bios.op[bio] != Op.READ
        whole = is_write and bios.length[bio] == self.page_bytes
        discarded = self.discards.has(bios.offset[bio])
        fast = self.mode == DmMode.WRITEBACK and (whole or discarded)
        was_known = smq.hotspot.knows(block)
        answer = smq.miss(block, is_write, fast, item != NOTHING)
        cell = self.cells.of(block)
        if answer >= 0:
            self.cells.item[cell] = answer
            if fast:
                if not is_write:  # of discarded data
                    requests.pages_hit[bios.request[bio]] += 1
                work.overwrite(self, now, answer, bio, below)
                return
        if answer != NOT_HOT and not fast:
            work.wake_migrator(self, now, below.events)
        if is_write:
            self.counts[work.WRITE_MISSES] += 1
            self.discards.clear(bios.offset[bio])
        else:
            self.counts[work.READ_MISSES] += 1
            self.report_miss(bios.request[bio], was_known, answer, item, requests)
        self.cells.holders[cell] += 1
        bios.holds[bio] = work.OF_CELL
        bios.place[bio] = cell
        if bios.op[bio] & FUA != 0:
            self.wait_as_fua(now, bio, below)
            return
        work.account(self, bio)
        self.mark(bio)
        self.send(now, bio, below)

    @method
    def report_miss(self, request, was_known, answer, item, requests):
        """Set the reason of a miss, unless another part of the request has set it."""
        if requests.path[request] != Path.HIT:
            return
        requests.path[request] = Path.MISS
        if item != NOTHING:
            requests.reason[request] = Reason.FILLING
        elif not was_known:
            requests.reason[request] = Reason.COLD
        elif answer == NOT_HOT or answer >= 0:
            requests.reason[request] = Reason.NOT_HOT
        else:
            requests.reason[request] = Reason.BUSY

    @method
    def mark(self, bio):
        """Mark a bio so that its end is a tick, if none is marked."""
        if self.state[work.WANTS_TICK] == 1:
            self.state[work.WANTS_TICK] = 0
            self.bios.extra[bio] = work.MARKED

    @method
    def send(self, now, bio, below):
        """Send a bio to the origin."""
        bios = self.bios
        tag = bio << 2 | work.BIO
        below.slow.submit(now, tag, bios.op[bio], bios.offset[bio], bios.length[bio], below.events)

    @method
    def send_fast(self, now, bio, below):
        """Send a bio to the slot of its block."""
        bios = self.bios
        at = bios.place[bio] * self.page_bytes + bios.offset[bio] % self.page_bytes
        tag = bio << 2 | work.BIO
        below.fast.submit(now, tag, bios.op[bio], at, bios.length[bio], below.events)

    @method
    def wait_for_commit(self, now, bio, below):
        """Make a bio wait until the metadata is durable."""
        self.queues.append(work.WAITING_BIOS, bio, self.bios.following)
        work.commit(self, now, below)

    @method
    def wait_as_fua(self, now, bio, below):
        """Make a FUA bio wait for a commit; it is not accounted yet."""
        state = self.state
        if state[work.ACCOUNTED] == 0:
            state[work.IDLE_SINCE] = now // JIFFY_NS
        self.wait_for_commit(now, bio, below)

    @method
    def send_committed(self, now, bio, below):
        """Send a bio that has waited for a commit."""
        bios = self.bios
        work.account(self, bio)
        if bios.op[bio] == Op.FLUSH:
            bios.parts[bio] = 2
            below.slow.submit(now, bio << 2 | work.BIO, Op.FLUSH, 0, 0, below.events)
            below.fast.submit(now, bio << 2 | work.BIO, Op.FLUSH, 0, 0, below.events)
        elif bios.holds[bio] == work.OF_SLOT:
            self.send_fast(now, bio, below)
        else:
            self.send(now, bio, below)

    @method
    def end(self, now, bio, below):
        """Process the end of a bio: a tick, the end of a promotion, the release of its lock."""
        bios = self.bios
        if bios.extra[bio] == work.MARKED:
            self.smq.tick(now)
            self.state[work.WANTS_TICK] = 1
        if bios.item[bio] != NOTHING:
            work.update(self, now, bios.item[bio], below)
        self.let_go(now, bio, below)
        if bios.accounted[bio] == 1:
            self.state[work.ACCOUNTED] -= bios.length[bio]
            if self.state[work.ACCOUNTED] == 0:
                self.state[work.IDLE_SINCE] = now // JIFFY_NS

    @method
    def let_go(self, now, bio, below):
        """Release the lock of a block, and continue the item that waits for it."""
        place = self.bios.place[bio]
        holds = self.bios.holds[bio]
        if holds == work.OF_SLOT:
            self.holders[place] -= 1
            item = self.smq.item[place]
        elif holds == work.OF_CELL:
            self.cells.holders[place] -= 1
            item = self.cells.item[place]
            self.cells.release_unused(place)
        else:
            return
        if item != NOTHING:
            work.go_on(self, now, item, below)
            work.copy_on(self, now, below)

    # The clock.

    @method
    def is_at_rest(self):
        """Return whether nothing is in progress, so that the cache can be stopped."""
        return self.bios.free[1] == len(self.bios.request) and self.smq.work.is_empty()

    @method
    def wind(self, now, events):
        """Run the ticks that were skipped while the clock was off, and set the timer."""
        state = self.state
        if state[work.IS_ARMED] == 1:
            return
        while state[work.SINCE_NS] + state[work.WAKES] * WAKE_NS <= now:
            self.smq.tick(state[work.SINCE_NS] + state[work.WAKES] * WAKE_NS)
            state[work.WAKES] += 1
        state[work.IS_ARMED] = 1
        events.push(state[work.SINCE_NS] + state[work.WAKES] * WAKE_NS, CACHE, work.WAKER)

    @method
    def woken(self, now, events):
        """Run the periodic tick of about a second; stop the clock if no work is left."""
        state = self.state
        self.smq.tick(now)
        state[work.WAKES] += 1
        if self.is_at_rest() and not work.can_write_back(self):
            state[work.IS_ARMED] = 0
            return
        work.wake_migrator(self, now, events)
        events.push(now + WAKE_NS, CACHE, work.WAKER)

    # Bios.

    @method
    def take_deferred(self, now, requests, below):
        """Take one deferred bio, and schedule the next one at the same time."""
        bios = self.bios
        if self.queues.is_empty(work.DEFERRED):
            self.state[work.DEFERRER_AWAKE] = 0
            return
        bio = self.queues.pop(work.DEFERRED, bios.following)
        if bios.op[bio] == Op.DISCARD:
            self.discards.set(bios.offset[bio], bios.length[bio])
            self.send(now, bio, below)
        elif bios.extra[bio] == work.COMMITTED:
            self.send_committed(now, bio, below)
        elif bios.op[bio] == Op.FLUSH:
            self.wait_for_commit(now, bio, below)
        else:
            self.map(now, bio, requests, below)
        below.events.push(now, CACHE, work.DEFERRER)

    @method
    def end_part(self, now, bio, requests, below):
        """Count a completed part; return the slot of a request that ends with it, or -1."""
        bios = self.bios
        bios.parts[bio] -= 1
        if bios.parts[bio] > 0:
            return NOTHING
        self.end(now, bio, below)
        slot = bios.request[bio]
        if bios.op[bio] == Op.FLUSH and requests.op[slot] == Op.WRITE and requests.length[slot] > 0:
            self.cut(now, slot, requests, below)  # this was the flush before its write
        give_back(bios, bio)
        requests.pending[slot] -= 1
        return slot if requests.pending[slot] == 0 else NOTHING
