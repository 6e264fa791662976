"""dm-writecache as Linux runs it on an SSD: writes go to the SSD, reads hit only written data.

Requests are served block by block.  Commits make the metadata durable; no request is served during
a commit.  Once the cache is half full, the oldest blocks are written back.
Details: DESIGN.md 2.15.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.writecache.commits import (
    CHOOSING,
    COMMITTED,
    COUNT,
    EPOCH,
    FREED,
    IDLE,
    READS_UNDER_WAY,
    STAGE,
    UNCOMMITTED,
    UNDER_WAY,
    WAITER,
    WRITES_UNDER_WAY,
    Commits,
)
from hybridsim.caches.writecache.copier import (
    COPY_FLUSH,
    COPY_READ,
    COPY_WRITE,
    QUEUE_MAX,
    TAG_BITS,
)
from hybridsim.caches.writecache.service import (
    AROUND_WRITE,
    CACHED_READ,
    CACHED_WRITE,
    COUNTERS,
    FLUSHES,
    METADATA,
    WRITES_BLOCKED,
    Service,
)
from hybridsim.caches.writecache.slots import FLYING, FREE, IS_FREE, NOTHING, Slots
from hybridsim.caches.writecache.write_back import (
    AROUND,
    AUTOCOMMIT,
    COMMITS,
    COPIER,
    FREES,
    SERVER,
    WRITER,
    WriteBack,
)
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.cache_parameters import WritecacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, Op, Path, Reason, Restart
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns

READ, WRITE, DISCARD, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.DISCARD), int(Op.FLUSH)
HIT, MISS, BYPASS = int(Path.HIT), int(Path.MISS), int(Path.BYPASS)
NONE, NOT_WRITTEN, WRITTEN = int(Reason.NONE), int(Reason.NOT_WRITTEN), int(Reason.WRITE)
FLUSHED, DISCARDED = int(Reason.FLUSH), int(Reason.DISCARD)

FIRST, LAST, SERVER_CALLED, TIMER_SET, IS_BLOCKED, WRITTEN_BACK, TO_COMMIT = range(7)
TO_FLUSH_FIRST = -1  # progress of a request that starts with a flush; else blocks served


@state_machine
class DmWritecache(NamedTuple):
    """The queue of requests, and their service."""

    page_bytes: int  # of a block
    autocommit_blocks: int
    autocommit_time_ns: int
    write_back: WriteBack
    service: Service
    state: Ints  # [FIRST ... WRITTEN_BACK]

    @classmethod
    def new(cls, parameters: WritecacheParameters) -> DmWritecache:
        """Return an empty cache."""
        p, block_bytes = parameters, parameters.block_bytes
        commits = Commits.new(p.blocks, block_bytes, METADATA)
        marks = (p.high_watermark_blocks, p.low_watermark_blocks)
        slots = Slots.new(p.blocks)
        times_ns = (p.pause_writeback_ns, p.pass_time_ns)
        write_back = WriteBack.new(block_bytes, marks, times_ns, slots, commits)
        counts = np.zeros(len(COUNTERS), np.int64)
        service = Service(block_bytes, False, write_back, counts)
        state = np.array([NOTHING, NOTHING, 0, 0, 0, 0, 0])
        commits_at = (p.autocommit_blocks, p.autocommit_time_ns)
        return cls(block_bytes, *commits_at, write_back, service, state)

    def size(self) -> int:
        """Return 0: the cache has no pool of requests."""
        return 0

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts in one step: of a request, worker or commit."""
        runs = len(self.write_back.commits.is_dirty) // 2 + 1
        return max(longest_bytes // self.page_bytes + 2, 2 * QUEUE_MAX) + runs + 32

    def grown(self, room: int) -> DmWritecache:
        """Return the cache, which need not grow."""
        return self

    def totals(self) -> dict[str, int]:
        """Return the counters so far by name, as `dmsetup status` counts them."""
        slots = self.write_back.slots.state
        written_back = int(self.state[WRITTEN_BACK])
        return dict(zip(COUNTERS, self.service.counts.tolist(), strict=True)) | {
            "free_blocks": int(slots[FREE]),
            "blocks_under_writeback": int(slots[FLYING]),
            "blocks_written_back": written_back,
            "commits": int(self.write_back.commits.state[COUNT]),
            "pages_present": len(self.write_back.slots.free) - int(slots[FREE]),
        }

    # Restarts (DESIGN.md 2.17).

    def restarted(self, now_ns: int, how: Restart) -> DmWritecache:
        """Return the cache as it starts again, with the blocks whose metadata is on the SSD."""
        old = self.write_back
        epoch = int(old.commits.state[EPOCH])
        slots = old.slots.restarted(epoch if how == Restart.UNCLEAN else NOTHING, epoch)
        commits = old.commits.restarted()
        marks = (old.high_watermark_blocks, old.low_watermark_blocks)
        pause_writeback_ns = old.pause_writeback_ns
        if how == Restart.CLEANER:
            marks, pause_writeback_ns = (0, 0), 0
        times_ns = (pause_writeback_ns, old.pass_time_ns)
        write_back = WriteBack.new(self.page_bytes, marks, times_ns, slots, commits)
        service = self.service._replace(cleans=how == Restart.CLEANER, write_back=write_back)
        state = np.array([NOTHING, NOTHING, 0, 0, 0, self.state[WRITTEN_BACK], 0])
        return self._replace(write_back=write_back, service=service, state=state)

    def resume(self, now_ns: int, below: Any) -> None:
        """Write back, if more than the high watermark is used."""
        self.write_back.check(now_ns, below.events)

    def dirty_bytes(self) -> int:
        """Return how much is cached: all of it is dirty."""
        slots = self.write_back.slots
        return (len(slots.free) - int(slots.state[FREE])) * self.page_bytes

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each cached block, one row each."""
        slots = self.write_back.slots
        begin = np.unique(slots.table.number[np.flatnonzero(slots.what != IS_FREE)])
        begin *= self.page_bytes
        return np.stack([begin, np.full(len(begin), self.page_bytes)], axis=1)

    @method
    def room(self):
        """Return a number larger than any demand: there is no limit."""
        return 1 << 62

    @method
    def finished(self, now, slot, requests, below):
        """Do nothing when a request is complete."""

    # Requests: queued ones are linked by `promoted`; `last_promoted` is their progress.

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host."""
        op = requests.op[slot]
        length = requests.length[slot]
        requests.path[slot] = BYPASS
        requests.last_promoted[slot] = 0
        if op == FLUSH or length == 0:
            requests.reason[slot] = FLUSHED
        elif op == DISCARD:
            requests.reason[slot] = DISCARDED
        else:
            requests.pages[slot] = self.blocks_of(slot, requests)
            requests.reason[slot] = WRITTEN
            if op == READ:
                requests.path[slot] = HIT
                requests.reason[slot] = NONE
            elif op == WRITE and requests.flags[slot] & PREFLUSH != 0:
                requests.last_promoted[slot] = TO_FLUSH_FIRST
        self.line_up(now, slot, requests, below)

    @method
    def blocks_of(self, slot, requests):
        """Return the number of blocks that a request touches."""
        offset = requests.offset[slot]
        end = offset + requests.length[slot]
        return (end - 1) // self.page_bytes - offset // self.page_bytes + 1

    @method
    def line_up(self, now, slot, requests, below):
        """Serve a request at once if the queue is empty and no commit is running; else queue it."""
        state = self.state
        requests.promoted[slot] = NOTHING
        if state[FIRST] == NOTHING and self.write_back.commits.state[STAGE] == IDLE:
            if not self.serve(now, slot, requests, below):
                state[FIRST] = slot
                state[LAST] = slot
            return
        if state[FIRST] == NOTHING:
            state[FIRST] = slot
        else:
            requests.promoted[state[LAST]] = slot
        state[LAST] = slot

    @method
    def call_server(self, now, events):
        """Schedule the service of the queue at this time."""
        state = self.state
        if state[FIRST] != NOTHING and state[SERVER_CALLED] == 0:
            state[SERVER_CALLED] = 1
            events.push(now, CACHE, SERVER)

    @method
    def serve_first(self, now, requests, below):
        """Serve the first request of the queue, and schedule the next one."""
        state = self.state
        state[SERVER_CALLED] = 0
        if self.write_back.commits.state[STAGE] != IDLE:
            return
        slot = state[FIRST]
        following = requests.promoted[slot]
        if self.serve(now, slot, requests, below):
            state[FIRST] = following
            self.call_server(now, below.events)

    @method
    def serve(self, now, slot, requests, below):
        """Serve a request; return False if it must wait for a free slot."""
        op = requests.op[slot]
        progress = requests.last_promoted[slot]
        blocks = requests.pages[slot]
        if blocks > 0 and op == READ:
            self.service.read(now, slot, requests, below)
        elif blocks > 0 and 0 <= progress < blocks:
            return self.write(now, slot, requests, below)
        elif op == DISCARD and requests.length[slot] > 0:
            self.service.discard(now, slot, requests, below)
        else:
            self.flush(now, slot, requests, below)
        return True

    @method
    def flush(self, now, slot, requests, below):
        """Flush the slow tier and commit."""
        self.service.counts[FLUSHES] += 1
        requests.last_promoted[slot] += 1
        commits = self.write_back.commits
        self.write_back.state[AROUND] += 1  # it puts write-back off, as a write does
        self.service.send(now, slot, AROUND_WRITE, FLUSH, 0, 0, requests, below)
        if commits.begin(now, below):
            requests.pending[slot] += 1
            commits.state[WAITER] = slot

    @method
    def write(self, now, slot, requests, below):
        """Write as many blocks as possible; return whether all are written."""
        commits = self.write_back.commits
        is_all = self.service.write(now, slot, requests, below)
        self.write_back.check(now, below.events)
        if commits.state[UNCOMMITTED] >= self.autocommit_blocks:
            commits.begin(now, below)
        elif commits.state[UNCOMMITTED] > 0 and self.state[TIMER_SET] == 0:
            self.state[TIMER_SET] = 1
            below.events.push(expiry_ns(now, self.autocommit_time_ns), CACHE, AUTOCOMMIT)
        if not is_all and self.state[IS_BLOCKED] == 0:
            self.service.counts[WRITES_BLOCKED] += 1
        self.state[IS_BLOCKED] = 0 if is_all else 1
        return is_all

    # Completions.

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        what = tag & (1 << TAG_BITS) - 1
        number = tag >> TAG_BITS
        if what == COPY_READ:
            self.write_back.on_read(now, number, below)
        elif what == COPY_WRITE:
            self.state[WRITTEN_BACK] += self.write_back.copier.run[number]
            self.write_back.on_written(now, number, below)
        elif what == COPY_FLUSH:
            self.write_back.flushed(now, below)
        elif what == METADATA:
            return self.commit_went_on(now, requests, below)
        else:
            commits = self.write_back.commits
            if what == CACHED_WRITE:
                commits.state[WRITES_UNDER_WAY] -= 1
                commits.flush(now, below)
                if commits.state[STAGE] == CHOOSING and commits.state[WRITES_UNDER_WAY] == 0:
                    commits.state[STAGE] = IDLE
                    self.write_back.choose(now, below)
                    self.unlock(now, below)
            elif what == CACHED_READ:
                commits.state[READS_UNDER_WAY] -= 1
                commits.on_read(now, below)
            elif what == AROUND_WRITE:
                self.write_back.on_write_around(now, below.events)
            return self.end_part(now, number, requests, below)
        return NOTHING

    @method
    def commit_went_on(self, now, requests, below):
        """Start the next step of who has the lock; after the last one let go on who waits."""
        commits = self.write_back.commits
        over = commits.go_on(now, below)
        if over == FREED:
            self.write_back.freed(now, below)
        elif over == COMMITTED and self.write_back.state[COMMITS] == 1:
            self.write_back.state[COMMITS] = 0
            self.write_back.choose(now, below)
        if over != UNDER_WAY:
            self.unlock(now, below)
        if over != COMMITTED:
            return NOTHING
        waiter = commits.state[WAITER]
        commits.state[WAITER] = NOTHING
        return NOTHING if waiter == NOTHING else self.end_part(now, waiter, requests, below)

    @method
    def unlock(self, now, below):
        """Let go on what waits for the lock, unless it is taken again."""
        commits = self.write_back.commits
        if commits.state[STAGE] == IDLE and self.write_back.state[FREES] == 1:
            self.write_back.free_flushed(now, below)
        if commits.state[STAGE] == IDLE and self.state[TO_COMMIT] == 1:
            self.state[TO_COMMIT] = 0
            if commits.state[UNCOMMITTED] > 0:
                commits.begin(now, below)
        if commits.state[STAGE] == IDLE:
            self.call_server(now, below.events)
            self.write_back.call(now, below.events)

    @method
    def end_part(self, now, slot, requests, below):
        """Count a completed part; return the request if it is complete, or -1."""
        requests.pending[slot] -= 1
        if requests.pending[slot] > 0:
            return NOTHING
        if requests.op[slot] == READ or requests.pages[slot] == 0:
            return slot
        progress, blocks = requests.last_promoted[slot], requests.pages[slot]
        is_first = progress == 0  # its flush is complete; now it writes
        is_last = progress == blocks and requests.flags[slot] & FUA != 0
        if is_first or is_last:
            self.line_up(now, slot, requests, below)
        return NOTHING if is_first or is_last or progress < blocks else slot

    @method
    def wake(self, now, number, requests, below):
        """Run an event of the cache."""
        if number == SERVER:
            self.serve_first(now, requests, below)
        elif number == WRITER:
            self.write_back.run_writer(now, below)
        elif number == COPIER:
            self.write_back.let_in(now, below)
        else:
            self.state[TIMER_SET] = 0
            commits = self.write_back.commits
            if commits.state[STAGE] != IDLE:
                self.state[TO_COMMIT] = 1
            elif commits.state[UNCOMMITTED] > 0:
                commits.begin(now, below)
        return NOTHING
