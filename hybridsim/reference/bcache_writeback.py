"""bcache's write-back (2.12.3): the thread that cleans, and its rate."""

from dataclasses import dataclass

from hybridsim.foundation.codes import Op
from hybridsim.reference.bcache_buckets import SECTOR, Buckets
from hybridsim.reference.bcache_index import Key
from hybridsim.reference.clock import Clock
from hybridsim.reference.parameters import BcacheParameters
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier

SECOND = 10**9
JIFFY = 4_000_000
UNLIMITED = 2**31 - 1


@dataclass(eq=False)
class Gathered:
    """A dirty key as it was when it was gathered."""

    key: Key
    taken: bool = False
    order: int = -1
    read: bool = False


def toward_zero(number: int, divisor: int) -> int:
    """Divide."""
    return abs(number) // divisor * (1 if number >= 0 else -1)


class WriteBack:
    """The thread."""

    def __init__(
        self,
        clock: Clock,
        parameters: BcacheParameters,
        buckets: Buckets,
        slow: Slow,
        fast: Tier,
    ) -> None:
        self.clock = clock
        self.parameters = parameters
        self.buckets = buckets
        self.slow, self.fast = slow, fast
        self.asleep = True
        self.has_dirty = False
        self.scanned = 0
        self.full_pass = False
        self.gathered: list[Gathered] = []
        self.ahead: Gathered | None = None
        self.group: list[Gathered] = []
        self.group_sectors = 0
        self.to_begin: list[Gathered] = []
        self.draining = self.blocked = False
        self.under_way: list[Gathered] = []
        self.begun = self.written_in_order = 0
        self.next = 0
        self.rate = 1024
        self.integral = 0
        self.idle = 0
        self.unlimited = False
        self.timed = False
        self.bytes = 0

    def request_comes(self) -> None:
        """Somebody uses the cache."""
        self.idle = 0
        if self.unlimited:
            self.unlimited = False
            self.rate = 1

    def dirtied(self) -> None:
        """Something is dirty."""
        self.has_dirty = True
        if self.parameters.writeback_percent and not self.timed:
            self.timed = True
            self.clock.at((self.clock.now // (5 * SECOND) + 1) * 5 * SECOND, self.update_rate)
        if self.asleep:
            self.asleep = False
            self.clock.at(self.clock.now, self.refill)

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether a range overlaps what is taken; what is not is ungathered."""
        hit = [one for one in self.gathered if one.key.begin < end and begin < one.key.end]
        self.gathered = [one for one in self.gathered if one.taken or one not in hit]
        return any(one.taken for one in hit)

    # The thread.

    def refill(self) -> None:
        """Gather dirty keys."""
        start = self.scanned
        dirty = [key for key in self.buckets.keys.all if key.dirty]
        upper = [key for key in dirty if key.begin >= start]
        lower = [key for key in dirty if key.begin < start]
        chosen = (upper + lower)[:500]
        self.full_pass = len(chosen) < 500
        self.scanned = start if self.full_pass else chosen[-1].begin + 1
        found = [Gathered(Key(key.begin, key.end, key.place)) for key in chosen]
        self.gathered = sorted(found, key=lambda one: one.key.begin)
        if self.full_pass and not found:
            self.has_dirty = False
        self.ahead = self.take()
        self.next_group()

    def take(self) -> Gathered | None:
        """Take the next of the gathered."""
        for one in self.gathered:
            if not one.taken:
                one.taken = True
                return one
        return None

    def next_group(self) -> None:
        """Begin the next group, or come to an end."""
        self.group = []
        sectors = 0
        while self.ahead and len(self.group) < 5 and sectors < 5000:
            if self.group and self.group[-1].key.end != self.ahead.key.begin:
                break
            self.group.append(self.ahead)
            sectors += self.ahead.key.size // SECTOR
            self.ahead = self.take()
        self.group_sectors = sum(one.key.size for one in self.group) // SECTOR
        self.to_begin = list(self.group)
        if self.group:
            self.begin()
        else:
            self.draining = True
            self.rest()

    def begin(self) -> None:
        """Begin the keys of the group, as many as may be under way."""
        while self.to_begin:
            if len(self.under_way) == 64:
                self.blocked = True
                return
            self.read(self.to_begin.pop(0))
        self.limit(self.group_sectors)

    def limit(self, sectors: int) -> None:
        """Go on with the next group when the rate lets it."""
        if self.parameters.writeback_percent:
            now = self.clock.now
            self.next += sectors * SECOND // self.rate
            self.next = max(min(self.next, now + 5 * SECOND // 2), now - 2 * SECOND)
            jiffies = (self.next - now) // JIFFY
            if jiffies > 0:
                self.clock.at(now + jiffies * JIFFY, lambda: self.limit(0))
                return
        self.next_group()

    def rest(self) -> None:
        """Nothing is left to begin: wait until all is clean."""
        if self.under_way:
            return
        self.draining = False
        self.gathered = []
        if self.full_pass:
            pause = self.parameters.writeback_delay_ns
            self.clock.at(self.clock.now + pause, self.after_pause)
        else:
            self.refill()

    def after_pause(self) -> None:
        """The pause is over."""
        self.next = self.clock.now
        if self.has_dirty:
            self.refill()
        else:
            self.asleep = True

    # One key.

    def read(self, one: Gathered) -> None:
        """Read it from the cache."""
        one.order = self.begun
        self.begun += 1
        self.under_way.append(one)

        def done() -> None:
            one.read = True
            self.write_in_order()

        self.fast.submit(Op.READ, one.key.place, one.key.size, done)

    def write_in_order(self) -> None:
        """Write those that are read, as far as there is no gap."""
        for one in sorted(self.under_way, key=lambda each: each.order):
            if one.read and one.order == self.written_in_order:
                self.written_in_order += 1
                self.write(one)

    def write(self, one: Gathered) -> None:
        """Write it to the backing device."""
        at, size = one.key.begin, one.key.size
        self.slow.submit_background(Op.WRITE, at, size, lambda: self.written(one))

    def written(self, one: Gathered) -> None:
        """What is still there is clean now."""
        self.gathered.remove(one)
        at = one.key.begin
        while True:
            keys = self.buckets.keys.overlapping(at, one.key.end)
            same = [key for key in keys if key.dirty and self.is_in_place(key, one.key)]
            if not same:
                break
            start, stop = max(at, same[0].begin), min(one.key.end, same[0].end)
            self.buckets.enter(Key(start, stop, one.key.place + start - one.key.begin))
            at = stop
        self.under_way.remove(one)
        self.bytes += one.key.size
        if self.draining:
            self.rest()
        elif self.blocked:
            self.blocked = False
            self.begin()

    @staticmethod
    def is_in_place(key: Key, other: Key) -> bool:
        """Whether the data of two keys lie alike."""
        return key.place - key.begin == other.place - other.begin

    # The rate.

    def update_rate(self) -> None:
        """Set the rate anew."""
        if not self.has_dirty:
            self.timed = False
            return
        self.clock.at(self.clock.now + 5 * SECOND, self.update_rate)
        self.idle += 1
        if self.idle >= 6 and not self.buckets.gc_running:
            self.unlimited = True
            self.rate = UNLIMITED
            return
        n, bucket = len(self.buckets.all), self.buckets.size // SECTOR
        dirty = self.buckets.keys.dirty_bytes // SECTOR
        e = dirty - n * bucket * self.parameters.writeback_percent // 100
        p = toward_zero(e, 40)
        in_use = self.buckets.in_use
        if in_use > 50 and dirty > 0:
            d = n - self.buckets.avail
            fp = (in_use - 64) * 1000
            if in_use <= 57:
                fp = in_use - 50
            elif in_use <= 64:
                fp = (in_use - 57) * 10
            if d * bucket // dirty > 3:
                p = max(p, dirty // d * fp)
        keeping_up = self.clock.now < self.next + 1_000_000
        if (e < 0 and self.integral > 0) or (e > 0 and keeping_up):
            self.integral += e * 5
        self.rate = max(8, min(p + toward_zero(self.integral, 10_000), 10**9))
