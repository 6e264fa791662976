"""The destination of a bio: parked, to the cache, or to the origin (DESIGN.md 2.14.1)."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.dmcache.bios import MARKED, OF_CELL, OF_SLOT
from hybridsim.caches.dmcache.migrations import (
    ACCOUNTED,
    BIO,
    DIRTY,
    IDLE_SINCE,
    READ_HITS,
    READ_MISSES,
    WRITE_HITS,
    WRITE_MISSES,
    Migrations,
)
from hybridsim.caches.dmcache.smq import NOT_HOT
from hybridsim.caches.dmcache.work import NOBODY, WRITES
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import FUA, DmMode, Op, Path, Reason
from hybridsim.jit import method, state_machine
from hybridsim.jit.jiffies import JIFFY_NS

NOTHING = -1

READ, FLUSH = int(Op.READ), int(Op.FLUSH)
WRITETHROUGH, WRITEBACK = int(DmMode.WRITETHROUGH), int(DmMode.WRITEBACK)
HIT, MISS = int(Path.HIT), int(Path.MISS)
COLD, COOL = int(Reason.COLD), int(Reason.NOT_HOT)
IS_BUSY, IS_FILLING = int(Reason.BUSY), int(Reason.FILLING)

WANTS_TICK = 0


@state_machine
class Mapping(NamedTuple):
    """Maps bios; the background work is in `migrations`."""

    page_bytes: int  # of a block
    whole_blocks: int  # of the origin; a partial last block is never cached
    migrations: Migrations
    state: Ints  # [WANTS_TICK]

    @method
    def map(self, now, bio, requests, below):
        """Send a bio to the place of its block, unless the block is locked."""
        migrations, bios = self.migrations, self.migrations.bios
        block = bios.offset[bio] // self.page_bytes
        if block >= self.whole_blocks:
            migrations.account(bio)
            self.send(now, bio, below)
            return
        slot = migrations.smq.table.find(block)
        item = migrations.item_of(block, slot)
        if item != NOTHING:
            lock = migrations.smq.work.lock[item]
            if lock > WRITES or (lock > NOBODY and bios.op[bio] != READ):
                migrations.park(item, bio)
                return
        if slot == NOTHING:
            self.miss(now, bio, block, item, requests, below)
        else:
            self.hit(now, bio, slot, requests, below)

    @method
    def hit(self, now, bio, slot, requests, below):
        """Send a bio to the cache; in write-through mode also to the origin."""
        migrations, bios, smq = self.migrations, self.migrations.bios, self.migrations.smq
        smq.hit(slot)
        migrations.holders[slot] += 1
        bios.holds[bio] = OF_SLOT
        bios.place[bio] = slot
        writes_through = False
        if bios.op[bio] == READ:
            migrations.counts[READ_HITS] += 1
            requests.pages_hit[bios.request[bio]] += 1
        else:
            migrations.counts[WRITE_HITS] += 1
            migrations.discards.clear(bios.offset[bio])
            # After an unclean stop blocks are dirty in this mode too.
            writes_through = migrations.mode == WRITETHROUGH and smq.is_dirty[slot] == 0
            if not writes_through and smq.is_dirty[slot] == 0:
                smq.set_dirty(slot)
                migrations.counts[DIRTY] += 1
        if writes_through:
            bios.parts[bio] = 2
            self.send(now, bio, below)
        if bios.op[bio] & FUA != 0:
            self.wait_as_fua(now, bio, below)
            return
        if writes_through:
            migrations.account(bio)
        else:
            self.mark(bio)
        self.send_fast(now, bio, below)

    @method
    def miss(self, now, bio, block, item, requests, below):
        """Pass a miss to the policy, and send the bio to the origin."""
        migrations, bios, smq = self.migrations, self.migrations.bios, self.migrations.smq
        is_write = bios.op[bio] != READ
        whole = is_write and bios.length[bio] == self.page_bytes
        discarded = migrations.discards.has(bios.offset[bio])
        fast = migrations.mode == WRITEBACK and (whole or discarded)
        was_known = smq.hotspot.knows(block)
        answer = smq.miss(block, is_write, fast, item != NOTHING)
        cell = migrations.cells.of(block)
        if answer >= 0:
            migrations.cells.item[cell] = answer
            if fast:
                self.overwritten(now, bio, answer, requests, below)
                return
        if answer != NOT_HOT and not fast:
            migrations.wake_migrator(now, below.events)
        if is_write:
            migrations.counts[WRITE_MISSES] += 1
            migrations.discards.clear(bios.offset[bio])
        else:
            migrations.counts[READ_MISSES] += 1
            self.report_miss(bios.request[bio], was_known, answer, item, requests)
        migrations.cells.holders[cell] += 1
        bios.holds[bio] = OF_CELL
        bios.place[bio] = cell
        if bios.op[bio] & FUA != 0:
            self.wait_as_fua(now, bio, below)
            return
        migrations.account(bio)
        self.mark(bio)
        self.send(now, bio, below)

    @method
    def overwritten(self, now, bio, item, requests, below):
        """Start a promotion whose data is the write itself."""
        if self.migrations.bios.op[bio] == READ:  # of discarded data
            requests.pages_hit[self.migrations.bios.request[bio]] += 1
        self.migrations.overwrite(now, item, bio, below)

    @method
    def report_miss(self, request, was_known, answer, item, requests):
        """Set the reason of a miss, unless another part of the request has set it."""
        if requests.path[request] != HIT:
            return
        requests.path[request] = MISS
        if item != NOTHING:
            requests.reason[request] = IS_FILLING
        elif not was_known:
            requests.reason[request] = COLD
        elif answer == NOT_HOT or answer >= 0:
            requests.reason[request] = COOL
        else:
            requests.reason[request] = IS_BUSY

    @method
    def mark(self, bio):
        """Mark a bio so that its end is a tick, if none is marked."""
        if self.state[WANTS_TICK] == 1:
            self.state[WANTS_TICK] = 0
            self.migrations.bios.extra[bio] = MARKED

    @method
    def send(self, now, bio, below):
        """Send a bio to the origin."""
        bios = self.migrations.bios
        tag = bio << 2 | BIO
        below.slow.submit(now, tag, bios.op[bio], bios.offset[bio], bios.length[bio], below.events)

    @method
    def send_fast(self, now, bio, below):
        """Send a bio to the slot of its block."""
        bios = self.migrations.bios
        at = bios.place[bio] * self.page_bytes + bios.offset[bio] % self.page_bytes
        below.fast.submit(now, bio << 2 | BIO, bios.op[bio], at, bios.length[bio], below.events)

    @method
    def wait_for_commit(self, now, bio, below):
        """Make a bio wait until the metadata is durable."""
        self.migrations.waiting_bios.append(bio, self.migrations.bios.following)
        self.migrations.commit(now, below)

    @method
    def wait_as_fua(self, now, bio, below):
        """Make a FUA bio wait for a commit; it is not accounted yet."""
        state = self.migrations.state
        if state[ACCOUNTED] == 0:
            state[IDLE_SINCE] = now // JIFFY_NS
        self.wait_for_commit(now, bio, below)

    @method
    def send_committed(self, now, bio, below):
        """Send a bio that has waited for a commit."""
        bios = self.migrations.bios
        self.migrations.account(bio)
        if bios.op[bio] == FLUSH:
            bios.parts[bio] = 2
            below.slow.submit(now, bio << 2 | BIO, FLUSH, 0, 0, below.events)
            below.fast.submit(now, bio << 2 | BIO, FLUSH, 0, 0, below.events)
        elif bios.holds[bio] == OF_SLOT:
            self.send_fast(now, bio, below)
        else:
            self.send(now, bio, below)

    @method
    def end(self, now, bio, below):
        """Process the end of a bio: a tick, the end of a promotion, the release of its lock."""
        migrations, bios = self.migrations, self.migrations.bios
        if bios.extra[bio] == MARKED:
            migrations.smq.tick(now)
            self.state[WANTS_TICK] = 1
        if bios.item[bio] != NOTHING:
            migrations.update(now, bios.item[bio], below)
        self.let_go(now, bio, below)
        if bios.accounted[bio] == 1:
            migrations.state[ACCOUNTED] -= bios.length[bio]
            if migrations.state[ACCOUNTED] == 0:
                migrations.state[IDLE_SINCE] = now // JIFFY_NS

    @method
    def let_go(self, now, bio, below):
        """Release the lock of a block, and continue the item that waits for it."""
        migrations, place = self.migrations, self.migrations.bios.place[bio]
        holds = migrations.bios.holds[bio]
        if holds == OF_SLOT:
            migrations.holders[place] -= 1
            item = migrations.smq.item[place]
        elif holds == OF_CELL:
            migrations.cells.holders[place] -= 1
            item = migrations.cells.item[place]
            migrations.cells.release_unused(place)
        else:
            return
        if item != NOTHING:
            migrations.go_on(now, item, below)
            migrations.copy_on(now, below)
