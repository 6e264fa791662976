"""Random calls on dm-cache's policy smq as a kernel's own source has it, and the same on models.

`build` compiles the policy from the source that a user has, with `kernel_smq/stubs.h`; nothing
of that source is kept.  `Plan` says which random calls `smq_run` makes; each with its answer is a
row, and from time to time a row has a digest of the whole state.  The models are asked row by row.
What a target in the simulator never does (work that fails, blocks that are invalidated) is put
together here of the models' parts.
"""

import ctypes
import subprocess
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from random import Random

import numpy as np

from hybridsim.caches.dmcache import smq as compiled
from hybridsim.caches.dmcache.smq import (
    DEMOTE,
    DEMOTING,
    HITS,
    JUMP,
    MISSES,
    PROMOTE,
    QUEUED,
    THRESHOLD,
    TICKS,
    WRITE_BACK,
)
from hybridsim.foundation.codes import Restart
from hybridsim.jit import kernel, loop
from hybridsim.reference import smq as plain

HERE = Path(__file__).parent / "kernel_smq"
HEADERS = ["hash", "jiffies", "module", "mutex", "vmalloc", "math64", "device-mapper", "slab"]
CALLS = (
    *("tick", "lookup", "work", "done", "set_dirty", "clear_dirty"),
    *("invalidate", "allow", "load", "state"),
)
(TICK, LOOKUP, ASK, DONE, SET_DIRTY, CLEAR_DIRTY, INVALIDATE, ALLOW, LOAD, STATE) = range(10)
NOT_WANTED, WANTED, PROMOTION = -1, -2, -10
NOTHING = -1
PENDING = slice(8, 11)  # of a state: promotions, demotions, write-backs
JIFFY_NS = 4_000_000
OFFSET, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
MARKS = (-2, -3)


def build(source: Path, folder: Path) -> Path:
    """Compile the policy of that kernel tree; return the library."""
    for header in HEADERS:
        (folder / "linux").mkdir(exist_ok=True)
        (folder / "linux" / f"{header}.h").write_text("")
    library = folder / "smq.so"
    include = [f"-I{folder}", f"-I{source / 'drivers' / 'md'}"]
    options = ["-O2", "-shared", "-fPIC", *include, "-o", str(library), str(HERE / "driver.c")]
    subprocess.run(["cc", *options], check=True)
    return library


@dataclass
class Plan:
    """Which calls are made; fields as in the struct of `driver.c`."""

    seed: int
    rows: int
    blocks: int
    block_sectors: int
    origin_sectors: int
    weights: tuple[int, ...]
    range: int
    skew: int
    sequential: int
    cached: int
    writes: int
    fast: int
    idle: int
    fails: int
    dirties: int
    filled: int
    pace: int

    def numbers(self) -> np.ndarray:
        fields = astuple(self)
        return np.array([*fields[:5], *fields[5], *fields[6:]], np.int64)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.blocks, self.block_sectors * 512, self.origin_sectors * 512

    @property
    def state_room(self) -> int:
        return 5000 + 10 * self.blocks + 2 * max(self.blocks // 4, 1024) + 10_000


SIZES = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100, 255, 256, 257, 640, 1000, 1023, 1024]
LARGE = [2048, 4095, 4096, 4097, 5000, 6000, 8191, 10_000, 16_384]
FULL_LIST = [4096, 4100, 5000, 6000, 6001, 8192, 10_000, 16_384]


