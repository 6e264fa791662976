"""The requests of a fio job, generated naively: no arrays, one request after the other.

The compiled generator is compared with this one, and this one with offsets that fio 3.33 logged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from hybridsim.workloads.fio.pattern import (
    READ,
    SYNC,
    WRITE,
    Distribution,
    Generator,
    Pattern,
    Sizes,
    Stream,
)
from hybridsim.workloads.fio.register import TAPS

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1
WHOLE = 2.0**32
SCATTER = 0x61C8864680B583EB
FILE_SHIFT = 50


class Taus88:
    """P. L'Ecuyer, Mathematics of Computation 65 (1996)."""

    def __init__(self, seed: int) -> None:
        self.states = []
        last = 53
        for minimum in (1, 7, 15):
            last = (last * 69069 & MASK32) ^ (seed & MASK32)
            last = last + minimum if last < minimum else last
            self.states.append(last)
        for _ in range(6):
            self.bits()

    def bits(self) -> int:
        """Return the next 32 random bits."""
        a, b, c = self.states
        a = ((a & 0xFFFFFFFE) << 12 & MASK32) ^ (((a << 13 & MASK32) ^ a) >> 19)
        b = ((b & 0xFFFFFFF8) << 4 & MASK32) ^ (((b << 2 & MASK32) ^ b) >> 25)
        c = ((c & 0xFFFFFFF0) << 17 & MASK32) ^ (((c << 3 & MASK32) ^ c) >> 11)
        self.states = [a, b, c]
        return a ^ b ^ c

    def percent(self) -> int:
        """Return a random number from 1 to 100."""
        return 1 + int(100 * (self.bits() / WHOLE))


class End(Exception):  # noqa: N818 - nothing went wrong
    """This pass has no further request."""


