"""The lines of Open CAS: their content, and which one is taken or cleaned next (DESIGN.md 2.13)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas import ways
from hybridsim.caches.opencas.jobs import Jobs
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled
from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.foundation.codes import Cleaning, Reason
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CACHE, Events
from hybridsim.jit.instructions import along
from hybridsim.jit.jiffies import expiry_ns
from hybridsim.jit.lists import NOTHING, Chains, Fifos, Table

WORD_BITS, WORD_SHIFT = 32, 5
BYTE = 255


@state_machine
class Sectors(NamedTuple):
    """A bit for each sector of each line; a range is [start, end)."""

    words_per_line: int
    words: Ints  # 32 bits of each word are used

    @classmethod
    def new(cls, lines: int, sectors: int) -> Sectors:
        """Return cleared bits for `lines` lines of `sectors` sectors."""
        words_per_line = -(-sectors // WORD_BITS)
        return cls(words_per_line, np.zeros(lines * words_per_line, np.int64))

    @method
    def mask(self, word, start, end):
        """Return the bits of a range in one word of a line."""
        low = max(start - word * WORD_BITS, 0)
        high = min(end - word * WORD_BITS, WORD_BITS)
        return (1 << high) - (1 << low)

    @method
    def has_all(self, line, start, end):
        """Return whether every sector of a range is set."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            mask = self.mask(word, start, end)
            if self.words[line * self.words_per_line + word] & mask != mask:
                return False
        return True

    @method
    def has_any(self, line, start, end):
        """Return whether any sector of a range is set."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            if self.words[line * self.words_per_line + word] & self.mask(word, start, end) != 0:
                return True
        return False

    @method
    def is_empty(self, line):
        """Return whether no sector of a line is set."""
        return not self.has_any(line, 0, self.words_per_line * WORD_BITS)

    @method
    def set(self, line, start, end):
        """Set a range."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            self.words[line * self.words_per_line + word] |= self.mask(word, start, end)

    @method
    def clear(self, line, start, end):
        """Clear a range."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            self.words[line * self.words_per_line + word] &= ~self.mask(word, start, end)

    @method
    def first(self, line, is_set, start, end):
        """Return the first sector of a range whose bit is `is_set`; `end` if there is none."""
        at = start
        base = line * self.words_per_line
        while at < end:
            bit = self.words[base + (at >> WORD_SHIFT)] >> (at & (WORD_BITS - 1)) & 1
            if bit == is_set:
                return at
            at += 1
        return end


@state_machine
class Marks(NamedTuple):
    """A bit for each core line."""

    eights: Bytes

    @classmethod
    def new(cls, count: int) -> Marks:
        """Return `count` cleared bits."""
        return cls(np.zeros((count + 7) // 8, np.uint8))

    @method
    def has(self, number):
        """Return whether a bit is set."""
        return self.eights[number >> 3] >> (number & 7) & 1 == 1

    @method
    def set(self, number):
        """Set a bit."""
        self.eights[number >> 3] |= 1 << (number & 7)

    @method
    def clear(self, number):
        """Clear a bit."""
        self.eights[number >> 3] &= BYTE - (1 << (number & 7))

    @method
    def next(self, start, end):
        """Return the first set bit in [start, end), or -1."""
        at = start
        while at < end:
            if at & 7 == 0 and self.eights[at >> 3] == 0:
                at += 8
            elif self.has(at):
                return at
            else:
                at += 1
        return NOTHING


LISTS = 32  # of clean lines, then as many of dirty lines
CHUNK_SHIFT = 8  # 256 lines in a row stand in the same list


@kernel
def list_of_lines(line):
    """Return the list of clean (and of free) lines that a line stands in."""
    return (line >> CHUNK_SHIFT) % LISTS


@state_machine
class Lists(NamedTuple):
    """Lists of lines from head to tail; the first half of each is hot, rounded down."""

    order: Chains  # the head is the newest
    list_of: Bytes  # by line: its list + 1, or 0
    is_hot: Bytes
    last_hot: Int32s  # by list: a line, or NOTHING
    counts: Int32s  # by list

    @classmethod
    def new(cls, lines: int) -> Lists:
        """Return empty lists."""
        list_of, is_hot = np.zeros((2, lines), np.uint8)
        last_hot, counts = np.full(2 * LISTS, NOTHING, np.int32), np.zeros(2 * LISTS, np.int32)
        return cls(Chains.new(lines, 2 * LISTS), list_of, is_hot, last_hot, counts)

    @method
    def is_held(self, line):
        """Return whether a line is in a list."""
        return self.list_of[line] > 0

    @method
    def is_dirty(self, line):
        """Return whether a line is in a list of dirty lines."""
        return self.list_of[line] > LISTS

    @method
    def touch(self, line):
        """Move a cold line to the head of its list."""
        if self.is_hot[line] == 0:
            number = self.list_of[line] - 1
            self.remove(line)
            self.add(line, number)

    @method
    def add(self, line, number):
        """Add a line at the head of a list."""
        self.order.add(number, line)
        self.list_of[line] = number + 1
        self.counts[number] += 1
        if self.last_hot[number] == NOTHING:
            self.last_hot[number] = line
        self.is_hot[line] = 1
        if self.counts[number] & 1 == 1:  # the number of hot lines stays
            self.cool(number)

    @method
    def remove(self, line):
        """Remove a line from its list."""
        number = np.int64(self.list_of[line]) - 1
        self.list_of[line] = 0
        was_hot = self.is_hot[line] == 1
        if was_hot:
            self.is_hot[line] = 0
            if self.last_hot[number] == line:
                self.last_hot[number] = self.order.newer[line]
        self.order.remove(number, line)
        self.counts[number] -= 1
        fewer_hot = self.counts[number] & 1 == 1
        if fewer_hot and not was_hot:
            self.cool(number)
        elif was_hot and not fewer_hot:
            self.warm(number)

    @method
    def cool(self, number):
        """Make the last hot line of a list cold."""
        line = self.last_hot[number]
        self.is_hot[line] = 0
        self.last_hot[number] = self.order.newer[line]

    @method
    def warm(self, number):
        """Make the first cold line of a list hot."""
        last = self.last_hot[number]
        line = self.order.newest[number] if last == NOTHING else np.int64(self.order.older[last])
        self.is_hot[line] = 1
        self.last_hot[number] = line


SECOND_NS = 1_000_000_000
CHUNK_BYTES = 100 * 2**20
BUCKETS = 10
ASLEEP = (0, 0, NOTHING, 0, -1, 0)  # the state of a cleaner without dirty lines
DIRTY, IS_AWAKE, CHUNK, NEXT, FIRST_PLACE, LAST_PLACE = range(6)


@state_machine
class Dirt(NamedTuple):
    """Dirty lines in the order of the cleaning policy."""

    policy: int
    wake_up_ns: int
    staleness_time_ns: int
    activity_threshold_ns: int
    flush_max_buffers: int  # per batch
    stats_interval_ns: int  # interval of casadm's reads of the counters; 0: none
    stats_start_ns: int  # time of the first of them
    lines_per_chunk: int
    written_ns: Ints  # ALRU, by line: when a sector was last made dirty
    by_age: Chains  # ALRU
    dirty_in_chunk: Int32s  # ACP, by chunk of the core
    bucket_of: Int32s  # ACP, by chunk: that in which it stands; none is cleaned in bucket 0
    place: Ints  # ACP, by chunk: among those of its bucket, ascending
    dirty: Marks  # ACP, by core line
    state: Ints  # [DIRTY, IS_AWAKE, CHUNK being cleaned or -1, NEXT core line of it, ...]

    @classmethod
    def new(cls, parameters: OpenCasParameters, origin_bytes: int) -> Dirt:
        """Return no dirty lines."""
        p, policy = parameters, int(parameters.cleaning)
        aged = p.lines if policy == Cleaning.ALRU else 1
        mapped = origin_bytes if policy == Cleaning.ACP else 1
        return filled(
            cls,
            -(-mapped // CHUNK_BYTES),
            p,
            policy=policy,
            lines_per_chunk=CHUNK_BYTES // p.line_bytes,
            written_ns=np.zeros(aged, np.int64),
            by_age=Chains.new(aged),
            dirty=Marks.new(-(-mapped // p.line_bytes)),
            state=np.array(ASLEEP, np.int64),
        )

    def restarted(self) -> Dirt:
        """Return the same dirty lines; the cleaner sleeps."""
        return self._replace(state=np.array([self.state[DIRTY], *ASLEEP[1:]]))

    def emptied(self) -> Dirt:
        """Return no dirty lines."""
        return filled(
            Dirt,
            len(self.place),
            self,
            written_ns=np.zeros_like(self.written_ns),
            by_age=Chains.new(len(self.written_ns)),
            dirty=Marks.new(8 * len(self.dirty.eights)),
            state=np.array(ASLEEP, np.int64),
        )

    def resume(self, now_ns: int, events: Events) -> None:
        """Run the cleaner of a restarted cache at once if anything is dirty."""
        if self.policy == Cleaning.ACP:  # buckets are counted anew, and round the other way
            chunks = len(self.place)
            self.bucket_of[:] = BUCKETS * self.dirty_in_chunk // self.lines_per_chunk
            self.place[:] = np.arange(chunks)
            self.state[FIRST_PLACE], self.state[LAST_PLACE] = -1, chunks
        if self.policy != Cleaning.NOP and self.state[DIRTY] > 0:
            self.state[IS_AWAKE] = 1
            events.push(now_ns, CACHE, ways.CLEANER)

    @method
    def add(self, line, core_line):
        """Add a line that becomes dirty."""
        self.state[DIRTY] += 1
        if self.policy == Cleaning.ALRU:
            self.by_age.add(0, line)
        elif self.policy == Cleaning.ACP:
            self.dirty.set(core_line)
            self.dirty_in_chunk[core_line // self.lines_per_chunk] += 1
            self.settle(core_line // self.lines_per_chunk)

    @method
    def settle(self, chunk):
        """Move a chunk to the next bucket if its number of dirty lines asks for it (ACP)."""
        lines = BUCKETS * self.dirty_in_chunk[chunk]
        bucket = self.bucket_of[chunk]
        if lines > bucket * self.lines_per_chunk:
            self.bucket_of[chunk] = bucket + 1
            self.place[chunk] = self.state[LAST_PLACE]
            self.state[LAST_PLACE] += 1
        elif bucket > 0 and lines <= (bucket - 1) * self.lines_per_chunk:
            self.bucket_of[chunk] = bucket - 1
            self.place[chunk] = self.state[FIRST_PLACE]
            self.state[FIRST_PLACE] -= 1

    @method
    def written(self, now, line, core_line, events):
        """Record a write of a dirty line, and wake the cleaner."""
        if self.policy == Cleaning.ACP:
            self.settle(core_line // self.lines_per_chunk)
        if self.policy == Cleaning.ALRU:
            self.by_age.renew(0, line)
            self.written_ns[line] = now
        if self.policy != Cleaning.NOP and self.state[IS_AWAKE] == 0:
            self.state[IS_AWAKE] = 1
            period = expiry_ns(0, self.wake_up_ns if self.policy == Cleaning.ALRU else SECOND_NS)
            events.push((now // period + 1) * period, CACHE, ways.CLEANER)

    @method
    def remove(self, line, core_line):
        """Remove a line that becomes clean."""
        self.state[DIRTY] -= 1
        if self.policy == Cleaning.ALRU:
            self.by_age.remove(0, line)
        elif self.policy == Cleaning.ACP:
            self.dirty.clear(core_line)
            self.dirty_in_chunk[core_line // self.lines_per_chunk] -= 1
            self.settle(core_line // self.lines_per_chunk)

    @method
    def queries(self, now):
        """Return how often casadm has read the counters up to now."""
        if self.stats_interval_ns == 0 or now < self.stats_start_ns:
            return 0
        return (now - self.stats_start_ns) // self.stats_interval_ns + 1

    @method
    def densest_chunk(self):
        """Return the first chunk of the highest bucket, or -1 (ACP)."""
        best, highest = NOTHING, 0
        for chunk in range(len(self.bucket_of)):
            bucket = self.bucket_of[chunk]
            if bucket > highest or (
                bucket == highest and best != NOTHING and self.place[chunk] < self.place[best]
            ):
                best, highest = chunk, bucket
        return best


SECTOR_SHIFT = 9
FREE, CURSOR, CLEANING_LIST, EVICTIONS = range(4)


@state_machine
class Lines(NamedTuple):
    """All lines; the core line of a line is its number in `table`."""

    capacity: int
    line_bytes: int
    table: Table
    lists: Lists
    valid: Sectors
    dirty: Sectors
    dirt: Dirt
    jobs: Jobs
    evicted: Marks  # core lines that were evicted
    overwritten: Marks
    free: Fifos  # by list: free lines, the one that has been free for longest first
    next_free: Int32s  # by free line: the next of its list, or NOTHING
    state: Ints  # [FREE ... EVICTIONS]

    @classmethod
    def new(
        cls, capacity: int, line_bytes: int, origin_bytes: int, dirt: Dirt, jobs: Jobs
    ) -> Lines:
        """Return free lines."""
        core_lines = -(-origin_bytes // line_bytes)
        sectors = line_bytes >> SECTOR_SHIFT
        lines = cls(
            capacity,
            line_bytes,
            Table.new(capacity),
            Lists.new(capacity),
            Sectors.new(capacity, sectors),
            Sectors.new(capacity, sectors),
            dirt,
            jobs,
            Marks.new(core_lines),
            Marks.new(core_lines),
            Fifos.new(LISTS),
            np.full(capacity, NOTHING, np.int32),
            np.zeros(4, np.int64),
        )
        lines.link_free(np.arange(capacity))
        return lines

    def restarted(self, dirt: Dirt, jobs: Jobs) -> Lines:
        """Return the lines after an orderly shutdown: as they were."""
        state = np.array([self.state[FREE], 0, 0, self.state[EVICTIONS]])
        return self._replace(dirt=dirt, jobs=jobs, state=state)

    def recovered(self, now_ns: int, dirt: Dirt, jobs: Jobs) -> Lines:
        """Return the lines after a crash: what is not dirty is invalid (DESIGN.md 2.17)."""
        core_lines = 8 * len(self.evicted.eights)
        lines = Lines.new(self.capacity, self.line_bytes, core_lines * self.line_bytes, dirt, jobs)
        kept = np.flatnonzero(self.lists.list_of > LISTS)
        each = self.dirty.words_per_line
        words = (kept[:, None] * each + np.arange(each)).ravel()
        lines.valid.words[words] = lines.dirty.words[words] = self.dirty.words[words]
        for line in kept.tolist():
            core_line = int(self.table.number[line])
            lines.table.insert(line, core_line)
            lines.lists.add(line, LISTS + list_of_lines(line))
            dirt.add(line, core_line)
            if dirt.policy == Cleaning.ALRU:
                dirt.written_ns[line] = now_ns
        lines.link_free(np.flatnonzero(lines.lists.list_of == 0))
        lines.state[EVICTIONS] = self.state[EVICTIONS]
        return lines._replace(evicted=self.evicted, overwritten=self.overwritten)

    def link_free(self, free: Ints) -> None:
        """Set the free lines, each list in ascending order."""
        self.free.first[:] = NOTHING
        for number in range(LISTS):
            mine = free[list_of_lines(free) == number]
            if len(mine):
                self.next_free[mine[:-1]], self.next_free[mine[-1]] = mine[1:], NOTHING
                self.free.first[number], self.free.last[number] = mine[0], mine[-1]
        self.state[FREE] = len(free)

    @method
    def look_up(self, core_line):
        """Return the line of a core line, and move it to the hot half; or -1."""
        line = self.table.find(core_line)
        if line != NOTHING:
            self.lists.touch(line)
        return line

    @method
    def holds(self, line, core_line):
        """Return whether a line holds a core line."""
        return self.lists.is_held(line) and self.table.number[line] == core_line

    @method
    def hold(self, line, core_line):
        """Assign an empty line to a core line."""
        self.table.insert(line, core_line)
        self.lists.add(line, list_of_lines(line))

    @method
    def sectors(self, core_line, offset, end):
        """Return the range of sectors of a core line that a range of bytes touches."""
        base = core_line * self.line_bytes
        first = max(offset - base, 0) >> SECTOR_SHIFT
        return first, min(end - base, self.line_bytes) >> SECTOR_SHIFT

    @method
    def sectors_of(self, job, core_line):
        """Return the range of sectors of a core line that a job touches."""
        offset = self.jobs.offset[job]
        return self.sectors(core_line, offset, offset + self.jobs.length[job])

    @method
    def why_missing(self, line, core_line):
        """Return why a core line is not completely valid."""
        if line != NOTHING and not self.valid.is_empty(line):
            return Reason.COLD
        if self.overwritten.has(core_line):
            return Reason.OVERWRITTEN
        if self.evicted.has(core_line):
            return Reason.EVICTED
        return Reason.COLD

    @method
    def make_dirty(self, now, line, start, end, events):
        """Mark sectors as dirty."""
        self.dirty.set(line, start, end)
        if not self.lists.is_dirty(line):
            self.lists.remove(line)
            self.lists.add(line, LISTS + list_of_lines(line))
            self.dirt.add(line, self.table.number[line])
        self.dirt.written(now, line, self.table.number[line], events)

    @method
    def make_clean(self, line):
        """Mark all sectors of a line as clean."""
        if self.lists.is_dirty(line):
            self.dirty.clear(line, 0, self.line_bytes >> SECTOR_SHIFT)
            self.move_to_clean(line)

    @method
    def move_to_clean(self, line):
        """Move a line without dirty sectors to a list of clean lines."""
        self.lists.remove(line)
        self.lists.add(line, list_of_lines(line))
        self.dirt.remove(line, self.table.number[line])

    @method
    def invalidate(self, line, start, end):
        """Invalidate sectors of a line; free the line if none is valid."""
        self.valid.clear(line, start, end)
        self.dirty.clear(line, start, end)
        if self.lists.is_dirty(line) and self.dirty.is_empty(line):
            self.move_to_clean(line)
        if self.valid.is_empty(line):
            core_line = self.table.number[line]
            self.overwritten.set(core_line)
            self.evicted.clear(core_line)
            self.empty(line)
            self.give_free(line)

    @method
    def empty(self, line):
        """Remove the content of a clean line."""
        self.lists.remove(line)
        self.table.remove(line)
        self.valid.clear(line, 0, self.line_bytes >> SECTOR_SHIFT)

    @method
    def give_free(self, line):
        """Append a line to the free lines of its list."""
        self.free.append(list_of_lines(line), line, self.next_free)
        self.state[FREE] += 1

    # Taking lines.

    @method
    def list_for(self, last):
        """Return the list to begin at: of the last line taken for the same job, or the next one."""
        if last != NOTHING:
            return list_of_lines(last)
        number = self.state[CURSOR]
        self.state[CURSOR] = (number + 1) % LISTS
        return number

    @method
    def take_free(self, last):
        """Remove and return the line that has been free longest in its list, or -1.

        `last` is the last free line taken for the same job, or -1.
        """
        if self.state[FREE] == 0:
            return NOTHING
        number = self.list_for(last)
        while self.free.is_empty(number):
            number = (number + 1) % LISTS
        self.state[FREE] -= 1
        return self.free.pop(number, self.next_free)

    @method
    def take_held(self, last, first, end):
        """Evict and return a clean line that holds no core line of [first, end), or -1.

        `last` is the last victim for the same job, or -1.
        """
        line = self.victim(last, first, end)
        if line != NOTHING:
            self.state[EVICTIONS] += 1
            core_line = self.table.number[line]
            self.evicted.set(core_line)
            self.overwritten.clear(core_line)
            self.empty(line)
        return line

    @method
    def victim(self, last, first, end):
        """Return the line to evict, or -1."""
        lists = self.lists
        beside = last + 1
        if last != NOTHING and beside < self.capacity and lists.is_held(beside):
            is_cold = not lists.is_dirty(beside) and lists.is_hot[beside] == 0
            if is_cold and self.can_be_taken(beside, first, end):
                return beside
        start = self.list_for(last)
        for step in range(LISTS):
            number = (start + step) % LISTS
            for line in along(lists.order.oldest[number], lists.order.newer):
                if self.can_be_taken(line, first, end):
                    return line
        return NOTHING

    @method
    def can_be_taken(self, line, first, end):
        """Return whether a line is not in use and holds no core line of [first, end)."""
        core_line = self.table.number[line]
        return not self.jobs.is_in_use(line) and not first <= core_line < end

    @method
    def next_to_clean(self, is_first):
        """Return a dirty line that is not in use, of the same list while it has one, or -1."""
        lists, state = self.lists, self.state
        if is_first:
            state[CLEANING_LIST] = self.list_for(NOTHING)
        for step in range(LISTS):
            number = (state[CLEANING_LIST] + step) % LISTS
            for line in along(lists.order.oldest[LISTS + number], lists.order.newer):
                if not self.jobs.is_in_use(line):
                    state[CLEANING_LIST] = number
                    return line
        return NOTHING
