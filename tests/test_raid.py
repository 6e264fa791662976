"""Arrays submit the member I/Os of RAID theory: healthy, degraded and rebuilding."""

from collections import Counter

import numpy as np
import pytest
from engine import simulate
from scenarios import Scenario
from test_reference import NO_CACHE, SSD

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import FUA, PREFLUSH, Level, Op, Replay, Spread
from hybridsim.foundation.machine_parameters import ArrayParameters
from hybridsim.jit.events import SLOW, SLOW_TIMER, Events
from hybridsim.reference import (
    HddParameters,
    RebuildParameters,
    Request,
    SourceParameters,
    TierParameters,
)
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario as Site
from hybridsim.scenario import building
from hybridsim.storage.raid import LINE, Tier

KIB = 1024
CHUNK = 64 * KIB
SECOND = 10**9
READ, WRITE, FLUSH, DISCARD = Op.READ, Op.WRITE, Op.FLUSH, Op.DISCARD


class Recorder:
    """A device bank that records its requests and completes them on demand."""

    def __init__(self, rows: int = 16) -> None:
        self.capacity_bytes = rows * CHUNK
        self.log: list[tuple[Op, int, int, int]] = []  # op with flags, member, offset, length
        self.waiting: list[int] = []

    def submit(self, now, member, tag, op, offset, length, kind, events):
        self.log.append((op, member, offset, length))
        self.waiting.append(tag)

    def complete(self, now, tag, kind, events):
        return tag

    def members(self, op: Op) -> list[int]:
        return sorted(member for done, member, _, _ in self.log if done & 7 == op)


class Array:
    """A tier over a recorder."""

    def __init__(self, level, members, failed=(), rows=16, rotates=True, **more) -> None:
        self.device = Recorder(rows)
        form = ArrayParameters(level, members, CHUNK, failed=list(failed), **more)
        self.tier = Tier.new(SLOW, form, self.device, rotates=rotates)
        self.events = Events.new(1000)
        self.done: list[int] = []

    def submit(self, tag, op, offset, length):
        self.tier.submit(0, tag, op, offset, length, self.events)

    def complete(self, now=0):
        """Complete the oldest device request, and everything scheduled for this instant."""
        tag = self.device.waiting.pop(0)
        self.done.append(self.tier.complete(now, tag, self.events))
        heap = self.events.heap
        while not heap.is_empty() and heap.time_ns[0] <= now:
            what = int(heap.what[0])
            heap.pop()
            assert what & 7 == SLOW_TIMER
            self.done.append(self.tier.wake(now, what >> 3, self.events))

    def run(self, op, offset, length):
        """Run one request; return the members read and those written."""
        self.submit(7, op, offset, length)
        while self.device.waiting:
            self.complete()
        assert [tag for tag in self.done if tag >= 0] == [7]
        return self.device.members(READ), self.device.members(WRITE)


SMALL, LARGE = (0, 4 * KIB), (0, CHUNK)
PAIR = Level.RAID1, 2
MIRRORS = Level.RAID10, 4
FIVE = Level.RAID5, 5  # row 0: data on 0 1 2 3, P on 4
SIX = Level.RAID6, 8  # row 0: P on 7, Q on 0, data on 1 to 6

