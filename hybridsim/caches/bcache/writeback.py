"""bcache's write-back: a thread that sweeps over the backing device, and its rate control."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.buckets import AVAIL, GC_RUNNING, IN_USE, SECTOR_BYTES, Buckets
from hybridsim.caches.bcache.journal import BACK_READ, BACK_WRITE, BITS, RATE, WRITE_BACK
from hybridsim.caches.bcache.keys import DIRTY_BYTES
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import JIFFY_NS, expiry_ns
from hybridsim.jit.lists import NOTHING

SECOND_NS = 10**9
GATHERED_MAX = 500  # KEYBUF_NR
GROUP_MAX, GROUP_SECTORS = 5, 5000
UNDER_WAY_MAX = 64
UPDATE_S = 5
IDLE_UPDATES = 6
RATE_FIRST, RATE_MIN, RATE_MAX, RATE_UNLIMITED = 1024, 8, 10**9, 2**31 - 1
P_INVERSE, I_INVERSE = 40, 10_000
BEHIND_NS, AHEAD_NS, KEEPS_UP_NS = 2 * SECOND_NS, 5 * SECOND_NS // 2, 1_000_000
FRAGMENT_LOW, FRAGMENT_MIDDLE, FRAGMENT_HIGH = 50, 57, 64

ASLEEP, REFILLING, BEGINNING, LIMITED, DRAINING, PAUSED = range(6)
IS_TAKEN, IS_DROPPED = 1, 2
FREE, BEING_READ, HAS_BEEN_READ, BEING_WRITTEN = range(4)

(STAGE, HAS_DIRTY, IS_FULL_PASS, SCANNED, GATHERED, HIGH, TAKEN, AHEAD, GROUP, BEGUN,
 UNDER_WAY, SEQUENCE, NEXT_SEQUENCE, NEXT_NS, RATE_NOW, INTEGRAL, IDLE, IS_UNLIMITED,
 IS_TIMED, WRITTEN_BACK, WRITERS, IS_CALLED) = range(22)  # fmt: skip


@state_machine
class WriteBack(NamedTuple):
    """The write-back thread and its rate."""

    writeback_percent: int  # of the cache that may be dirty; 0: no limit to the rate
    writeback_delay_ns: int
    buckets: Buckets
    begin: Ints  # by gathered key
    end: Ints
    place: Ints
    what: Bytes  # IS_TAKEN, IS_DROPPED
    group: Int32s
    flying: Bytes  # by operation in progress: FREE, BEING_READ, ...
    flying_at: Int32s  # by operation: its gathered key
    sequence: Ints
    state: Ints  # [STAGE ... IS_CALLED]

    @classmethod
    def new(cls, parameters: BcacheParameters | WriteBack, buckets: Buckets) -> WriteBack:
        """Return a sleeping thread."""
        state = np.zeros(22, np.int64)
        state[RATE_NOW] = RATE_FIRST
        state[AHEAD] = NOTHING
        return filled(
            cls,
            GATHERED_MAX,
            parameters,
            buckets=buckets,
            group=np.zeros(GROUP_MAX, np.int32),
            flying=np.zeros(UNDER_WAY_MAX, np.uint8),
            flying_at=np.zeros(UNDER_WAY_MAX, np.int32),
            sequence=np.zeros(UNDER_WAY_MAX, np.int64),
            state=state,
        )

    # Calls from other parts.

    @method
    def on_dirty(self, now, below):
        """Wake the thread because there is dirty data."""
        state = self.state
        state[HAS_DIRTY] = 1
        if state[IS_TIMED] == 0 and self.writeback_percent > 0:
            state[IS_TIMED] = 1
            update_ns = expiry_ns(0, UPDATE_S * SECOND_NS)
            below.events.push((now // update_ns + 1) * update_ns, CACHE, RATE)
        if state[STAGE] == ASLEEP:
            state[STAGE] = REFILLING
            self.call(now, below)

    @method
    def wants_lock(self):
        """Return whether the thread waits to gather keys: no WRITE may be under way then."""
        return self.state[STAGE] == REFILLING

    @method
    def ends(self, now, below):
        """Count one that has ended; after the last one the thread may gather keys."""
        self.state[WRITERS] -= 1
        if self.state[WRITERS] == 0 and self.wants_lock():
            self.call(now, below)

    @method
    def call(self, now, below):
        """Schedule the gathering of keys, unless it is scheduled."""
        below.events.push_once(self.state, IS_CALLED, now, CACHE, WRITE_BACK)

    @method
    def overlaps(self, begin, end):
        """Drop the gathered keys of a range; return whether one of them is taken already."""
        is_taken = False
        for i in range(self.state[GATHERED]):
            if self.begin[i] < end and begin < self.end[i]:
                if self.what[i] == IS_TAKEN:
                    is_taken = True
                else:
                    self.what[i] = IS_DROPPED
        return is_taken

    # The thread.

    @method
    def wake(self, now, below):
        """Continue after a pause, or when no WRITE is under way any more."""
        state = self.state
        state[IS_CALLED] = 0
        if state[STAGE] == PAUSED:
            state[NEXT_NS] = now
            state[STAGE] = REFILLING if state[HAS_DIRTY] == 1 else ASLEEP
        elif state[STAGE] == LIMITED and not self.must_wait(now, 0, below):
            state[STAGE] = BEGINNING
            self.make_group()
        self.run(now, below)

    @method
    def run(self, now, below):
        """Continue as far as possible."""
        state = self.state
        while True:
            if state[STAGE] == REFILLING:
                if state[WRITERS] > 0:
                    return
                self.refill()
                state[STAGE] = BEGINNING
                self.make_group()
            if state[STAGE] != BEGINNING:
                return
            while state[BEGUN] < state[GROUP]:
                if state[UNDER_WAY] == UNDER_WAY_MAX:
                    return
                self.begin_one(now, self.group[state[BEGUN]], below)
                state[BEGUN] += 1
            if state[GROUP] > 0:
                sectors = 0
                for i in range(state[GROUP]):
                    sectors += self.end[self.group[i]] - self.begin[self.group[i]]
                if self.must_wait(now, sectors // SECTOR_BYTES, below):
                    state[STAGE] = LIMITED
                    return
                self.make_group()
                continue
            state[STAGE] = DRAINING
            self.rest(now, below)

    @method
    def rest(self, now, below):
        """Once no operation is in progress: pause after a full pass, or gather again."""
        state = self.state
        if state[UNDER_WAY] > 0:
            return
        state[GATHERED] = 0
        if state[IS_FULL_PASS] == 1:
            state[STAGE] = PAUSED
            below.events.push(expiry_ns(now, self.writeback_delay_ns), CACHE, WRITE_BACK)
        else:
            state[STAGE] = REFILLING

    @method
    def refill(self):
        """Gather dirty keys in order of address, from where the last pass stopped."""
        state = self.state
        start = state[SCANNED]
        state[GATHERED] = state[TAKEN] = state[IS_FULL_PASS] = 0
        self.gather(start, 1 << 62)
        state[HIGH] = state[GATHERED]
        if state[GATHERED] < GATHERED_MAX:
            state[SCANNED] = 0
            self.gather(0, start)
            if state[GATHERED] < GATHERED_MAX:
                state[SCANNED] = start
                state[IS_FULL_PASS] = 1
                if state[GATHERED] == 0:
                    state[HAS_DIRTY] = 0
        state[AHEAD] = self.take_next()

    @method
    def gather(self, begin, end):
        """Gather dirty keys that start in a range."""
        state, keys = self.state, self.buckets.keys
        key = keys.first_beyond(begin)
        while key >= 0 and keys.begin[key] < end and state[GATHERED] < GATHERED_MAX:
            if keys.is_dirty[key] == 1 and keys.begin[key] >= begin:
                at = state[GATHERED]
                state[GATHERED] += 1
                self.begin[at] = keys.begin[key]
                self.end[at] = keys.end[key]
                self.place[at] = keys.place[key]
                self.what[at] = 0
                state[SCANNED] = keys.begin[key] + 1
            key = keys.order.older[key]

    @method
    def take_next(self):
        """Return the next gathered key in order of address, or -1."""
        state = self.state
        while state[TAKEN] < state[GATHERED]:
            at = (state[HIGH] + state[TAKEN]) % state[GATHERED]
            state[TAKEN] += 1
            if self.what[at] != IS_DROPPED:
                self.what[at] = IS_TAKEN
                return at
        return NOTHING

    @method
    def make_group(self):
        """Take keys that are contiguous on the backing device."""
        state, group = self.state, self.group
        number = sectors = 0
        while state[AHEAD] != NOTHING and number < GROUP_MAX and sectors < GROUP_SECTORS:
            at = state[AHEAD]
            if number > 0 and self.begin[at] != self.end[group[number - 1]]:
                break
            group[number] = at
            number += 1
            sectors += (self.end[at] - self.begin[at]) // SECTOR_BYTES
            state[AHEAD] = self.take_next()
        state[GROUP] = number
        state[BEGUN] = 0

    @method
    def must_wait(self, now, sectors, below):
        """Charge sectors to the rate; if that is ahead of time, schedule a wake-up."""
        if self.writeback_percent == 0:
            return False
        state = self.state
        next_ns = state[NEXT_NS] + sectors * SECOND_NS // state[RATE_NOW]
        state[NEXT_NS] = max(min(next_ns, now + AHEAD_NS), now - BEHIND_NS)
        jiffies = (state[NEXT_NS] - now) // JIFFY_NS
        if jiffies <= 0:
            return False
        below.events.push(expiry_ns(now, jiffies * JIFFY_NS), CACHE, WRITE_BACK)
        return True

    # The write-back of one key.

    @method
    def begin_one(self, now, at, below):
        """Read it from the cache device."""
        state = self.state
        i = 0
        while self.flying[i] != FREE:
            i += 1
        self.flying[i] = BEING_READ
        self.flying_at[i] = at
        self.sequence[i] = state[SEQUENCE]
        state[SEQUENCE] += 1
        state[UNDER_WAY] += 1
        length = self.end[at] - self.begin[at]
        below.fast.submit(now, i << BITS | BACK_READ, Op.READ, self.place[at], length, below.events)

    @method
    def read(self, now, number, below):
        """Write it, and those after it that are read already; in order only."""
        self.flying[number] = HAS_BEEN_READ
        i = 0
        while i < UNDER_WAY_MAX:
            is_next = self.sequence[i] == self.state[NEXT_SEQUENCE]
            if self.flying[i] != HAS_BEEN_READ or not is_next:
                i += 1
                continue
            self.state[NEXT_SEQUENCE] += 1
            self.flying[i] = BEING_WRITTEN
            begin = self.begin[self.flying_at[i]]
            length = self.end[self.flying_at[i]] - begin
            tag = i << BITS | BACK_WRITE
            below.slow.submit_background(now, tag, Op.WRITE, begin, length, below.events)
            i = 0

    @method
    def written(self, now, number, below):
        """Mark the parts that are still in their place as clean."""
        state = self.state
        at = self.flying_at[number]
        begin, end = self.begin[at], self.end[at]
        self.flying[number] = FREE
        self.what[at] = IS_DROPPED
        self.clean(now, begin, end, self.place[at], below)
        state[UNDER_WAY] -= 1
        state[WRITTEN_BACK] += end - begin
        if state[STAGE] == DRAINING:
            self.rest(now, below)
        self.run(now, below)

    @method
    def clean(self, now, begin, end, place, below):
        """Mark the dirty keys in a range that lie from `place` on as clean."""
        keys = self.buckets.keys
        key = keys.first_beyond(begin)
        while key != NOTHING and keys.begin[key] < end:
            start, stop = max(begin, keys.begin[key]), min(end, keys.end[key])
            is_there = keys.place[key] - keys.begin[key] == place - begin
            if is_there and keys.is_dirty[key] == 1:
                self.buckets.enter(now, start, stop, place + start - begin, 0, below)
                key = keys.first_beyond(stop)
            else:
                key = keys.order.older[key]

    # The rate.

    @method
    def update_rate(self, now, below):
        """Update the rate; repeated while there is dirty data."""
        state = self.state
        if state[HAS_DIRTY] == 0:
            state[IS_TIMED] = 0
            return
        below.events.push(now + expiry_ns(0, UPDATE_S * SECOND_NS), CACHE, RATE)
        state[IDLE] += 1
        if state[IDLE] >= IDLE_UPDATES and self.buckets.state[GC_RUNNING] == 0:
            state[IS_UNLIMITED] = 1
            state[RATE_NOW] = RATE_UNLIMITED
            return
        if self.wants_lock():
            return
        buckets = self.buckets
        bucket_sectors = buckets.bucket_bytes // SECTOR_BYTES
        dirty = buckets.keys.state[DIRTY_BYTES] // SECTOR_BYTES
        error = dirty - buckets.number * bucket_sectors * self.writeback_percent // 100
        proportional = self.fragmented(truncated(error, P_INVERSE), dirty, bucket_sectors)
        keeps_up = now < state[NEXT_NS] + KEEPS_UP_NS
        if (error < 0 and state[INTEGRAL] > 0) or (error > 0 and keeps_up):
            state[INTEGRAL] += error * UPDATE_S
        rate = proportional + truncated(state[INTEGRAL], I_INVERSE)
        state[RATE_NOW] = max(RATE_MIN, min(rate, RATE_MAX))

    @method
    def fragmented(self, proportional, dirty, bucket_sectors):
        """Return the proportional term, increased if little dirty data holds many buckets."""
        buckets = self.buckets
        in_use = buckets.state[IN_USE]
        if in_use <= FRAGMENT_LOW or dirty == 0:
            return proportional
        held = buckets.number - buckets.state[AVAIL]
        if in_use <= FRAGMENT_MIDDLE:
            factor = in_use - FRAGMENT_LOW
        elif in_use <= FRAGMENT_HIGH:
            factor = 10 * (in_use - FRAGMENT_MIDDLE)
        else:
            factor = 1000 * (in_use - FRAGMENT_HIGH)
        if held * bucket_sectors // dirty <= 3:
            return proportional
        return max(proportional, dirty // held * factor)


@kernel
def truncated(number, divisor):
    """Divide toward zero."""
    return number // divisor if number >= 0 else -(-number // divisor)
