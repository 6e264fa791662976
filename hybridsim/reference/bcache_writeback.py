"""bcache's write-back (DESIGN.md 2.12.3): the thread that cleans, and its rate."""

from dataclasses import dataclass

from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import Op
from hybridsim.reference.bcache_buckets import SECTOR, Buckets
from hybridsim.reference.bcache_index import Key
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier
from hybridsim.reference.timers import JIFFY, expiry

SECOND = 10**9
UNLIMITED = 2**31 - 1
SCANNED_KEYS = 500  # maximum of one scan
GROUP_KEYS, GROUP_SECTORS = 5, 5000
UNDER_WAY_KEYS = 64
UPDATE = 5  # seconds between two updates of the rate, as the kernel sets its timer
PERIOD = expiry(0, UPDATE * SECOND)


@dataclass(eq=False)
class Gathered:
    """A dirty key as collected by the last scan."""

    key: Key
    taken: bool = False  # for cleaning
    order: int = -1  # among all reads of write-back; -1: not begun
    read: bool = False  # from the cache


def toward_zero(number: int, divisor: int) -> int:
    """Divide and round toward zero."""
    return abs(number) // divisor * (1 if number >= 0 else -1)


class WriteBack:
    """The write-back thread."""

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
        self.wants_lock = False  # about to gather keys, for which no WRITE may be under way
        self.called = False  # an event is scheduled that gathers them
        self.writers = 0  # WRITEs and DISCARDs of users under way
        self.unlocked: Done = lambda: None  # called after such an event
        self.has_dirty = False
        self.scanned = 0  # byte of the volume from which the next scan starts
        self.full_pass = False
        self.gathered: list[Gathered] = []
        self.ahead: Gathered | None = None  # taken, the first of the next group
        self.group: list[Gathered] = []
        self.group_sectors = 0
        self.to_begin: list[Gathered] = []
        self.draining = False  # nothing is left to begin; waits for the keys under way
        self.blocked = False  # too many keys are under way to begin another
        self.under_way: list[Gathered] = []
        self.begun = self.written_in_order = 0
        self.next = 0  # ns: when the next group may begin
        self.rate = 1024  # sectors per second
        self.integral = 0
        self.idle = 0  # updates of the rate since the last request
        self.unlimited = False  # the rate, because the cache is idle
        self.timed = False  # an update of the rate is scheduled
        self.bytes = 0  # written back

    def request_comes(self) -> None:
        """Record a request: end the unlimited rate of an idle cache."""
        self.idle = 0
        if self.unlimited:
            self.unlimited = False
            self.rate = 1

    def dirtied(self) -> None:
        """Wake the thread after data became dirty."""
        self.has_dirty = True
        if self.parameters.writeback_percent and not self.timed:
            self.timed = True
            self.clock.at((self.clock.now // PERIOD + 1) * PERIOD, self.update_rate)
        if self.asleep:
            self.asleep = False
            self.wants_lock = True
            self.call()

    def ends(self) -> None:
        """Count a WRITE or DISCARD that has ended; after the last one keys may be gathered."""
        self.writers -= 1
        if self.writers == 0 and self.wants_lock:
            self.call()

    def call(self) -> None:
        """Schedule the gathering of keys, unless it is scheduled."""
        if not self.called:
            self.called = True
            self.clock.at(self.clock.now, self.try_again)

    def try_again(self) -> None:
        """Gather keys if no WRITE is under way; WRITEs that waited may go on."""
        self.called = False
        self.refill()
        self.unlocked()

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether a range overlaps a key taken for cleaning; forget overlapping keys not taken."""
        hit = [one for one in self.gathered if one.key.begin < end and begin < one.key.end]
        self.gathered = [one for one in self.gathered if one.taken or one not in hit]
        return any(one.taken for one in hit)

    # The thread.

    def refill(self) -> None:
        """Collect the next dirty keys, once no WRITE is under way."""
        self.wants_lock = self.writers > 0
        if self.wants_lock:
            return
        start = self.scanned
        dirty = [key for key in self.buckets.keys.all if key.dirty]
        upper = [key for key in dirty if key.begin >= start]
        lower = [key for key in dirty if key.begin < start]
        chosen = (upper + lower)[:SCANNED_KEYS]
        self.full_pass = len(chosen) < SCANNED_KEYS
        self.scanned = start if self.full_pass else chosen[-1].begin + 1
        keys = [Gathered(Key(key.begin, key.end, key.place)) for key in chosen]
        self.gathered = sorted(keys, key=lambda one: one.key.begin)
        if self.full_pass and not keys:
            self.has_dirty = False
        self.ahead = self.take()
        self.next_group()

    def take(self) -> Gathered | None:
        """Take the next collected key, or None."""
        for one in self.gathered:
            if not one.taken:
                one.taken = True
                return one
        return None

    def next_group(self) -> None:
        """Begin the next group of adjacent keys, or end the pass."""
        self.group = []
        sectors = 0
        while self.ahead and len(self.group) < GROUP_KEYS and sectors < GROUP_SECTORS:
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
            self.end_pass()

    def begin(self) -> None:
        """Begin the keys of the group, as long as fewer than UNDER_WAY_KEYS are under way."""
        while self.to_begin:
            if len(self.under_way) == UNDER_WAY_KEYS:
                self.blocked = True
                return
            self.read(self.to_begin.pop(0))
        self.limit(self.group_sectors)

    def limit(self, sectors: int) -> None:
        """Count `sectors` against the rate; begin the next group when the rate allows it."""
        if self.parameters.writeback_percent:
            now = self.clock.now
            self.next += sectors * SECOND // self.rate
            self.next = max(min(self.next, now + 5 * SECOND // 2), now - 2 * SECOND)
            jiffies = (self.next - now) // JIFFY
            if jiffies > 0:
                self.clock.at(expiry(now, jiffies * JIFFY), lambda: self.limit(0))
                return
        self.next_group()

    def end_pass(self) -> None:
        """End the pass once no key is under way."""
        if self.under_way:
            return
        self.draining = False
        self.gathered = []
        if self.full_pass:
            pause = self.parameters.writeback_delay_ns
            self.clock.at(expiry(self.clock.now, pause), self.after_pause)
        else:
            self.refill()

    def after_pause(self) -> None:
        """Continue after the pause."""
        self.next = self.clock.now
        if self.has_dirty:
            self.refill()
        else:
            self.asleep = True

    # One key.

    def read(self, one: Gathered) -> None:
        """Read a key's data from the cache."""
        one.order = self.begun
        self.begun += 1
        self.under_way.append(one)

        def done() -> None:
            one.read = True
            self.write_in_order()

        self.fast.submit(Op.READ, one.key.place, one.key.size, done)

    def write_in_order(self) -> None:
        """Write the keys that are read, in order of their start."""
        for one in sorted(self.under_way, key=lambda each: each.order):
            if one.read and one.order == self.written_in_order:
                self.written_in_order += 1
                self.write(one)

    def write(self, one: Gathered) -> None:
        """Write a key's data to the backing device."""
        at, size = one.key.begin, one.key.size
        self.slow.submit_background(Op.WRITE, at, size, lambda: self.written(one))

    def written(self, one: Gathered) -> None:
        """Mark the parts of a key that are still cached as clean."""
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
            self.end_pass()
        elif self.blocked:
            self.blocked = False
            self.begin()

    @staticmethod
    def is_in_place(key: Key, other: Key) -> bool:
        """Whether two keys map addresses to the same places."""
        return key.place - key.begin == other.place - other.begin

    # The rate.

    def update_rate(self) -> None:
        """Update the rate, a PI controller of the dirty sectors (2.12.3, *Rate*)."""
        if not self.has_dirty:
            self.timed = False
            return
        self.clock.at(self.clock.now + PERIOD, self.update_rate)
        self.idle += 1
        if self.idle >= 6 and not self.buckets.gc_running:
            self.unlimited = True
            self.rate = UNLIMITED
            return
        if self.wants_lock:
            return
        buckets, bucket_sectors = len(self.buckets.all), self.buckets.size // SECTOR
        dirty = self.buckets.keys.dirty_bytes // SECTOR
        error = dirty - buckets * bucket_sectors * self.parameters.writeback_percent // 100
        proportional = toward_zero(error, 40)
        in_use = self.buckets.in_use  # percent
        if in_use > 50 and dirty > 0:  # faster if little dirty data holds many buckets
            held = buckets - self.buckets.avail
            factor = (in_use - 64) * 1000
            if in_use <= 57:
                factor = in_use - 50
            elif in_use <= 64:
                factor = (in_use - 57) * 10
            if held * bucket_sectors // dirty > 3:
                proportional = max(proportional, dirty // held * factor)
        keeping_up = self.clock.now < self.next + 1_000_000
        if (error < 0 and self.integral > 0) or (error > 0 and keeping_up):
            self.integral += error * UPDATE
        self.rate = max(8, min(proportional + toward_zero(self.integral, 10_000), 10**9))