class Job:
    """The random streams and the progress of one job."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.seed_all()
        self.used: list[set[int]] = [set() for _ in range(pattern.files)]
        self.is_done = [False] * pattern.files
        self.file = self.next_file = 0
        self.register: Register | None = None
        self.at = [[pattern.offset_bytes] * 3 for _ in range(pattern.files)]
        self.began = [[pattern.offset_bytes] * 3 for _ in range(pattern.files)]
        self.turn = 1  # requests until the next random one
        self.last = -1  # direction
        self.issued = [0, 0, 0]
        self.now = READ
        self.until = 0
        if pattern.distribution in (Distribution.ZIPF, Distribution.PARETO, Distribution.NORMAL):
            self.spread = Spread(pattern)
        if pattern.generator == Generator.LFSR:
            blocks = pattern.file_bytes // pattern.sizes[pattern.directions[0]].unit
            self.register = Register(blocks, pattern.seeds()[Stream.BLOCK])

    def seed_all(self) -> None:
        seeds = self.pattern.seeds()
        sizes = (Stream.READ_SIZE, Stream.WRITE_SIZE, Stream.TRIM_SIZE)
        self.sizes = [Taus88(seeds[each]) for each in sizes]
        self.mix = Taus88(seeds[Stream.MIX])
        self.blocks = Taus88(seeds[Stream.BLOCK])
        self.coins = [Taus88(seeds[Stream.IS_RANDOM]) for _ in range(3)]
        self.zones = Taus88(seeds[Stream.ZONE])

    def requests(self) -> Iterator[tuple[int, int, int]]:
        """Yield (direction, offset, length)."""
        pattern = self.pattern
        done = in_all = 0
        whole = pattern.file_bytes * pattern.files + pattern.rest_bytes
        for _ in range(pattern.passes) if not pattern.is_endless else iter(int, 1):
            passed = 0
            while passed < pattern.pass_bytes and in_all < pattern.passes * pattern.pass_bytes:
                if self.is_sync_due():
                    self.last = SYNC
                    file = self.next_file  # index of the file whose turn it is
                    while self.is_done[file]:
                        file = (file + 1) % pattern.files
                    self.next_file = (file + 1) % pattern.files
                    yield SYNC, file << FILE_SHIFT, 0
                    continue
                try:
                    direction, offset, length = self.next()
                except End:
                    self.begin_again()
                    if passed > 0 and pattern.pass_bytes <= whole:
                        break
                    try:
                        direction, offset, length = self.next()
                    except End:
                        break
                self.last = direction
                self.issued[direction] += 1
                passed += length
                in_all += 0 if pattern.is_endless else length
                yield direction, offset, length
                done += 1
                if done == pattern.requests:
                    return
            if done == 0 or (pattern.is_endless and passed == 0):
                return  # the file is too small for any request

    def is_sync_due(self) -> bool:
        every, writes = self.pattern.writes_between_syncs, self.issued[WRITE]
        return every > 0 and writes > 0 and writes % every == 0 and self.last != SYNC

    def begin_again(self) -> None:
        """Start another pass after the last free block or the end of the file."""
        self.at = [[self.pattern.offset_bytes] * 3 for _ in range(self.pattern.files)]
        self.used = [set() for _ in range(self.pattern.files)]
        self.is_done = [False] * self.pattern.files
        if self.pattern.is_repeated and not self.pattern.is_endless:
            self.seed_all()
        if self.register:
            self.register.restart()

    def begin_file_again(self) -> None:
        """Start a file again when all of it was used, if the job goes on."""
        self.at[self.file] = [self.pattern.offset_bytes] * 3
        self.used[self.file] = set()
        if self.register:
            self.register.restart()

    def next(self) -> tuple[int, int, int]:
        """Return the next request of the next file that has one."""
        for _ in range(self.pattern.files):
            self.file = self.next_file
            self.next_file = (self.file + 1) % self.pattern.files
            if not self.is_done[self.file]:
                try:
                    direction, offset, length = self.next_in()
                    return direction, offset + (self.file << FILE_SHIFT), length
                except End:
                    self.is_done[self.file] = True
        raise End

    def next_in(self) -> tuple[int, int, int]:
        direction = self.pattern.directions[0]
        if len(self.pattern.directions) > 1:
            direction = self.mixed()
        return direction, *self.place(direction)

    def mixed(self) -> int:
        """Return read or write: drawn again once the number due at the last change is done."""
        if self.issued[self.now] >= self.until:
            drawn = READ if self.mix.percent() <= self.pattern.read_percent else WRITE
            if drawn != self.now:
                read = self.pattern.read_percent
                share = read if self.now == WRITE else 100 - read
                self.until = self.issued[self.now] * share // 100
            self.now = drawn
        return self.now

    def place(self, direction: int) -> tuple[int, int]:
        """Return the next offset and length, and store them."""
        offset, is_random = self.offset(direction)
        length = self.length(direction, offset)
        if self.pattern.uses_map and is_random:
            length = self.mark(direction, offset, length)
            if length == 0:
                raise End
        self.began[self.file][direction] = offset
        self.at[self.file][direction] = offset + length
        return offset, length

    def offset(self, direction: int) -> tuple[int, bool]:
        pattern = self.pattern
        self.turn -= 1
        if self.turn == 0:
            self.turn = pattern.every
            if not pattern.is_random:
                return self.sequential(direction), False
            percent = pattern.random_percent[direction]
            if percent == 100 or self.coins[direction].percent() <= percent:
                return self.random(direction), True
        elif pattern.stays:
            return self.began[self.file][direction], False
        try:
            return self.sequential(direction), False
        except End:
            return self.random(direction), False

    def sequential(self, direction: int) -> int:
        pattern = self.pattern
        end = pattern.offset_bytes + pattern.file_bytes
        at = self.at[self.file][direction]
        if at >= end:
            if not pattern.is_endless:
                raise End
            return pattern.offset_bytes
        if pattern.hole_bytes and at > pattern.offset_bytes:
            at += pattern.hole_bytes
        return at if at < end else pattern.offset_bytes

    def random(self, direction: int) -> int:
        pattern = self.pattern
        unit = pattern.sizes[direction].unit
        last = self.last_block(direction, pattern.file_bytes)
        if last <= 0:
            raise End
        match pattern.distribution:
            case Distribution.ZONED | Distribution.ZONED_ABS:
                block = self.zoned(direction, last)
            case Distribution.RANDOM:
                try:
                    block = self.even(last)
                except End:
                    if not pattern.is_endless:
                        raise
                    self.begin_file_again()
                    block = self.even(last)
            case _:
                block = self.spread.next()
        if block * unit >= pattern.file_bytes:
            raise End
        return pattern.offset_bytes + block * unit

    def last_block(self, direction: int, size: int) -> int:
        sizes = self.pattern.sizes[direction]
        return (size - max(sizes.least - sizes.unit, 0)) // sizes.unit

    def even(self, last: int) -> int:
        if self.register:
            return self.register.next()
        block = int(last * (self.blocks.bits() / WHOLE))
        if not self.pattern.uses_map:
            return block
        size = self.pattern.file_bytes // self.pattern.block_bytes
        used = self.used[self.file]
        if len(used) == size:
            raise End
        while block in used:
            block = (block + 1) % size
        return block

    def mark(self, direction: int, offset: int, length: int) -> int:
        """Mark blocks as used up to the first used one; return the remaining length."""
        minimum = self.pattern.sizes[direction].least
        first = (offset - self.pattern.offset_bytes) // minimum
        count = 0
        used = self.used[self.file]
        size = self.pattern.file_bytes // self.pattern.block_bytes
        while count * minimum < length and first + count not in used:
            if first + count < size:  # nothing is marked behind the last whole block
                used.add(first + count)
            count += 1
        return min(length, count * minimum)

    def length(self, direction: int, offset: int) -> int:
        sizes = self.pattern.sizes[direction]
        end = self.pattern.offset_bytes + self.pattern.file_bytes
        if offset + sizes.least > end:
            raise End
        if sizes.least == sizes.most and not sizes.split:
            return sizes.least
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
                if drawn // sum_percent <= MASK32 // 100 and offset + length <= end:
                    break
        else:
            length = sizes.least + int(sizes.most * (drawn / WHOLE))
        if not self.pattern.unaligned_sizes:
            length -= length % sizes.least
        return min(length, sizes.most)

    def zoned(self, direction: int, last: int) -> int:
        drawn = self.zones.percent()
        begin, accesses = 0, 0
        for share, size in self.pattern.zones[direction]:
            accesses += share
            if drawn <= accesses:
                break
            begin += size
        region, unit = self.pattern.file_bytes, self.pattern.sizes[direction].unit
        if self.pattern.distribution == Distribution.ZONED:
            begin, size = begin * region // 100, size * region // 100
        blocks = self.last_block(direction, size)
        return begin // unit + int(blocks * (self.blocks.bits() / WHOLE))


class Spread:
    """zipf, pareto and normal: ranks scattered over the file."""

    def __init__(self, pattern: Pattern) -> None:
        self.kind = pattern.distribution
        self.bits = Taus88(pattern.distribution_seeds[0]).bits
        self.blocks = -(-pattern.file_bytes // pattern.block_bytes)
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
            while mean + off >= self.blocks:
                off = int(off / 2)
            mean += off
        return mean


class Register:
    """A linear feedback shift register with inverted bits."""

    def __init__(self, blocks: int, seed: int) -> None:
        self.blocks = blocks
        self.bits = max(3, blocks.bit_length())
        self.seed = seed
        self.restart()

    def restart(self) -> None:
        self.ones = (1 << self.bits) - 1
        self.state = self.ones ^ (self.seed & self.ones)
        self.given = 0
        self.step()

    def step(self) -> None:
        self.state = self.state >> 1 ^ (TAPS[self.bits] if self.state & 1 else 0)

    def next(self) -> int:
        """Return the next block; each block comes once."""
        if self.given == self.blocks:
            raise End
        self.step()
        while self.ones ^ self.state >= self.blocks:
            self.step()
        self.given += 1
        return self.ones ^ self.state
