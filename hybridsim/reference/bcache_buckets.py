"""bcache's index, journal and buckets (2.12.1): free lists, age, gc, and what the index costs."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import count, takewhile
from operator import gt, lt
from typing import Any

from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, Kernel, Op, Reason, Reuse
from hybridsim.reference.clock import Alarm, Done, Step, expiry, in_turn, nothing
from hybridsim.reference.device import Part
from hybridsim.reference.policies import mixed
from hybridsim.reference.runs import touched

REGION = 64 * 1024
serials = count()


def power_of_two(number: int) -> int:
    """Return the least power of two that is not below a number."""
    return 1 << max(number - 1, 0).bit_length()


@dataclass(eq=False)
class Key:
    """A range of the slow tier: data in a bucket, or the placeholder of a fill."""

    begin: int
    end: int
    place: int = -1
    dirty: bool = False
    fill: Any = None  # the insert whose placeholder this is
    serial: int = field(default_factory=lambda: next(serials))  # order of entry into its bucket

    @property
    def size(self) -> int:
        """The length in bytes."""
        return self.end - self.begin

    def part(self, begin: int, end: int) -> Key:
        """Return the key of a part of the range."""
        place = self.place if self.fill else self.place + begin - self.begin
        return Key(begin, end, place, self.dirty, self.fill)

    def __lt__(self, other: Key) -> bool:
        return self.begin < other.begin


class Keys:
    """All keys of the index."""

    def __init__(self, bucket_bytes: int, buckets: int) -> None:
        self.bucket_bytes = bucket_bytes
        self.all: list[Key] = []
        self.regions = power_of_two(2 * buckets * bucket_bytes // REGION)
        self.lost: dict[int, tuple[int, Reason]] = {}

    def overlapping(self, begin: int, end: int) -> list[Key]:
        """Return the keys that overlap a range, in order."""
        first = bisect_right(self.all, begin, key=lambda key: key.begin)
        reaching = takewhile(lambda key: key.begin < end, self.all[max(first - 1, 0) :])
        return [key for key in reaching if key.end > begin]

    def erase(self, begin: int, end: int, overwritten: bool = False) -> None:
        """Cut a range out of all keys."""
        for key in self.overlapping(begin, end):
            start, stop = max(begin, key.begin), min(end, key.end)
            if overwritten and not key.fill:
                self.note_lost(start, stop, Reason.OVERWRITTEN)
            self.all.remove(key)
            rest = []
            if key.begin < start:
                rest.append(key.part(key.begin, start))
            if stop < key.end:
                rest.append(key.part(stop, key.end))
            if rest:
                rest[0].serial = key.serial  # a part that is split off behind another is new
            for part in rest:
                insort(self.all, part)

    def enter(self, new: Key) -> None:
        """Insert a key, replacing what it overlaps; merge it with the key before if possible."""
        self.erase(new.begin, new.end)
        at = bisect_right(self.all, new.begin, key=lambda key: key.begin)
        before = self.all[at - 1] if at else None
        if before and before.end == new.begin and self.continues(before, new):
            before.end = new.end
        else:
            insort(self.all, new)

    def continues(self, before: Key, new: Key) -> bool:
        """Whether a key continues the data of the key before it."""
        if before.fill or new.fill or before.dirty != new.dirty:
            return False
        same = before.place // self.bucket_bytes == new.place // self.bucket_bytes
        return same and before.place + before.size == new.place

    def invalidate(self, bucket: int) -> bool:
        """Drop the keys of a bucket; return whether there were any."""
        data = [each for each in self.all if not each.fill]
        gone = [each for each in data if each.place // self.bucket_bytes == bucket]
        gone.sort(key=lambda key: -key.serial)
        for key in gone:
            self.all.remove(key)
            self.note_lost(key.begin, key.end, Reason.EVICTED)
        return bool(gone)

    def note_lost(self, begin: int, end: int, how: Reason) -> None:
        """Record why data were lost."""
        for region in touched(begin, end, REGION):
            self.lost[region % self.regions] = (region, how)

    def why_missing(self, byte: int) -> Reason:
        """Return the reason of a miss that begins at this byte."""
        if self.overlapping(byte, byte + 1):
            return Reason.FILLING
        region, how = self.lost.get(byte // REGION % self.regions, (-1, Reason.COLD))
        return how if region == byte // REGION else Reason.COLD

    def drop_placeholder(self, fill: object) -> None:
        """Remove the remaining keys of a placeholder."""
        self.all = [key for key in self.all if key.fill is not fill]

    @property
    def dirty_bytes(self) -> int:
        """The dirty bytes in total."""
        return sum(key.size for key in self.all if key.dirty)


class Journal(Part[Any, BcacheParameters]):
    """Collects keys; writes them when a request waits, an entry is full or 100 ms have passed."""

    def __init__(self, cache: Any) -> None:
        super().__init__(cache)
        self.begin = self.parameters.bucket_bytes
        self.buckets = min(max(self.parameters.buckets // 128, 2), 256)
        self.cursor = 0
        self.keys = 0
        self.timer = Alarm(self.clock, self.time_is_up)
        self.completing = Alarm(self.clock, self.complete_one)
        self.dirty = self.due = self.under_way = False
        self.allocator_waits: Done | None = None
        self.waiting: list[Done] = []
        self.written: deque[Done] = deque()
        self.count = 0

    def add(self, keys: int, waits: Done | None = None, allocator: bool = False) -> None:
        """Add keys to the journal; `waits` is called when they are on the medium."""
        self.keys += keys
        if waits:
            if allocator:
                self.allocator_waits = waits
            else:
                self.waiting.append(waits)
            self.due = True
        elif not self.dirty:
            self.dirty = True
            self.timer.set(expiry(self.clock.now, 100_000_000))
        self.due |= 240 + 24 * self.keys > 32 * 1024
        in_turn(self.writing())

    def time_is_up(self) -> None:
        """Write the pending keys when the timer expires."""
        self.due |= self.dirty
        in_turn(self.writing())

    def writing(self) -> Iterator[Step]:
        """Write the current entry if it is due, one entry at a time."""
        block, size = self.parameters.block_bytes, self.buckets * self.parameters.bucket_bytes
        while self.due and not self.under_way:
            length = min(-(-(240 + 24 * self.keys) // block) * block, size)
            if self.cursor + length > size:
                self.cursor = 0
            at = self.begin + self.cursor
            self.cursor += length
            allocator, waiting = self.allocator_waits, self.waiting
            self.allocator_waits, self.waiting = None, []
            self.keys = 0
            self.dirty = self.due = False
            self.under_way = True
            self.count += 1
            yield partial(self.fast.submit, Op.WRITE | PREFLUSH | FUA, at, length)
            self.under_way = False
            if allocator:
                allocator()
            if waiting:
                self.completing.set()
                self.written.extend(waiting)

    def complete_one(self) -> None:
        """Complete one waiter."""
        waits = self.written.popleft()
        if self.written:
            self.completing.set()
        waits()


SECTOR = 512
USED_MAX = 8191 * SECTOR
GC_REST = 100_000_000  # ns


Mark = Enum("Mark", "EMPTY CLEAN DIRTY METADATA")  # the state of a bucket as of the last gc


@dataclass(eq=False)
class Bucket:
    """A bucket of the cache device."""

    number: int
    prio: int = 0
    pins: int = 0
    mark: Mark = Mark.EMPTY
    used: int = 0
    generation: int = 0

    @property
    def reusable(self) -> bool:
        """Whether the contents may be discarded."""
        return self.mark in (Mark.EMPTY, Mark.CLEAN) and self.pins == 0


def is_full(buckets: deque[Bucket]) -> bool:
    """Whether a list of free buckets has its maximum length."""
    return len(buckets) == buckets.maxlen


def list_size(wanted: int) -> int:
    """Return the list size that the kernel allocates for a wanted size."""
    return wanted if wanted <= 4 else max(7, power_of_two(wanted + 2) // 2 - 1)


class Best:
    """The buckets of least rank; ties are in the order of the kernel's heap (2.12.1)."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.heap: list[tuple[int, Bucket]] = []

    def offer(self, rank: int, bucket: Bucket) -> None:
        """Insert a bucket, if there is room or a bucket of greater rank to replace."""
        heap = self.heap
        if len(heap) < self.room:
            heap.append((rank, bucket))
            i = len(heap) - 1
            while i > 0 and not rank < heap[(i - 1) // 2][0]:
                heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
                i = (i - 1) // 2
            self.sift(i, lt)
        elif rank < heap[0][0]:
            heap[0] = rank, bucket
            self.sift(0, lt)

    def from_least(self) -> Iterator[Bucket]:
        """Yield all buckets, from the least rank on."""
        heap = self.heap
        for i in reversed(range(len(heap) // 2)):
            self.sift(i, gt)
        while heap:
            top, last = heap[0], heap.pop()
            if heap:
                heap[0] = last
                self.sift(0, gt)
            yield top[1]

    def sift(self, i: int, below: Callable[[int, int], bool]) -> None:
        """Sift an entry down, as long as its rank is `below` one under it."""
        heap = self.heap
        while 2 * i + 1 < len(heap):
            child = 2 * i + 1
            if child + 1 < len(heap) and below(heap[child][0], heap[child + 1][0]):
                child += 1
            if below(heap[child][0], heap[i][0]):
                break
            heap[i], heap[child] = heap[child], heap[i]
            i = child


class Buckets(Part[Any, BcacheParameters]):
    """All buckets, and the allocator."""

    def __init__(self, cache: Any) -> None:
        super().__init__(cache)
        self.size, n = self.parameters.bucket_bytes, self.parameters.buckets
        self.keys = Keys(self.size, n)
        self.all = [Bucket(number) for number in range(n)]
        self.p = -(-3 * n // self.size)
        self.unused = f = max(1, power_of_two(n) // 1024)
        self.journal = Journal(cache)
        self.root = self.journal.buckets + 2
        fresh = iter(self.all)
        metadata = [next(fresh) for _ in range(self.root + 1 + self.p)]
        for bucket in metadata:
            bucket.mark, bucket.prio = Mark.METADATA, 65_535
        self.priorities = metadata[-self.p :]
        self.reserve = [self.hold(next(fresh)) for _ in range(f)]
        sizes = {"prio": self.p, "btree": 8, "none": list_size(f), "incoming": list_size(4 * f)}
        self.lists = {
            name: deque([self.hold(next(fresh)) for _ in range(size)], maxlen=size)
            for name, size in sizes.items()
        }
        self.incoming = self.lists["incoming"]
        self.incoming_written = True
        self.writing_priorities = False
        self.new_priorities: list[Bucket] = []  # being written
        self.avail = n - len(metadata)
        self.rescale = self.min_prio = 0
        self.last = 1  # the next bucket that fifo looks at
        self.draws = 0
        self.to_gc = n * self.size // 16
        self.gc = Alarm(self.clock, lambda: in_turn(self.collecting()))
        self.gc_wanted = self.gc_running = self.changed_since = False
        self.gcs = 0
        self.were_reusable: list[Bucket] = []  # when the gc under way began
        self.entries = self.appends = 0
        self.nodes = 1
        self.invalidations = 0

    @staticmethod
    def hold(bucket: Bucket) -> Bucket:
        """Prepare a bucket for a free list."""
        bucket.prio, bucket.pins = 32_768, 1
        return bucket

    @property
    def in_use(self) -> int:
        """The percentage of buckets that cannot be reused."""
        n = len(self.all)
        return (n - self.avail) * 100 // n

    def of(self, place: int) -> Bucket:
        """Return the bucket of a byte of the cache device."""
        return self.all[place // self.size]

    def draw(self) -> int:
        """Return the next random number."""
        self.draws += 1
        return mixed(mixed(self.parameters.seed) ^ (self.draws - 1))

    # Taking buckets.

    def take_for_data(self) -> Bucket | None:
        """Take a bucket for data, with one pin; None if there is none."""
        bucket = self.take(self.lists["none"], Mark.CLEAN)
        if bucket:
            bucket.prio = 32_768
            self.go_on()
        return bucket

    def take_for_metadata(self, reserve: str) -> Bucket | None:
        """Take a bucket for metadata, or None; does not wake the allocator."""
        bucket = self.take(self.lists["none"] or self.lists[reserve], Mark.METADATA)
        if bucket:
            bucket.prio, bucket.pins = 65_535, 0
        return bucket

    def take(self, source: deque[Bucket], mark: Mark) -> Bucket | None:
        """Take a bucket from a list, if it has one."""
        if not source:
            return None
        bucket = source.popleft()
        self.avail = max(self.avail - 1, 0)
        bucket.used = min(self.size, USED_MAX)
        bucket.mark = mark
        return bucket

    def go_on(self) -> None:
        """Run the allocator."""
        while self.incoming_written and self.incoming:
            targets = [self.lists[name] for name in ("prio", "btree", "none")]
            target = next((one for one in targets if not is_full(one)), None)
            if target is None:
                break
            target.append(self.incoming.popleft())
        self.cache.resume_one()
        if self.incoming_written and self.incoming:
            return
        self.incoming_written = False
        if self.writing_priorities or self.gc_wanted:
            return
        if self.gc_running and self.parameters.kernel < Kernel.LINUX_6_12:
            return
        at_hand = len(self.lists["prio"]) + len(self.lists["none"])
        if self.invalidate() and at_hand >= self.p:
            self.writing_priorities = True
            in_turn(self.write_priorities())
        else:
            self.gc_wanted = True
            self.wake_gc()

    def write_priorities(self) -> Iterator[Step]:
        """Write the priorities into new buckets, one after another."""
        taken = [self.take_for_metadata("prio") for _ in range(self.p)]
        self.new_priorities = [bucket for bucket in taken if bucket]
        for bucket in self.new_priorities:
            yield partial(self.fast.submit, Op.WRITE, bucket.number * self.size, self.size)
        yield lambda then: self.journal.add(0, then, allocator=True)
        self.use_new_priorities()
        self.go_on()

    def use_new_priorities(self) -> None:
        """Free the buckets of the old priorities; the incoming buckets can be used."""
        for old in self.priorities:
            old.mark, old.used = Mark.EMPTY, 0
            self.avail = min(self.avail + 1, len(self.all))
        self.priorities = self.new_priorities
        self.writing_priorities = False
        self.incoming_written = True

    def restart(self, cache: Any) -> None:
        """Start again in another cache, with nothing under way (2.17)."""
        super().__init__(cache)
        if self.writing_priorities:
            self.use_new_priorities()
        self.incoming_written = True
        self.gc = Alarm(self.clock, lambda: in_turn(self.collecting()))
        self.gc_wanted = self.gc_running = False
        self.keys.all = [key for key in self.keys.all if not key.fill]
        listed = [bucket for each in self.lists.values() for bucket in each]
        for bucket in self.all:
            bucket.pins = 0
        for bucket in [*listed, *self.reserve]:
            bucket.pins = 1
        old, self.journal = self.journal, Journal(cache)
        self.journal.cursor, self.journal.count = old.cursor, old.count
        self.recount()
        self.go_on()
        self.wake_gc()

    def invalidate(self) -> bool:
        """Fill the incoming list with victims; return whether it is full."""
        candidates = self.candidates()
        while not is_full(self.incoming) and (bucket := next(candidates, None)):
            if self.can_be_dropped(bucket):
                bucket.prio = 32_768
                bucket.pins += 1
                bucket.generation += 1
                self.invalidations += self.keys.invalidate(bucket.number)
                self.incoming.append(bucket)
        return is_full(self.incoming)

    def candidates(self) -> Iterator[Bucket]:
        """Yield the buckets that may be reused, or not, in the order in which they are tried."""
        n = len(self.all)
        match self.parameters.replacement:
            case Reuse.LRU:
                base = (32_768 - self.min_prio) // 8 - self.min_prio
                best = Best(8 * self.unused)
                for bucket in self.all:
                    if self.can_be_dropped(bucket):
                        best.offer((bucket.prio + base) * (bucket.used // SECTOR), bucket)
                yield from best.from_least()
            case Reuse.FIFO:
                for _ in range(n):
                    at, self.last = self.last, self.last % (n - 1) + 1
                    yield self.all[at]
            case Reuse.RANDOM:
                for _ in range(n // 2):
                    yield self.all[1 + self.draw() % (n - 1)]

    def can_be_dropped(self, bucket: Bucket) -> bool:
        """Whether a bucket may be reused now; while a gc runs, only if it could before."""
        return bucket.reusable and (not self.gc_running or bucket in self.were_reusable)

    # Age and gc.

    def age(self, length: int) -> None:
        """Age the buckets by a request that is not bypassed."""
        self.rescale -= length // SECTOR
        if self.rescale >= 0:
            return
        self.rescale += len(self.all) * (self.size // SECTOR) // 1024
        aged = [one for one in self.all if one.prio not in (0, 65_535) and one.pins == 0]
        for bucket in aged:
            bucket.prio -= 1
        self.min_prio = min((bucket.prio for bucket in aged), default=self.min_prio)

    def wake_gc(self) -> None:
        """Schedule a gc if one is due."""
        if not self.gc_running and (self.to_gc < 0 or self.gc_wanted):
            in_vain = self.to_gc >= 0 and not self.changed_since
            self.gc.set(self.clock.now + (GC_REST if in_vain else 0))

    def force_gc(self) -> None:
        """Start a gc, unless one is under way."""
        if not self.gc_running:
            self.to_gc = -1
            self.wake_gc()

    def collecting(self) -> Iterator[Step]:
        """Take time if there are many nodes, then update the buckets from all keys."""
        self.gc_running = True
        self.changed_since = False
        self.to_gc = len(self.all) * self.size // 16
        rests = self.nodes // max(self.parameters.gc_nodes, self.nodes // 100)
        if self.nodes > 1 and rests:
            self.were_reusable = [bucket for bucket in self.all if bucket.reusable]
            first = expiry(self.clock.now, GC_REST)
            yield partial(self.clock.at, first + (rests - 1) * expiry(0, GC_REST))
        self.recount()
        self.gc_wanted = self.gc_running = False
        self.gcs += 1
        self.go_on()
        self.wake_gc()
        self.cache.end_standstill()

    def recount(self) -> None:
        """Update the buckets from all keys."""
        live_in: Counter[int] = Counter()
        for key in self.keys.all:
            live_in[key.place // self.size] += 0 if key.fill else key.size
        dirty_in = {key.place // self.size for key in self.keys.all if key.dirty}
        for bucket in self.all:
            if bucket.mark == Mark.METADATA:
                continue
            live = live_in[bucket.number]
            if bucket.pins:
                bucket.used = min(bucket.used + live, USED_MAX)
            else:
                bucket.used = min(live, USED_MAX)
                bucket.mark = Mark.CLEAN if live else Mark.EMPTY
            if bucket.number in dirty_in:
                bucket.mark = Mark.DIRTY
        self.avail = sum(bucket.reusable for bucket in self.all)

    # Entries.

    def enter(self, key: Key) -> None:
        """Insert a key into the index."""
        self.keys.enter(key)
        self.entered()

    def erase(self, begin: int, end: int) -> None:
        """Erase the keys of a range that a request overwrites."""
        self.keys.erase(begin, end, overwritten=True)
        self.entered()

    def capacity(self, node_bytes: int) -> int:
        """Return the number of keys beyond which a node splits: 4/5 of a lone one is keys."""
        if self.nodes == 1:
            return node_bytes * 4 // 5 // 24
        return self.nodes * (node_bytes * 6 // 10 // 24)

    def entered(self) -> None:
        """Account for an index entry; write the index nodes that it makes due."""
        self.entries += 1
        if self.entries % 180 == 0:
            at = self.root * self.size + self.appends * 4096 % self.size
            self.appends += 1
            self.fast.submit(Op.WRITE | FUA, at, 4096, nothing)
        node = min(self.size, 256 * 1024)
        while self.capacity(node) < len(self.keys.all):
            bucket = self.take_for_metadata("btree")
            if bucket is None:
                break
            self.nodes += 1
            length = node * 4 // 5 // self.parameters.block_bytes * self.parameters.block_bytes
            self.fast.submit(Op.WRITE | FUA, bucket.number * self.size, length, nothing)
            self.go_on()
        self.changed_since = True
