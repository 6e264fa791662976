"""The derived parameters, put into the formulas of DESIGN.md 2.7, give the datasheet back."""

import heapq
import random
from statistics import mean

import pytest

from hybridsim.foundation.machine_parameters import SsdParameters
from hybridsim.storage import catalog
from hybridsim.storage.devices.ssd_timing import timing
from hybridsim.storage.drives import SolidState

SSDS = catalog.names("ssd")


def level(unit: int) -> int:
    """Return 0, 1 or 3, as the unit's number is scattered."""
    return [0, 1, 3][unit % 2**31 * 1_327_217_885 % 2**31 // 65_536 % 3]


def drive(name: str, **changes: object) -> SolidState:
    rows = {key: row.value for key, row in catalog.load(name).rows.items()}
    return SolidState.model_validate({"kind": "ssd", **rows, **changes})


class Ssd:
    """DESIGN.md 2.7, implemented literally."""

    def __init__(self, timing: SsdParameters) -> None:
        self.t = timing
        self.controller_free = self.link_free = self.pipe_free = 0
        self.read_free = [0] * timing.dies
        self.write_free = [0] * timing.dies
        self.units = self.requests = self.owed = self.in_slc = self.last = 0
        self.erased = timing.erased_units
        self.unfolded = 0
        self.ends: list[int] = []  # of streams, the first to be replaced in front

    def submit(self, now: int, write: bool, offset: int, length: int) -> int:
        t = self.t
        start = max(now, self.controller_free)
        self.controller_free = start + (t.write_interval_ns if write else t.interval_ns)
        begin = start + t.command_ns
        self.link_free = max(self.link_free, begin) + self.wire(length)
        units = range(offset // t.unit_bytes, -(-(offset + length) // t.unit_bytes))
        if write:
            pipe_ns = length * 10**9 // t.pipe_bytes_per_s
            self.pipe_free = max(self.pipe_free, begin) + pipe_ns
            return self.write(offset, length)
        return max(self.link_free, *(self.read(unit, begin) for unit in units))

    def read(self, unit: int, begin: int) -> int:
        sense = self.t.read_ns + self.t.step_ns * level(unit)
        return self.sense(unit % self.t.dies, sense, begin) + self.wire(self.t.unit_bytes)

    def sense(self, die: int, sense: int, begin: int) -> int:
        t = max(begin, self.read_free[die])
        left = self.write_free[die] - t
        if left > 0:
            self.write_free[die] += sense
            if self.read_free[die] < begin:
                period = self.program_ns() * self.t.program_units
                left = (left - 1) % period + 1
                if left > self.t.suspend_ns and left <= period - self.t.load_ns:
                    left = self.t.suspend_ns
                    self.write_free[die] += left
                t += left
        self.read_free[die] = t + sense
        return self.read_free[die]

    def write(self, offset: int, length: int) -> int:
        t = self.t
        buffered = max(self.link_free, self.pipe_free) + t.write_ns
        idle = buffered - self.last - t.slc_idle_ns
        self.last = buffered
        if idle > 0:
            folded = min(idle * t.slc_units_per_s // 10**9, self.in_slc)
            self.in_slc -= folded
            self.erased = max(self.erased - folded, 0)
        entry, end = t.map_units * t.unit_bytes, offset + length
        follows = offset in self.ends
        first = -(-offset // entry) if follows and t.map_units > 1 else offset // entry
        if follows:
            self.ends[self.ends.index(offset)] = end
        else:
            self.ends = [*self.ends, end][-8:]
        free = [buffered]
        units = (-(-end // entry) - first) * t.map_units
        if t.load_ns > 0:
            self.write_whole(units, t.is_by_stream and follows, buffered, free)
            return max(buffered, max(free) - t.buffer_ns)
        for _ in range(units):
            program_ns = self.program_ns()
            self.erased -= self.is_full() and self.erased > 0
            self.unfolded -= self.is_full() and self.unfolded > 0
            if not self.is_full():
                self.in_slc, self.unfolded = self.in_slc + 1, t.folding_units
            free.append(self.work(self.units // t.program_units, buffered, program_ns))
            self.units += 1
        scatter_ns = t.native_scatter_ns if self.is_full() else t.scatter_ns
        if scatter_ns and not (t.is_by_stream and follows):
            free.append(self.work(self.requests, buffered, scatter_ns))
            self.requests += 1
        return max(buffered, max(free) - t.buffer_ns)

    def write_whole(self, units: int, is_free: bool, buffered: int, free: list[int]) -> None:
        t = self.t
        program_ns = t.program_ns * t.program_units
        for unit in range(self.units, self.units + units):
            is_last = (unit + 1) % t.program_units == 0
            free.append(self.work(unit // t.program_units, buffered, program_ns * is_last))
        self.units += units
        self.owed += 0 if is_free else t.scatter_ns
        while self.owed >= program_ns + t.collect_ns:
            self.owed -= program_ns + t.collect_ns
            self.sense(self.requests % t.dies, t.collect_ns, buffered)
            self.requests += 1
            free.append(self.work(self.units // t.program_units, buffered, program_ns))
            self.units += t.program_units

    def program_ns(self) -> int:
        t = self.t
        beyond_ns = t.folding_program_ns if self.unfolded else t.native_program_ns
        if t.folded_program_ns and not self.erased:
            beyond_ns = t.folded_program_ns
        return beyond_ns if self.is_full() else t.program_ns

    def is_full(self) -> bool:
        return 0 < self.t.slc_units <= self.in_slc

    def work(self, turn: int, begin: int, duration: int) -> int:
        die = turn % self.t.dies
        self.write_free[die] = max(self.write_free[die], begin) + duration
        return self.write_free[die]

    def wire(self, length: int) -> int:
        return length * 10**9 // self.t.link_bytes_per_s


def closed_loop(
    t: SsdParameters, *, write: bool, length: int, depth: int, count: int, pattern: str
) -> float:
    """Return the requests per second of the second half of a closed loop."""
    ssd, rng, blocks = Ssd(t), random.Random(1), t.capacity_bytes // length
    outstanding = [0] * depth
    half = 0
    for number in range(count):
        now = heapq.heappop(outstanding)
        if number == count // 2:
            half = now
        block = {
            "sequential": number % blocks,
            "random": rng.randrange(blocks),
            "balanced": rng.randrange(blocks // t.dies) * t.dies + number % t.dies,
        }[pattern]
        heapq.heappush(outstanding, ssd.submit(now, write, block * length, length))
    return (count - count // 2) * 1e9 / (heapq.heappop(outstanding) - half)


def filling(t: SsdParameters, length: int) -> int:
    """Return a number of requests that fills the buffer before the measured half.

    Each half has whole rounds over the dies: of hundreds of slow dies a part of one is much.
    """
    units = length // t.unit_bytes
    count = 10_000 + 4 * t.dies * t.buffer_ns // (units * t.program_ns + t.scatter_ns)
    return -(-count // (2 * t.dies)) * 2 * t.dies


@pytest.mark.parametrize("name", SSDS)
def test_latency_at_depth_1_equals_the_datasheet(name):
    d = drive(name)
    reads = [Ssd(timing(d)).submit(0, False, u * 4096, 4096) for u in range(3 * 10_000)]
    if d.read_step_ns == 0:
        assert set(reads) == {d.read_latency_ns}
    assert mean(reads) == pytest.approx(d.read_latency_ns, rel=0.001)  # a third of each kind
    assert Ssd(timing(d)).submit(0, True, 0, 4096) == d.write_latency_ns


@pytest.mark.parametrize("name", SSDS)
def test_random_read_iops_equal_the_datasheet(name):
    d = drive(name)
    depth = 32 if d.sequential_read < 600e6 else 256  # queue depth of SATA and NVMe datasheets
    reached = closed_loop(
        timing(d), write=False, length=4096, depth=depth, count=20_000, pattern="random"
    )
    # the link's own limit, if it is lower
    expected = min(d.random_read_iops, d.sequential_read / 4096)
    assert reached == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("name", SSDS)
def test_steady_random_write_iops_equal_the_datasheet(name):
    d = drive(name)
    t = timing(d)
    count = filling(t, 4096)
    even = closed_loop(t, write=True, length=4096, depth=64, count=count, pattern="balanced")
    # 3D XPoint's datasheet has a random rate above its sequential one: no p and s give that
    expected = min(d.random_write_iops, d.sequential_write / 4096)
    assert even == pytest.approx(expected, rel=0.02)
    anywhere = closed_loop(t, write=True, length=4096, depth=64, count=count, pattern="random")
    assert anywhere == even  # writes go to the dies in turn, whatever their addresses


@pytest.mark.parametrize("name", SSDS)
def test_sequential_rates_at_128_kib_equal_the_datasheet(name):
    d = drive(name)
    t = timing(d)
    length = 131_072
    reads = closed_loop(t, write=False, length=length, depth=32, count=5_000, pattern="sequential")
    assert reads * length == pytest.approx(d.sequential_read, rel=0.02)
    count = filling(t, length)
    writes = closed_loop(t, write=True, length=length, depth=32, count=count, pattern="sequential")
    assert writes * length == pytest.approx(d.sequential_write, rel=0.02)


@pytest.mark.parametrize("name", SSDS)
def test_sequential_reads_after_writes_reach_the_datasheet_once_the_buffer_is_drained(name):
    d = drive(name)
    ssd, length, depth, now = Ssd(timing(d)), 131_072, 32, 0
    rates = []
    for write, count in ((True, 4000), (False, 12_000)):
        outstanding = [now] * depth
        for number in range(count):
            if number == count // 2:
                half = now
            now = heapq.heappop(outstanding)
            heapq.heappush(outstanding, ssd.submit(now, write, number * length, length))
        rates.append((count - count // 2) * length * 1e9 / (now - half))
    assert rates[1] == pytest.approx(d.sequential_read, rel=0.02)


@pytest.mark.parametrize("name", SSDS)
def test_die_times_solve_their_equations(name):
    d = drive(name)
    t = timing(d)
    assert t.program_ns > 0
    assert t.scatter_ns >= 0
    assert t.program_ns == pytest.approx(t.dies * 4096 * 1e9 / d.sequential_write, rel=0.001)
    by_request = timing(drive(name, write_rule="requests"))
    per_128k = t.dies * 131_072 * 1e9 / d.sequential_write
    assert 32 * by_request.program_ns + by_request.scatter_ns == pytest.approx(per_128k, rel=0.001)


def test_erased_flash_beside_the_slc_cache_is_what_its_cells_leave():
    """100 GB with one bit a cell take the cells of 300 GB of TLC, or of 400 GB of QLC."""
    keys = {"slc_cache": "100GB", "folded_write": "500MB/s", "erased": "1000GB"}
    t = timing(drive("samsung-980-pro-1tb", **keys))
    assert t.erased_units == 700 * 10**9 // 4096
    assert t.folded_program_ns == t.dies * 4096 * 10**9 // (500 * 10**6)
    assert timing(drive("samsung-980-pro-1tb", **keys, cell_bits=4)).erased_units == (
        600 * 10**9 // 4096
    )
    assert timing(drive("samsung-980-pro-1tb")).folded_program_ns == 0
    # what is not filled is erased: half of 1 TB, of which 114 GB in the cache take 342
    half = timing(drive("samsung-980-pro-1tb", filled="50%", folded_write="500MB/s"))
    assert half.slc_units == 114 * 10**9 // 4096
    assert half.erased_units == (500 - 342) * 10**9 // 4096


def test_a_drive_that_folds_while_it_writes_spares_a_part_of_its_rate():
    """At 1,500 of 2,000 MB/s, three times the 6 GB in the cache are written meanwhile."""
    t = timing(drive("samsung-980-pro-1tb"))
    assert t.folding_units == 6 * 10**9 // 4096 * 3
    assert t.folding_program_ns == t.dies * 4096 * 10**9 // (1500 * 10**6)
    assert timing(drive("samsung-990-pro-1tb")).folding_units == 0


def test_impossible_datasheets_are_refused():
    too_few = "1 dies of this latency cannot reach these read rates: the minimum is 14"
    with pytest.raises(ValueError, match=too_few):
        drive("samsung-pm883-960gb", dies=1)
    with pytest.raises(ValueError, match="it includes 4 KiB at sequential_read"):
        drive("samsung-pm883-960gb", read_latency="5us")
    with pytest.raises(ValueError, match="a program, with its load, takes 2706002 ns"):
        drive("micron-7300-pro-3840gb", program_load="3ms")
    with pytest.raises(ValueError, match="drives without an SLC cache only"):
        drive("samsung-980-pro-1tb", program_load="1us")
    with pytest.raises(ValueError, match="a native_write not below it"):
        drive("samsung-980-pro-1tb", folded_write="2100MB/s")
    with pytest.raises(ValueError, match="a native_write not below it"):
        drive("samsung-pm883-960gb", folded_write="100MB/s")
    with pytest.raises(ValueError, match="a native_write above it"):
        drive("samsung-990-pro-1tb", folding_write="1400MB/s")
    with pytest.raises(ValueError, match="slc_dynamic is what is added"):
        drive("samsung-pm883-960gb", slc_dynamic="1GB")
    with pytest.raises(ValueError, match="not a part of the drive"):
        drive("samsung-980-pro-1tb", filled="101%")
    with pytest.raises(ValueError, match="without folded_write it makes no difference"):
        drive("samsung-980-pro-1tb", erased="500GB")
    with pytest.raises(ValueError, match="more flash is erased than this drive has"):
        drive("samsung-980-pro-1tb", folded_write="500MB/s", erased="3TB")
    with pytest.raises(ValueError, match="fewer than the 3967 of 128 KiB"):
        drive("samsung-pm883-960gb", random_write_iops=3000)
