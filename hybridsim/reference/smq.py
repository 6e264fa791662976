"""smq, dm-cache's policy (2.14.4, 2.14.5): what enters, what leaves, what is written back."""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

JIFFY = 4_000_000
LEVELS = 64
WORK_MAX = 4096


class Kind(Enum):
    """What work does with a block."""

    PROMOTION = "promotion"
    DEMOTION = "demotion"
    WRITE_BACK = "write-back"


class Lock(Enum):
    """Whom work keeps out of its block."""

    NOBODY = 0
    WRITES = 1
    EVERYBODY = 2


@dataclass(eq=False)
class Node:
    """What stands in a level of a multiqueue."""

    level: int = 0


@dataclass(eq=False)
class Sentinel(Node):
    """Marks a place in a level."""


@dataclass(eq=False)
class Coarse(Node):
    """A coarse block of the origin, in the hotspot queue."""

    number: int = 0
    hit_in: int = -1  # the tick in which it was hit last


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
    lock: Lock = Lock.NOBODY


class Multiqueue:
    """64 lists of nodes, each from the oldest to the newest."""

    def __init__(self, top_levels: int = 0, in_top: int = 0) -> None:
        self.levels: list[list[Node]] = [[] for _ in range(LEVELS)]
        self.counts = [0] * LEVELS  # without sentinels
        self.targets = [0] * LEVELS
        self.targets_for = 0
        self.top_levels = top_levels
        self.in_top = in_top

    @property
    def size(self) -> int:
        """How many entries there are."""
        return sum(self.counts)

    def append(self, node: Node) -> None:
        """Make a node the newest of its level."""
        self.insert(len(self.levels[node.level]), node)

    def insert(self, place: int, node: Node) -> None:
        """Put a node into its level."""
        self.levels[node.level].insert(place, node)
        self.counts[node.level] += not isinstance(node, Sentinel)

    def remove(self, node: Node) -> None:
        """Take a node out of its level."""
        nodes = self.levels[node.level]
        if nodes[-1] is node:  # redistribution takes from this end
            nodes.pop()
        else:
            nodes.remove(node)
        self.counts[node.level] -= not isinstance(node, Sentinel)

    def move(self, node: Node, level: int) -> None:
        """Make a node the newest of a level."""
        self.remove(node)
        node.level = level
        self.append(node)

    def first(self, level: int) -> Node:
        """The oldest entry of a level that has one."""
        return next(node for node in self.levels[level] if not isinstance(node, Sentinel))

    def last(self, level: int) -> Node:
        """The newest entry of a level that has one."""
        nodes = reversed(self.levels[level])
        return next(node for node in nodes if not isinstance(node, Sentinel))

    def oldest(self, levels: range) -> Node | None:
        """The oldest entry of the lowest of some levels that has any."""
        for level in levels:
            if self.counts[level]:
                return self.first(level)
        return None

    def oldest_of_old(self) -> Node | None:
        """The same among those levels whose oldest node is no sentinel."""
        for nodes in self.levels:
            if nodes and not isinstance(nodes[0], Sentinel):
                return nodes[0]
        return None

    def requeue(self, entry: Node, up: int, marks: tuple[Sentinel, Sentinel] | None = None) -> None:
        """Let an entry rise; the oldest of its new level takes its place."""
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
        """Give each level its share of the entries."""
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
    """Spread a number over levels, the lowest getting what is left over."""
    return [number // levels + (level < number % levels) for level in range(levels)]


class Hotspot:
    """Where in the origin the misses are."""

    def __init__(self, blocks: int, block_bytes: int, origin_bytes: int) -> None:
        self.entries_max = max(blocks // 4, 1024)
        self.each = 16
        while self.each > 1 and self.each * block_bytes * self.entries_max > origin_bytes:
            self.each //= 2
        self.queue = Multiqueue(8, min(self.entries_max // 64, blocks // self.each))
        self.known: dict[int, Coarse] = {}
        self.hits = self.misses = 0
        self.jump = 1
        self.ticks = 0

    @property
    def share(self) -> int:
        """The share of hits, in 256ths."""
        total = self.hits + self.misses
        return 256 * self.hits // total if total else 0

    def touch(self, block: int) -> int:
        """Note a miss; returns the level of its coarse block."""
        number = block // self.each
        entry = self.known.get(number)
        if entry is None:
            self.misses += 1
            entry = Coarse(self.room(), number)
            self.known[number] = entry
            self.queue.append(entry)
            return entry.level
        if entry.level >= 48:
            self.hits += 1
        else:
            self.misses += 1
        self.queue.requeue(entry, 0 if entry.hit_in == self.ticks else self.jump)
        entry.hit_in = self.ticks
        return entry.level

    def room(self) -> int:
        """Make room for one more; returns the level that it begins at."""
        if len(self.known) < self.entries_max:
            return 0
        oldest = self.queue.oldest(range(LEVELS))
        assert isinstance(oldest, Coarse)
        self.queue.remove(oldest)
        del self.known[oldest.number]
        return oldest.level

    def new_period(self) -> None:
        """Level the queue and count anew."""
        self.jump = 4 if self.share < 16 else 2 if self.share < 32 else 1
        self.queue.redistribute()
        self.hits = self.misses = 0


@dataclass
class Answer:
    """What the policy says of a miss."""

    wanted: bool
    promotion: Work | None = None


@dataclass
class Deadlines:
    """In jiffies, when what is done now and then is to be done next."""

    hotspot: int = -1
    cache: int = -1
    write_back: int = 2500


@dataclass
class Pending:
    """Work queued or running."""

    all: set[Work] = field(default_factory=set)
    queued: list[Work] = field(default_factory=list)
    promotions: dict[int, Work] = field(default_factory=dict)  # by block

    @property
    def demotions(self) -> int:
        """How many demotions there are."""
        return sum(work.kind == Kind.DEMOTION for work in self.all)

    @property
    def is_full(self) -> bool:
        """Whether no more work is taken."""
        return len(self.all) >= WORK_MAX


class Smq:
    """The policy: told of hits, misses and the end of work."""

    def __init__(
        self, blocks: int, block_bytes: int, origin_bytes: int, migrates: bool = True
    ) -> None:
        self.blocks = blocks
        self.migrates = migrates
        self.shape = (blocks, block_bytes, origin_bytes)
        self.cached: dict[int, Slot] = {}
        self.free = deque(Slot(number=number) for number in range(blocks))
        self.pending = Pending()
        self.begin(Deadlines())

    def begin(self, due: Deadlines) -> None:
        """Know nothing but which blocks are cached, at which level, and which are dirty."""
        self.hotspot = Hotspot(*self.shape)
        self.clean, self.dirty = Multiqueue(), Multiqueue()
        self.mark = 1
        self.sentinels = [(Sentinel(level), Sentinel(level)) for level in range(LEVELS)]
        for first, second in self.sentinels:
            self.dirty.append(first)
            self.dirty.append(second)
        self.threshold = 64
        self.next = due

    def reload(self, now: int) -> None:
        """Stop and start again at that time, with nothing pending."""
        jiffies = now // JIFFY
        self.begin(Deadlines(jiffies - 1, jiffies - 1, jiffies + 2500))
        for slot in sorted(self.cached.values(), key=lambda each: each.number):
            slot.hit_in_period = False
            (self.dirty if slot.dirty else self.clean).insert(0, slot)
        self.free = deque(sorted(self.free, key=lambda each: each.number))

    def tick(self, now: int) -> None:
        """Let time pass."""
        jiffies = now // JIFFY
        if jiffies > self.next.write_back:
            self.next.write_back = jiffies + 2500
            self.mark = 1 - self.mark
            for level in range(LEVELS):
                self.dirty.move(self.sentinels[level][self.mark], level)
        self.hotspot.ticks += 1
        share = self.hotspot.share
        self.threshold = 48 if share < 16 else 32 if share < 32 else 0
        if jiffies > self.next.hotspot:
            self.next.hotspot = jiffies + 250
            self.hotspot.new_period()
        if jiffies > self.next.cache:
            self.next.cache = jiffies + 15_000
            for slot in [*self.cached.values(), *self.free, *self.promoting()]:
                slot.hit_in_period = False
            self.dirty.redistribute()
            self.clean.redistribute()

    def promoting(self) -> list[Slot]:
        """The slots that are being filled."""
        return [work.slot for work in self.pending.promotions.values()]

    def hit(self, slot: Slot) -> None:
        """Hear that a block in the cache is used."""
        if slot.work is not None or slot.hit_in_period:
            return
        slot.hit_in_period = True
        if slot.dirty:
            marks = self.sentinels[slot.level]
            self.dirty.requeue(slot, 1, (marks[1 - self.mark], marks[self.mark]))
        else:
            self.clean.requeue(slot, 1)

    def miss(self, block: int, is_write: bool, fast: bool) -> Answer:
        """Hear of a miss."""
        level = self.hotspot.touch(block)
        let_in = is_write and fast and len(self.free) > 0
        if not let_in and level < self.threshold:
            return Answer(wanted=False)
        if not self.migrates:
            return Answer(wanted=True)
        if not self.free:
            if self.pending.demotions < self.blocks * 25 // 100:
                self.queue_demotion()
            return Answer(wanted=True)
        if block in self.pending.promotions:
            return Answer(wanted=True)
        if self.pending.is_full:
            self.free.rotate(-1)
            return Answer(wanted=True)
        work = Work(Kind.PROMOTION, block, self.free.popleft())
        self.pending.promotions[block] = work
        self.add(work, queued=not fast)
        return Answer(True, work)

    def add(self, work: Work, queued: bool = True) -> None:
        """Let work be pending."""
        work.slot.work = work
        self.pending.all.add(work)
        if queued:
            self.pending.queued.append(work)

    def queue_demotion(self) -> None:
        """Have a clean block leave, or else be cleaned."""
        slot = self.clean.oldest(range(LEVELS // 2))
        if slot is None:
            self.queue_write_back(self.dirty.oldest_of_old())
        elif not self.pending.is_full:
            assert isinstance(slot, Slot)
            self.clean.remove(slot)
            self.add(Work(Kind.DEMOTION, slot.block, slot))

    def queue_write_back(self, slot: Node | None) -> None:
        """Have a dirty block cleaned."""
        if not isinstance(slot, Slot):
            return
        self.dirty.remove(slot)
        if self.pending.is_full:
            self.dirty.insert(0, slot)
        else:
            self.add(Work(Kind.WRITE_BACK, slot.block, slot))

    def next_work(self, spare: bool) -> Work | None:
        """What to begin now."""
        if spare and not self.pending.queued:
            self.queue_write_back(self.dirty.oldest(range(LEVELS)))
        return self.pending.queued.pop() if self.pending.queued else None

    def ended(self, work: Work) -> None:
        """Hear that work is done."""
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
        """Hear that a slot differs from the origin."""
        slot.dirty = True
        if slot.work is None:
            self.clean.remove(slot)
            self.dirty.append(slot)