def plan(seed: int) -> Plan:
    """Return a random plan: one in ten large, one in 25 with the list of work full."""
    random = Random(seed)
    kind = random.random()
    is_full = kind < 0.04
    is_large = kind < 0.14
    blocks = random.choice(FULL_LIST if is_full else LARGE if is_large else SIZES)
    block_sectors = random.choice([64, 128, 128, 512, 2048])
    times = random.choice([1, 1.5, 2, 4, 30, 1000])
    reach = max(2, int(blocks * random.choice([1, 1.2, 2, 4, 16, 64])))
    origin = max(int(blocks * times), reach) * block_sectors
    few, many = (0, 0, 0, 1, 5), (50, 200, 500)
    weights = [
        random.choice([20, 100, 300]),
        1000,
        random.choice([5, 50, 300, 600]),
        random.choice([0, 10] if is_full else [20, 100, 300, 600]),
        random.choice([0, 10, 100]),
        random.choice([0, 0, 10]),
        random.choice([0, 0, 10, 100]),
        random.choice(few),
        random.choice([0, 0, 0, 1]),
    ]
    calls = [9000, 14_000, 20_000] if is_full else [12_000] if is_large else [1000, 2000, 5000]
    filled = random.choice([0, 0, blocks // 4, blocks])
    return Plan(
        seed=seed,
        rows=random.choice(calls) + 2 * filled,
        blocks=blocks,
        block_sectors=block_sectors,
        origin_sectors=origin,
        weights=tuple(weights),
        range=reach,
        skew=random.choice([0, 0, 1, 3, 8]),
        sequential=random.choice([0, 0, *many]),
        cached=random.choice([0, 100, 500]),
        writes=random.choice([0, 200, 500, 1000]),
        fast=random.choice([0, *many, 1000] if not is_full else [0, 500, 1000]),
        idle=random.choice([0, 300, 1000]),
        fails=random.choice([0, 0, 0, 50, 300]),
        dirties=random.choice([0, 500, 1000]),
        filled=filled,
        pace=random.randrange(3),
    )


class Kernel:
    """The compiled policy."""

    def __init__(self, library: Path) -> None:
        self.run = ctypes.CDLL(str(library)).smq_run
        self.run.restype = ctypes.c_int64

    def rows(self, plan: Plan, state: np.ndarray | None = None) -> np.ndarray:
        """Return rows of call, a, b and answer; `state` is filled with the last state."""
        rows = np.zeros((plan.rows, 4), np.int64)
        if state is None:
            state = np.zeros(plan.state_room, np.int64)
        numbers = plan.numbers()  # has to live until the call is over
        arrays = (numbers, rows, state)
        count = self.run(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        assert count <= plan.rows
        return rows[:count]


def parts(rows: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield begin and end of the rows between those that replace the model (ALLOW, LOAD)."""
    begin = 0
    for at in [*np.flatnonzero(np.isin(rows[:, 0], (ALLOW, LOAD))), len(rows)]:
        yield begin, int(at)
        begin = int(at) + 1


# The engine.


@kernel
def put_queue(queue, kind, hit_epoch, epoch, number, to, at):
    """Write the entries of a queue, level by level."""
    for level in range(compiled.LEVELS):
        to[at] = queue.target[level]
        at += 1
        node = queue.lists.oldest[level]
        while node != NOTHING:
            if node >= queue.entries:
                to[at] = -2 - (node - queue.entries) % 2
            elif kind == 1:
                to[at] = number[node]
                to[at + 1] = 1 if hit_epoch[node] == epoch else 0
                at += 1
            else:
                to[at] = node
            at += 1
            node = queue.lists.newer[node]
        to[at] = -1
        at += 1
    return at


@kernel
def put_state(smq, is_cached, to):
    """Write the state of the engine's policy as `driver.c` does; return its length."""
    hotspot, state, work = smq.hotspot, smq.state, smq.work
    to[0] = hotspot.state[HITS]
    to[1] = hotspot.state[MISSES]
    to[2] = hotspot.state[JUMP]
    to[3] = hotspot.state[THRESHOLD]
    to[4] = state[compiled.NEXT_HOTSPOT]
    to[5] = state[compiled.NEXT_CACHE]
    to[6] = state[compiled.NEXT_WRITE_BACK]
    to[7] = state[compiled.MARK]
    to[8] = to[10] = 0
    to[9] = work.state[DEMOTING]
    for slot in range(len(is_cached)):
        if smq.item[slot] != NOTHING:
            if work.kind[smq.item[slot]] == PROMOTE:
                to[8] += 1
            elif work.kind[smq.item[slot]] == WRITE_BACK:
                to[10] += 1
    at = 11
    item = work.state[QUEUED]
    while item != NOTHING:
        to[at] = work.block[item]
        to[at + 1] = work.kind[item]
        at += 2
        item = work.following[item]
    to[at] = -1
    at += 1
    blocks = len(smq.free)
    for place in range(state[compiled.FREE_SLOTS]):
        to[at] = smq.free[(state[compiled.FIRST_FREE] + place) % blocks]
        at += 1
    to[at] = -1
    at += 1
    for slot in range(blocks):
        to[at] = 1 if smq.hit_epoch[slot] == state[compiled.EPOCH] else 0
        at += 1
        if is_cached[slot]:
            to[at] = smq.table.number[slot]
            to[at + 1] = smq.clean.level[slot]
            to[at + 2] = smq.is_dirty[slot]
            at += 3
    at = put_queue(smq.clean, 0, smq.hit_epoch, 0, smq.table.number, to, at)
    at = put_queue(smq.dirty, 0, smq.hit_epoch, 0, smq.table.number, to, at)
    hit_epoch, epoch = hotspot.hit_epoch, hotspot.state[TICKS]
    return put_queue(hotspot.queue, 1, hit_epoch, epoch, hotspot.table.number, to, at)


@kernel
def put_back(smq, slot):
    """Make a slot whose work has failed an entry again, dirty or clean."""
    smq.item[slot] = NOTHING
    if smq.is_dirty[slot]:
        smq.dirty.push(slot)
    else:
        smq.clean.push(slot)


@kernel
def end_work(smq, item, success, is_overwrite, is_cached):
    """End an item of work."""
    work = smq.work
    kind, slot = work.kind[item], work.slot[item]
    if kind == PROMOTE:
        if success:
            smq.promoted(slot, work.block[item])
            is_cached[slot] = 1
            if is_overwrite:
                smq.set_dirty(slot)
        else:
            smq.item[slot] = NOTHING
            smq.give_slot(slot)
    elif kind == DEMOTE and success:
        smq.demoted(slot)
        is_cached[slot] = 0
    elif success:
        smq.written_back(slot)
    else:
        put_back(smq, slot)
    work.release(item)


@kernel
def lookup(smq, block, write, fast, item_of):
    """Look a block up; return the answer as `driver.c` records it."""
    slot = smq.table.find(block)
    if slot != NOTHING:
        smq.hit(slot)
        return slot
    is_pending = item_of[block] != NOTHING
    item = smq.miss(block, write, fast, is_pending)
    if item < 0:
        return WANTED if item == compiled.WANTED and not fast else NOT_WANTED
    item_of[block] = item
    return PROMOTION - smq.work.slot[item] if fast else WANTED


@loop
def replay(smq, rows, begin, end, item_of, is_cached, state):
    """Ask the engine's policy; return the first row with another answer, or -1."""
    for at in range(begin, end):
        call, a, b, answer = rows[at, 0], rows[at, 1], rows[at, 2], rows[at, 3]
        if call == TICK:
            smq.tick(a * JIFFY_NS)
        elif call == LOOKUP:
            if lookup(smq, a, b & 1 == 1, b & 2 == 2, item_of) != answer:
                return at
        elif call == ASK:
            item = smq.next_work(a == 1)
            if item == NOTHING:
                if answer != NOTHING:
                    return at
            else:
                item_of[smq.work.block[item]] = item
                if smq.work.block[item] != b:
                    return at
                if smq.work.slot[item] * 4 + smq.work.kind[item] != answer:
                    return at
        elif call == DONE:
            item = item_of[a]
            item_of[a] = NOTHING
            end_work(smq, item, b == 1, answer == 1, is_cached)
        elif call == SET_DIRTY:
            smq.set_dirty(a)
        elif call == CLEAR_DIRTY:
            if smq.item[a] == NOTHING:
                smq.dirty.remove(a)
                smq.clean.push(a)
            smq.is_dirty[a] = 0
        elif call == INVALIDATE:
            if smq.is_dirty[a]:
                smq.dirty.remove(a)
            else:
                smq.clean.remove(a)
            smq.demoted(a)
            is_cached[a] = 0
        else:
            length = put_state(smq, is_cached, state)
            hashed = OFFSET
            for place in range(length):
                hashed = (hashed ^ np.uint64(state[place])) * PRIME
            if length != a or np.int64(hashed) != answer:
                return at
    return -1


class Engine:
    """The engine's policy."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.smq = compiled.Smq.new(*plan.shape)
        self.is_cached = np.zeros(plan.blocks, np.uint8)
        self.item_of = np.full(plan.range + 1, NOTHING, np.int32)
        self.state = np.zeros(plan.state_room, np.int64)

    def first_difference(self, rows: np.ndarray) -> int:
        """Return the number of the first row with another answer, or -1."""
        for begin, end in parts(rows):
            arrays = (self.item_of, self.is_cached, self.state)
            at = replay(self.smq, rows, begin, end, *arrays)
            if at >= 0:
                return int(at)
            if end < len(rows):
                self.replace(*rows[end, :3].tolist())
        return -1

    def replace(self, call: int, a: int, b: int) -> None:
        """Load the table anew, or allow migrations or not."""
        if call == ALLOW:
            self.smq = self.smq._replace(migrates=a == 1)
            return
        cleans = b & 4 == 4
        loaded = self.smq.loaded(a, has_hints=b & 1 == 1, all_dirty=b & 2 == 2, cleans=cleans)
        self.smq = loaded._replace(migrates=not cleans)
        self.item_of[:] = NOTHING


# The reference.


class Reference:
    """The reference's policy."""

    def __init__(self, plan: Plan) -> None:
        self.smq = plain.Smq(*plan.shape)
        self.slots = list(self.smq.free)
        self.running: dict[int, plain.Work] = {}

    def first_difference(self, rows: np.ndarray) -> int:
        """Return the number of the first row with another answer, or -1."""
        for at, (call, a, b, answer) in enumerate(rows.tolist()):
            asked = getattr(self, CALLS[call])(a, b, answer)
            if asked is not None and asked != answer:
                return at
        return -1

    def tick(self, a: int, b: int, answer: int) -> None:
        self.smq.tick(a * JIFFY_NS)

    def lookup(self, block: int, b: int, answer: int) -> int:
        write, fast = b & 1 == 1, b & 2 == 2
        slot = self.smq.cached.get(block)
        if slot is not None:
            self.smq.hit(slot)
            return slot.number
        is_wanted, promotion = self.smq.miss(block, write, fast)
        if promotion and fast:
            self.running[block] = promotion
            return PROMOTION - promotion.slot.number
        return WANTED if is_wanted and not fast else NOT_WANTED

    def work(self, idle: int, block: int, answer: int) -> int:
        work = self.smq.next_work(idle == 1)
        if work is None:
            return -1
        self.running[work.block] = work
        kind = list(plain.Kind).index(work.kind)
        return work.slot.number * 4 + kind if work.block == block else -3

    def done(self, block: int, success: int, is_overwrite: int) -> None:
        work, smq = self.running.pop(block), self.smq
        slot = work.slot
        if success:
            smq.ended(work)
            if is_overwrite:
                smq.dirtied(slot)
            return
        smq.pending.all.remove(work)
        slot.work = None
        if work.kind == plain.Kind.PROMOTION:
            del smq.pending.promotions[block]
            smq.free.append(slot)
        else:
            (smq.dirty if slot.dirty else smq.clean).append(slot)

    def set_dirty(self, number: int, b: int, answer: int) -> None:
        self.smq.dirtied(self.slots[number])

    def clear_dirty(self, number: int, b: int, answer: int) -> None:
        slot = self.slots[number]
        slot.dirty = False
        if slot.work is None:
            self.smq.dirty.remove(slot)
            self.smq.clean.append(slot)

    def invalidate(self, number: int, b: int, answer: int) -> None:
        slot = self.slots[number]
        (self.smq.dirty if slot.dirty else self.smq.clean).remove(slot)
        slot.dirty = False
        del self.smq.cached[slot.block]
        self.smq.free.append(slot)

    def allow(self, a: int, b: int, answer: int) -> None:
        self.smq.migrates = a == 1

    def load(self, jiffies: int, how: int, answer: int) -> None:
        if how & 2:
            for slot in self.smq.cached.values():
                slot.dirty = True
        without_hints = Restart.UNCLEAN if how & 2 else Restart.CLEANER
        self.smq.restart(jiffies * JIFFY_NS, Restart.CLEAN if how & 1 else without_hints)
        self.smq.cleans = how & 4 == 4
        self.smq.migrates = not self.smq.cleans
        self.running.clear()

    def state(self, length: int, b: int, answer: int) -> int:
        """Return the digest of the state."""
        state = self.numbers()
        if len(state) != length:
            return answer + 1
        hashed = int(OFFSET)
        for number in state:
            hashed = (hashed ^ (number % 2**64)) * int(PRIME) % 2**64
        return hashed - 2**64 if hashed >= 2**63 else hashed

    def numbers(self) -> list[int]:
        smq = self.smq
        kinds = [work.kind for work in smq.pending.all]
        numbers = [smq.hotspot.hits, smq.hotspot.misses, smq.hotspot.jump, smq.threshold]
        numbers += [smq.next_hotspot, smq.next_cache, smq.next_write_back, smq.mark]
        numbers += [kinds.count(kind) for kind in plain.Kind]
        for work in reversed(smq.pending.queued):
            numbers += [work.block, list(plain.Kind).index(work.kind)]
        numbers += [-1, *(slot.number for slot in smq.free), -1]
        for slot in self.slots:
            numbers.append(int(slot.hit_in_period))
            if smq.cached.get(slot.block) is slot:
                numbers += [slot.block, slot.level, int(slot.dirty)]
        for queue in (smq.clean, smq.dirty, smq.hotspot.queue):
            for level, nodes in enumerate(queue.levels):
                numbers.append(queue.targets[level])
                for node in nodes:
                    numbers += self.node(node)
                numbers.append(-1)
        return numbers

    def node(self, node: plain.Node) -> list[int]:
        if isinstance(node, plain.Sentinel):
            return [MARKS[self.smq.sentinels[node.level].index(node)]]
        if isinstance(node, plain.Coarse):
            return [node.number, int(node.hit_in == self.smq.hotspot.ticks)]
        assert isinstance(node, plain.Slot)
        return [node.number]
