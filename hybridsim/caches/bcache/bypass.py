"""Requests that bypass bcache: long sequential streams, and more when the cache device is slow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.buckets import SECTOR_BYTES, Draws
from hybridsim.foundation.arrays import Ints, filled, longer
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import Reason
from hybridsim.jit import method, state_machine
from hybridsim.jit.jiffies import JIFFY_NS
from hybridsim.jit.lists import NOTHING, Chains, Index

RECENT = 128  # streams
EXPIRY_JIFFIES = 1250
BYTES_MAX = 1 << 32
CONGESTED_MAX = 1024

SLOWNESS, STAMP = range(2)


@state_machine
class Bypass(NamedTuple):
    """The most recent streams, stream lengths by task, and the slowness of the cache device."""

    sequential_cutoff_bytes: int
    congested_read_us: int  # congested_read_threshold_us
    congested_write_us: int
    draws: Draws
    end: Ints  # by stream
    run: Ints  # bytes
    expiry: Ints  # jiffies
    used: Chains  # streams in order of use
    tasks: Index
    sequential: Ints  # by task: bytes of its current stream
    average: Ints
    state: Ints  # [SLOWNESS, STAMP]

    @classmethod
    def new(cls, parameters: BcacheParameters | Bypass, draws: Draws, room: int) -> Bypass:
        """Return an empty table, with room for `room` tasks (a power of two)."""
        sequential, average = np.zeros((2, room), np.int64)
        return filled(
            cls,
            RECENT,
            parameters,
            draws=draws,
            end=np.full(RECENT, NOTHING, np.int64),
            used=Chains.of_all(RECENT),
            tasks=Index.new(room),
            sequential=sequential,
            average=average,
            state=np.zeros(2, np.int64),
        )

    def grown(self, room: int) -> Bypass:
        """Return the same with room for `room` tasks (a power of two)."""
        return self._replace(
            tasks=self.tasks.grown(room),
            sequential=longer(self.sequential, room),
            average=longer(self.average, room),
        )

    @method
    def why(self, now, task, offset, length):
        """Return why a cacheable request bypasses the cache, or NONE; update its stream."""
        congested = self.congestion(now)
        if congested == 0 and self.sequential_cutoff_bytes == 0:
            return Reason.NONE
        number = self.tasks.find(task)
        if number == NOTHING:
            number = self.tasks.add(task)
        jiffies = now // JIFFY_NS
        stream = self.find(offset, jiffies)
        if stream == NOTHING:
            stream = self.used.oldest[0]
            self.run[stream] = 0
            total = self.average[number] * 7 + self.sequential[number]
            self.average[number] = total % BYTES_MAX // 8
        if self.run[stream] + length < BYTES_MAX:
            self.run[stream] += length
        self.end[stream] = offset + length
        self.expiry[stream] = jiffies + EXPIRY_JIFFIES
        self.sequential[number] = self.run[stream]
        self.used.renew(0, stream)
        sectors = max(self.run[stream], self.average[number]) // SECTOR_BYTES
        if (
            self.sequential_cutoff_bytes > 0
            and sectors >= self.sequential_cutoff_bytes // SECTOR_BYTES
        ):
            return Reason.SEQUENTIAL
        return Reason.CONGESTED if congested > 0 and sectors >= congested else Reason.NONE

    @method
    def find(self, offset, jiffies):
        """Return the stream that ends there and has not expired, the newest of several; or -1."""
        match = NOTHING
        number = 0
        for i in range(RECENT):
            if self.end[i] == offset and jiffies < self.expiry[i]:
                match = i
                number += 1
        if number > 1:
            match = self.used.newest[0]
            while self.end[match] != offset or jiffies >= self.expiry[match]:
                match = self.used.older[match]
        return match

    # Congestion.

    @method
    def on_completion(self, now, issued, is_write):
        """Record how long a request to the cache device took."""
        threshold = self.congested_write_us if is_write else self.congested_read_us
        if threshold == 0:
            return
        state = self.state
        took = (now - issued) >> 10
        if took > threshold:
            state[STAMP] = now >> 10
            state[SLOWNESS] -= min(took >> 10, CONGESTED_MAX + state[SLOWNESS])
        elif state[SLOWNESS] < 0:
            state[SLOWNESS] += 1

    @method
    def congestion(self, now):
        """Return the sectors from which on requests bypass a slow device; 0: no request does."""
        if self.congested_read_us == 0 and self.congested_write_us == 0:
            return 0
        state = self.state
        limit = ((now >> 10) - state[STAMP]) // 1024 + state[SLOWNESS]
        if limit >= 0:
            return 0
        limit += CONGESTED_MAX
        if limit > 0:
            limit = ((64 + limit % 64) << (limit // 64)) >> 6
        for _ in range(2):
            bits = self.draws.draw() & 0xFFFF
            while bits > 0:
                limit -= bits & 1
                bits >>= 1
        return max(limit, 1)
