"""The requests of one job, with the offsets, lengths and order of fio 3.33.

The rules were derived from fio's logs (tests/test_fio_offsets.py); tests/fio_generator.py is the
same in plain Python, one request at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import kernel, loop, method, state_machine
from hybridsim.workloads.fio.blocks import (
    WHOLE,
    BlockMap,
    Register,
    Spread,
    Turns,
    draw,
    draw64,
    draw_below,
    draw_percent,
    is_wide,
    restart,
    seeded,
    unsigned,
)
from hybridsim.workloads.fio.pattern import (
    DATA_SYNC,
    END_SYNC,
    ENDLESS,
    FIRST_OF_VERIFY,
    MASK32,
    OF_BACKLOG,
    OF_VERIFY,
    READ,
    SYNC,
    TRIM,
    WRITE,
    Distribution,
    Pattern,
    Stream,
)
from hybridsim.workloads.fio.pattern import Generator as Numbers

END = -1  # no further request in this pass
NEVER = -1  # a file's last request, before its first
MINIMUM, MAXIMUM, UNIT, SPLITS, RANDOM_PERCENT, ZONES, BEGINS = range(7)  # by direction
SHARE, BEGIN, SIZE = range(3)  # columns of a zone, in blocks; of a split: (SHARE, BEGIN: bytes)
# Rows of the streams; SIZES and COINS have one row per direction.
MIX, BLOCKS, ZONE = 3, 4, 5
SIZES, COINS = 0, 6
NO_SYNC = -1  # not a kind of request
# Indices of the state; ISSUED has one entry per direction.
TURN, WAS_SYNC, NOW, UNTIL, PHASE, SYNCED = range(6)
LEFT, STARTED, CREATED, LIMIT = range(6, 10)  # passes left and started, requests and their limit
COUNTED, MOVED, QUEUED, PASSED = range(10, 14)  # bytes: to the limit, in all, and of this pass
# Bytes in the current zone of zonemode=strided; verify: reads left in a batch, and whether the
# last request was a read.
ZONE_BYTES, BATCH, WAS_READ, WAS_VERIFIED = range(14, 18)
IS_DRAWN, IS_UNMARKED, ISSUED = range(18, 21)
FREE = ISSUED + 3  # requests of the depth that are not outstanding
# Of a mix with rates, in ns since the job's start: the time, and when each direction is due.
ELAPSED, DUE = FREE + 1, FREE + 2
STATES = DUE + 2
BETWEEN, ISSUING, SYNCING, VERIFYING, OVER = range(5)  # phases
WORD = 64  # blocks of a word of fio's map
FILE_SHIFT = 50  # the bits of an offset from here on are the file's index
HUNDREDTH = MASK32 // 100
TRIES = 1 << 20  # files that a skewed order may offer before it is given up
EVEN, ZONED = int(Distribution.RANDOM), int(Distribution.ZONED)
ZONED_ABS = int(Distribution.ZONED_ABS)

# Indices of the state: the next request to read, the end of the list, and whether it was too small.
HEAD, TAIL, IS_FULL = range(3)
ENDLESS_ROWS = 1 << 20  # of a time-based job, whose passes have any number of writes
ROWS_MAX = 1 << 27  # 1 GiB per column, committed as it is used: 512 GiB in writes of 4 KiB


@state_machine
class History(NamedTuple):
    """A list in the order of the writes or, where blocks may be written twice, by offset.

    Sorted, a write removes the earlier ones that it overlaps.
    """

    is_sorted: int
    is_online: int  # overlaps are removed at each write, as their number matters (verify_backlog)
    offset: Ints  # with the file's index in its upper bits
    length: Ints
    scratch: Ints  # four rows to sort the list
    state: Ints

    @classmethod
    def of(cls, pattern: Pattern) -> History:
        """Create the history of a pattern; empty and unused unless the pattern reads back."""
        rows = rows_of(pattern)
        return cls(
            int(not pattern.uses_map),
            int(pattern.backlog > 0),
            np.zeros(rows, np.int64),  # pages are committed when they are used
            np.zeros(rows, np.int64),
            np.zeros((4, rows if not pattern.uses_map and not pattern.backlog else 0), np.int64),
            np.zeros(3, np.int64),
        )

    @method
    def is_empty(self):
        """Return whether nothing is left to read."""
        return self.state[HEAD] == self.state[TAIL]

    @method
    def take(self):
        """Remove the next request; return its offset and length."""
        row = self.state[HEAD]
        self.state[HEAD] += 1
        at, size = self.offset[row], self.length[row]
        if self.is_empty():
            self.state[HEAD] = self.state[TAIL] = 0
        return at, size

    @method
    def is_full(self):
        """Return whether writes are missing, as the list was too small."""
        return self.state[IS_FULL] == 1

    @method
    def add(self, at, size):
        """Add a write."""
        state = self.state
        if state[TAIL] == len(self.offset):
            self.compact()
        if state[TAIL] == len(self.offset):
            state[IS_FULL] = 1
            return
        if self.is_sorted == 1 and self.is_online == 1:
            self.insert(at, size)
            return
        self.offset[state[TAIL]], self.length[state[TAIL]] = at, size
        state[TAIL] += 1

    @method
    def compact(self):
        """Move the list to the begin of its arrays."""
        state = self.state
        for row in range(state[HEAD], state[TAIL]):
            self.offset[row - state[HEAD]] = self.offset[row]
            self.length[row - state[HEAD]] = self.length[row]
        state[TAIL] -= state[HEAD]
        state[HEAD] = 0

    @method
    def insert(self, at, size):
        """Insert a write in the order of the offsets, in place of those that it overlaps."""
        state = self.state
        low, high = state[HEAD], state[TAIL]
        while low < high:  # the first that ends behind the begin of the new one
            middle = (low + high) // 2
            if self.offset[middle] + self.length[middle] > at:
                high = middle
            else:
                low = middle + 1
        first = high = low
        while high < state[TAIL] and self.offset[high] < at + size:
            high += 1
        shift = 1 - (high - first)
        if shift > 0:
            for row in range(state[TAIL] - 1, high - 1, -1):
                self.offset[row + shift] = self.offset[row]
                self.length[row + shift] = self.length[row]
        elif shift < 0:
            for row in range(high, state[TAIL]):
                self.offset[row + shift] = self.offset[row]
                self.length[row + shift] = self.length[row]
        state[TAIL] += shift
        self.offset[first], self.length[first] = at, size

    @method
    def sort(self):
        """Sort the list without the writes that later ones overlap."""
        state = self.state
        rows = state[TAIL] - state[HEAD]
        if self.is_sorted == 0 or self.is_online == 1 or rows == 0:
            return
        at, size = self.scratch[0], self.scratch[1]
        widest = 0
        for row in range(rows):
            at[row] = self.offset[state[HEAD] + row]
            size[row] = self.length[state[HEAD] + row]
            widest = max(widest, size[row])
        order = self.scratch[2]
        rank(at, rows, order, self.scratch[3])
        # A write stays if no later one overlaps it; any that does begins within `widest` bytes.
        state[TAIL] = state[HEAD]
        for place in range(rows):
            row = order[place]
            is_last = True
            near = place + 1  # these first: of equal offsets the next one is the later one
            while is_last and near < rows and at[order[near]] < at[row] + size[row]:
                if order[near] > row:
                    is_last = False
                near += 1
            near = place - 1
            while is_last and near >= 0 and at[order[near]] + widest > at[row]:
                other = order[near]
                if other > row and at[other] + size[other] > at[row]:
                    is_last = False
                near -= 1
            if is_last:
                self.offset[state[TAIL]], self.length[state[TAIL]] = at[row], size[row]
                state[TAIL] += 1


@kernel
def rank(values, rows, order, other):
    """Store the indices that sort `rows` values; equal ones keep their order (a merge sort)."""
    for row in range(rows):
        order[row] = row
    width = 1
    while width < rows:
        for begin in range(0, rows, 2 * width):
            left, middle = begin, min(begin + width, rows)
            right, end = middle, min(begin + 2 * width, rows)
            for place in range(begin, end):
                takes_left = left < middle
                if takes_left and right < end:
                    takes_left = values[order[left]] <= values[order[right]]
                if takes_left:
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        for row in range(rows):
            order[row] = other[row]
        width *= 2


def rows_of(pattern: Pattern) -> int:
    """Return the maximum number of writes that are not yet read back."""
    if not pattern.reads_back or WRITE not in pattern.directions:
        return 0
    minimum = pattern.sizes[WRITE].minimum
    moved = max(pattern.region_bytes, pattern.pass_bytes * pattern.passes)
    rows = moved // minimum + 2
    rows = max(ENDLESS_ROWS, 4 * pattern.backlog, rows) if pattern.is_endless else rows
    return min(rows, ROWS_MAX)


OF_PATTERN = 32  # fields of a generator that its pattern has


@state_machine
class Generator(NamedTuple):
    """The random streams and the progress of a job."""

    # Of the pattern, by the same names.
    offset_bytes: int
    file_bytes: int
    files: int
    region_bytes: int
    writes_what_it_trims: int
    is_by_rates: int
    has_syncs: int
    is_random: int
    uses_map: int
    tracks: int
    uses_register: int
    distribution: int
    read_percent: int
    every: int
    hole_bytes: int
    stays: int
    unaligned_sizes: int
    sizes_by_order: int
    is_endless: int
    is_reseeded: int
    pass_bytes: int
    has_io_size: int
    passes: int
    writes_between_syncs: int
    writes_between_data_syncs: int
    is_queued: int
    queues_trims: int
    freed: int
    is_verified: int
    reads_back: int
    backlog: int
    written_zone_bytes: int
    # Computed from it.
    file_end: int  # the end of the file, behind that of the region
    most_bytes: int  # bytes after which a queued engine ends a pass
    largest_bytes: int
    first_direction: int
    is_mixed: int
    syncs_at_end: int
    backlog_batch: int
    zone_bytes: int  # zonemode=strided: bytes to a zone before the next one; 0: no zones
    zone_range: int
    zone_skip: int
    by_direction: Ints  # [direction, MINIMUM ... BEGINS]
    splits: Ints  # [direction, split, (SHARE, BEGIN)]
    zones: Ints  # [direction, zone, (SHARE, BEGIN, SIZE)]
    first_streams: Ints
    streams: Ints
    map_blocks: int  # of a file
    # Of a file; as in fio, whole words: requests beyond the last block mark them, too.
    map_bits: int
    map: BlockMap
    register: Register
    spread: Spread
    turns: Turns
    history: History
    pointers: Ints  # by zone: bytes written
    slots: Bytes  # by request of the depth: an attempt with it has failed
    state: Ints
    origin: Ints  # by file: begin of the region, or of the current zone
    at: Ints  # [file, direction]: end of the last request
    began: Ints  # [file, direction]: begin of the last request
    is_done: Bytes  # by file: whether its pass is complete

    @classmethod
    def new(cls, pattern: Pattern) -> Generator:
        """Create the generator of a pattern."""
        blocks = pattern.map_bytes // pattern.block_bytes if pattern.uses_map else 0
        bits = -(-blocks // WORD) * WORD
        end = pattern.offset_bytes + pattern.file_bytes
        most = pattern.region_bytes
        writes = WRITE in pattern.directions
        if writes and pattern.is_random and pattern.is_unmapped and pattern.has_io_size:
            most = max(most, pattern.pass_bytes)
        if pattern.writes_what_it_trims:
            most += pattern.pass_bytes * pattern.passes
        if pattern.reads_back and pattern.backlog:
            most += pattern.region_bytes
        streams = streams_of(pattern)
        state = np.zeros(STATES, np.int64)
        state[TURN], state[LEFT] = 1, pattern.passes
        state[LIMIT] = pattern.requests
        same = [int(getattr(pattern, name)) for name in cls._fields[:OF_PATTERN]]
        own = [
            max(end, pattern.end_bytes),
            most,
            max(sizes.maximum for sizes in pattern.sizes),
            pattern.directions[0],
            int(len(pattern.directions) > 1 and not pattern.writes_what_it_trims),
            int(pattern.syncs_at_end and writes),
            pattern.backlog_batch or pattern.backlog,
            *pattern.zones_of_files,
            *tables_of(pattern),
            streams,
            streams.copy(),
            blocks,
            bits,
            BlockMap.new(bits * pattern.files),
            Register.of(pattern),
            Spread.new(
                int(pattern.distribution),
                max(1, -(-pattern.file_bytes // pattern.rank_bytes)),  # a partial block counts
                pattern.shape,
                pattern.distribution_seeds,
                pattern.center,
                is_scattered=True,
            ),
            Turns.new(pattern),
            History.of(pattern),
            np.zeros(pattern.written_zones, np.int64),
            np.zeros(pattern.depth, np.uint8),
            state,
            np.full(pattern.files, pattern.offset_bytes, np.int64),
            np.full((pattern.files, 3), pattern.offset_bytes, np.int64),
            np.full((pattern.files, 3), NEVER, np.int64),
            np.zeros(pattern.files, np.uint8),
        ]
        return cls._make([*same, *own])

    @method
    def next(self, direction, offset, length, row):
        """Write the next request into row `row`; return whether there is one."""
        state = self.state
        while state[PHASE] != OVER:
            if state[PHASE] == ISSUING:
                if not self.is_pass_over() and self.place(direction, offset, length, row):
                    return True
                state[PHASE] = SYNCING
                if self.tracks == 1 and state[FREE] < len(self.slots):
                    state[WAS_SYNC] = 0
                syncs = self.syncs_at_end == 1 and state[WAS_SYNC] == 0
                state[SYNCED] = 0 if syncs else self.files
            elif state[PHASE] == BETWEEN:
                state[PHASE] = ISSUING if self.begin_pass() else OVER
            elif state[PHASE] == SYNCING and state[SYNCED] < self.files:
                direction[row], offset[row], length[row] = END_SYNC, state[SYNCED] << FILE_SHIFT, 0
                state[SYNCED] += 1
                return True
            elif state[PHASE] == SYNCING:
                state[PHASE] = BETWEEN if state[PASSED] > 0 else OVER
                if self.history.is_full():  # an error: see Generated
                    state[PHASE] = OVER
                elif self.reads_back == 1 and state[PASSED] > 0:
                    state[PHASE] = VERIFYING
                    state[FREE] = len(self.slots)
                    state[WAS_VERIFIED] = 0
                    self.begin_again()  # as in fio: files are closed, and are no longer done
                    self.history.sort()
            elif self.history.is_empty():
                state[PHASE] = BETWEEN
            else:
                self.read_back(direction, offset, length, row)
                if state[WAS_VERIFIED] == 0:
                    state[WAS_VERIFIED] = 1
                    direction[row] = FIRST_OF_VERIFY
                return True
        return False

    @method
    def read_back(self, direction, offset, length, row):
        """Read the next request of the history, as verify does."""
        if self.tracks == 1:
            self.take_slot()
        at, size = self.history.take()
        state = self.state
        kind = OF_BACKLOG if state[PHASE] == ISSUING else OF_VERIFY
        direction[row], offset[row], length[row] = kind, at, size
        state[CREATED] += 1  # but as in fio neither reads of a mix, nor bytes of the pass
        state[MOVED] += size
        if state[PHASE] == ISSUING:
            state[QUEUED] += size
        if self.tracks == 0:
            state[WAS_SYNC] = 0
        state[WAS_READ] = 1

    @method
    def is_read_due(self):
        """Return whether verify_backlog reads before the next request."""
        state = self.state
        if self.history.is_empty():
            return False
        if state[BATCH] == 0:
            if (self.history.state[TAIL] - self.history.state[HEAD]) % self.backlog != 0 or state[
                WAS_READ
            ] == 1:
                return False
            state[BATCH] = self.backlog_batch
            self.history.sort()
        state[BATCH] -= 1
        return True

    @method
    def begin_pass(self):
        """Start the next pass; return whether there is one."""
        state = self.state
        if self.is_endless == 0:
            if state[LEFT] > 0:
                state[LEFT] -= 1
            else:  # a pass that ended early is followed by another one
                rest = self.pass_bytes - state[MOVED]
                if self.has_all_requests() or rest <= 0 or rest < self.largest_bytes:
                    return False
                if not self.turns.has_any() and self.has_io_size == 0:
                    return False
        if state[STARTED] > 0:
            self.begin_again()
        if self.is_verified == 1:
            self.pointers[:] = 0
        state[STARTED] += 1
        state[QUEUED] = state[PASSED] = 0
        state[FREE] = len(self.slots)
        if self.writes_what_it_trims == 1:
            state[LIMIT] *= 2  # as in fio: in each pass
        return True

    @method
    def has_all_requests(self):
        """Return whether number_ios is reached."""
        limit = self.state[LIMIT] * self.passes
        return limit > 0 and self.state[CREATED] >= limit

    @method
    def is_pass_over(self):
        """Return whether the pass has issued all its requests."""
        if self.backlog > 0 and self.history.is_full():
            return True
        if self.is_endless == 1:  # with verify a pass of time_based ends, too
            is_full = self.state[QUEUED] >= self.most_bytes
            return self.is_verified == 1 and self.is_queued == 1 and is_full
        if self.state[COUNTED] >= self.pass_bytes * self.passes:
            return True
        if self.state[LIMIT] > 0 and self.has_all_requests():
            return True
        return self.is_queued == 1 and self.state[QUEUED] >= self.most_bytes

    @method
    def begin_again(self):
        """Restart all files and, unless randrepeat is off, the random streams."""
        self.turns.begin_again(self.is_done, self.is_reseeded)
        self.origin[:] = self.offset_bytes
        for file in range(self.files):
            self.restart(file)
        self.map.clear()
        if self.is_reseeded == 1:
            restart(self.streams, self.first_streams)
        self.state[WAS_SYNC] = self.state[UNTIL] = self.state[ZONE_BYTES] = 0

    @method
    def restart(self, file):
        """Forget the last requests of a file."""
        self.at[file, :] = self.origin[file]
        self.began[file, :] = NEVER
        if self.uses_register == 1:
            self.register.restart(file)

    @method
    def clear(self, file):
        """Restart a file and its part of the map."""
        self.restart(file)
        if self.uses_map == 1:
            self.map.clear_between(file * self.map_bits, (file + 1) * self.map_bits)

    @method
    def due_sync(self):
        """Return the kind of the sync that is the next request (fsync, fdatasync), or NO_SYNC."""
        writes = self.state[ISSUED + WRITE]
        if self.state[WAS_SYNC] == 1 or writes == 0:
            return NO_SYNC
        if self.writes_between_syncs > 0 and writes % self.writes_between_syncs == 0:
            return SYNC
        each = self.writes_between_data_syncs
        return DATA_SYNC if each > 0 and writes % each == 0 else NO_SYNC

    @method
    def place(self, direction, offset, length, row):
        """Issue a request to the next file that has one; return whether there is one."""
        if self.backlog > 0 and self.is_read_due():
            self.read_back(direction, offset, length, row)
            return True
        if self.tracks == 1:
            self.take_slot()
        tries = 0
        while self.turns.has_any() and tries < TRIES:
            tries += 1
            file = self.turns.next(self.is_done) if self.files > 1 else 0
            sync = self.due_sync() if self.has_syncs == 1 else NO_SYNC
            if sync != NO_SYNC:
                self.state[WAS_SYNC] = 1
                self.state[FREE] += 1  # complete at once
                direction[row], offset[row], length[row] = sync, file << FILE_SHIFT, 0
                return True
            kind = self.first_direction
            if self.is_mixed == 1 or self.writes_what_it_trims == 1:
                kind = self.next_direction(file)
            if self.zone_bytes > 0:
                self.move_zone(file, kind)
            at = self.next_offset(file, kind)
            if at != END:
                size = self.next_length(file, kind, at)
                if size > 0 and at + size <= self.file_end:
                    if self.uses_map == 1 and self.state[IS_UNMARKED] == 0:
                        size = self.touch(file, kind, at, size)
                    if size > 0:
                        if self.written_zone_bytes > 0:
                            at = self.at_pointer(at, size)
                        self.issue(file, kind, at, size)
                        if self.reads_back == 1 and kind == WRITE:
                            self.history.add(at + (file << FILE_SHIFT), size)
                        direction[row], length[row] = kind, size
                        offset[row] = at + (file << FILE_SHIFT)
                        return True
            self.turns.ended(file, self.is_done)
            self.clear(file)
        if self.tracks == 1:
            self.slots[self.state[FREE]] = self.state[IS_UNMARKED]
            self.state[FREE] += 1
        return False

    @method
    def take_slot(self):
        """Take the request of the depth that completed last.

        As in fio, one whose attempt failed without use of the map does not use it next time either.
        It stays below all those that were outstanding at that time.  A sync, which completes at
        once, follows another one only when a request has completed since, as in fio.
        """
        state = self.state
        free = state[FREE]
        if free == 0:
            free = self.freed
            state[WAS_SYNC] = 0
        free -= 1
        state[FREE] = free
        state[IS_UNMARKED] = self.slots[free]
        self.slots[free] = 0

    @method
    def issue(self, file, kind, at, size):
        """Count a request."""
        state = self.state
        is_queued = kind != TRIM or self.queues_trims == 1
        self.began[file, kind] = at
        self.at[file, kind] = at + size
        if self.tracks == 0 or not is_queued:
            state[WAS_SYNC] = 0
        state[WAS_READ] = kind == READ
        state[ZONE_BYTES] += size
        state[ISSUED + kind] += 1
        state[CREATED] += 1
        state[MOVED] += size
        state[PASSED] += size
        if self.writes_what_it_trims == 0 or kind == WRITE:
            state[COUNTED] += size
        if is_queued:
            state[QUEUED] += size
        else:  # complete at once
            state[FREE] += 1

    @method
    def at_pointer(self, at, size):
        """Return the write pointer of the zone of an offset, and move it; a full zone is reset."""
        each = self.written_zone_bytes
        zone = (at - self.offset_bytes) // each
        if self.pointers[zone] + size > each:
            self.pointers[zone] = 0
        written = self.pointers[zone]
        self.pointers[zone] = written + size
        return self.offset_bytes + zone * each + written

    @method
    def move_zone(self, file, kind):
        """Move to the next zone of zonemode=strided when the current one has its bytes."""
        state = self.state
        if state[ZONE_BYTES] >= self.zone_bytes:
            state[ZONE_BYTES] = 0
            self.origin[file] += self.zone_range + self.zone_skip
            if self.origin[file] >= self.file_end:
                self.origin[file] = self.offset_bytes
            self.at[file, kind] = self.origin[file]
        if self.at[file, kind] >= self.origin[file] + self.zone_range:
            self.at[file, kind] = self.origin[file]
        if state[ZONE_BYTES] % self.zone_range == 0:
            self.clear(file)

    @method
    def next_direction(self, file):
        """Return the direction of a mix, drawn anew when the current one has its share."""
        state = self.state
        if self.writes_what_it_trims == 1:
            return TRIM if self.began[file, WRITE] == self.began[file, TRIM] else WRITE
        if state[ISSUED + state[NOW]] >= state[UNTIL]:
            drawn = READ if draw_percent(self.streams, MIX) <= self.read_percent else WRITE
            if drawn != state[NOW]:
                share = self.read_percent if drawn == READ else 100 - self.read_percent
                state[UNTIL] = state[ISSUED + state[NOW]] * share // 100
            state[NOW] = drawn
        if self.is_by_rates == 1:
            state[NOW] = self.in_time(state[NOW])
        return state[NOW]

    @method
    def in_time(self, kind):
        """Return the direction that is issued where `kind` is the one of the mix.

        While that one is not due, the one that is due earlier is issued.
        """
        state = self.state
        other = WRITE if kind == READ else READ
        share = self.read_percent if other == READ else 100 - self.read_percent
        if state[DUE + kind] > state[ELAPSED] and state[DUE + other] < state[DUE + kind]:
            if share > 0:
                kind = other
        state[ELAPSED] = max(state[ELAPSED], state[DUE + kind])
        return kind

    @method
    def next_offset(self, file, kind):
        """Return the next offset; END if there is none."""
        state = self.state
        state[IS_DRAWN] = 0
        state[TURN] -= 1
        is_turn = state[TURN] == 0
        if is_turn:
            state[TURN] = self.every
        at = self.distance(file, kind, is_turn)
        if at < 0 or at >= self.file_bytes or self.origin[file] + at >= self.file_end:
            return END
        at += self.origin[file]
        if self.writes_what_it_trims == 1 and self.is_random == 1 and kind == TRIM:
            if self.began[file, TRIM] == at:
                self.began[file, WRITE] -= 1  # else the write of this trim would be left out
        return at

    @method
    def distance(self, file, kind, is_turn):
        """Return the next offset in the region; END if there is none."""
        state = self.state
        if self.writes_what_it_trims == 1 and self.is_random == 1 and kind == WRITE:
            state[IS_DRAWN] = state[IS_UNMARKED] = 1
            return self.began[file, TRIM]
        if is_turn:
            if self.is_random == 0:
                return self.sequential(file, kind)
            percent = self.by_direction[kind, RANDOM_PERCENT]
            if percent == 100 or draw_percent(self.streams, COINS + kind) <= percent:
                state[IS_DRAWN] = 1
                return self.random(file, kind)
        state[IS_UNMARKED] = 1
        if not is_turn and self.stays == 1:
            began = self.began[file, kind]
            return 0 if began == NEVER else began - self.origin[file]
        at = self.sequential(file, kind)
        return self.random(file, kind) if at == END else at

    @method
    def sequential(self, file, kind):
        """Return the distance after the last request, or the first; END at the end of the file."""
        origin = self.origin[file]
        if self.is_endless == 1 and self.files == 1:
            if self.at[file, kind] >= self.offset_bytes + self.file_bytes:
                self.at[file, kind] = origin
        if self.at[file, kind] >= self.file_end:
            return END
        last = self.file_bytes if self.file_end > self.file_bytes else self.file_end
        if self.at[file, kind] == origin and origin > 0 and self.hole_bytes < 0:
            self.at[file, kind] = last
        at = self.at[file, kind] - origin
        if at != 0 and self.hole_bytes != 0:
            at += self.hole_bytes
            is_before = at < 0 and self.file_end < ENDLESS  # else as in fio: no end to wrap to
            if is_before or at >= self.file_end:
                at = origin if self.hole_bytes > 0 else last + self.hole_bytes
        return at if at >= 0 else self.file_bytes  # before the region is outside of it

    @method
    def random(self, file, kind):
        """Return a random distance; END if there is none."""
        block = self.block(file, kind)
        if block == END and (self.is_endless == 1 or self.turns.is_by_share()):
            self.clear(file)
            block = self.block(file, kind)
        return END if block == END else block * self.by_direction[kind, UNIT]

    @method
    def block(self, file, kind):
        """Return a random block; END if there is none."""
        kinds, has_zones = self.distribution, self.by_direction[kind, ZONES] > 0
        if kinds != EVEN and kinds != ZONED and kinds != ZONED_ABS:
            return self.spread.next(file)
        last = self.by_direction[kind, BEGINS]
        if last <= 0:
            return END
        return (
            self.zoned(file, kind, last) if kinds != EVEN and has_zones else self.even(file, last)
        )

    @method
    def even(self, file, last):
        """Return a uniformly distributed block; END if all were accessed in this pass."""
        if self.uses_register == 1:
            return self.register.next(file)
        block = draw_below(self.streams, BLOCKS, last)
        if self.uses_map == 1:
            first = file * self.map_bits
            free = self.map.next_free(first + block, first, first + self.map_blocks)
            return END if free < 0 else free - first
        return block

    @method
    def zoned(self, file, kind, last):
        """Return a block of a randomly drawn zone."""
        drawn = draw_percent(self.streams, ZONE)
        zones = self.zones
        zone = 0
        until = zones[kind, 0, SHARE]
        while drawn > until and zone + 1 < self.by_direction[kind, ZONES]:
            zone += 1
            until += zones[kind, zone, SHARE]
        first, blocks = zones[kind, zone, BEGIN], zones[kind, zone, SIZE]
        if self.distribution == ZONED_ABS and first + blocks > last:
            return END
        block = self.even(file, blocks)
        return END if block == END else first + block

    @method
    def touch(self, file, kind, at, size):
        """Mark free blocks of a request accessed; return the bytes before the first other one."""
        minimum = self.by_direction[kind, MINIMUM]
        first = (at - self.origin[file]) // minimum
        count = 0
        while count * minimum < size and first + count < self.map_bits:
            block = file * self.map_bits + first + count
            if self.map.has(block):
                break
            self.map.touch(block)
            count += 1
        return min(size, count * minimum)

    @method
    def next_length(self, file, kind, at):
        """Return a length that fits before the end; END if none does."""
        if self.writes_what_it_trims == 1 and self.is_random == 1 and kind == WRITE:
            return self.at[file, TRIM] - self.began[file, TRIM]
        if self.sizes_by_order == 1:
            kind = WRITE if self.state[IS_DRAWN] == 1 else READ
        minimum, maximum = self.by_direction[kind, MINIMUM], self.by_direction[kind, MAXIMUM]
        if minimum == maximum:
            return minimum
        end = self.offset_bytes + self.file_bytes
        if at + minimum > end:
            return END
        while True:
            size = self.drawn_length(kind, at, minimum, maximum, end)
            if at + size <= end:
                return size

    @method
    def drawn_length(self, kind, at, minimum, maximum, end):
        """Return a random length from the range or the splits."""
        wide = is_wide(self.streams, SIZES + kind)
        drawn = draw64(self.streams, SIZES + kind) if wide else draw(self.streams, SIZES + kind)
        count = self.by_direction[kind, SPLITS]
        size, percent = minimum, 0
        for split in range(count):
            percent += self.splits[kind, split, SHARE]
            size = self.splits[kind, split, BEGIN]
            if wide:
                is_drawn = unsigned(drawn) / WHOLE / WHOLE * 100 <= percent
            else:
                is_drawn = drawn < (HUNDREDTH + 1) * percent
            if is_drawn and at + size <= end:
                break
        if count == 0:
            share = unsigned(drawn) / WHOLE / WHOLE if wide else drawn / WHOLE
            size += int(maximum * share)
        if self.unaligned_sizes == 0:
            size -= size % minimum
        return min(size, maximum)


@loop
def fill(generator, direction: Bytes, offset: Ints, length: Ints) -> int:
    """Generate requests until the columns are full; return their number."""
    for row in range(len(offset)):
        if not generator.next(direction, offset, length, row):
            return row
    return len(offset)


def tables_of(pattern: Pattern) -> tuple[Ints, Ints, Ints]:
    """Return the parameters of each direction, its splits and its zones."""
    by_direction = np.zeros((3, 7), np.int64)
    splits = np.zeros((3, max(1, *(len(each.split) for each in pattern.sizes)), 2), np.int64)
    zones = np.zeros((3, max(1, len(pattern.zones)), 3), np.int64)
    size = pattern.map_bytes
    for kind, sizes in enumerate(pattern.sizes):
        used = [each for each in sizes.split if each[1]]
        last = (size - max(sizes.minimum - sizes.unit, 0)) // sizes.unit
        by_direction[kind] = (
            sizes.minimum, sizes.maximum, sizes.unit, len(used), pattern.random_percent[kind],
            len(pattern.zones), last,
        )  # fmt: skip
        for row, (length, percent) in enumerate(used):
            splits[kind, row] = percent, length
        begin = 0
        is_share = pattern.distribution == Distribution.ZONED
        for row, (share, extent) in enumerate(pattern.zones):
            end = begin + extent
            if is_share:
                zones[kind, row] = share, begin * last // 100, extent * last // 100
            else:
                first = begin // sizes.unit
                zones[kind, row] = share, first, end // sizes.unit - first
            begin = end
    return by_direction, splits, zones


def streams_of(pattern: Pattern) -> Ints:
    """Return the first states of all streams, by row."""
    seeds = pattern.seeds()
    sizes = [Stream.READ_SIZE, Stream.WRITE_SIZE, Stream.TRIM_SIZE]
    wide = [*sizes, Stream.BLOCK] if pattern.generator == Numbers.TAUSWORTHE64 else []
    rows = [*sizes, Stream.MIX, Stream.BLOCK, Stream.ZONE, *[Stream.IS_RANDOM] * 3]
    return np.stack([seeded(seeds[row], row in wide) for row in rows])
