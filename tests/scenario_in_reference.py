"""A scenario file as parameters of the reference, as scenario/building/ makes it for the engine.

The timing of a drive comes from the functions that both share; what drives are put together to, and
what the caches are told, is said here once more.
"""

from __future__ import annotations

from typing import Any

from scenarios import Scenario as Simulated
from scenarios import capacity

from hybridsim.foundation.codes import (
    BcacheMode,
    CasMode,
    Cleaning,
    Cutoff,
    DmMode,
    Fill,
    FillWhen,
    Level,
    Mode,
    Op,
    Order,
    Promotion,
    Replay,
    Reuse,
    Spread,
)
from hybridsim.foundation.units import parse_percent, parse_time
from hybridsim.jit.limits import READS, WRITES
from hybridsim.reference import (
    BcacheParameters,
    BudgetParameters,
    CacheParameters,
    ControllerParameters,
    DmCacheParameters,
    FlashParameters,
    HddParameters,
    HostParameters,
    LimitParameters,
    OpenCasParameters,
    RebuildParameters,
    Request,
    SourceParameters,
    SsdParameters,
    ThrottleParameters,
    TierParameters,
    VolumeParameters,
    WritecacheParameters,
)
from hybridsim.scenario import Backing, Scenario
from hybridsim.scenario.caches import CacheTable
from hybridsim.storage.devices import volume_timing
from hybridsim.storage.devices.flash_timing import flash_timing
from hybridsim.storage.devices.hdd_geometry import hdd_parameters
from hybridsim.storage.devices.ssd_timing import timing
from hybridsim.storage.drives import CloudVolume, HardDisk

LEVELS = {"single": Level.STRIPE} | {
    name: Level[name.upper()] for name in ("linear", "stripe", "raid1", "raid5", "raid6", "raid10")
}
ORDERS = {"sptf": Order.POSITION, "sstf": Order.DISTANCE, "clook": Order.SWEEP}
MODES = {
    "read-only": Mode.READ_ONLY,
    "write-around": Mode.READ_ONLY,
    "write-through": Mode.WRITE_THROUGH,
    "write-back": Mode.WRITE_BACK,
}
OPS = {READS: [Op.READ], WRITES: [Op.WRITE], READS | WRITES: [Op.READ, Op.WRITE]}


def in_reference(
    said: Scenario, mode: Replay, volume_bytes: int, pages: int, requests: list[Request]
) -> Simulated:
    """Return the machine and its requests."""
    slow = array(said.backing, volume_bytes, said.seed)
    cache = cache_of(said.cache, pages, said.seed, slow.capacity_bytes)
    host = HostParameters(
        said.host.max_iops or 0, said.host.max_bandwidth or 0, said.host.overhead_ns
    )
    source = SourceParameters(mode, said.replay.depth, said.replay.speed)
    fast = cache_device(said.cache, pages, said.seed + 1)
    throttle = throttled(said) if pages else None
    return Simulated(requests, source, cache, slow, fast, host, dram(said.backing), throttle)


def throttled(said: Scenario) -> ThrottleParameters | None:
    """The throttle of background writes."""
    backing, drive = said.backing, said.backing.drive
    words = {"off": 0, "auto": 0}
    if said.cache.kind == "bcache" and backing.members == 1 and not backing.controller:
        words["auto"] = {"hdd": 75_000_000, "ssd": 2_000_000}.get(drive.kind, 0)
    said_ns = words.get(backing.writeback_throttle)
    target_ns = parse_time(backing.writeback_throttle) if said_ns is None else said_ns
    if not target_ns:
        return None
    if drive.kind == "hdd":
        has_cache = bool(drive.write_cache_bytes) and backing.write_cache == "drive"
    else:
        has_cache = drive.kind == "ssd" and not drive.power_loss_protection
    return ThrottleParameters(target_ns, 256, has_cache)


