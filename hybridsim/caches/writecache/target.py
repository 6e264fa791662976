"""dm-writecache as Linux runs it on an SSD: writes go to the SSD, reads hit only written data.

Requests are served block by block.  Commits make the metadata durable; no request is served during
a commit.  Once the cache is half full, the oldest blocks are written back.
Details: DESIGN.md 2.15.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.writecache import write_back as back
from hybridsim.caches.writecache.write_back import Commits, Slots, WriteBack
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.cache_parameters import WritecacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, Op, Path, Reason, Restart
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns
from hybridsim.jit.lists import NOTHING, Fifos

# In the low bits of a tag, as COPY_READ etc.: the kind of a part of a request.
PART, CACHED_WRITE, AROUND_WRITE, METADATA = range(4)
CACHED_READ = 7

COUNTERS = (
    "reads", "read_hits", "writes", "write_hits_uncommitted", "write_hits_committed",
    "writes_around", "writes_allocated", "writes_blocked", "flushes", "discards",
)  # fmt: skip
(READS, READ_HITS, WRITES, HITS_UNCOMMITTED, HITS_COMMITTED, WRITES_AROUND, WRITES_ALLOCATED,
 WRITES_BLOCKED, FLUSHES, DISCARDS) = range(len(COUNTERS))  # fmt: skip

SERVER_CALLED, TIMER_SET, IS_BLOCKED, WRITTEN_BACK, TO_COMMIT = range(5)
TO_FLUSH_FIRST = -1  # progress of a request that starts with a flush; else blocks served


@state_machine
class DmWritecache(NamedTuple):
    """The queue of requests, and their service."""

    page_bytes: int  # of a block
    autocommit_blocks: int
    autocommit_time_ns: int
    cleans: bool  # True: option `cleaner`, which caches no more blocks
    write_back: WriteBack
    counts: Ints  # COUNTERS
    queue: Fifos  # requests that wait, linked by `promoted`; `last_promoted` counts blocks written
    state: Ints  # [SERVER_CALLED ... TO_COMMIT]

    @classmethod
    def new(cls, parameters: WritecacheParameters) -> DmWritecache:
        """Return an empty cache."""
        p, block_bytes = parameters, parameters.block_bytes
        commits = Commits.new(p.blocks, block_bytes, METADATA)
        write_back = WriteBack.new(block_bytes, p, Slots.new(p.blocks), commits)
        counts, state = np.zeros(len(COUNTERS), np.int64), np.zeros(5, np.int64)
        commits_at = (p.autocommit_blocks, p.autocommit_time_ns)
        return cls(block_bytes, *commits_at, False, write_back, counts, Fifos.new(), state)

    def size(self) -> int:
        """Return 0: the cache has no pool of requests."""
        return 0

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts in one step: of a request, worker or commit."""
        runs = len(self.write_back.commits.is_dirty) // 2 + 1
        return max(longest_bytes // self.page_bytes + 2, 2 * back.QUEUE_MAX) + runs + 32

    def grown(self, room: int) -> DmWritecache:
        """Return the cache, which need not grow."""
        return self

    def totals(self) -> dict[str, int]:
        """Return the counters so far by name, as `dmsetup status` counts them."""
        slots = self.write_back.slots.state
        written_back = int(self.state[WRITTEN_BACK])
        return dict(zip(COUNTERS, self.counts.tolist(), strict=True)) | {
            "free_blocks": int(slots[back.FREE]),
            "blocks_under_writeback": int(slots[back.FLYING]),
            "blocks_written_back": written_back,
            "commits": int(self.write_back.commits.state[back.COUNT]),
            "pages_present": len(self.write_back.slots.free) - int(slots[back.FREE]),
        }

    # Restarts (DESIGN.md 2.17).

    def restarted(self, now_ns: int, how: Restart) -> DmWritecache:
        """Return the cache as it starts again, with the blocks whose metadata is on the SSD."""
        old = self.write_back
        epoch = int(old.commits.state[back.EPOCH])
        slots = old.slots.restarted(epoch if how == Restart.UNCLEAN else NOTHING, epoch)
        commits, cleans = old.commits.restarted(), how == Restart.CLEANER
        if cleans:
            old = old._replace(
                high_watermark_blocks=0, low_watermark_blocks=0, pause_writeback_ns=0
            )
        write_back = WriteBack.new(self.page_bytes, old, slots, commits)
        state = np.array([0, 0, 0, self.state[WRITTEN_BACK], 0])
        return self._replace(cleans=cleans, write_back=write_back, queue=Fifos.new(), state=state)

    def resume(self, now_ns: int, below: Any) -> None:
        """Write back, if more than the high watermark is used."""
        self.write_back.check(now_ns, below.events)

    def dirty_bytes(self) -> int:
        """Return how much is cached: all of it is dirty."""
        slots = self.write_back.slots
        return (len(slots.free) - int(slots.state[back.FREE])) * self.page_bytes

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each cached block, one row each."""
        slots = self.write_back.slots
        begin = np.unique(slots.table.number[np.flatnonzero(slots.what != back.IS_FREE)])
        begin *= self.page_bytes
        return np.stack([begin, np.full(len(begin), self.page_bytes)], axis=1)

    @method
    def room(self):
        """Return a number larger than any demand: there is no limit."""
        return 1 << 62

    @method
    def finished(self, now, slot, requests, below):
        """Do nothing when a request is complete."""

    # Requests.

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host."""
        op = requests.op[slot]
        length = requests.length[slot]
        requests.last_promoted[slot] = 0
        if op != Op.FLUSH and op != Op.DISCARD and length > 0:
            first = requests.offset[slot] // self.page_bytes
            last = (requests.offset[slot] + length - 1) // self.page_bytes
            requests.pages[slot] = last - first + 1
            if op == Op.READ:
                requests.path[slot] = Path.HIT
                requests.reason[slot] = Reason.NONE
            elif op == Op.WRITE and requests.flags[slot] & PREFLUSH != 0:
                requests.last_promoted[slot] = TO_FLUSH_FIRST
        self.line_up(now, slot, requests, below)

    @method
    def line_up(self, now, slot, requests, below):
        """Serve a request at once if the queue is empty and no commit is running; else queue it."""
        is_open = self.queue.is_empty(0) and self.write_back.commits.state[back.STAGE] == back.IDLE
        if not is_open or not self.serve(now, slot, requests, below):
            self.queue.append(0, slot, requests.promoted)

    @method
    def call_server(self, now, events):
        """Schedule the service of the queue at this time."""
        if not self.queue.is_empty(0):
            events.push_once(self.state, SERVER_CALLED, now, CACHE, back.SERVER)

    @method
    def serve_first(self, now, requests, below):
        """Serve the first request of the queue, and schedule the next one."""
        self.state[SERVER_CALLED] = 0
        if self.write_back.commits.state[back.STAGE] != back.IDLE:
            return
        if self.serve(now, self.queue.first[0], requests, below):
            self.queue.pop(0, requests.promoted)
            self.call_server(now, below.events)

    @method
    def serve(self, now, slot, requests, below):
        """Serve a request; return False if it must wait for a free slot."""
        op = requests.op[slot]
        progress = requests.last_promoted[slot]
        blocks = requests.pages[slot]
        if blocks > 0 and op == Op.READ:
            self.read(now, slot, requests, below)
        elif blocks > 0 and 0 <= progress < blocks:
            return self.write(now, slot, requests, below)
        elif op == Op.DISCARD and requests.length[slot] > 0:
            self.discard(now, slot, requests, below)
        else:
            self.flush(now, slot, requests, below)
        return True

    @method
    def flush(self, now, slot, requests, below):
        """Flush the slow tier and commit."""
        self.counts[FLUSHES] += 1
        requests.last_promoted[slot] += 1
        commits = self.write_back.commits
        self.write_back.state[back.AROUND] += 1  # it puts write-back off, as a write does
        self.send(now, slot, AROUND_WRITE, Op.FLUSH, 0, 0, requests, below)
        if commits.begin(now, below):
            requests.pending[slot] += 1
            commits.state[back.WAITER] = slot

    @method
    def write(self, now, slot, requests, below):
        """Write as many blocks as possible; return whether all are written."""
        commits = self.write_back.commits
        is_all = self.write_blocks(now, slot, requests, below)
        self.write_back.check(now, below.events)
        if commits.state[back.UNCOMMITTED] >= self.autocommit_blocks:
            commits.begin(now, below)
        elif commits.state[back.UNCOMMITTED] > 0 and self.state[TIMER_SET] == 0:
            self.state[TIMER_SET] = 1
            below.events.push(expiry_ns(now, self.autocommit_time_ns), CACHE, back.AUTOCOMMIT)
        if not is_all and self.state[IS_BLOCKED] == 0:
            self.counts[WRITES_BLOCKED] += 1
        self.state[IS_BLOCKED] = 0 if is_all else 1
        return is_all

    # The tier for each block.

    @method
    def discard(self, now, slot, requests, below):
        """Drop the blocks that are discarded completely, and pass the discard to the slow tier."""
        slots = self.write_back.slots
        self.counts[DISCARDS] += 1
        start = requests.offset[slot]
        end = start + requests.length[slot]
        first = (start + self.page_bytes - 1) // self.page_bytes
        for block in range(first, end // self.page_bytes):
            place = slots.table.find(block)
            if (
                place != NOTHING
                and slots.what[place] == back.HOLDS
                and slots.twin[place] == NOTHING
            ):
                slots.drop(place)
                self.write_back.commits.note(place)
        self.send(now, slot, PART, Op.DISCARD, start, end - start, requests, below)

    @method
    def read(self, now, slot, requests, below):
        """Read each block from the tier that has it."""
        slots = self.write_back.slots
        blocks = requests.pages[slot]
        first = requests.offset[slot] // self.page_bytes
        self.counts[READS] += blocks
        missing = 0
        for block in range(first, first + blocks + 1):
            place = slots.table.find(block) if block < first + blocks else NOTHING
            if place == NOTHING and block < first + blocks:
                missing += 1
                continue
            if missing > 0:
                self.send_slow(now, slot, PART, Op.READ, block - missing, missing, requests, below)
                missing = 0
                requests.path[slot] = Path.MISS
                requests.reason[slot] = Reason.NOT_WRITTEN
            if place != NOTHING:
                self.counts[READ_HITS] += 1
                requests.pages_hit[slot] += 1
                self.write_back.commits.state[back.READS_UNDER_WAY] += 1
                self.send_fast(now, slot, CACHED_READ, Op.READ, place, 1, requests, below)

    @method
    def send(self, now, slot, what, op, offset, length, requests, below):
        """Send a part of a request to the slow tier."""
        requests.pending[slot] += 1
        below.slow.submit(now, slot << back.TAG_BITS | what, op, offset, length, below.events)

    @method
    def send_slow(self, now, slot, what, op, block, number, requests, below):
        """Send blocks to the slow tier, which may end within the last block."""
        at = block * self.page_bytes
        length = min(number * self.page_bytes, below.slow.capacity_bytes - at)
        self.send(now, slot, what, op, at, length, requests, below)

    @method
    def send_fast(self, now, slot, what, op, place, number, requests, below):
        """Send a range of slots to the fast tier."""
        requests.pending[slot] += 1
        at, length = np.int64(place) * self.page_bytes, number * self.page_bytes
        below.fast.submit(now, slot << back.TAG_BITS | what, op, at, length, below.events)

    @method
    def write_blocks(self, now, slot, requests, below):
        """Write as many blocks as possible; return whether all are written."""
        slots = self.write_back.slots
        first = requests.offset[slot] // self.page_bytes
        blocks = np.int64(requests.pages[slot])
        done = np.int64(requests.last_promoted[slot])
        while done < blocks:
            block = first + done
            left = blocks - done
            place = slots.table.find(block)
            if place != NOTHING and slots.what[place] == back.HOLDS:
                done += self.overwrite(now, slot, block, place, left, requests, below)
            elif slots.state[back.FREE] > 0 and not (self.cleans and place == NOTHING):
                done += self.allocate(now, slot, block, left, requests, below)
            elif place == NOTHING:
                done += self.write_around(now, slot, block, left, requests, below)
            else:
                break
        requests.last_promoted[slot] = done
        return done == blocks

    @method
    def overwrite(self, now, slot, block, place, left, requests, below):
        """Write cached blocks to their slots; return their number."""
        slots, commits = self.write_back.slots, self.write_back.commits.state
        number = 0
        while (
            number < left
            and place + number < len(slots.free)
            and slots.table.find(block + number) == place + number
            and slots.what[place + number] == back.HOLDS
        ):
            is_committed = slots.epoch[place + number] != commits[back.EPOCH]
            if is_committed:
                commits[back.OVERWROTE] = 1
            if number > 0:  # the kernel counts a part's first block only as a hit
                self.counts[WRITES_ALLOCATED] += 1
            else:
                self.counts[HITS_COMMITTED if is_committed else HITS_UNCOMMITTED] += 1
            number += 1
        self.write_fast(now, slot, place, number, requests, below)
        return number

    @method
    def allocate(self, now, slot, block, left, requests, below):
        """Write blocks that are not cached to free slots; return their number."""
        slots, commits = self.write_back.slots, self.write_back.commits
        place = slots.first_free()
        number = 0
        while number < left and slots.first_free() == place + number:
            held = slots.table.find(block + number)
            if held != NOTHING and slots.what[held] == back.HOLDS:
                break
            slots.take(block + number, commits.state[back.EPOCH])
            commits.is_new[(place + number) // back.REGION_SLOTS] = 1
            number += 1
        commits.state[back.UNCOMMITTED] += number
        self.counts[WRITES_ALLOCATED] += number
        self.write_fast(now, slot, place, number, requests, below)
        return number

    @method
    def write_fast(self, now, slot, place, number, requests, below):
        """Write blocks to a range of slots."""
        self.counts[WRITES] += number
        self.write_back.commits.state[back.WRITES_UNDER_WAY] += 1
        self.send_fast(now, slot, CACHED_WRITE, Op.WRITE, place, number, requests, below)

    @method
    def write_around(self, now, slot, block, left, requests, below):
        """Write blocks that are not cached to the slow tier; return their number."""
        number = 1
        while number < left and self.write_back.slots.table.find(block + number) == NOTHING:
            number += 1
        self.counts[WRITES] += number
        self.counts[WRITES_AROUND] += number
        self.write_back.state[back.AROUND] += 1
        self.send_slow(now, slot, AROUND_WRITE, Op.WRITE, block, number, requests, below)
        return number

    # Completions.

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        what = tag & (1 << back.TAG_BITS) - 1
        number = tag >> back.TAG_BITS
        if what == back.COPY_READ:
            self.write_back.copier.on_read(number)
            self.write_back.work(now, below)
        elif what == back.COPY_WRITE:
            self.state[WRITTEN_BACK] += self.write_back.copier.run[number]
            self.write_back.copier.on_written(number)
            self.write_back.work(now, below)
        elif what == back.COPY_FLUSH:
            self.write_back.flushed(now, below)
        elif what == METADATA:
            return self.commit_went_on(now, requests, below)
        else:
            commits = self.write_back.commits
            if what == CACHED_WRITE:
                state = commits.state
                state[back.WRITES_UNDER_WAY] -= 1
                commits.flush(now, below)
                if state[back.STAGE] == back.CHOOSING and state[back.WRITES_UNDER_WAY] == 0:
                    state[back.STAGE] = back.IDLE
                    self.write_back.choose(now, below)
                    self.unlock(now, below)
            elif what == CACHED_READ:
                commits.state[back.READS_UNDER_WAY] -= 1
                commits.on_read(now, below)
            elif what == AROUND_WRITE:
                around = self.write_back.state
                around[back.AROUND] -= 1
                around[back.QUIET_SINCE] = now
                if around[back.AROUND] == 0:
                    self.write_back.call(now, below.events)
            return self.end_part(now, number, requests, below)
        return NOTHING

    @method
    def commit_went_on(self, now, requests, below):
        """Start the next step of who has the lock; after the last one let go on who waits."""
        commits = self.write_back.commits
        over = commits.go_on(now, below)
        if over == back.FREED:
            self.write_back.state[back.FLUSHED] = NOTHING
            if self.write_back.state[back.LANDED] != NOTHING:  # reported meanwhile
                self.write_back.flush(now, below)
        elif over == back.COMMITTED and self.write_back.state[back.COMMITS] == 1:
            self.write_back.state[back.COMMITS] = 0
            self.write_back.choose(now, below)
        if over != back.UNDER_WAY:
            self.unlock(now, below)
        if over != back.COMMITTED:
            return NOTHING
        waiter = commits.state[back.WAITER]
        commits.state[back.WAITER] = NOTHING
        return NOTHING if waiter == NOTHING else self.end_part(now, waiter, requests, below)

    @method
    def unlock(self, now, below):
        """Let go on what waits for the lock, unless it is taken again."""
        commits = self.write_back.commits
        if commits.state[back.STAGE] == back.IDLE and self.write_back.state[back.FREES] == 1:
            self.write_back.free_flushed(now, below)
        if commits.state[back.STAGE] == back.IDLE and self.state[TO_COMMIT] == 1:
            self.state[TO_COMMIT] = 0
            if commits.state[back.UNCOMMITTED] > 0:
                commits.begin(now, below)
        if commits.state[back.STAGE] == back.IDLE:
            self.call_server(now, below.events)
            self.write_back.call(now, below.events)

    @method
    def end_part(self, now, slot, requests, below):
        """Count a completed part; return the request if it is complete, or -1."""
        requests.pending[slot] -= 1
        if requests.pending[slot] > 0:
            return NOTHING
        if requests.op[slot] == Op.READ or requests.pages[slot] == 0:
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
        if number == back.SERVER:
            self.serve_first(now, requests, below)
        elif number == back.WRITER:
            self.write_back.run_writer(now, below)
        elif number == back.COPIER:
            self.write_back.copier.state[back.SLEEPS] = 0  # the disk has let its write in
            self.write_back.work(now, below)
        else:
            self.state[TIMER_SET] = 0
            commits = self.write_back.commits
            if commits.state[back.STAGE] != back.IDLE:
                self.state[TO_COMMIT] = 1
            elif commits.state[back.UNCOMMITTED] > 0:
                commits.begin(now, below)
        return NOTHING
