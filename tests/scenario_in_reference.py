"""A scenario file as parameters of the reference, as scenario/building/ makes it for the engine.

The timing of a drive comes from the functions that both share; how drives form an array, and
the parameters of the caches, are derived here independently.
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
    Kernel,
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
    site: Scenario, mode: Replay, volume_bytes: int, pages: int, requests: list[Request]
) -> Simulated:
    """Return the machine and its requests."""
    slow = array(site.backing, volume_bytes, site.seed)
    cache = cache_of(site.cache, pages, site.seed, slow.capacity_bytes)
    host = HostParameters(
        site.host.max_iops or 0, site.host.max_bandwidth or 0, site.host.overhead_ns
    )
    source = SourceParameters(mode, site.replay.depth, site.replay.speed)
    fast = cache_device(site.cache, pages, site.seed + 1)
    throttle = throttle_of(site) if pages else None
    return Simulated(requests, source, cache, slow, fast, host, dram(site.backing), throttle)


def throttle_of(site: Scenario) -> ThrottleParameters | None:
    """Return the throttle of background writes."""
    backing, drive = site.backing, site.backing.drive
    targets = {"off": 0, "auto": 0}
    is_cleaned = site.cache.kind in ("bcache", "dm-cache", "dm-writecache")
    if is_cleaned and backing.members == 1 and not backing.controller:
        targets["auto"] = {"hdd": 75_000_000, "ssd": 2_000_000}.get(drive.kind, 0)
    target_ns = targets.get(backing.writeback_throttle)
    if target_ns is None:
        target_ns = parse_time(backing.writeback_throttle)
    if not target_ns:
        return None
    if drive.kind == "hdd":
        has_cache = bool(drive.write_cache_bytes) and backing.write_cache == "drive"
    else:
        has_cache = drive.kind == "ssd" and not drive.power_loss_protection
    return ThrottleParameters(target_ns, 256, has_cache)


def array(backing: Backing, volume_bytes: int, seed: int) -> TierParameters:
    """Return the slow tier."""
    member_bytes = backing.member_bytes(volume_bytes)
    drive = device(backing.drive, member_bytes, seed, backing.stroke == "short")
    if isinstance(drive, HddParameters):
        drive.window, drive.age_limit_ns = backing.window, backing.age_limit_ns
        drive.order = ORDERS.get(backing.scheduler, drive.order)
        if backing.write_cache == "off" and not backing.drive.power_loss_protection:
            drive.write_cache_bytes = 0
    level, spread = LEVELS[backing.kind], Spread[backing.layout.upper()]
    new = backing.rebuild
    return TierParameters(
        level,
        backing.members,
        backing.chunk_bytes,
        drive,
        capacity(level, backing.members, backing.chunk_bytes, member_bytes, spread),
        spread=spread,
        rmw_level=backing.rmw_level,
        failed=list(backing.failed),
        rebuild=RebuildParameters(**vars(new)) if new else None,
        queue_depth=backing.queue_depth,
        path_ns=backing.path_latency_ns,
        has_fua=getattr(backing.drive, "fua", True),
    )


def dram(backing: Backing) -> ControllerParameters | None:
    """Return the parameters of the controller's DRAM."""
    it = backing.controller
    if it is None:
        return None
    data = {
        "raid5": backing.members - 1,
        "raid6": backing.members - 2,
        "raid10": backing.members // 2,
    }
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
        stripe_bytes=max(data.get(backing.kind, backing.members), 1) * backing.chunk_bytes,
        latency_ns=it.latency_ns,
        bytes_per_s=it.rate,
    )