# (level, members), failed, op, (offset, length): members read, members written.
THEORY = [
    # Mirrors: one read, and a write for each copy.
    (PAIR, [], READ, SMALL, [0], []),
    (PAIR, [], WRITE, SMALL, [], [0, 1]),
    (PAIR, [0], READ, SMALL, [1], []),
    (PAIR, [0], WRITE, SMALL, [], [1]),
    ((Level.RAID1, 3), [], WRITE, LARGE, [], [0, 1, 2]),
    (MIRRORS, [], READ, SMALL, [0], []),
    (MIRRORS, [], WRITE, SMALL, [], [0, 1]),
    (MIRRORS, [], WRITE, (CHUNK, CHUNK), [], [2, 3]),
    (MIRRORS, [], WRITE, (0, 2 * CHUNK), [], [0, 1, 2, 3]),
    (MIRRORS, [1], WRITE, SMALL, [], [0]),
    (MIRRORS, [1], READ, (0, 2 * CHUNK), [0, 2], []),
    # No redundancy: one for one.
    ((Level.STRIPE, 4), [], WRITE, (CHUNK, 4 * KIB), [], [1]),
    ((Level.LINEAR, 4), [], WRITE, (16 * CHUNK, 4 * KIB), [], [1]),
    # RAID-5: a small write reads old data and parity and writes both: 4.
    (FIVE, [], READ, SMALL, [0], []),
    (FIVE, [], WRITE, SMALL, [0, 4], [0, 4]),
    (FIVE, [], WRITE, LARGE, [0, 4], [0, 4]),
    (FIVE, [], WRITE, (0, 2 * CHUNK), [2, 3], [0, 1, 4]),
    (FIVE, [], WRITE, (0, 3 * CHUNK), [3], [0, 1, 2, 4]),
    (FIVE, [], WRITE, (0, 4 * CHUNK), [], [0, 1, 2, 3, 4]),
    (
        (Level.RAID5, 4),
        [],
        WRITE,
        SMALL,
        [1, 2],
        [0, 3],
    ),  # a tie: read the others, which are as many
    # Degraded: a lost chunk is read from all others; a write reads what determines the parity.
    (FIVE, [0], READ, SMALL, [1, 2, 3, 4], []),
    (FIVE, [0], READ, (CHUNK, 4 * KIB), [1], []),
    (FIVE, [0], READ, (0, 4 * CHUNK), [1, 2, 3, 4], []),  # each block once
    (FIVE, [0], WRITE, SMALL, [1, 2, 3], [4]),
    (FIVE, [0], WRITE, (CHUNK, 4 * KIB), [1, 4], [1, 4]),
    (FIVE, [0], WRITE, (CHUNK, 3 * CHUNK), [1, 2, 3, 4], [1, 2, 3, 4]),
    (FIVE, [0], WRITE, (0, 4 * CHUNK), [], [1, 2, 3, 4]),
    (FIVE, [4], WRITE, SMALL, [1, 2, 3], [0]),
    (FIVE, [4], READ, SMALL, [0], []),
    # RAID-6: old data, P and Q: 6.
    (SIX, [], READ, SMALL, [1], []),
    (SIX, [], WRITE, SMALL, [0, 1, 7], [0, 1, 7]),
    (SIX, [], WRITE, (0, 2 * CHUNK), [3, 4, 5, 6], [0, 1, 2, 7]),
    (SIX, [], WRITE, (0, 6 * CHUNK), [], list(range(8))),
    ((Level.RAID6, 6), [], WRITE, SMALL, [2, 3, 4], [0, 1, 5]),  # a tie
    (SIX, [1], READ, SMALL, [0, 2, 3, 4, 5, 6, 7], []),
    (SIX, [1], WRITE, SMALL, [2, 3, 4, 5, 6], [0, 7]),
    (SIX, [2], WRITE, SMALL, [0, 1, 7], [0, 1, 7]),
    (SIX, [0], WRITE, SMALL, [2, 3, 4, 5, 6], [1, 7]),
    (SIX, [1, 2], READ, SMALL, [0, 3, 4, 5, 6, 7], []),
    (SIX, [1, 2], WRITE, SMALL, [0, 3, 4, 5, 6, 7], [0, 7]),  # neither way: all remaining members
    (SIX, [2, 3], WRITE, SMALL, [0, 1, 7], [0, 1, 7]),
    (SIX, [0, 7], WRITE, SMALL, [2, 3, 4, 5, 6], [1]),
    (SIX, [0, 2], WRITE, SMALL, [1, 3, 4, 5, 6, 7], [1, 7]),
]


@pytest.mark.parametrize(("array", "failed", "op", "where", "reads", "writes"), THEORY)
def test_each_request_reads_and_writes_the_members_of_theory(
    array, failed, op, where, reads, writes
):
    assert Array(*array, failed).run(op, *where) == (reads, writes)


@pytest.mark.parametrize(
    ("members", "rmw_level", "reads"),
    [(5, 0, [1, 2, 3]), (5, 1, [0, 4]), (4, 1, [1, 2]), (4, 2, [0, 3]), (3, 2, [1])],
)
def test_rmw_level_selects_whether_old_parity_is_read(members, rmw_level, reads):
    assert Array(Level.RAID5, members, rmw_level=rmw_level).run(WRITE, *SMALL)[0] == reads


