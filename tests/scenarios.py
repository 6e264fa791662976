"""Small machines and workloads that reach every branch of DESIGN.md part 2, for property tests.

Times are drawn from few round numbers, so that many events share an instant, and offsets from a
few hot pages, so that pages are used again while being filled, cached, overwritten or evicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from hybridsim.caches.policies import REPLACEMENT
from hybridsim.foundation.codes import (
    FUA,
    PREFLUSH,
    Fill,
    FillWhen,
    Level,
    Mode,
    Op,
    Order,
    Replay,
    Spread,
)
from hybridsim.reference import (
    BudgetParameters,
    CacheParameters,
    ControllerParameters,
    EventParameters,
    FlashParameters,
    HddParameters,
    HostParameters,
    LimitParameters,
    Outcome,
    RebuildParameters,
    Request,
    SourceParameters,
    SsdParameters,
    ThrottleParameters,
    TierParameters,
    VolumeParameters,
    simulate,
)
from hybridsim.reference.machine import CacheKind

KIB = 1024
LINES = [512, KIB, 4 * KIB, 8 * KIB]

ADMISSIONS: list[tuple[object, ...]] = [
    *[("touches", 1)] * 4,
    *[("touches", 2)] * 2,
    *[("learned", 0)] * 4,  # it learns little from few requests
    ("learned", 10),
    ("learned",),
    ("always",),
    ("reject-first",),
    ("larc",),
    ("tinylfu",),
    ("sievestore",),
    ("probabilistic", 300_000, 7),
    ("request-size", 16 * KIB),
]
REPLACEMENTS = [*["lru"] * len(REPLACEMENT), *["learned"] * 4, *REPLACEMENT]


@dataclass
class Scenario:
    """All arguments of `simulate`."""

    requests: list[Request]
    source: SourceParameters
    cache: CacheKind
    slow: TierParameters
    fast: TierParameters
    host: HostParameters | None = None
    controller: ControllerParameters | None = None
    throttle: ThrottleParameters | None = None
    events: Sequence[EventParameters] = ()

    def run(self) -> Outcome:
        return simulate(
            self.requests,
            self.source,
            self.cache,
            self.slow,
            self.fast,
            self.host,
            self.controller,
            self.throttle,
            self.events,
        )


def budgets() -> st.SearchStrategy[BudgetParameters]:
    """Draw write budgets that some requests of a small cache exceed."""
    by_time = st.builds(
        BudgetParameters, st.sampled_from([10**7, 10**9]), st.integers(1, 9), st.just(False)
    )
    by_accesses = st.builds(
        BudgetParameters, st.integers(2**19, 2**24), st.integers(1, 9), st.just(True)
    )
    return by_time | by_accesses


@st.composite
def scenarios(
    draw: st.DrawFn,
    slow_kind: str = "any",
    fast_kind: str = "any",
    *,
    admission: str = "any",
    replacement: str = "lru",  # if the admission is specified
    controller: bool | None = None,
    warm: bool | None = None,
) -> Scenario:
    """Draw a machine and a workload for it."""
    slow, fast = draw(both_tiers(slow_kind, fast_kind))
    page_bytes = draw(st.sampled_from([4 * KIB, 4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB, 12 * KIB]))
    pages = min(draw(st.integers(0, 20) | st.integers(1, 60)), fast.capacity_bytes // page_bytes)
    cache = CacheParameters(
        page_bytes=page_bytes,
        pages=pages,
        mode=draw(st.sampled_from(Mode)),
        sequential_cutoff_bytes=draw(st.sampled_from([0, 0, 8 * KIB, 32 * KIB, 128 * KIB])),
        max_fills=draw(st.sampled_from([1, 2, 3, 100])),
        admission=draw(
            st.sampled_from([one for one in ADMISSIONS if admission in ("any", one[0])])
        ),
        replacement=draw(st.sampled_from(REPLACEMENTS if admission == "any" else [replacement])),
        budget=draw(st.none() | budgets()) if admission == "any" else None,
        **draw(fills(page_bytes)),
        **draw(cleaning(pages)),
    )
    if pages and draw(st.booleans() if warm is None else st.just(warm)):
        begin_warm(cache, slow.capacity_bytes, Random(draw(st.integers(0, 2**32))))
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
    host = draw(st.none() | st.none() | hosts())
    drams = {None: st.none() | controllers(slow), True: controllers(slow), False: st.none()}
    dram = draw(drams[controller])
    return Scenario(workload.requests(count), source, cache, slow, fast, host, dram)


# Caches.


@st.composite
def fills(draw: st.DrawFn, page_bytes: int) -> dict[str, int]:
    """Draw how misses are filled, and the granules of a page."""
    minimum = -(-page_bytes // 64 // 512) * 512
    granule = st.sampled_from([minimum, minimum, 2 * minimum, 3 * minimum, page_bytes])
    return {
        "granule_bytes": draw(st.just(0) | granule),
        "fill": draw(st.sampled_from(Fill)),
        "fill_when": draw(st.sampled_from([*[FillWhen.BACKGROUND] * 3, *FillWhen])),
        "fill_piece_bytes": draw(st.sampled_from([0, 0, 512, 1536, 4096])),
        "fill_rate": draw(st.sampled_from([0, 0, 0, 0, 10**6, 10**8])),
        "sub_page": draw(st.booleans()),
        "discards": draw(st.booleans()),
    }


@st.composite
def cleaning(draw: st.DrawFn, pages: int) -> dict[str, int]:
    """Draw when dirty pages are written back, and how many at once."""
    high = draw(st.sampled_from([1, pages, pages + 1]) | st.integers(1, max(pages, 1)))
    return {
        "dirty_high": max(high, 1),
        "dirty_low": draw(st.integers(0, max(high - 1, 0))),
        "clean_above": draw(st.sampled_from([0, pages]) | st.integers(0, pages)),
        "clean_idle_ns": draw(st.sampled_from([0, 100_000, 5_000_000, 50_000_000, 10**9])),
        "max_cleans": draw(st.sampled_from([1, 1, 2, 4])),
        "clean_merge_pages": draw(st.sampled_from([1, 1, 2, 8])),
        "clean_window": draw(st.sampled_from([1, 3, 128])),
        "clean_rate": draw(st.sampled_from([0, 0, 10**6, 10**8])),
    }


def begin_warm(cache: CacheParameters, volume_bytes: int, random: Random) -> None:
    """Draw the initial pages of a cache and the pages to preload: hot ones, and some far away."""
    count = -(-volume_bytes // cache.page_bytes)
    near = range(min(3 * cache.pages, count))
    far = [random.randrange(count) for _ in range(3)]
    pages = random.sample(near, random.randint(0, len(near)))
    pages += [page for page in dict.fromkeys(far) if page not in near]
    kept = random.sample(pages, min(random.choice([0, 0, 2, cache.pages]), len(pages)))
    cache.kept = [(page, granules(cache, page, volume_bytes, random)) for page in kept]
    cache.kept = cache.kept[: cache.pages]
    cache.preload = random.choice([pages, sorted(pages), sorted(pages)])
    cache.preload_idle_ns = random.choice([100_000, 100_000, 5_000_000])
    cache.preload_gap_bytes = random.choice([0, 0, 4, 100]) * 4 * KIB
    cache.preload_chunk_bytes = random.choice([0, 16, 100]) * 4 * KIB
    cache.preload_reads = random.choice([1, 1, 2, 5])
    cache.preload_rate = random.choice([0, 0, 10**6, 10**8])


def granules(cache: CacheParameters, page: int, volume_bytes: int, random: Random) -> int:
    """Return some or all granules of a page as a bit mask."""
    page_bytes = min(cache.page_bytes, volume_bytes - page * cache.page_bytes)
    every = (1 << -(-page_bytes // (cache.granule_bytes or cache.page_bytes))) - 1
    return random.choice([every, random.randint(1, every)])


# Machines.


@st.composite
def both_tiers(
    draw: st.DrawFn, slow_kind: str, fast_kind: str, least_bytes: int = 0, slow_members: int = 6
) -> tuple[TierParameters, TierParameters]:
    """Draw an array and a cache device of a minimum size; two of one kind may run in lockstep.

    `slow_members`: maximum number of members of the array.
    """
    slow = draw(tiers(slow_kind, slow_members))
    fast = tiers(fast_kind)
    if fast_kind == slow_kind:
        fast = st.just(slow) | fast  # two tiers in lockstep produce ties
    return slow, draw(fast.filter(lambda tier: tier.capacity_bytes >= least_bytes))


@st.composite
def tiers(draw: st.DrawFn, kind: str = "any", most_members: int = 6) -> TierParameters:
    """Draw an array of disks, SSDs or volumes."""
    level = draw(st.sampled_from([each for each in Level if LEAST_MEMBERS[each] <= most_members]))
    chunk = draw(st.sampled_from([512, KIB, 4 * KIB, 8 * KIB, 24 * KIB, 64 * KIB, 72 * KIB]))
    kinds = {
        "disk": hdds(chunk),
        "ssd": ssds(chunk),
        "flash": flashes(chunk),
        "volume": volumes(chunk),
    }
    device = draw(kinds[kind] if kind in kinds else st.one_of(*kinds.values()))
    members = draw(st.integers(LEAST_MEMBERS[level], most_members))
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
        path_latency_ns=draw(st.sampled_from([0, 0, 1, 300_000])),
        has_fua=draw(st.booleans()),
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
    """Return the capacity of an array in bytes."""
    rows = member_bytes // chunk
    copies = {Level.RAID1: members, Level.RAID10: 2}.get(level, 1)
    parities = {Level.RAID5: 1, Level.RAID6: 2}.get(level, 0)
    if spread == Spread.NEAR:
        return rows * (members - parities) // copies * chunk
    return rows // copies * members * chunk


@st.composite
def losses(draw: st.DrawFn, level: Level, members: int) -> list[int]:
    """Draw members whose data the others can still reconstruct."""
    maximum = {Level.RAID1: members - 1, Level.RAID5: 1, Level.RAID6: 2, Level.RAID10: 1}.get(
        level, 0
    )
    number = draw(st.just(0) | st.integers(0, maximum))
    return draw(st.permutations(range(members)))[:number]


@st.composite
def hdds(draw: st.DrawFn, chunk: int) -> HddParameters:
    """Draw a disk of some dozens of tracks, so that zone, cylinder and capacity limits are near.

    On every other disk all times are multiples of 50 us, so that even the platter produces ties.
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
        size -= draw(st.sampled_from([0, 0, 512, 5120]))  # its last track may be partial
    if size < chunk:  # a tiny disk under a large chunk: more of the last zone
        more = -(-(chunk - size) // zone_track_bytes[-1])
        tracks += more
        size += more * zone_track_bytes[-1]

    shingled: st.SearchStrategy[dict[str, int]] = st.just({})
    if size // chunk * chunk >= min(MEDIA_CACHES):
        shingled |= media_caches(size // chunk * chunk)
    shift = draw(st.integers(0, 2))
    steps = (tracks // surfaces >> shift) + 2
    rev = 6_400_000 if even else draw(st.sampled_from([1_000_000, 8_333_333, 10_000_000]))
    zones = len(zone_byte)
    skews = [0, 100_000, 1_000_000 if even else 500_001]
    more = [0, 50_000, -50_000 if even else 77_777]
    moves = draw(move_tables(steps, even))
    cache_bytes = draw(st.sampled_from([0, 0, 0, 4 * KIB, 24 * KIB, 200 * KIB]))
    return HddParameters(
        rev_ns=rev,
        zone_byte=zone_byte,
        zone_track=zone_track,
        zone_track_bytes=zone_track_bytes,
        zone_angle_ns=[draw(st.sampled_from([0, 0, 250_000])) for _ in range(zones)],
        zone_skew_ns=[draw(st.sampled_from(skews)) for _ in range(zones)],
        zone_cylinder_skew_ns=[draw(st.sampled_from(more)) for _ in range(zones)],
        surfaces=surfaces,
        seek_shift=shift,
        move_ns=moves,
        write_move_ns=draw(st.just(moves) | move_tables(steps, even)),
        read_ns=draw(st.sampled_from([0, 100_000] if even else [0, 1000, 100_000])),
        hit_ns=draw(st.sampled_from([0, 100_000] if even else [0, 500, 70_000])),
        write_ns=draw(st.sampled_from([0, 100_000] if even else [0, 1000, 300_000])),
        write_hit_ns=draw(st.sampled_from([0, 100_000] if even else [0, 700, 200_000])),
        after_other_ns=draw(
            st.just([]) | st.lists(st.sampled_from([0, 800, 150_000]), min_size=4, max_size=4)
        ),
        flush_ns=draw(st.sampled_from([0, 0, 5_000_000])),
        host_ps_per_byte=draw(st.sampled_from([0, 0, 10_000, 200_000])),
        order=draw(st.sampled_from(Order)),
        aging_ppm=draw(st.sampled_from([0, 6_000, 500_000])),
        window=draw(st.integers(1, 8)),
        age_limit_ns=draw(st.sampled_from([0, 6_400_000, 30_000_000, 10**12])),
        read_ahead_bytes=draw(st.sampled_from([0, 512, 4 * KIB, 20 * KIB, 100_000])),
        segments=draw(st.sampled_from([1, 1, 2, 4])),
        read_behind_bytes=draw(st.sampled_from([0, 8 * KIB, 100_000])),
        read_tracks=draw(st.booleans()),
        read_watermark=draw(st.sampled_from([0, 33, 100])),
        write_watermark=draw(st.sampled_from([0, 50, 100])),
        read_stop_tracks=draw(st.integers(0, 2)),
        segment_bytes=draw(st.sampled_from([4096, 20 * KIB, 100_000, 2**62])),
        reacquire_ns=draw(st.sampled_from([0, 0, 50_000])),
        write_cache_bytes=cache_bytes,
        write_cache_ranges=draw(st.integers(1, 6)),
        destage_window=draw(st.integers(1, 4)),
        takes_turns=draw(st.sampled_from([False, False, True])),
        is_protected=draw(st.sampled_from([False, False, True])),
        capacity_bytes=size // chunk * chunk,
        **draw(shingled),
    )


MEDIA_CACHES = (10_000, 40 * KIB)  # bytes


@st.composite
def media_caches(draw: st.DrawFn, capacity_bytes: int) -> dict[str, int]:
    """Draw the values of a shingled disk."""
    span = draw(st.sampled_from([size for size in MEDIA_CACHES if size <= capacity_bytes]))
    return {
        "media_cache_span_bytes": span,
        "media_cache_first_byte": draw(st.sampled_from([0, (capacity_bytes - span) // 2])),
        "media_cache_padding_bytes": draw(st.sampled_from([0, 512, 3000])),
        "media_cache_write_bytes": draw(st.sampled_from([700, 5000, 2**62])),
        "media_cache_entries": draw(st.sampled_from([1, 2, 5, 100])),
        "media_cache_idle_ns": draw(st.sampled_from([0, 5_000_000, 50_000_000])),
        "media_cache_run_bytes": draw(st.sampled_from([0, 5000, 2**30])),
        "media_cache_map": draw(st.sampled_from([0, 1, 3, 2**62])),
        "media_cache_map_write_ns": draw(st.sampled_from([0, 7_000_000])),
        "media_cache_piece_ns": draw(st.sampled_from([0, 0, 3_000_000])),
        "band_bytes": draw(st.sampled_from([1000, 4 * KIB, 16 * KIB, 10**9])),
    }


@st.composite
def move_tables(draw: st.DrawFn, steps: int, even: bool) -> list[int]:
    """Draw times by cylinder distance; the first is that of a head switch."""
    switch = draw(st.sampled_from([0, 100_000, 900_000 if even else 333_333]))
    seek = draw(st.sampled_from([0, 100_000, 500_000]))
    step = draw(st.sampled_from([0, 100_000, 250_000] if even else [0, 1000, 77_777, 250_000]))
    return [switch] + [seek + step * each for each in range(1, steps + 1)]


@st.composite
def ssds(draw: st.DrawFn, chunk: int) -> SsdParameters:
    """Draw an SSD of a few dies; one whose dies are given whole programs has no SLC cache."""
    load_ns = draw(st.sampled_from([0, 0, 40_000]))
    return SsdParameters(
        dies=draw(st.integers(1, 5)),
        unit_bytes=draw(st.sampled_from([4 * KIB, 4 * KIB, 16 * KIB, 3 * KIB])),
        command_ns=draw(st.sampled_from([0, 1000, 10_000])),
        interval_ns=draw(st.sampled_from([0, 1000, 7000])),
        write_interval_ns=draw(st.sampled_from([0, 1000, 7000])),
        read_ns=draw(st.sampled_from([0, 50_000, 60_000])),
        program_ns=draw(st.sampled_from([0, 50_000, 200_000, 1_000_000][load_ns > 0 :])),
        scatter_ns=draw(st.sampled_from([0, 30_000])),
        suspend_ns=draw(st.sampled_from([0, 10_000])),
        load_ns=load_ns,
        collect_ns=draw(st.sampled_from([0, 70_000])),
        write_ns=draw(st.sampled_from([0, 5000])),
        buffer_ns=draw(st.sampled_from([0, 100_000, 1_000_000])),
        link_bytes_per_s=draw(st.sampled_from([10**9, 550_000_000, 10**12])),
        capacity_bytes=draw(st.integers(1, max(1, 1024 * KIB // chunk))) * chunk,
        step_ns=draw(st.sampled_from([0, 25_000])),
        program_units=draw(st.sampled_from([1, 1, 4])),
        flush_ns=draw(st.sampled_from([0, 15_000, 1_000_000])),
        is_protected=draw(st.integers(0, 1)),
        is_blocking=draw(st.integers(0, 1)),
        pipe_bytes_per_s=draw(st.sampled_from([10**15, 10**9, 200_000_000])),
        is_by_stream=draw(st.integers(0, 1)),
        needs_flush=draw(st.integers(0, 1)),
        map_units=draw(st.sampled_from([1, 1, 2, 4])),
        page_units=draw(st.sampled_from([1, 1, 2, 4])),
        write_lanes=draw(st.sampled_from([0, 0, 1, 3])),
        wake_ns=draw(st.sampled_from([0, 15_000])),
        sleep_ns=draw(st.sampled_from([0, 10_000, 1_000_000])),
        slc_units=0 if load_ns else draw(st.sampled_from([0, 0, 1, 10, 1000])),
        slc_units_per_s=draw(st.sampled_from([1, 100, 10_000_000])),
        slc_idle_ns=draw(st.sampled_from([0, 1_000_000, 50_000_000])),
        native_program_ns=draw(st.sampled_from([0, 300_000, 2_000_000])),
        erased_units=draw(st.sampled_from([0, 3, 30])),
        folded_program_ns=draw(st.sampled_from([0, 5_000_000])),
        folding_program_ns=draw(st.sampled_from([0, 1_000_000])),
        folding_units=draw(st.sampled_from([0, 2, 20])),
        native_scatter_ns=draw(st.sampled_from([0, 100_000])),
    )


@st.composite
def flashes(draw: st.DrawFn, chunk: int) -> FlashParameters:
    """Draw a detailed SSD of a few dies, so small that garbage collection runs often."""
    unit_bytes = draw(st.sampled_from([4 * KIB, 4 * KIB, 16 * KIB, 3 * KIB]))
    capacity = draw(st.integers(1, max(1, 1024 * KIB // chunk))) * chunk
    dies = draw(st.integers(1, 5))
    program_units = draw(st.sampled_from([1, 1, 2, 4]))
    drive = FlashParameters(
        dies=dies,
        channels=draw(st.integers(1, dies)),
        unit_bytes=unit_bytes,
        program_units=program_units,
        interval_ns=draw(st.sampled_from([0, 1000, 7000])),
        command_ns=draw(st.sampled_from([0, 0, 10_000])),
        write_ns=draw(st.sampled_from([0, 5000])),
        read_ns=draw(st.sampled_from([0, 50_000, 60_000])),
        step_ns=draw(st.sampled_from([0, 0, 25_000])),
        program_ns=draw(st.sampled_from([0, 50_000, 200_000, 1_000_000])),
        collect_ns=draw(st.sampled_from([0, 0, 300_000])),
        suspend_ns=draw(st.sampled_from([0, 10_000, 10_000, 10**12])),
        flush_ns=draw(st.sampled_from([0, 15_000, 1_000_000])),
        bus_ns=draw(st.sampled_from([0, 400])),
        is_protected=draw(st.integers(0, 1)),
        is_blocking=draw(st.integers(0, 1)),
        is_static=draw(st.integers(0, 1)),
        buffer_units=program_units * draw(st.integers(1, 8)),
        channel_bytes_per_s=draw(st.sampled_from([10**8, 800_000_000, 10**12])),
        link_bytes_per_s=draw(st.sampled_from([10**9, 550_000_000, 10**14])),
        capacity_bytes=capacity,
    )
    if draw(st.booleans()):
        units = -(-capacity // unit_bytes)
        block_units = program_units * draw(st.integers(1, 6))
        full = -(-units // block_units)
        drive = drive._replace(
            mapped_units=units,
            block_units=block_units,
            blocks=full + draw(st.integers(2, 3) | st.integers(2, 2 + full)),
            erase_ns=draw(st.sampled_from([0, 500_000])),
            filled=draw(st.integers(0, 1)),
        )
    return drive


@st.composite
def volumes(draw: st.DrawFn, chunk: int) -> VolumeParameters:
    """Draw a volume with few or many limits, some of which do not divide a second evenly."""
    ops = st.sampled_from([[Op.READ, Op.WRITE], [Op.READ, Op.WRITE], [Op.READ], [Op.WRITE]])
    requests = st.builds(
        LimitParameters,
        ops=ops,
        unit_bytes=st.sampled_from([2**62, 16 * KIB, 3000]),
        units_per_s=st.sampled_from([1000, 10_000, 7, 2999]),
        burst_ns=st.sampled_from([0, 0, 1_000_000, 300_000_000]),
    )
    size = st.builds(
        LimitParameters,
        ops=ops,
        unit_bytes=st.just(1),
        units_per_s=st.sampled_from([10**9, 40_960_000, 140 * 2**20, 999_983]),
        burst_ns=st.sampled_from([0, 100_000, 10**9]),
    )
    times = st.lists(st.sampled_from([0, 1, 100_000, 100_000, 2_000_000]), min_size=1, max_size=4)
    return VolumeParameters(
        limits=draw(st.lists(requests | size, max_size=3)),
        read_latency_ns=latencies(draw(times)),
        write_latency_ns=latencies(draw(times)),
        stream_bytes_per_s=draw(st.sampled_from([2**62, 10**9, 333_333_333])),
        capacity_bytes=draw(st.integers(1, max(1, 1024 * KIB // chunk))) * chunk,
        seed=draw(st.sampled_from([0, 1, 2**63 - 1])),
        random_unit_bytes=draw(st.sampled_from([1, 1, 16 * KIB, 2**20])),
        stall_ns=draw(st.sampled_from([0, 0, 100_000, 5_000_000])),
        stall_every_ns=draw(st.sampled_from([5_000_001, 20_000_000, 10**9])),
    )


def latencies(times: list[int]) -> list[int]:
    """Return a table of 1,024 latencies in which each of these times is equally frequent."""
    return sorted((times * 1024)[:1024])


def hosts() -> st.SearchStrategy[HostParameters]:
    """Draw a host with caps that may or may not limit the load."""
    return st.builds(
        HostParameters,
        max_iops=st.sampled_from([0, 1000, 23_500, 10**6]),
        max_bandwidth=st.sampled_from([0, 10**8, 3 * 2**20]),
        overhead_ns=st.sampled_from([0, 0, 17_000]),
        hold_ns=st.sampled_from([0, 0, 1, 120_000, 5_000_000]),
        hold_from=st.sampled_from([1, 2, 5]),
        hold_within_ns=st.sampled_from([0, 300_000, 3_000_000]),
    )


@st.composite
def controllers(draw: st.DrawFn, array: TierParameters) -> ControllerParameters:
    """Draw a RAID controller with DRAM for a few lines and windows, or for none."""
    lines = draw(st.just(0) | st.integers(0, 3) | st.integers(0, 40))
    low = draw(st.integers(0, max(lines - 1, 0)))
    fitting = [size for size in LINES if array.chunk_bytes in range(size, 17 * size, size)]
    line_bytes = draw(st.sampled_from(fitting))
    window_bytes = line_bytes * draw(st.sampled_from([1, 2, 8, 9]))
    return ControllerParameters(
        protected=int(draw(st.booleans())),
        high_lines=draw(st.integers(low + 1, max(lines, low + 1))),
        low_lines=low,
        oldest_above_lines=draw(st.sampled_from([0, low, lines])),
        idle_ns=draw(st.sampled_from([0, 1000, 20_000_000, 1 << 62])),
        max_destages=draw(st.integers(1, 6)),
        window_bytes=window_bytes,
        windows=draw(st.integers(0, 6)),
        read_ahead_bytes=draw(st.sampled_from([0, 1, window_bytes, 3 * window_bytes])),
        sequential_after=draw(st.integers(1, 3)),
        streams=draw(st.integers(1, 3)),
        line_bytes=line_bytes,
        lines=lines,
        stripe_bytes=draw(st.integers(1, array.members)) * array.chunk_bytes,
        latency_ns=draw(st.sampled_from([0, 1000, 50_000])),
        rate=draw(st.sampled_from([10**9, 333_333_333, 10**12])),
    )


# Workloads.


@dataclass
class Workload:
    """Random requests within a capacity."""

    capacity: int
    page_bytes: int
    hot: int  # pages that are used repeatedly
    interval_ns: int  # unit of arrival times
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
        if self.percent(6):
            return self.random.choice([Op.FLUSH, Op.DISCARD, Op.DISCARD, Op.WRITE_ZEROES])
        return Op.READ if self.percent(self.reads) else Op.WRITE

    def range(self, end: int) -> tuple[int, int]:
        """Return offset and length of a request; `end` is the end of its stream's last request."""
        kind = self.random.randrange(20)
        page = self.random.randrange(self.hot) * self.page_bytes
        sectors = 512 * self.random.randint(1, 16)
        if kind < 6:  # one page or several
            offset, length = page, self.page_bytes * self.random.choice([1, 1, 1, 2, 3])
        elif kind < 10:  # part of one page or of two
            offset, length = page + 512 * self.random.randrange(self.page_bytes // 512), sectors
        elif kind < 14:  # sequential, sometimes with a small gap or overlap
            offset = end + self.random.choice([0, 0, 0, 0, 512, 4096, -512, -4096, -8192])
            length = sectors
        elif kind < 16:  # many pages, chunks, rows, tracks
            offset = self.random.randrange(self.capacity) // 4096 * 4096
            length = 512 * self.random.randint(1, 400)
        elif kind < 17:  # not aligned to sectors
            offset, length = self.random.randrange(self.capacity), self.random.randint(1, 30_000)
        elif kind < 18:  # at the very end
            offset, length = self.capacity - sectors, sectors
        else:
            offset, length = self.random.randrange(self.capacity) // 512 * 512, sectors
        offset = max(offset, 0) % self.capacity
        return offset, min(length, self.capacity - offset)

    def percent(self, share: int) -> bool:
        return self.random.randrange(100) < share
