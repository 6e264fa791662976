"""smq, dm-cache's policy (2.14.4, 2.14.5): promotions, demotions and write-backs."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from hybridsim.foundation.codes import Restart
from hybridsim.reference.clock import JIFFY

LEVELS = 64
WORK_MAX = 4096


Kind = Enum("Kind", "PROMOTION DEMOTION WRITE_BACK")  # of work on a block
Lock = Enum("Lock", "NONE WRITES ALL")  # which bios work locks out of its block


@dataclass(eq=False)
class Node:
    """An element of a multiqueue level."""

    level: int = 0


@dataclass(eq=False)
class Sentinel(Node):
    """Marks a place in a level."""


@dataclass(eq=False)
class Coarse(Node):
    """A coarse block of the origin, in the hotspot queue."""

    number: int = 0
    hit_in: int = -1  # tick of the last hit


@dataclass(eq=False)
class Slot(Node):
    """A slot of the cache."""

    number: int = 0
    block: int = -1
    dirty: bool = False
    hit_in_period: bool = False
    work: "Work | None" = None


@dataclass(eq=False)
class Work:
    """A promotion, demotion or write-back that is pending."""

    kind: Kind
    block: int
    slot: Slot
    lock: Lock = Lock.NONE
    is_locked_out: bool = False  # it waits for the end of a commit to change the metadata


class Multiqueue:
    """64 levels of nodes, each from the oldest to the newest."""

    def __init__(self, top_levels: int = 0, in_top: int = 0) -> None:
        self.levels: list[list[Node]] = [[] for _ in range(LEVELS)]
        self.counts = [0] * LEVELS  # without sentinels
        self.targets = [0] * LEVELS
        self.targets_for = 0
        self.top_levels = top_levels
        self.in_top = in_top

    @property
    def size(self) -> int:
        """The number of entries, without sentinels."""
        return sum(self.counts)

    def append(self, node: Node) -> None:
        """Append a node to its level."""
        self.insert(len(self.levels[node.level]), node)

    def insert(self, place: int, node: Node) -> None:
        """Insert a node into its level."""
        self.levels[node.level].insert(place, node)
        self.counts[node.level] += not isinstance(node, Sentinel)

    def remove(self, node: Node) -> None:
        """Remove a node from its level."""
        nodes = self.levels[node.level]
        if nodes[-1] is node:  # redistribution takes from this end
            nodes.pop()
        else:
            nodes.remove(node)
        self.counts[node.level] -= not isinstance(node, Sentinel)

    def move(self, node: Node, level: int) -> None:
        """Move a node to the end of a level."""
        self.remove(node)
        node.level = level
        self.append(node)

    def first(self, level: int) -> Node:
        """Return the oldest entry of a level that has one."""
        return next(node for node in self.levels[level] if not isinstance(node, Sentinel))

    def last(self, level: int) -> Node:
        """Return the newest entry of a level that has one."""
        nodes = reversed(self.levels[level])
        return next(node for node in nodes if not isinstance(node, Sentinel))

    def oldest(self, levels: range) -> Node | None:
        """Return the oldest entry of the lowest non-empty level, or None."""
        return next((self.first(level) for level in levels if self.counts[level]), None)

    def oldest_of_old(self) -> Node | None:
        """Return the oldest node of the lowest level where it is not a sentinel, or None."""
        oldest = (nodes[0] for nodes in self.levels if nodes)
        return next((node for node in oldest if not isinstance(node, Sentinel)), None)

    def requeue(self, entry: Node, up: int, marks: tuple[Sentinel, Sentinel] | None = None) -> None:
        """Promote an entry by `up` levels; the oldest entry of the new level takes its place."""
        old, new = entry.level, min(LEVELS - 1, entry.level + up)
        if new > old and self.counts[new]:
            other = self.first(new)
            passed = self.levels[new].index(other)
            self.remove(other)
            other.level = old
            if marks and passed < 2:
                self.insert(self.levels[old].index(marks[passed]), other)
            else:
                self.append(other)
        self.move(entry, new)

    def redistribute(self) -> None:
        """Move entries between levels until each has its target number."""
        if self.size != self.targets_for:
            self.targets_for = self.size
            low = LEVELS - self.top_levels
            if self.top_levels:
                self.targets[low:] = spread(self.in_top, self.top_levels)
            self.targets[:low] = spread(max(0, self.size - self.in_top), low)
        for level in range(LEVELS - 1):
            while self.counts[level] < self.targets[level]:
                entry = self.oldest(range(level + 1, LEVELS))
                if entry is None:
                    break
                self.move(entry, level)
            while self.counts[level] > self.targets[level]:
                self.move(self.last(level), level + 1)


def spread(number: int, levels: int) -> list[int]:
    """Distribute a number evenly over levels; the remainder goes to the lowest ones."""
    return [number // levels + (level < number % levels) for level in range(levels)]


class Hotspot:
    """The hotspot queue: misses by coarse block of the origin."""

    def __init__(self, blocks: int, block_bytes: int, origin_bytes: int) -> None:
        self.entries_max = max(blocks // 4, 1024)
        self.each = 16
        while self.each > 1 and self.each * block_bytes * self.entries_max > origin_bytes:
            self.each //= 2
        self.queue = Multiqueue(8, min(self.entries_max // 64, blocks // self.each))
        self.by_number: dict[int, Coarse] = {}
        self.hits = self.misses = 0
        self.jump = 1
        self.ticks = 0

    @property
    def share(self) -> int:
        """The hit ratio in 256ths."""
        total = self.hits + self.misses
        return 256 * self.hits // total if total else 0

    def touch(self, block: int) -> int:
        """Record a miss; return the level of its coarse block."""
        number = block // self.each
        entry = self.by_number.get(number)
        is_hit = entry is not None and entry.level >= 48
        self.hits += is_hit
        self.misses += not is_hit
        if entry is None:
            entry = self.by_number[number] = Coarse(self.room(), number)
            self.queue.append(entry)
        else:
            self.queue.requeue(entry, 0 if entry.hit_in == self.ticks else self.jump)
            entry.hit_in = self.ticks
        return entry.level

    def room(self) -> int:
        """Make room for an entry; return its initial level."""
        if len(self.by_number) < self.entries_max:
            return 0
        oldest = self.queue.oldest(range(LEVELS))
        assert isinstance(oldest, Coarse)
        self.queue.remove(oldest)
        del self.by_number[oldest.number]
        return oldest.level

    def new_period(self) -> None:
        """Redistribute the queue and reset the counts."""
        self.jump = 4 if self.share < 16 else 2 if self.share < 32 else 1
        self.queue.redistribute()
        self.hits = self.misses = 0


@dataclass
class Pending:
    """Work queued or running."""

    all: set[Work] = field(default_factory=set)
    queued: list[Work] = field(default_factory=list)
    promotions: dict[int, Work] = field(default_factory=dict)  # by block

    @property
    def demotions(self) -> int:
        """The number of pending demotions."""
        return sum(work.kind == Kind.DEMOTION for work in self.all)

    @property
    def is_full(self) -> bool:
        """Whether no more work is taken."""
        return len(self.all) >= WORK_MAX


class Smq:
    """The policy, notified of hits, misses and the end of work."""

    def __init__(
        self, blocks: int, block_bytes: int, origin_bytes: int, migrates: bool = True
    ) -> None:
        self.blocks = blocks
        self.migrates = migrates
        self.cleans = False  # whether the policy is `cleaner`
        self.shape = (blocks, block_bytes, origin_bytes)
        self.cached: dict[int, Slot] = {}
        self.free = deque(Slot(number=number) for number in range(blocks))
        self.pending = Pending()
        self.begin(0)

    def begin(self, jiffies: int) -> None:
        """Reset everything except the cached blocks, their levels and dirty bits."""
        self.hotspot = Hotspot(*self.shape)
        self.clean, self.dirty = Multiqueue(), Multiqueue()
        self.mark = 1
        self.sentinels = [(Sentinel(level), Sentinel(level)) for level in range(LEVELS)]
        for first, second in self.sentinels:
            self.dirty.append(first)
            self.dirty.append(second)
        self.threshold = 64
        # The next times of the periodic actions.
        self.next_hotspot = self.next_cache = jiffies - 1
        self.next_write_back = jiffies + 2499

    def restart(self, now: int, how: Restart) -> None:
        """Simulate a stop of the cache with work pending, and a restart at `now` (2.17)."""
        self.cleans = how == Restart.CLEANER
        free = [*self.free, *self.promoting()]
        self.pending = Pending()
        self.begin(now // JIFFY)
        for slot in [*self.cached.values(), *free]:
            slot.work, slot.hit_in_period = None, False
        for slot in sorted(self.cached.values(), key=lambda each: each.number):
            slot.dirty |= how == Restart.UNCLEAN
            if how != Restart.CLEAN:
                slot.level = (slot.number * 0x61C88647 % 2**32 >> 23) % LEVELS
            (self.dirty if slot.dirty else self.clean).insert(0, slot)
        self.free = deque(sorted(free, key=lambda each: each.number))

    def tick(self, now: int) -> None:
        """Run the periodic actions that are due."""
        jiffies = now // JIFFY
        if jiffies > self.next_write_back:
            self.next_write_back = jiffies + 2500
            self.mark = 1 - self.mark
            for level in range(LEVELS):
                self.dirty.move(self.sentinels[level][self.mark], level)
        self.hotspot.ticks += 1
        share = self.hotspot.share
        self.threshold = 48 if share < 16 else 32 if share < 32 else 0
        if jiffies > self.next_hotspot:
            self.next_hotspot = jiffies + 250
            self.hotspot.new_period()
        if jiffies > self.next_cache:
            self.next_cache = jiffies + 15_000
            for slot in [*self.cached.values(), *self.free, *self.promoting()]:
                slot.hit_in_period = False
            self.dirty.redistribute()
            self.clean.redistribute()

    def promoting(self) -> list[Slot]:
        """Return the slots that are being filled."""
        return [work.slot for work in self.pending.promotions.values()]

    def hit(self, slot: Slot) -> None:
        """Record a hit."""
        if slot.work is not None or slot.hit_in_period:
            return
        slot.hit_in_period = True
        if slot.dirty:
            marks = self.sentinels[slot.level]
            self.dirty.requeue(slot, 1, (marks[1 - self.mark], marks[self.mark]))
        else:
            self.clean.requeue(slot, 1)

    def miss(self, block: int, is_write: bool, fast: bool) -> tuple[bool, Work | None]:
        """Record a miss; return whether the policy wants the block, and the promotion if it begins.

        If no slot is free, a demotion is queued instead.
        """
        level = self.hotspot.touch(block)
        admitted_at_once = is_write and fast and len(self.free) > 0
        if not admitted_at_once and level < self.threshold:
            return False, None
        if not self.migrates:
            return True, None
        if not self.free:
            if self.pending.demotions < self.blocks * 25 // 100:
                self.queue_demotion()
            return True, None
        if block in self.pending.promotions:
            return True, None
        if self.pending.is_full:
            self.free.rotate(-1)
            return True, None
        work = Work(Kind.PROMOTION, block, self.free.popleft())
        self.pending.promotions[block] = work
        self.add(work, queued=not fast)
        return True, work

    def add(self, work: Work, queued: bool = True) -> None:
        """Add pending work."""
        work.slot.work = work
        self.pending.all.add(work)
        if queued:
            self.pending.queued.append(work)

    def queue_demotion(self) -> None:
        """Queue the demotion of a clean block, or else the write-back of an old dirty one."""
        slot = self.clean.oldest(range(LEVELS // 2))
        if slot is None:
            self.queue_write_back(self.dirty.oldest_of_old())
        elif not self.pending.is_full:
            assert isinstance(slot, Slot)
            self.clean.remove(slot)
            self.add(Work(Kind.DEMOTION, slot.block, slot))

    def queue_write_back(self, slot: Node | None) -> None:
        """Queue the write-back of a dirty block."""
        if not isinstance(slot, Slot):
            return
        self.dirty.remove(slot)
        if self.pending.is_full:
            self.dirty.insert(0, slot)
        else:
            self.add(Work(Kind.WRITE_BACK, slot.block, slot))

    def next_work(self, spare: bool) -> Work | None:
        """Return the work to begin now, or None."""
        if not self.pending.queued:
            if spare:
                self.queue_write_back(self.dirty.oldest(range(LEVELS)))
            elif self.cleans:
                self.queue_write_back(self.dirty.oldest_of_old())
        return self.pending.queued.pop() if self.pending.queued else None

    def ended(self, work: Work) -> None:
        """Record the end of work."""
        slot = work.slot
        self.pending.all.remove(work)
        slot.work = None
        slot.dirty = False
        if work.kind == Kind.DEMOTION:
            del self.cached[slot.block]
            self.free.append(slot)
            return
        if work.kind == Kind.PROMOTION:
            del self.pending.promotions[work.block]
            slot.block = work.block
            slot.level = LEVELS - 1
            self.cached[slot.block] = slot
        self.clean.append(slot)

    def dirtied(self, slot: Slot) -> None:
        """Mark a slot dirty."""
        slot.dirty = True
        if slot.work is None:
            self.clean.remove(slot)
            self.dirty.append(slot)