def array(said: Backing, volume_bytes: int, seed: int) -> TierParameters:
    """The slow tier."""
    member_bytes = said.member_bytes(volume_bytes)
    drive = device(said.drive, member_bytes, seed, said.stroke == "short")
    if isinstance(drive, HddParameters):
        drive.window, drive.age_limit_ns = said.window, said.age_limit_ns
        drive.order = ORDERS.get(said.scheduler, drive.order)
        if said.write_cache == "off":
            drive.write_cache_bytes = 0
    level, spread = LEVELS[said.kind], Spread[said.layout.upper()]
    new = said.rebuild
    return TierParameters(
        level,
        said.members,
        said.chunk_bytes,
        drive,
        capacity(level, said.members, said.chunk_bytes, member_bytes, spread),
        spread=spread,
        rmw_level=said.rmw_level,
        failed=list(said.failed),
        rebuild=RebuildParameters(**vars(new)) if new else None,
        queue_depth=said.queue_depth,
        path_ns=said.path_latency_ns,
        has_fua=getattr(said.drive, "fua", True),
    )


def dram(said: Backing) -> ControllerParameters | None:
    """The memory of the controller."""
    it = said.controller
    if it is None:
        return None
    data = {"raid5": said.members - 1, "raid6": said.members - 2, "raid10": said.members // 2}
    data |= {"raid1": 1, "linear": 1}
    lines = it.write_memory_bytes // it.line_bytes
    return ControllerParameters(
        protected=int(it.protected),
        high_lines=int(parse_percent(it.high_water) * lines),
        low_lines=int(parse_percent(it.low_water) * lines),
        oldest_above_lines=int(parse_percent(it.oldest_first_above) * lines),
        idle_ns=it.idle_ns,
        destages_max=it.max_destages,
        window_bytes=it.window_bytes,
        windows=it.read_memory_bytes // it.window_bytes,
        ahead_bytes=it.read_ahead_bytes,
        after=it.sequential_after,
        streams=it.streams,
        line_bytes=it.line_bytes,
        lines=lines,
        stripe_bytes=max(data.get(said.kind, said.members), 1) * said.chunk_bytes,
        latency_ns=it.latency_ns,
        bytes_per_s=it.rate,
    )


def cache_device(said: CacheTable, pages: int, seed: int) -> TierParameters:
    """The fast tier: the drives' own capacity, or what the cache needs of them."""
    from hybridsim.scenario.building import caches

    needed = max(pages, 1) * said.page_bytes + caches.metadata_bytes(said, pages)
    rows = -(-needed // (said.members * said.chunk_bytes))
    member_bytes = max(rows * said.chunk_bytes, said.drive.capacity_bytes)
    drive = device(said.drive, member_bytes, seed)
    if isinstance(drive, HddParameters):
        drive.window, drive.age_limit_ns = 1, 0
    whole = capacity(Level.STRIPE, said.members, said.chunk_bytes, member_bytes, Spread.NEAR)
    has_fua = getattr(said.drive, "fua", True)
    return TierParameters(
        Level.STRIPE, said.members, said.chunk_bytes, drive, whole, has_fua=has_fua
    )


def device(drive: Any, capacity_bytes: int, seed: int, short: bool = False) -> Any:
    """A drive of a capacity."""
    if isinstance(drive, HardDisk):
        found = hdd_parameters(drive, capacity_bytes, short)
        del found["cylinders"]
        found["zone_byte"] = found["zone_byte"][:-1]  # the last is where the disk ends
        return HddParameters(**found)
    if isinstance(drive, CloudVolume):
        made = volume_timing.parameters(drive)
        limits = [LimitParameters(OPS[each[0]], *each[1:]) for each in made["limits"]]
        reads, writes = made["latency_ns"].tolist()
        rate = made["stream_bytes_per_s"]
        return VolumeParameters(limits, reads, writes, rate, capacity_bytes, seed)
    if drive.flash is not None:
        return FlashParameters(**flash_timing(drive, drive.flash, capacity_bytes))
    return SsdParameters(**timing(drive)._asdict() | {"capacity_bytes": capacity_bytes})


def cache_of(said: CacheTable, pages: int, seed: int, origin_bytes: int) -> Any:
    """An empty cache; one of no pages passes everything on."""
    if pages == 0:
        return CacheParameters(said.page_bytes, 0, Mode.READ_ONLY, 0, 1, ("touches", 1))
    kinds = {"bcache": bcache, "dm-cache": dm_cache, "dm-writecache": writecache}
    kinds |= {"open-cas": open_cas}
    return kinds.get(said.kind, page_cache)(said, pages, seed)


def page_cache(said: Any, pages: int, seed: int) -> CacheParameters:
    told = {
        "touches": [said.touches],
        "learned": [round(said.write_price * 1000)],
        "probabilistic": [int(parse_percent(said.probability) * 1_000_000), seed],
        "request-size": [said.request_max_bytes],
    }
    high = max(1, int(parse_percent(said.dirty_high) * pages))
    budget = said.budget
    return CacheParameters(
        page_bytes=said.page_bytes,
        pages=pages,
        mode=MODES[said.mode],
        cutoff_bytes=said.sequential_cutoff_bytes,
        fills_max=said.max_fills,
        admission=(said.admission, *told.get(said.admission, [])),
        replacement=said.replacement,
        granule_bytes=said.granule_bytes,
        fill=Fill.PIGGYBACK if said.fill == "piggyback" else Fill.RE_READ,
        fill_when=FillWhen[said.fill_when.upper()],
        fill_piece_bytes=said.fill_piece_bytes,
        fill_rate=said.fill_rate or 0,
        sub_page=said.sub_page,
        discards=said.discards,
        dirty_high=high,
        dirty_low=min(int(parse_percent(said.dirty_low) * pages), high - 1),
        clean_above=min(int(parse_percent(said.clean_above) * pages), high - 1),
        idle_ns=said.clean_idle_ns,
        cleans_max=said.max_cleans,
        merge_pages=said.merge_pages,
        clean_window=128 if said.clean_order == "elevator" else 1,
        clean_rate=said.clean_rate or 0,
        budget=budget
        and BudgetParameters(budget.interval(pages), budget.burst(pages), budget.by_access),
    )


def bcache(said: Any, pages: int, seed: int) -> BcacheParameters:
    bucket_bytes = said.bucket_bytes(pages)
    return BcacheParameters(
        bucket_bytes,
        pages * said.page_bytes // bucket_bytes,
        said.block_bytes,
        BcacheMode[said.mode.upper()],
        Reuse[said.replacement.upper()],
        said.sequential_cutoff_bytes,
        said.congested_read_ns // 1000,
        said.congested_write_ns // 1000,
        said.writeback_percent,
        said.writeback_delay_ns,
        seed=seed,
    )


def dm_cache(said: Any, pages: int, seed: int) -> DmCacheParameters:
    mode = DmMode[said.mode.upper()]
    return DmCacheParameters(said.page_bytes, pages, mode, said.threshold_bytes)


def writecache(said: Any, pages: int, seed: int) -> WritecacheParameters:
    high, low = (parse_percent(share) for share in (said.high_watermark, said.low_watermark))
    marks = int(high * pages), int(low * pages)
    blocks = said.autocommit_blocks
    return WritecacheParameters(said.page_bytes, pages, *marks, said.pause_writeback_ns, blocks)


def open_cas(said: Any, pages: int, seed: int) -> OpenCasParameters:
    return OpenCasParameters(
        said.line_bytes,
        pages,
        CasMode[said.mode.upper()],
        promotion=Promotion[said.promotion.upper()],
        insertion_threshold=said.insertion_threshold,
        trigger_lines=int(parse_percent(said.trigger_threshold) * pages),
        cutoff=Cutoff[said.sequential_cutoff_policy.upper()],
        cutoff_bytes=said.sequential_cutoff_bytes,
        cleaning=Cleaning[said.cleaning.upper()],
        wake_ns=said.wake_ns,
        staleness_ns=said.staleness_time_ns,
        activity_ns=said.activity_threshold_ns,
        flush_lines=said.flush_lines,
    )
