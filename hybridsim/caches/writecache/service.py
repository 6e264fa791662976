"""How a dm-writecache serves a request: the tier for each of its blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.writecache.commits import (
    EPOCH,
    OVERWROTE,
    READS_UNDER_WAY,
    UNCOMMITTED,
    WRITES_UNDER_WAY,
)
from hybridsim.caches.writecache.copier import TAG_BITS
from hybridsim.caches.writecache.slots import FREE, HOLDS, NOTHING
from hybridsim.caches.writecache.write_back import AROUND, WriteBack
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op, Path, Reason
from hybridsim.jit import method, state_machine

READ, WRITE, DISCARD = int(Op.READ), int(Op.WRITE), int(Op.DISCARD)
MISS, NOT_WRITTEN = int(Path.MISS), int(Reason.NOT_WRITTEN)

# In the low bits of a tag, as COPY_READ etc.: the kind of a part of a request.
PART, CACHED_WRITE, AROUND_WRITE, METADATA = range(4)
CACHED_READ = 7

COUNTERS = (
    "reads", "read_hits", "writes", "write_hits_uncommitted", "write_hits_committed",
    "writes_around", "writes_allocated", "writes_blocked", "flushes", "discards",
)  # fmt: skip
(READS, READ_HITS, WRITES, HITS_UNCOMMITTED, HITS_COMMITTED, WRITES_AROUND, WRITES_ALLOCATED,
 WRITES_BLOCKED, FLUSHES, DISCARDS) = range(len(COUNTERS))  # fmt: skip


@state_machine
class Service(NamedTuple):
    """Block operations of requests; `last_promoted` of a request counts its blocks written."""

    page_bytes: int  # of a block
    cleans: bool  # True: option `cleaner`, which caches no more blocks
    write_back: WriteBack
    counts: Ints  # COUNTERS

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
            if place != NOTHING and slots.what[place] == HOLDS and slots.twin[place] == NOTHING:
                slots.drop(place)
                self.write_back.commits.note(place)
        self.send(now, slot, PART, DISCARD, start, end - start, requests, below)

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
                self.send_slow(now, slot, PART, READ, block - missing, missing, requests, below)
                missing = 0
                requests.path[slot] = MISS
                requests.reason[slot] = NOT_WRITTEN
            if place != NOTHING:
                self.counts[READ_HITS] += 1
                requests.pages_hit[slot] += 1
                self.write_back.commits.state[READS_UNDER_WAY] += 1
                self.send_fast(now, slot, CACHED_READ, READ, place, 1, requests, below)

    @method
    def send(self, now, slot, what, op, offset, length, requests, below):
        """Send a part of a request to the slow tier."""
        requests.pending[slot] += 1
        below.slow.submit(now, slot << TAG_BITS | what, op, offset, length, below.events)

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
        below.fast.submit(now, slot << TAG_BITS | what, op, at, length, below.events)

    @method
    def write(self, now, slot, requests, below):
        """Write as many blocks as possible; return whether all are written."""
        slots = self.write_back.slots
        first = requests.offset[slot] // self.page_bytes
        blocks = np.int64(requests.pages[slot])
        done = np.int64(requests.last_promoted[slot])
        while done < blocks:
            block = first + done
            left = blocks - done
            place = slots.table.find(block)
            if place != NOTHING and slots.what[place] == HOLDS:
                done += self.overwrite(now, slot, block, place, left, requests, below)
            elif slots.state[FREE] > 0 and not (self.cleans and place == NOTHING):
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
            and slots.what[place + number] == HOLDS
        ):
            is_committed = slots.epoch[place + number] != commits[EPOCH]
            if is_committed:
                commits[OVERWROTE] = 1
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
            if held != NOTHING and slots.what[held] == HOLDS:
                break
            slots.take(block + number, commits.state[EPOCH])
            commits.note_new(place + number)
            number += 1
        commits.state[UNCOMMITTED] += number
        self.counts[WRITES_ALLOCATED] += number
        self.write_fast(now, slot, place, number, requests, below)
        return number

    @method
    def write_fast(self, now, slot, place, number, requests, below):
        """Write blocks to a range of slots."""
        self.counts[WRITES] += number
        self.write_back.commits.state[WRITES_UNDER_WAY] += 1
        self.send_fast(now, slot, CACHED_WRITE, WRITE, place, number, requests, below)

    @method
    def write_around(self, now, slot, block, left, requests, below):
        """Write blocks that are not cached to the slow tier; return their number."""
        number = 1
        while number < left and self.write_back.slots.table.find(block + number) == NOTHING:
            number += 1
        self.counts[WRITES] += number
        self.counts[WRITES_AROUND] += number
        self.write_back.state[AROUND] += 1
        self.send_slow(now, slot, AROUND_WRITE, WRITE, block, number, requests, below)
        return number
