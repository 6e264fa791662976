"""The requests of one job, with the offsets, lengths and order of fio 3.33.

The rules were derived from fio's logs (tests/test_fio_offsets.py); tests/fio_generator.py is the
same in plain Python, one request at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import loop, method, state_machine
from hybridsim.workloads.fio.blockmap import BlockMap
from hybridsim.workloads.fio.pattern import (
    MASK32,
    READ,
    SYNC,
    TRIM,
    WRITE,
    Distribution,
    Pattern,
)
from hybridsim.workloads.fio.random import draw, draw_below, draw_percent, seed_stream
from hybridsim.workloads.fio.register import Register
from hybridsim.workloads.fio.spread import Spread
from hybridsim.workloads.fio.tables import seeds_of, tables_of
from hybridsim.workloads.fio.turns import Turns

END = -1  # no further request in this pass
MINIMUM, MAXIMUM, UNIT, SPLITS, RANDOM_PERCENT, ZONES = range(6)  # by direction
SHARE, BEGIN, SIZE = range(3)  # columns of a zone; of a split: (SHARE, BEGIN: bytes)
# Rows of the streams; SIZES and COINS have one row per direction.
MIX, BLOCKS, ZONE = 3, 4, 5
SIZES, COINS = 0, 6
# Indices of the state.
TURN, LAST, NOW, UNTIL, PASSED, IN_ALL, PASSES, CREATED = range(8)
ISSUED = 8  # one per direction
TRIMMED, TRIMMED_BYTES = 11, 12  # the trimmed block that is written next
FILE_SHIFT = 50  # the bits of an offset from here on are the file's index
HUNDREDTH = MASK32 // 100
EVEN, ZONED = int(Distribution.RANDOM), int(Distribution.ZONED)
ZONED_ABS = int(Distribution.ZONED_ABS)


@state_machine
class Generator(NamedTuple):
    """The random streams and the progress of a job."""

    begin: int  # of the region, in bytes
    end: int
    files: int
    rest_bytes: int
    first_direction: int
    is_paired: int
    is_mixed: int
    is_random: int
    uses_map: int
    uses_register: int
    distribution: int
    read_percent: int
    every: int
    hole_bytes: int
    stays: int
    is_unaligned: int
    is_endless: int
    is_reseeded: int
    pass_bytes: int
    passes: int
    requests: int
    writes_between_syncs: int
    by_direction: Ints  # [direction, MINIMUM ... ZONES]
    splits: Ints  # [direction, split, (SHARE, BEGIN)]
    zones: Ints  # [direction, zone, (SHARE, BEGIN, SIZE)]
    seeds: Ints  # one per row of the streams
    streams: Ints
    map: BlockMap
    register: Register
    spread: Spread
    turns: Turns
    state: Ints
    at: Ints  # [file, direction]: end of the last request
    began: Ints  # [file, direction]: begin of the last request
    is_done: Bytes  # by file: whether its pass is complete

    @classmethod
    def new(cls, pattern: Pattern) -> Generator:
        """Create the generator of a pattern."""
        streams = np.zeros((9, 3), np.int64)
        blocks = pattern.file_bytes // pattern.block_bytes if pattern.uses_map else 0
        state = np.zeros(13, np.int64)
        state[TURN], state[LAST] = 1, END
        generator = cls(
            pattern.offset_bytes,
            pattern.offset_bytes + pattern.file_bytes,
            pattern.files,
            pattern.rest_bytes,
            pattern.directions[0],
            int(pattern.writes_what_it_trims),
            int(len(pattern.directions) > 1),
            int(pattern.is_random),
            int(pattern.uses_map),
            int(pattern.uses_register),
            int(pattern.distribution),
            pattern.read_percent,
            pattern.every,
            pattern.hole_bytes,
            int(pattern.stays),
            int(pattern.unaligned_sizes),
            int(pattern.is_endless),
            int(pattern.is_repeated and not pattern.is_endless),
            pattern.pass_bytes,
            pattern.passes,
            pattern.requests,
            pattern.writes_between_syncs,
            *tables_of(pattern),
            seeds_of(pattern),
            streams,
            BlockMap.new(blocks * pattern.files),
            Register.of(pattern),
            Spread.new(pattern),
            Turns.new(pattern),
            state,
            np.full((pattern.files, 3), pattern.offset_bytes, np.int64),
            np.full((pattern.files, 3), pattern.offset_bytes, np.int64),
            np.zeros(pattern.files, np.uint8),
        )
        generator.seed_all()
        return generator

    @method
    def seed_all(self):
        """Seed all streams."""
        for row in range(len(self.seeds)):
            seed_stream(self.streams, row, self.seeds[row])

    @method
    def is_sync_due(self):
        """Return whether the next request is a sync (fsync, fdatasync)."""
        every, writes = self.writes_between_syncs, self.state[ISSUED + WRITE]
        return every > 0 and writes > 0 and writes % every == 0 and self.state[LAST] != SYNC

    @method
    def begin_again(self):
        """Restart all files within or after a pass."""
        self.turns.begin_again(self.is_done, self.is_reseeded)
        self.at[:, :] = self.begin
        self.map.clear()
        if self.is_reseeded:
            self.seed_all()
        if self.uses_register:
            for file in range(self.files):
                self.register.restart(file)

    @method
    def next(self, direction, offset, length, row):
        """Write the next request into row `row`; return whether there is one."""
        state = self.state
        if self.is_paired and state[LAST] == TRIM:
            state[LAST] = WRITE
            direction[row], offset[row], length[row] = WRITE, state[TRIMMED], state[TRIMMED_BYTES]
            return True
        while True:
            if not self.is_endless and state[IN_ALL] >= self.passes * self.pass_bytes:
                return False
            if state[PASSED] >= self.pass_bytes and not self.has_another_pass():
                return False
            if self.is_sync_due():
                state[LAST] = SYNC
                file = self.turns.next(self.is_done) if self.turns.has_any() else 0
                direction[row], offset[row], length[row] = SYNC, file << FILE_SHIFT, 0
                return True
            if self.place(direction, offset, length, row) != END:
                return True
            whole = (self.end - self.begin) * self.files + self.rest_bytes
            is_over = state[PASSED] > 0 and self.pass_bytes <= whole
            self.begin_again()
            if not is_over and self.place(direction, offset, length, row) != END:
                return True
            if not self.has_another_pass():
                return False

    @method
    def has_another_pass(self):
        """Start the next pass; return whether there is one that can issue requests."""
        issued_any = self.state[PASSED] > 0
        self.state[PASSES] += 1
        self.state[PASSED] = 0
        if self.is_endless:
            return issued_any
        return self.state[CREATED] > 0 and self.state[PASSES] < self.passes

    @method
    def place(self, direction, offset, length, row):
        """Issue a request to the next file that has one; END if none has one in this pass."""
        while self.turns.has_any():
            file = self.turns.next(self.is_done)
            at = self.place_in(file, direction, offset, length, row)
            if at != END:
                self.is_done[file] = 0
                return at
            if self.turns.ended(file, self.is_done):
                self.clear(file)
        return END

    @method
    def clear(self, file):
        """Restart a file."""
        self.at[file, :] = self.begin
        if self.uses_map:
            blocks = self.map.blocks // self.files
            self.map.clear_between(file * blocks, (file + 1) * blocks)
        if self.uses_register:
            self.register.restart(file)

    @method
    def place_in(self, file, direction, offset, length, row):
        """Issue the next request of a file and return its offset; END if the pass is complete."""
        state = self.state
        kind = self.mixed() if self.is_mixed else self.first_direction
        at = self.next_offset(file, kind)
        is_random = at <= END
        if at == END:
            return END
        if is_random:
            at = -2 - at
        size = self.next_length(kind, at)
        if size == END:
            return END
        if self.uses_map and is_random:
            size = self.touch(file, kind, at, size)
            if size == 0:
                return END
        self.began[file, kind] = at
        self.at[file, kind] = at + size
        state[LAST] = kind
        state[ISSUED + kind] += 1
        state[CREATED] += 1
        state[PASSED] += size
        state[IN_ALL] += size
        direction[row], offset[row], length[row] = kind, at + (file << FILE_SHIFT), size
        state[TRIMMED], state[TRIMMED_BYTES] = offset[row], size
        return at

    @method
    def mixed(self):
        """Return the next direction; it is drawn anew when the current one has its share."""
        state = self.state
        if state[ISSUED + state[NOW]] >= state[UNTIL]:
            drawn = READ if draw_percent(self.streams, MIX) <= self.read_percent else WRITE
            if drawn != state[NOW]:
                share = self.read_percent if drawn == READ else 100 - self.read_percent
                state[UNTIL] = state[ISSUED + state[NOW]] * share // 100
            state[NOW] = drawn
        return state[NOW]

    @method
    def next_offset(self, file, kind):
        """Return the next offset, -2 - offset if it is random, END if there is none."""
        self.state[TURN] -= 1
        if self.state[TURN] == 0:
            self.state[TURN] = self.every
            if not self.is_random:
                return self.sequential(file, kind)
            percent = self.by_direction[kind, RANDOM_PERCENT]
            if percent == 100 or draw_percent(self.streams, COINS + kind) <= percent:
                at = self.random(file, kind)
                return END if at == END else -2 - at
        elif self.stays:
            return self.began[file, kind]
        at = self.sequential(file, kind)
        return self.random(file, kind) if at == END else at

    @method
    def sequential(self, file, kind):
        """Return the offset after the last request, or the first; END at the end."""
        at = self.at[file, kind]
        if at >= self.end:
            return self.begin if self.is_endless else END
        if self.hole_bytes > 0 and at > self.begin:
            at += self.hole_bytes
        return at if at < self.end else self.begin

    @method
    def random(self, file, kind):
        """Return a random offset; END if there is none."""
        unit = self.by_direction[kind, UNIT]
        last = self.last_block(kind, self.end - self.begin)
        if last <= 0:
            return END
        if self.distribution == ZONED or self.distribution == ZONED_ABS:
            block = self.zoned(kind)
        elif self.distribution == EVEN:
            block = self.even(file, last)
            if block == END and (self.is_endless or self.turns.is_by_share()):
                self.clear(file)
                block = self.even(file, last)
        else:
            block = self.spread.next(file)
        if block == END or block * unit >= self.end - self.begin:
            return END
        return self.begin + block * unit

    @method
    def last_block(self, kind, size):
        """Return the number of blocks of a region of `size` bytes where a request may begin."""
        minimum, unit = self.by_direction[kind, MINIMUM], self.by_direction[kind, UNIT]
        return (size - max(minimum - unit, 0)) // unit

    @method
    def even(self, file, last):
        """Return a uniformly distributed block; END if all were accessed in this pass."""
        if self.uses_register:
            return self.register.next(file)
        block = draw_below(self.streams, BLOCKS, last)
        if self.uses_map:
            blocks = self.map.blocks // self.files
            first = file * blocks
            free = self.map.next_free(first + block, first, first + blocks)
            return END if free < 0 else free - first
        return block

    @method
    def zoned(self, kind):
        """Return a block of a randomly drawn zone."""
        drawn = draw_percent(self.streams, ZONE)
        zones = self.zones
        zone = 0
        until = zones[kind, 0, SHARE]
        while drawn > until and zone + 1 < self.by_direction[kind, ZONES]:
            zone += 1
            until += zones[kind, zone, SHARE]
        blocks = self.last_block(kind, zones[kind, zone, SIZE])
        first = zones[kind, zone, BEGIN] // self.by_direction[kind, UNIT]
        return first + draw_below(self.streams, BLOCKS, blocks)

    @method
    def touch(self, file, kind, at, size):
        """Mark free blocks of a request accessed; return the bytes before the first other one."""
        minimum = self.by_direction[kind, MINIMUM]
        blocks = self.map.blocks // self.files
        first = (at - self.begin) // minimum
        count = 0
        while count * minimum < size:
            block = file * blocks + first + count
            if first + count < blocks:  # a partial last block is not in the map
                if self.map.has(block):
                    break
                self.map.touch(block)
            count += 1
        return min(size, count * minimum)

    @method
    def next_length(self, kind, at):
        """Return a length that fits before the end; END if none does."""
        minimum, maximum = self.by_direction[kind, MINIMUM], self.by_direction[kind, MAXIMUM]
        if at + minimum > self.end:
            return END
        if minimum == maximum:
            return minimum
        while True:
            size = self.drawn_length(kind, at, minimum, maximum)
            if at + size <= self.end:
                return size

    @method
    def drawn_length(self, kind, at, minimum, maximum):
        """Return a random length from the range or the splits."""
        drawn = draw(self.streams, SIZES + kind)
        count = self.by_direction[kind, SPLITS]
        size, percent = minimum, 0
        for split in range(count):
            percent += self.splits[kind, split, SHARE]
            size = self.splits[kind, split, BEGIN]
            if drawn // percent <= HUNDREDTH and at + size <= self.end:
                break
        if count == 0:
            size += int(maximum * (drawn / 4294967296.0))
        if not self.is_unaligned:
            size -= size % minimum
        return min(size, maximum)


@loop
def fill(generator, direction: Bytes, offset: Ints, length: Ints) -> int:
    """Generate requests until the columns are full; return their number."""
    for row in range(len(offset)):
        if generator.requests > 0 and generator.state[CREATED] >= generator.requests:
            if generator.is_paired == 0 or generator.state[LAST] != TRIM:
                return row
        if not generator.next(direction, offset, length, row):
            return row
    return len(offset)