def layout(level, members, spread=Spread.NEAR, rows=4):
    """Return the chunk or parity at each position, one line per row."""
    array = Array(level, members, spread=spread, rows=rows)
    places = [["-"] * members for _ in range(rows)]
    for chunk in range(array.tier.capacity_bytes // CHUNK):
        array.device.log.clear()
        array.submit(chunk, WRITE, chunk * CHUNK, CHUNK)
        while array.device.waiting:
            array.complete()
        for op, member, offset, _ in array.device.log:
            if op == WRITE:
                before = places[offset // CHUNK][member]
                places[offset // CHUNK][member] = str(chunk) if before == "-" else "P"
    return [" ".join(row) for row in places]


@pytest.mark.parametrize(
    ("level", "members", "spread", "expected"),
    [
        (Level.STRIPE, 3, Spread.NEAR, ["0 1 2", "3 4 5", "6 7 8", "9 10 11"]),
        (Level.LINEAR, 2, Spread.NEAR, ["0 4", "1 5", "2 6", "3 7"]),
        (Level.RAID1, 2, Spread.NEAR, ["0 0", "1 1", "2 2", "3 3"]),
        (Level.RAID10, 4, Spread.NEAR, ["0 0 1 1", "2 2 3 3", "4 4 5 5", "6 6 7 7"]),
        (Level.RAID10, 3, Spread.NEAR, ["0 0 1", "1 2 2", "3 3 4", "4 5 5"]),
        (Level.RAID10, 4, Spread.FAR, ["0 1 2 3", "4 5 6 7", "3 0 1 2", "7 4 5 6"]),
        (Level.RAID10, 4, Spread.OFFSET, ["0 1 2 3", "3 0 1 2", "4 5 6 7", "7 4 5 6"]),
        (Level.RAID5, 4, Spread.NEAR, ["0 1 2 P", "4 5 P 3", "8 P 6 7", "P 9 10 11"]),
        (Level.RAID6, 5, Spread.NEAR, ["P 0 1 2 P", "3 4 5 P P", "7 8 P P 6", "11 P P 9 10"]),
    ],
)
def test_chunks_lie_as_in_linux_md(level, members, spread, expected):
    assert layout(level, members, spread) == expected


class TestBarriers:
    def test_a_flush_goes_to_every_present_member(self):
        array = Array(Level.RAID6, 5, [2])
        array.submit(1, FLUSH, 0, 0)
        assert array.device.log == [(FLUSH, member, 0, 0) for member in (0, 1, 3, 4)]
        for _ in range(4):
            assert 1 not in array.done
            array.complete()
        assert array.done[-1] == 1

    @pytest.mark.parametrize("level", [Level.STRIPE, Level.RAID1, Level.RAID10, Level.RAID5])
    def test_a_write_with_preflush_waits_for_a_flush_of_all_members(self, level):
        array = Array(level, 4)
        array.submit(1, WRITE | PREFLUSH | FUA, 0, 4 * KIB)
        assert array.device.log == [(FLUSH, member, 0, 0) for member in range(4)]
        for _ in range(3):
            array.complete()
        assert len(array.device.log) == 4
        while array.device.waiting:
            array.complete()
        assert array.done[-1] == 1
        assert {op for op, *_ in array.device.log[4:]} <= {READ, WRITE | FUA}

    def test_fua_is_set_on_data_and_parity_writes(self):
        array = Array(*FIVE)
        array.run(WRITE | FUA, *SMALL)
        assert [(op, member) for op, member, _, _ in array.device.log] == [
            (READ, 0), (READ, 4), (WRITE | FUA, 0), (WRITE | FUA, 4),
        ]  # fmt: skip


class TestStripes:
    def test_a_second_write_to_a_stripe_waits_for_the_first_one(self):
        array = Array(*FIVE)
        array.submit(1, WRITE, 0, 4 * KIB)
        array.submit(2, WRITE, 512, 512)
        array.submit(3, WRITE, 4 * KIB, 4 * KIB)  # the next stripe
        assert len(array.device.log) == 4  # two reads each for the first and the third
        while array.device.waiting:
            array.complete()
        assert [tag for tag in array.done if tag > 0] == [1, 3, 2]

    def test_sequential_writes_merge_into_a_full_stripe(self):
        array = Array(*FIVE)
        array.submit(1, WRITE, 0, CHUNK)  # reads 0 and 4
        array.submit(2, WRITE, CHUNK, 3 * CHUNK)  # the rest of the row
        while array.device.waiting:
            array.complete()
        assert array.device.members(READ) == [0, 4]
        assert array.device.members(WRITE) == [0, 1, 2, 3, 4]
        assert [tag for tag in array.done if tag > 0] == [1, 2]

    def test_waiting_writes_of_a_stripe_are_written_together(self):
        array = Array(*FIVE)
        for tag, chunk in enumerate((0, 0, 1, 2, 3)):
            array.submit(tag + 1, WRITE, chunk * CHUNK, CHUNK)
        while array.device.waiting:
            array.complete()
        assert array.device.members(READ) == [0, 4]  # of the first only
        assert Counter(array.device.members(WRITE)) == {0: 2, 4: 2, 1: 1, 2: 1, 3: 1}
        assert sorted(tag for tag in array.done if tag > 0) == [1, 2, 3, 4, 5]


class TestMirrors:
    def reads(self, array, *places):
        for tag, place in enumerate(places):
            array.submit(tag, READ, place * CHUNK, CHUNK)
        return [member for _, member, _, _ in array.device.log]

    def test_reads_go_to_an_idle_member_and_then_to_the_nearest_head(self):
        # both heads are at 0; 9: the idle member; then 2 is nearer to the first, 8 to the other
        assert self.reads(Array(*PAIR), 0, 9, 2, 8) == [0, 1, 0, 1]

    def test_a_sequential_stream_stays_on_its_member(self):
        assert self.reads(Array(*PAIR), 5, 6, 7, 1, 8, 2) == [0, 0, 0, 1, 0, 1]

    def test_ssds_read_from_the_member_with_the_shortest_queue(self):
        array = Array(*PAIR, rotates=False)
        assert self.reads(array, 5, 9, 3, 12, 1) == [0, 1, 0, 1, 0]

    def test_far_copies_are_read_at_the_lowest_address(self):
        assert self.reads(Array(*MIRRORS, spread=Spread.FAR), 0, 0, 1, 1) == [0, 0, 1, 1]


def rebuilding(level, members, member, pace=(10**6, 10**8), **more):
    """Return an array with a member being rebuilt, after the pacer's check at time 0."""
    array = Array(level, members, rebuild=RebuildParameters(member, *pace), **more)
    array.tier.start(array.events)
    return array


def run_rebuild(array, until_ns=SECOND):
    """Run until no event is left, with a millisecond per device request."""
    now = 0
    heap = array.events.heap
    while array.device.waiting or not heap.is_empty():
        if array.device.waiting:
            now += 1_000_000
            array.complete(now)
        else:
            now = max(now, int(heap.time_ns[0]))
            number = int(heap.what[0]) >> 3
            heap.pop()
            array.tier.wake(now, number, array.events)
        assert now < until_ns
    return now


def test_members_count_busy_time_and_time_of_each_request():
    array = Array(Level.STRIPE, 2)
    array.tier.submit(10, 1, READ, 0, 4096, array.events)
    array.tier.submit(20, 2, READ, 4096, 4096, array.events)
    assert array.tier.totals(25) == {"requests_ns": 15 + 5, "in_use_ns": 15}
    array.complete(30)
    array.complete(50)
    array.tier.submit(100, 3, READ, CHUNK, 4096, array.events)  # the other member
    array.tier.submit(100, 4, READ, 0, 4096, array.events)
    array.complete(101)
    array.complete(104)
    assert array.tier.totals(200) == {"requests_ns": 20 + 30 + 1 + 4, "in_use_ns": 40 + 1 + 4}


class TestRebuild:
    @pytest.mark.parametrize(
        ("level", "members", "member", "sources"),
        [
            (Level.RAID1, 3, 0, 1),
            (Level.RAID5, 4, 2, 3),
            (Level.RAID6, 5, 1, 4),
            (Level.RAID10, 4, 3, 1),
            (Level.RAID10, 5, 3, 1),
        ],
    )
    def test_each_piece_is_read_and_written_once(self, level, members, member, sources):
        array = rebuilding(level, members, member)
        run_rebuild(array)
        pieces = [row * CHUNK for row in range(16)]
        written = [(m, at, size) for op, m, at, size in array.device.log if op == WRITE]
        assert sorted(written) == [(member, at, CHUNK) for at in pieces]
        read = Counter(m for op, m, _, _ in array.device.log if op == READ)
        assert member not in read
        assert sum(read.values()) == 16 * sources
        if sources > 1:
            assert set(read.values()) == {16}
        totals = array.tier.totals(0)
        assert totals["rebuilt_bytes"] == totals["rebuild_bytes"] == 16 * CHUNK
        assert array.tier.can_read(member, 16 * CHUNK)

    @pytest.mark.parametrize("spread", [Spread.FAR, Spread.OFFSET])
    def test_a_mirror_is_rebuilt_from_the_member_with_the_copy(self, spread):
        array = rebuilding(*MIRRORS, 1, spread=spread)
        run_rebuild(array)
        before = Array(*MIRRORS, spread=spread)
        at = {}  # (member, offset): chunk
        for chunk in range(32):
            before.run(WRITE, chunk * CHUNK, CHUNK)
            at |= {(m, offset): chunk for _, m, offset, _ in before.device.log}
            before.device.log.clear()
            before.done.clear()
        reads = [at[m, offset] for op, m, offset, _ in array.device.log if op == READ]
        own = [chunk for (m, _), chunk in sorted(at.items()) if m == 1]
        assert sorted(reads) == sorted(own)

    def test_reads_are_normal_below_the_rebuild_position_and_degraded_above(self):
        array = Array(*FIVE, rebuild=RebuildParameters(0, 1, 1))
        array.tier.rebuild.state[LINE] = 2 * CHUNK  # rows 0 and 1 are rebuilt
        array.submit(1, READ, 0, 4 * KIB)
        assert array.device.members(READ) == [0]
        row_2 = 2 * 4 * CHUNK  # P on 2, data on 3 4 0 1
        array.submit(2, READ, row_2 + 2 * CHUNK, 4 * KIB)
        assert array.device.members(READ) == [0, 1, 2, 3, 4]

    def test_a_write_goes_to_the_member_being_rebuilt(self):
        array = Array(*FIVE, rebuild=RebuildParameters(0, 1, 1))
        array.submit(1, WRITE, *SMALL)
        for _ in range(3):
            array.complete()
        assert (array.device.members(READ), array.device.members(WRITE)) == ([1, 2, 3], [0, 4])
        mirrors = Array(*PAIR, rebuild=RebuildParameters(0, 1, 1))
        mirrors.submit(1, WRITE, *SMALL)
        assert mirrors.device.members(WRITE) == [0, 1]

    @pytest.mark.parametrize("rate", [10**7, 5 * 10**7])
    def test_an_idle_array_is_rebuilt_at_the_maximum_rate(self, rate):
        rows = 64
        array = rebuilding(Level.RAID1, 2, 1, (1000, rate), rows=rows)
        end = run_rebuild_by_time(array, service_ns=100_000)
        begun = (rows - 1) * (CHUNK * SECOND // rate)  # the last piece
        assert end == begun + 2 * 100_000  # read and written


def run_rebuild_by_time(array, service_ns):
    """Run with `service_ns` per device request; return the end of the rebuild."""
    now, due = 0, []
    heap = array.events.heap
    while array.tier.rebuild.is_under_way():
        while array.device.waiting:
            due.append((now + service_ns, array.device.waiting.pop(0)))
        timer = int(heap.time_ns[0]) if not heap.is_empty() else 1 << 62
        if due and due[0][0] <= timer:
            now, tag = due.pop(0)
            array.tier.complete(now, tag, array.events)
        else:
            now = timer
            number = int(heap.what[0]) >> 3
            heap.pop()
            array.tier.wake(now, number, array.events)
    return now


def disk(**changes):
    """Return a small disk: 100 tracks of 512 KiB, 8 ms per revolution."""
    track = 512 * KIB
    values = {
        "rev_ns": 8_000_000, "zone_byte": [0], "zone_track": [0], "zone_track_bytes": [track],
        "zone_angle_ns": [0], "zone_skew_ns": [800_000], "zone_cylinder_skew_ns": [0],
        "surfaces": 1, "seek_shift": 0, "move_ns": [0] + [500_000 + 50_000 * d for d in range(101)],
        "write_move_ns": [0] + [500_000 + 50_000 * d for d in range(101)],
        "read_ns": 100_000, "hit_ns": 100_000, "write_ns": 100_000, "write_hit_ns": 100_000,
        "window": 16,
        "age_limit_ns": 200_000_000, "read_ahead_bytes": 256 * KIB, "read_behind_bytes": 256 * KIB,
        "capacity_bytes": 100 * track,
    }  # fmt: skip
    return HddParameters(**values | changes)


def under_load(rebuild, count, depth):
    """Run random reads at a queue depth on a RAID-5 being rebuilt; return the machine."""
    device = disk()
    random = np.random.default_rng(3)
    places = random.integers(0, 3 * device.capacity_bytes // 4096, count) * 4096
    slow = TierParameters(Level.RAID5, 4, CHUNK, device, 3 * device.capacity_bytes, rebuild=rebuild)
    requests = [Request(0, Op.READ, int(place), 4096) for place in places]
    closed = SourceParameters(Replay.CLOSED, depth=depth)
    fast = TierParameters(Level.STRIPE, 1, CHUNK, SSD, SSD.capacity_bytes)
    facts, finished = simulate(Scenario(requests, closed, NO_CACHE, slow, fast), interpreted=True)
    return finished, facts[-1].done_ns


def test_the_minimum_rebuild_rate_holds_under_a_continuous_load():
    minimum = 2 * 10**6
    finished, end_ns = under_load(RebuildParameters(1, minimum, 10**9), 1200, 32)
    rebuilt = finished.below.slow.totals(0)["rebuilt_bytes"]
    assert rebuilt / (end_ns / SECOND) >= 0.95 * minimum
    calm, calm_ns = under_load(RebuildParameters(1, 1000, 10**9), 1200, 32)
    assert calm.below.slow.totals(0)["rebuilt_bytes"] < rebuilt
    assert calm_ns < end_ns  # the load must yield


def test_a_simulation_ends_with_its_last_request():
    finished, end_ns = under_load(RebuildParameters(1, 1000, 10**6), 20, 4)
    assert finished.below.slow.rebuild.is_under_way()
    assert end_ns < SECOND


@pytest.mark.parametrize(("kind", "members"), [("raid1", 2), ("raid10", 4)])
@pytest.mark.parametrize(("write_cache", "remaining"), [("off", 0.85), ("drive", 0.65)])
def test_a_rebuild_leaves_most_of_the_random_write_rate(kind, members, write_cache, remaining):
    """Its 1 MB/s takes 5 to 10 % of the disks' time; two long seeks a piece, if caches are full."""

    def random_writes_per_s(lost):
        text = f'''
            [backing]
            kind = "{kind}"
            members = {members}
            capacity = "1TB"
            write_cache = "{write_cache}"
            {lost}
        '''
        site = Site.loads(text).with_options(depth=32)
        machine = building.machine(site, "closed", 1, 0)
        pages = machine.below.slow.capacity_bytes // 4096
        at = np.random.default_rng(4).integers(0, pages, 2400) * 4096
        none = np.full(len(at), -1)
        ops = np.full(len(at), WRITE, np.uint8)
        run = Run(machine)
        run.feed(Batch(none, ops, at, np.full(len(at), 4096), none, none, np.array([0, 1, 0])))
        while run.advance(loops.NEVER)[0] != loops.FINISHED:
            pass
        return len(at) * SECOND / run.now_ns

    beside = random_writes_per_s("rebuild = {member = 1}")
    assert remaining < beside / random_writes_per_s("failed = [1]") < 1
