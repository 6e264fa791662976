"""The requests that a job of fio makes, obviously: no arrays, one request after the other.

What the compiled generator is held against, and itself held against offsets that fio 3.33 logged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from hybridsim.workloads.fio.blocks import TAPS
from hybridsim.workloads.fio.pattern import (
    DATA_SYNC,
    END_SYNC,
    ENDLESS,
    FIRST_OF_VERIFY,
    OF_BACKLOG,
    OF_VERIFY,
    READ,
    SYNC,
    TRIM,
    WRITE,
    Distribution,
    Generator,
    Pattern,
    Sizes,
    Stream,
)

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
WHOLE = 2.0**32
SCATTER = 0x61C8864680B583EB
FILE_SHIFT = 50


class Taus88:
    """P. L'Ecuyer, Mathematics of Computation 65 (1996)."""

    def __init__(self, seed: int) -> None:
        self.states = []
        last = 53
        for least in (1, 7, 15):
            last = (last * 69069 & MASK32) ^ (seed & MASK32)
            last = last + least if last < least else last
            self.states.append(last)
        for _ in range(6):
            self.bits()

    def bits(self) -> int:
        """The next 32 random bits."""
        a, b, c = self.states
        a = ((a & 0xFFFFFFFE) << 12 & MASK32) ^ (((a << 13 & MASK32) ^ a) >> 19)
        b = ((b & 0xFFFFFFF8) << 4 & MASK32) ^ (((b << 2 & MASK32) ^ b) >> 25)
        c = ((c & 0xFFFFFFF0) << 17 & MASK32) ^ (((c << 3 & MASK32) ^ c) >> 11)
        self.states = [a, b, c]
        return a ^ b ^ c

    def percent(self) -> int:
        """From 1 to 100."""
        return 1 + int(100 * (self.bits() / WHOLE))


class Taus258:
    """P. L'Ecuyer, Mathematics of Computation 68 (1999)."""

    STEPS = ((1, 53, 1, 10), (24, 50, 9, 5), (3, 23, 12, 29), (5, 24, 17, 23), (3, 33, 23, 8))

    def __init__(self, seed: int) -> None:
        self.states = []
        last = 53
        for least in (1, 7, 15, 33, 49):
            last = (last * 6906969069 & MASK64) ^ seed
            last = last + least if last < least else last
            self.states.append(last)
        for _ in range(6):
            self.bits()

    def bits(self) -> int:
        """The next 64 random bits."""
        result = 0
        for word, (left, right, low, up) in enumerate(self.STEPS):
            state = self.states[word]
            mixed = ((state << left & MASK64) ^ state) >> right
            state = (state >> low << low << up & MASK64) ^ mixed
            self.states[word] = state
            result ^= state
        return result


class End(Exception):  # noqa: N818 - nothing went wrong
    """A file has no next request in this pass."""