def cache_device(cache: CacheTable, pages: int, seed: int) -> TierParameters:
    """Return the fast tier, with the drives' own capacity or the part that the cache needs."""
    from hybridsim.scenario.building import caches

    needed = max(pages, 1) * cache.page_bytes + caches.metadata_bytes(cache, pages)
    rows = -(-needed // (cache.members * cache.chunk_bytes))
    member_bytes = max(rows * cache.chunk_bytes, cache.drive.capacity_bytes)
    drive = device(cache.drive, member_bytes, seed)
    if isinstance(drive, HddParameters):
        drive.window, drive.age_limit_ns = 1, 0
    whole = capacity(Level.STRIPE, cache.members, cache.chunk_bytes, member_bytes, Spread.NEAR)
    has_fua = getattr(cache.drive, "fua", True)
    return TierParameters(
        Level.STRIPE, cache.members, cache.chunk_bytes, drive, whole, has_fua=has_fua
    )


def device(drive: Any, capacity_bytes: int, seed: int, short: bool = False) -> Any:
    """Return a drive of this capacity."""
    if isinstance(drive, HardDisk):
        disk = hdd_parameters(drive, capacity_bytes, short)
        del disk["cylinders"]
        disk["zone_byte"] = disk["zone_byte"][:-1]  # the last one is the end of the disk
        return HddParameters(**disk)
    if isinstance(drive, CloudVolume):
        derived = volume_timing.parameters(drive)
        limits = [LimitParameters(OPS[each[0]], *each[1:]) for each in derived["limits"]]
        reads, writes = derived["latency_ns"].tolist()
        rate = derived["stream_bytes_per_s"]
        return VolumeParameters(limits, reads, writes, rate, capacity_bytes, seed)
    if drive.flash is not None:
        return FlashParameters(**flash_timing(drive, drive.flash, capacity_bytes))
    return SsdParameters(**timing(drive)._asdict() | {"capacity_bytes": capacity_bytes})


def cache_of(cache: CacheTable, pages: int, seed: int, origin_bytes: int) -> Any:
    """Return an empty cache; a cache without pages passes every request on."""
    if pages == 0:
        return CacheParameters(cache.page_bytes, 0, Mode.READ_ONLY, 0, 1, ("touches", 1))
    kinds = {"bcache": bcache, "dm-cache": dm_cache, "dm-writecache": writecache}
    kinds |= {"open-cas": open_cas}
    return kinds.get(cache.kind, page_cache)(cache, pages, seed)


def page_cache(cache: Any, pages: int, seed: int) -> CacheParameters:
    parameters = {
        "touches": [cache.touches],
        "learned": [round(cache.write_price * 1000)],
        "probabilistic": [int(parse_percent(cache.probability) * 1_000_000), seed],
        "request-size": [cache.request_max_bytes],
    }
    high = max(1, int(parse_percent(cache.dirty_high) * pages))
    budget = cache.budget
    return CacheParameters(
        page_bytes=cache.page_bytes,
        pages=pages,
        mode=MODES[cache.mode],
        cutoff_bytes=cache.sequential_cutoff_bytes,
        fills_max=cache.max_fills,
        admission=(cache.admission, *parameters.get(cache.admission, [])),
        replacement=cache.replacement,
        granule_bytes=cache.granule_bytes,
        fill=Fill.PIGGYBACK if cache.fill == "piggyback" else Fill.RE_READ,
        fill_when=FillWhen[cache.fill_when.upper()],
        fill_piece_bytes=cache.fill_piece_bytes,
        fill_rate=cache.fill_rate or 0,
        sub_page=cache.sub_page,
        discards=cache.discards,
        dirty_high=high,
        dirty_low=min(int(parse_percent(cache.dirty_low) * pages), high - 1),
        clean_above=min(int(parse_percent(cache.clean_above) * pages), high - 1),
        idle_ns=cache.clean_idle_ns,
        cleans_max=cache.max_cleans,
        merge_pages=cache.merge_pages,
        clean_window=128 if cache.clean_order == "elevator" else 1,
        clean_rate=cache.clean_rate or 0,
        budget=budget
        and BudgetParameters(budget.interval(pages), budget.burst(pages), budget.by_access),
    )


def bcache(cache: Any, pages: int, seed: int) -> BcacheParameters:
    bucket_bytes = cache.bucket_bytes(pages)
    return BcacheParameters(
        bucket_bytes,
        pages * cache.page_bytes // bucket_bytes,
        cache.block_bytes,
        BcacheMode[cache.mode.upper()],
        Reuse[cache.replacement.upper()],
        cache.sequential_cutoff_bytes,
        cache.congested_read_ns // 1000,
        cache.congested_write_ns // 1000,
        cache.writeback_percent,
        cache.writeback_delay_ns,
        seed=seed,
        kernel={"6.1": Kernel.LINUX_6_1, "6.12": Kernel.LINUX_6_12}[cache.kernel],
    )


def dm_cache(cache: Any, pages: int, seed: int) -> DmCacheParameters:
    mode = DmMode[cache.mode.upper()]
    return DmCacheParameters(cache.page_bytes, pages, mode, cache.threshold_bytes)


def writecache(cache: Any, pages: int, seed: int) -> WritecacheParameters:
    high, low = (parse_percent(share) for share in (cache.high_watermark, cache.low_watermark))
    marks = int(high * pages), int(low * pages)
    blocks = cache.autocommit_blocks
    return WritecacheParameters(cache.page_bytes, pages, *marks, cache.pause_writeback_ns, blocks)


def open_cas(cache: Any, pages: int, seed: int) -> OpenCasParameters:
    return OpenCasParameters(
        cache.line_bytes,
        pages,
        CasMode[cache.mode.upper()],
        promotion=Promotion[cache.promotion.upper()],
        insertion_threshold=cache.insertion_threshold,
        trigger_lines=int(parse_percent(cache.trigger_threshold) * pages),
        cutoff=Cutoff[cache.sequential_cutoff_policy.upper()],
        cutoff_bytes=cache.sequential_cutoff_bytes,
        cleaning=Cleaning[cache.cleaning.upper()],
        wake_ns=cache.wake_ns,
        staleness_ns=cache.staleness_time_ns,
        activity_ns=cache.activity_threshold_ns,
        flush_lines=cache.flush_lines,
        query_ns=cache.stats_interval_ns,
        query_start_ns=cache.stats_start_ns,
    )
