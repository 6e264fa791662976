"""Small machines and workloads that reach every branch of DESIGN.md part 2, for property tests.

Times are drawn from few round numbers, so that much happens in the same instant, and offsets from a
few hot pages, so that they come again while being filled, cached, overwritten or evicted.
"""

from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from hybridsim.codes import FUA, PREFLUSH, Level, Mode, Op, Replay, Spread
from hybridsim.reference import (
    CacheParameters,
    HddParameters,
    Outcome,
    RebuildParameters,
    Request,
    SourceParameters,
    SsdParameters,
    TierParameters,
    simulate,
)

KIB = 1024

ADMISSIONS: list[tuple[str, int] | tuple[str]] = [
    ("touches", 1),
    ("touches", 1),
    ("touches", 2),
    ("learned",),
    ("learned",),
]


@dataclass
class Scenario:
    """All that `simulate` takes."""

    requests: list[Request]
    source: SourceParameters
    cache: CacheParameters
    slow: TierParameters
    fast: TierParameters

    def run(self) -> Outcome:
        return simulate(self.requests, self.source, self.cache, self.slow, self.fast)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A machine and a workload for it."""
    slow = draw(tiers())
    fast = draw(st.just(slow) | tiers())  # two tiers in lockstep make ties
    page_bytes = draw(st.sampled_from([4 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB, 12 * KIB]))
    pages = min(draw(st.integers(0, 20) | st.integers(1, 60)), fast.capacity_bytes // page_bytes)
    cache = CacheParameters(
        page_bytes=page_bytes,
        pages=pages,
        mode=draw(st.sampled_from(Mode)),
        cutoff_bytes=draw(st.sampled_from([0, 0, 8 * KIB, 32 * KIB, 128 * KIB])),
        fills_max=draw(st.sampled_from([1, 2, 3, 100])),
        admission=draw(st.sampled_from(ADMISSIONS)),
    )
    source = SourceParameters(
        mode=draw(st.sampled_from(Replay)),
        depth=draw(st.integers(1, 9)),
        speed=draw(st.sampled_from([1.0, 1.0, 2.0, 0.3, 7.0])),
    )
    workload = Workload(
        capacity=slow.capacity_bytes,
        page_bytes=page_bytes,
        hot=draw(st.integers(1, 2 * pages + 1) | st.integers(1, 8 * pages + 1)),
        interval_ns=draw(st.sampled_from([1, 1000, 100_000, 100_000, 1_000_000, 20_000_000])),
        streams=draw(st.integers(1, 4)),
        reads=draw(st.sampled_from([50, 80, 95, 100])),
        known=draw(st.sampled_from([50, 100, 100])),
        random=Random(draw(st.integers(0, 2**32))),
    )
    # Every request comes from the one before and the seed: fewer of them are a prefix of more, so
    # that Hypothesis finds the shortest workload that fails.
    count = draw(st.integers(0, 40) | st.integers(0, 40) | st.integers(0, 600))
    return Scenario(workload.requests(count), source, cache, slow, fast)


# Machines.


@st.composite
def tiers(draw: st.DrawFn) -> TierParameters:
    """An array of disks or SSDs."""
    level = draw(st.sampled_from(Level))
    chunk = draw(st.sampled_from([512, KIB, 4 * KIB, 8 * KIB, 24 * KIB, 64 * KIB, 72 * KIB]))
    device = draw(hdds(chunk) | ssds(chunk))
    members = draw(st.integers(LEAST_MEMBERS[level], 6))
    spread = Spread.NEAR
    if level == Level.RAID10 and device.capacity_bytes >= 2 * chunk:
        spread = draw(st.sampled_from(Spread))
    lost = draw(losses(level, members))
    rebuild = None
    if lost and draw(st.booleans()):
        pace = st.sampled_from([10**5, 10**7, 10**9])
        rebuild = RebuildParameters(lost.pop(), draw(pace), draw(pace))
    return TierParameters(
        level,
        members,
        chunk,
        device,
        capacity(level, members, chunk, device.capacity_bytes, spread),
        spread=spread,
        rmw_level=draw(st.sampled_from([0, 1, 1, 2])),
        failed=lost,
        rebuild=rebuild,
        queue_depth=draw(st.sampled_from([0, 0, 1, 2, 5])),
    )


LEAST_MEMBERS = {
    Level.LINEAR: 1,
    Level.STRIPE: 1,
    Level.RAID1: 2,
    Level.RAID5: 3,
    Level.RAID6: 4,
    Level.RAID10: 2,
}


def capacity(level: Level, members: int, chunk: int, member_bytes: int, spread: Spread) -> int:
    """What an array holds."""
    rows = member_bytes // chunk
    copies = {Level.RAID1: members, Level.RAID10: 2}.get(level, 1)
    parities = {Level.RAID5: 1, Level.RAID6: 2}.get(level, 0)
    if spread == Spread.NEAR:
        return rows * (members - parities) // copies * chunk
    return rows // copies * members * chunk


@st.composite
def losses(draw: st.DrawFn, level: Level, members: int) -> list[int]:
    """Some members whose data the others still have."""
    most = {Level.RAID1: members - 1, Level.RAID5: 1, Level.RAID6: 2, Level.RAID10: 1}.get(level, 0)
    number = draw(st.just(0) | st.integers(0, most))
    return draw(st.permutations(range(members)))[:number]


@st.composite
def hdds(draw: st.DrawFn, chunk: int) -> HddParameters:
    """A disk of some dozens of tracks, so that zones, cylinders and the capacity are never far.

    On every other disk all times are multiples of 50 us, so that even the platter makes ties.
    """
    even = draw(st.booleans())
    tracks_sectors = [128, 64, 32, 16] if even else [128, 96, 65, 64, 40, 16]
    surfaces = draw(st.integers(1, 3))
    zone_byte, zone_track, zone_track_bytes = [], [], []
    size = tracks = 0
    for _ in range(draw(st.integers(1, 3))):
        zone_byte.append(size)
        zone_track.append(tracks)
        zone_track_bytes.append(draw(st.sampled_from(tracks_sectors)) * 512)
        tracks += draw(st.integers(2, 20))
        size += (tracks - zone_track[-1]) * zone_track_bytes[-1]
    if size < chunk:  # a tiny disk under a large chunk: more of the last zone
        more = -(-(chunk - size) // zone_track_bytes[-1])
        tracks += more
        size += more * zone_track_bytes[-1]

    shift = draw(st.integers(0, 2))
    steps = (tracks // surfaces >> shift) + 2
    seek = draw(st.sampled_from([0, 100_000, 500_000]))
    step = draw(st.sampled_from([0, 100_000, 250_000] if even else [0, 1000, 77_777, 250_000]))
    rev = 6_400_000 if even else draw(st.sampled_from([1_000_000, 8_333_333, 10_000_000]))
    return HddParameters(
        rev_ns=rev,
        zone_byte=zone_byte,
        zone_track=zone_track,
        zone_track_bytes=zone_track_bytes,
        surfaces=surfaces,
        seek_ns=[0] + [seek + step * each for each in range(1, steps + 1)],
        seek_shift=shift,
        head_switch_ns=draw(st.sampled_from([0, 100_000, 900_000 if even else 333_333])),
        skew_ns=draw(st.sampled_from([0, 100_000, 1_000_000 if even else 500_001])),
        settle_ns=draw(st.sampled_from([0, 50_000, 2_000_000])),
        overhead_ns=draw(st.sampled_from([0, 100_000] if even else [0, 1000, 100_000])),
        window=draw(st.integers(1, 8)),
        age_limit_ns=draw(st.sampled_from([0, 6_400_000, 30_000_000, 10**12])),
        read_ahead_bytes=draw(st.sampled_from([0, 512, 4 * KIB, 20 * KIB, 100_000])),
        capacity_bytes=size // chunk * chunk,
    )


@st.composite
def ssds(draw: st.DrawFn, chunk: int) -> SsdParameters:
    """An SSD of a few dies."""
    return SsdParameters(
        dies=draw(st.integers(1, 5)),
        unit_bytes=draw(st.sampled_from([4 * KIB, 4 * KIB, 16 * KIB, 3 * KIB])),
        command_ns=draw(st.sampled_from([0, 1000, 10_000])),
        interval_ns=draw(st.sampled_from([0, 1000, 7000])),
        read_ns=draw(st.sampled_from([0, 50_000, 60_000])),
        program_ns=draw(st.sampled_from([0, 50_000, 200_000, 1_000_000])),
        scatter_ns=draw(st.sampled_from([0, 30_000])),
        suspend_ns=draw(st.sampled_from([0, 10_000])),
        write_ns=draw(st.sampled_from([0, 5000])),
        buffer_ns=draw(st.sampled_from([0, 100_000, 1_000_000])),
        link_bytes_per_s=draw(st.sampled_from([10**9, 550_000_000, 10**12])),
        capacity_bytes=draw(st.integers(1, max(1, 1024 * KIB // chunk))) * chunk,
    )


# Workloads.


@dataclass
class Workload:
    """Requests within a capacity, by chance."""

    capacity: int
    page_bytes: int
    hot: int  # pages that are used again and again
    interval_ns: int  # what arrivals are multiples of
    streams: int
    reads: int  # percent
    known: int  # percent whose completion was recorded
    random: Random

    def requests(self, count: int) -> list[Request]:
        result: list[Request] = []
        ends = [0] * self.streams
        arrival = 0
        for _ in range(count):
            stream = self.random.randrange(self.streams)
            arrival += self.random.choice([0, 0, 0, 1, 1, 2, 5, 30]) * self.interval_ns
            op = self.op()
            offset, length = self.range(ends[stream])
            if op == Op.FLUSH and self.percent(80):
                offset, length = 0, 0
            if self.percent(2):
                length = 0
            ends[stream] = offset + length
            complete = -1
            if self.percent(self.known):
                complete = arrival + self.random.choice([0, 1, 1, 2, 6, 40]) * self.interval_ns
            flags = self.random.choice([0, 0, 0, 0, 0, FUA, PREFLUSH, FUA | PREFLUSH])
            result.append(Request(arrival, op, offset, length, stream, complete, flags))
        return result

    def op(self) -> Op:
        if self.percent(4):
            return self.random.choice([Op.FLUSH, Op.DISCARD, Op.DISCARD, Op.WRITE_ZEROES])
        return Op.READ if self.percent(self.reads) else Op.WRITE

    def range(self, end: int) -> tuple[int, int]:
        """Offset and length of a request; `end` is that of the last of its stream."""
        kind = self.random.randrange(20)
        page = self.random.randrange(self.hot) * self.page_bytes
        sectors = 512 * self.random.randint(1, 16)
        if kind < 6:  # a page, or some of them
            offset, length = page, self.page_bytes * self.random.choice([1, 1, 1, 2, 3])
        elif kind < 10:  # a part of a page, or of two
            offset, length = page + 512 * self.random.randrange(self.page_bytes // 512), sectors
        elif kind < 14:  # sequential, at times with a small gap, or a bit of it once more
            offset = end + self.random.choice([0, 0, 0, 0, 512, 4096, -512, -4096, -8192])
            length = sectors
        elif kind < 16:  # many pages, chunks, rows, tracks
            offset = self.random.randrange(self.capacity) // 4096 * 4096
            length = 512 * self.random.randint(1, 400)
        elif kind < 17:  # not even whole sectors
            offset, length = self.random.randrange(self.capacity), self.random.randint(1, 30_000)
        elif kind < 18:  # at the very end
            offset, length = self.capacity - sectors, sectors
        else:
            offset, length = self.random.randrange(self.capacity) // 512 * 512, sectors
        offset = max(offset, 0) % self.capacity
        return offset, min(length, self.capacity - offset)

    def percent(self, share: int) -> bool:
        return self.random.randrange(100) < share
