"""bcache's write-back (DESIGN.md 2.12.3): the thread that cleans, and its rate."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import Op
from hybridsim.reference.bcache_buckets import SECTOR, Buckets, Key
from hybridsim.reference.clock import Clock, Step, in_turn
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
    read: bool = False  # from the cache
    is_written: bool = False  # to the slow tier, or about to be


def do_nothing() -> None:
    """Wait for nothing."""


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
        self.unlocked = do_nothing  # called after such an event
        self.on_unlock = do_nothing  # how the thread goes on that waits for the lock,
        self.on_written = do_nothing  # and the one that waits for the keys under way
        self.has_dirty = False
        self.scanned = 0  # byte of the volume from which the next scan starts
        self.gathered: list[Gathered] = []
        self.ahead: Gathered | None = None  # taken, the first of the next group
        self.under_way: list[Gathered] = []  # in order of their begin
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
            self.on_unlock = lambda: in_turn(self.clean())
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
        """Let the thread look whether a WRITE is under way; WRITEs that waited may go on."""
        self.called = False
        self.on_unlock()
        self.unlocked()

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether a range overlaps a key taken for cleaning; forget overlapping keys not taken."""
        hit = [one for one in self.gathered if one.key.begin < end and begin < one.key.end]
        self.gathered = [one for one in self.gathered if one.taken or one not in hit]
        return any(one.taken for one in hit)

    # The thread.

    def clean(self) -> Iterator[Step]:
        """Clean keys until none is dirty; gather them when no WRITE is under way."""
        while True:
            while self.writers:
                self.wants_lock = True
                yield partial(setattr, self, "on_unlock")
            self.wants_lock = False
            is_full_pass = self.gather()
            self.ahead = self.take()
            while group := self.next_group():
                for one in group:
                    while len(self.under_way) == UNDER_WAY_KEYS:
                        yield partial(setattr, self, "on_written")
                    self.read(one)
                yield from self.limit(sum(one.key.size for one in group) // SECTOR)
            while self.under_way:
                yield partial(setattr, self, "on_written")
            self.gathered = []
            if is_full_pass:
                pause = self.parameters.writeback_delay_ns
                yield partial(self.clock.at, expiry(self.clock.now, pause))
                self.next = self.clock.now
                if not self.has_dirty:
                    self.asleep = True
                    return

    def gather(self) -> bool:
        """Collect the next dirty keys; return whether these are all."""
        dirty = [key for key in self.buckets.keys.all if key.dirty]
        upper = [key for key in dirty if key.begin >= self.scanned]
        lower = [key for key in dirty if key.begin < self.scanned]
        chosen = (upper + lower)[:SCANNED_KEYS]
        is_full_pass = len(chosen) < SCANNED_KEYS
        if not is_full_pass:
            self.scanned = chosen[-1].begin + 1
        keys = [Gathered(Key(key.begin, key.end, key.place)) for key in chosen]
        self.gathered = sorted(keys, key=lambda one: one.key.begin)
        self.has_dirty = bool(keys)
        return is_full_pass

    def take(self) -> Gathered | None:
        """Take the next collected key, or None."""
        for one in self.gathered:
            if not one.taken:
                one.taken = True
                return one
        return None

    def next_group(self) -> list[Gathered]:
        """Return the next group of adjacent keys."""
        group: list[Gathered] = []
        sectors = 0
        while self.ahead and len(group) < GROUP_KEYS and sectors < GROUP_SECTORS:
            if group and group[-1].key.end != self.ahead.key.begin:
                break
            group.append(self.ahead)
            sectors += self.ahead.key.size // SECTOR
            self.ahead = self.take()
        return group

    def limit(self, sectors: int) -> Iterator[Step]:
        """Count `sectors` against the rate; wait until the rate allows the next group."""
        while self.parameters.writeback_percent:
            now = self.clock.now
            self.next += sectors * SECOND // self.rate
            self.next = max(min(self.next, now + 5 * SECOND // 2), now - 2 * SECOND)
            jiffies = (self.next - now) // JIFFY
            if jiffies <= 0:
                break
            yield partial(self.clock.at, expiry(now, jiffies * JIFFY))
            sectors = 0

    # One key.

    def read(self, one: Gathered) -> None:
        """Read a key's data from the cache."""
        self.under_way.append(one)

        def done() -> None:
            one.read = True
            self.write_in_order()

        self.fast.submit(Op.READ, one.key.place, one.key.size, done)

    def write_in_order(self) -> None:
        """Write the keys that are read, in order of their start."""
        for one in list(self.under_way):
            if not one.read:
                break
            if not one.is_written:
                one.is_written = True
                at, size = one.key.begin, one.key.size
                self.slow.submit_background(Op.WRITE, at, size, partial(self.written, one))

    def written(self, one: Gathered) -> None:
        """Mark the parts of a key that are still cached as clean."""
        self.gathered.remove(one)
        at = one.key.begin
        while True:
            keys = self.buckets.keys.overlapping(at, one.key.end)
            shift = one.key.place - one.key.begin
            same = [key for key in keys if key.dirty and key.place - key.begin == shift]
            if not same:
                break
            start, stop = max(at, same[0].begin), min(one.key.end, same[0].end)
            self.buckets.enter(Key(start, stop, one.key.place + start - one.key.begin))
            at = stop
        self.under_way.remove(one)
        self.bytes += one.key.size
        go_on, self.on_written = self.on_written, do_nothing
        go_on()

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