class File:
    """One file of a job: what was done to it, and which of its blocks are free."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.origin = pattern.offset_bytes  # of the region, or of the current zone
        self.register = None
        if pattern.uses_register:
            blocks = pattern.map_bytes // pattern.block_bytes
            self.register = Register(blocks, pattern.seeds()[Stream.BLOCK])
        self.restart()

    def restart(self) -> None:
        self.is_done = False
        self.at = [self.origin] * 3
        self.began: list[int | None] = [None] * 3
        self.used: set[int] = set()
        if self.register:
            self.register.restart()


class Job:
    """One job's random streams and what it has done."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.seed_all()
        self.files = [File(pattern) for _ in range(pattern.files)]
        self.file = 0
        self.next_file = 0
        self.begin, self.size = pattern.offset_bytes, pattern.file_bytes
        self.end = max(self.begin + self.size, pattern.end_bytes)
        self.zone_bytes, self.zone_range, self.zone_skip = pattern.zones_of_files
        self.in_zone = 0  # bytes in the current zone
        self.drawn_bytes = self.zone_range or self.size  # of random blocks
        self.history: list[tuple[int, int]] = []  # writes that verify has not read
        self.batch = 0
        self.was_read = True
        self.is_unmarked = False
        self.pointers = [0] * pattern.written_zones
        self.slots = [False] * pattern.depth  # free requests of the depth: do they ignore the map
        self.made = 0  # requests, those of verify included
        self.turn = 1  # requests until a random one
        self.was_sync = False
        self.issued = [0, 0, 0]
        self.moved = 0
        self.now = READ
        self.until = 0
        if pattern.distribution in (Distribution.ZIPF, Distribution.PARETO, Distribution.NORMAL):
            self.spread = Spread(pattern)

    def seed_all(self) -> None:
        seeds = self.pattern.seeds()
        wide = Taus258 if self.pattern.generator == Generator.TAUSWORTHE64 else Taus88
        sizes = (Stream.READ_SIZE, Stream.WRITE_SIZE, Stream.TRIM_SIZE)
        self.sizes = [wide(seeds[each]) for each in sizes]
        self.mix = Taus88(seeds[Stream.MIX])
        self.blocks = wide(seeds[Stream.BLOCK])
        self.whole = WHOLE if wide is Taus88 else WHOLE**2
        self.coins = [Taus88(seeds[Stream.IS_RANDOM]) for _ in range(3)]
        self.zones = Taus88(seeds[Stream.ZONE])

    def requests(self) -> Iterator[tuple[int, int, int]]:
        """Yield (direction, offset, length)."""
        pattern = self.pattern
        left, number, largest = (
            pattern.passes,
            pattern.requests,
            max(s.maximum for s in pattern.sizes),
        )
        for started in itertools.count():
            if left or pattern.is_endless:
                left -= 1
            elif (
                (number and self.made >= number * pattern.passes)
                or pattern.pass_bytes - self.moved < max(largest, 1)
                or (not pattern.has_io_size and self.done == len(self.files))
            ):
                return
            if started:
                self.begin_again()
            if pattern.writes_what_it_trims:
                number *= 2
            before = self.moved
            if pattern.is_verified:
                self.pointers = [0] * pattern.written_zones
            yield from self.one_pass(number)
            self.drain()
            if WRITE in pattern.directions and pattern.syncs_at_end and not self.was_sync:
                for file in range(pattern.files):
                    yield END_SYNC, file << FILE_SHIFT, 0
            if self.moved == before:
                return
            if pattern.reads_back:
                self.begin_again()
                self.drain()
                for order in range(len(self.history)):
                    self.take()
                    _, offset, length = self.read_back()
                    yield FIRST_OF_VERIFY if order == 0 else OF_VERIFY, offset, length

    def at_pointer(self, offset: int, length: int) -> int:
        """zonemode=zbd: where a write to a zone goes."""
        each = self.pattern.written_zone_bytes
        zone = (offset - self.begin) // each
        written = self.pointers[zone]
        if written == each:
            written = 0
        self.pointers[zone] = written + length
        return self.begin + zone * each + written

    def take(self) -> None:
        """The request of the depth that completed last; those under way leave it as new ones."""
        if not self.slots:
            self.slots = [False] * self.pattern.freed
            self.was_sync = False  # another request is complete
        self.is_unmarked = self.slots.pop()

    def drain(self) -> None:
        """All requests complete: they are taken before those that were free."""
        self.was_sync = self.was_sync and len(self.slots) == self.pattern.depth
        self.slots += [False] * (self.pattern.depth - len(self.slots))

    def one_pass(self, number: int) -> Iterator[tuple[int, int, int]]:
        pattern = self.pattern
        self.drain()
        queued, most = 0, pattern.region_bytes
        if WRITE in pattern.directions and pattern.is_random and pattern.is_unmapped:
            most = max(most, pattern.pass_bytes if pattern.has_io_size else 0)
        if pattern.writes_what_it_trims:
            most += pattern.pass_bytes * pattern.passes
        if pattern.reads_back and pattern.backlog:
            most += pattern.region_bytes
        while True:
            if pattern.is_endless:
                if pattern.is_verified and pattern.is_queued and queued >= most:
                    return
            else:
                if self.counted() >= pattern.pass_bytes * pattern.passes:
                    return
                if number and self.made >= number * pattern.passes:
                    return
                if pattern.is_queued and queued >= most:
                    return
            is_read = self.is_read_due()
            self.take()
            request = self.read_back() if is_read else self.next()
            if request is None:
                self.slots.append(self.is_unmarked)
                self.drain()
                return
            kind, _, size = request
            at_once = kind in (SYNC, DATA_SYNC) or (kind == TRIM and not pattern.queues_trims)
            if at_once:
                self.slots.append(False)
                self.was_sync = kind in (SYNC, DATA_SYNC)
            queued += 0 if at_once else size
            yield request

    def counted(self) -> int:
        return self.written if self.pattern.writes_what_it_trims else self.counted_bytes

    def is_read_due(self) -> bool:
        """Does verify_backlog read next?"""
        if not self.pattern.reads_back or not self.pattern.backlog or not self.history:
            return False
        if not self.batch:
            if len(self.history) % self.pattern.backlog or self.was_read:
                return False
            self.batch = self.pattern.backlog_batch or self.pattern.backlog
        self.batch -= 1
        return True

    def read_back(self) -> tuple[int, int, int]:
        """The next read of verify: by offset if blocks may be written twice."""
        offset, length = self.history[0] if self.pattern.uses_map else min(self.history)
        self.history.remove((offset, length))
        self.made += 1
        self.moved += length
        self.was_read = True
        return OF_BACKLOG, offset, length

    def remember(self, offset: int, length: int) -> None:
        """A write; one that overlaps an earlier one replaces it, unless there is a random map."""
        if not self.pattern.uses_map:
            self.history = [
                (at, size)
                for at, size in self.history
                if at + size <= offset or at >= offset + length
            ]
        self.history.append((offset, length))

    counted_bytes = 0

    written = 0
    done = 0  # files without a further request

    def due_sync(self) -> int | None:
        writes = self.issued[WRITE]
        pattern = self.pattern
        every = {SYNC: pattern.writes_between_syncs, DATA_SYNC: pattern.writes_between_data_syncs}
        due = [kind for kind, each in every.items() if each and writes % each == 0]
        if not due or pattern.writes_what_it_trims or not writes or self.was_sync:
            return None
        return due[0]

    def begin_again(self) -> None:
        """Before each pass but the first."""
        self.done = 0 if self.pattern.repeats_files else self.done
        for file in self.files:
            file.origin = self.begin
            file.restart()
        if self.pattern.is_reseeded:
            self.seed_all()
        self.was_sync = False
        self.until = 0
        self.in_zone = 0

    def next(self) -> tuple[int, int, int] | None:
        """The next request, of the next file that has one."""
        while self.done < len(self.files):
            self.file = self.next_file
            self.next_file = (self.file + 1) % self.pattern.files
            file = self.files[self.file]
            if file.is_done:
                continue
            if (sync := self.due_sync()) is not None:
                return sync, self.file << FILE_SHIFT, 0
            try:
                direction, offset, length = self.next_in(file)
            except End:
                file.restart()
                file.is_done = True
                self.done += 1
                continue
            if self.pattern.written_zone_bytes:
                offset = self.at_pointer(offset, length)
            file.began[direction], file.at[direction] = offset, offset + length
            self.issued[direction] += 1
            self.made += 1
            self.moved += length
            self.counted_bytes += length
            self.in_zone += length
            self.was_read = direction == READ
            if self.pattern.reads_back and direction == WRITE:
                self.remember(offset + (self.file << FILE_SHIFT), length)
            self.written += length if direction == WRITE else 0
            return direction, offset + (self.file << FILE_SHIFT), length
        return None

    def next_in(self, file: File) -> tuple[int, int, int]:
        pattern = self.pattern
        direction = pattern.directions[0]
        if pattern.writes_what_it_trims:
            direction = TRIM if file.began[WRITE] == file.began[TRIM] else WRITE
        elif len(pattern.directions) > 1:
            direction = self.mixed()
        if self.zone_bytes:
            self.move_zone(file, direction)
        self.turn -= 1
        is_turn = self.turn == 0
        if is_turn:
            self.turn = pattern.every
        if pattern.writes_what_it_trims and pattern.is_random and direction == WRITE:
            begin = file.began[TRIM]
            self.is_unmarked = True
            if begin is None or begin >= self.size or file.origin + begin >= self.end:
                raise End  # fio adds the offset of the region twice
            offset, length = file.origin + begin, file.at[TRIM] - begin
            if offset + length > self.end:
                raise End
            return WRITE, offset, length
        distance, is_drawn = self.distance(file, direction, is_turn)
        if not 0 <= distance < self.size:
            raise End
        offset = file.origin + distance
        if pattern.writes_what_it_trims and pattern.is_random and file.began[TRIM] == offset:
            file.began[WRITE] = (file.began[WRITE] or 0) - 1
        length = self.length(direction, offset, is_drawn)
        if offset + length > self.end:
            raise End
        if pattern.uses_map and not self.is_unmarked:
            length = self.mark(file, direction, offset, length)
        return direction, offset, length

    def mixed(self) -> int:
        """Read or write: drawn, once as many of this kind are done as were due at the change."""
        if self.issued[self.now] >= self.until:
            drawn = READ if self.mix.percent() <= self.pattern.read_percent else WRITE
            if drawn != self.now:
                read = self.pattern.read_percent
                share = read if self.now == WRITE else 100 - read
                self.until = self.issued[self.now] * share // 100
            self.now = drawn
        return self.now

    def move_zone(self, file: File, direction: int) -> None:
        """zonemode=strided: the next zone, when the current one has its bytes."""
        if self.in_zone >= self.zone_bytes:
            self.in_zone = 0
            file.origin += self.zone_range + self.zone_skip
            if file.origin >= self.end:
                file.origin = self.begin
            file.at[direction] = file.origin
        if file.at[direction] >= file.origin + self.zone_range:
            file.at[direction] = file.origin
        if self.in_zone % self.zone_range == 0:
            file.restart()

    def distance(self, file: File, direction: int, is_turn: bool) -> tuple[int, bool]:
        """The distance from the begin of the region or zone; is it drawn."""
        pattern = self.pattern
        if is_turn and not pattern.is_random:
            return self.sequential(file, direction), False
        if is_turn:
            percent = pattern.random_percent[direction]
            if percent == 100 or self.coins[direction].percent() <= percent:
                return self.random(file, direction), True
        self.is_unmarked = True
        if not is_turn and pattern.stays:
            began = file.began[direction]
            return 0 if began is None else began - file.origin, False
        try:
            return self.sequential(file, direction), False
        except End:
            return self.random(file, direction), False

    def sequential(self, file: File, direction: int) -> int:
        hole = self.pattern.hole_bytes
        if self.pattern.is_endless and self.pattern.files == 1:
            if file.at[direction] >= self.begin + self.size:
                file.at[direction] = file.origin
        if file.at[direction] >= self.end:
            raise End
        last = min(self.size, self.end)
        if hole < 0 and file.origin and file.at[direction] == file.origin:
            file.at[direction] = last
        at = file.at[direction] - file.origin
        if at and hole:
            at += hole
            if at >= self.end or (at < 0 and self.end < ENDLESS):
                at = file.origin if hole > 0 else last + hole
        return at if at >= 0 else self.size

    def random(self, file: File, direction: int) -> int:
        try:
            block = self.block(file, direction)
        except End:
            if not self.pattern.is_endless:
                raise
            file.restart()
            block = self.block(file, direction)
        return block * self.pattern.sizes[direction].unit

    def block(self, file: File, direction: int) -> int:
        pattern = self.pattern
        sizes = pattern.sizes[direction]
        last = (self.drawn_bytes - max(sizes.minimum - sizes.unit, 0)) // sizes.unit
        match pattern.distribution:
            case Distribution.RANDOM:
                return self.even(file, last)
            case Distribution.ZONED | Distribution.ZONED_ABS:
                return self.zoned(file, direction, last)
        return self.spread.next()

    def even(self, file: File, last: int) -> int:
        if file.register:
            return file.register.next()
        if last <= 0 and self.pattern.distribution == Distribution.RANDOM:
            raise End
        block = int(last * (self.blocks.bits() / self.whole))
        if not self.pattern.uses_map:
            return block
        size = self.drawn_bytes // self.pattern.block_bytes
        if all(each in file.used for each in range(size)):
            raise End
        while block in file.used:
            block = (block + 1) % size
        return block

    def mark(self, file: File, direction: int, offset: int, length: int) -> int:
        """Remember blocks up to one that was used; return how much of the length is left."""
        least = self.pattern.sizes[direction].minimum
        first = (offset - file.origin) // least
        size = self.drawn_bytes // self.pattern.block_bytes
        count = 0
        words = -(-size // 64) * 64  # of 64 blocks: the last one has bits behind the last block
        while count * least < length and first + count not in file.used:
            if first + count >= words:
                break
            file.used.add(first + count)
            count += 1
        if not count:
            raise End
        return min(length, count * least)

    def length(self, direction: int, offset: int, is_drawn: bool) -> int:
        if self.pattern.sizes_by_order:
            direction = WRITE if is_drawn else READ
        sizes = self.pattern.sizes[direction]
        end = self.begin + self.size
        if sizes.minimum == sizes.maximum:
            return sizes.minimum
        if offset + sizes.minimum > end:
            raise End
        while True:
            length = self.drawn_length(direction, sizes, offset, end)
            if offset + length <= end:
                return length

    def drawn_length(self, direction: int, sizes: Sizes, offset: int, end: int) -> int:
        drawn = self.sizes[direction].bits()
        if sizes.split:
            length, sum_percent = sizes.split[-1][0], 0
            for length, percent in sizes.split:
                if percent == 0:
                    continue
                sum_percent += percent
                if drawn // sum_percent <= (int(self.whole) - 1) // 100 and offset + length <= end:
                    break
        else:
            length = sizes.minimum + int(sizes.maximum * (drawn / self.whole))
        if not self.pattern.unaligned_sizes:
            length -= length % sizes.minimum
        return min(length, sizes.maximum)

    def zoned(self, file: File, direction: int, last: int) -> int:
        if not self.pattern.zones:
            return self.even(file, last)
        if last <= 0:
            raise End
        drawn = self.zones.percent()
        begin, accesses = 0, 0
        for share, size in self.pattern.zones:
            accesses += share
            if drawn <= accesses:
                break
            begin += size
        unit = self.pattern.sizes[direction].unit
        if self.pattern.distribution == Distribution.ZONED:
            return begin * last // 100 + self.even(file, size * last // 100)
        first, after = begin // unit, (begin + size) // unit
        if after > last:
            raise End
        return first + self.even(file, after - first)


class Spread:
    """zipf, pareto and normal: ranks scattered over the file."""

    def __init__(self, pattern: Pattern) -> None:
        self.kind = pattern.distribution
        self.bits = Taus88(pattern.distribution_seeds[0]).bits
        self.blocks = -(-pattern.file_bytes // min(each.minimum for each in pattern.sizes[:2]))
        self.shape = pattern.shape
        if self.kind == Distribution.NORMAL:
            self.shift = int(self.blocks * ((pattern.center or 0.5) - 0.5)) & 0xFFFFFFFF
            self.width = min(math.ceil(self.blocks * self.shape / 100), self.blocks // 2)
            return
        self.shift = self.bits()
        if pattern.center is not None:
            self.shift = int(self.blocks * pattern.center)
        if self.kind == Distribution.ZIPF:
            terms = (math.pow(1.0 / i, self.shape) for i in range(1, min(self.blocks, 10**7) + 1))
            self.zeta = 0.0
            for term in terms:
                self.zeta += term

    def next(self) -> int:
        ranks = {
            Distribution.ZIPF: self.zipf,
            Distribution.PARETO: self.pareto,
            Distribution.NORMAL: self.normal,
        }
        return ((ranks[self.kind]() * SCATTER + self.shift) & MASK64) % self.blocks

    def zipf(self) -> int:
        """J. Gray et al., Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994."""
        share = self.bits() / MASK32
        second = 1.0 + math.pow(0.5, self.shape)
        if share * self.zeta < 1:
            return 0
        if share * self.zeta < second:
            return 1
        rest = 1 - self.shape
        eta = (1 - math.pow(2 / self.blocks, rest)) / (1 - second / self.zeta)
        return int(self.blocks * math.pow(eta * share - eta + 1, 1 / rest))

    def pareto(self) -> int:
        power = math.log(self.shape) / math.log(1 - self.shape)
        return int((self.blocks - 1) * math.pow(self.bits() / MASK32, power))

    def normal(self) -> int:
        mean = (sum(self.bits() % (self.blocks + 1) for _ in range(12)) + 11) // 12
        if self.width:
            off = int(self.width * (self.bits() / WHOLE)) - self.width // 2
            while not 0 <= mean + off < self.blocks and off:
                off = int(off / 2)
            mean += off
        return mean


class Register:
    """A linear feedback shift register whose zeros and ones are exchanged."""

    def __init__(self, blocks: int, seed: int) -> None:
        self.blocks = blocks
        self.bits = max(3, blocks.bit_length())
        self.seed = seed
        self.is_first = True
        self.restart()

    def restart(self) -> None:
        self.ones = (1 << self.bits) - 1
        self.state = self.ones ^ (self.seed & self.ones)
        self.given = 0

    def step(self) -> None:
        self.state = self.state >> 1 ^ (TAPS[self.bits] if self.state & 1 else 0)

    def next(self) -> int:
        """The next block; each once."""
        if self.given == self.blocks:
            raise End
        if self.is_first:  # of all rounds
            self.step()
            self.is_first = False
        self.step()
        while self.ones ^ self.state >= self.blocks:
            self.step()
        self.given += 1
        return self.ones ^ self.state
