"""A scenario file as parameters of the reference, as scenario/building.py makes it for the engine.

The timing of a drive and the parameters of a cache come from the functions that both share; how
drives form an array is derived here independently.
"""

from __future__ import annotations

from typing import Any

from scenarios import Scenario as Simulated
from scenarios import capacity

from hybridsim.foundation.codes import (
    Level,
    Mode,
    Order,
    Replay,
    Spread,
)
from hybridsim.foundation.units import parse_percent, parse_time
from hybridsim.reference import (
    CacheParameters,
    ControllerParameters,
    HddParameters,
    HostParameters,
    RebuildParameters,
    Request,
    SourceParameters,
    ThrottleParameters,
    TierParameters,
)
from hybridsim.scenario import Backing, Scenario
from hybridsim.scenario.machine import CacheTable
from hybridsim.storage.devices import volume as volume_timing
from hybridsim.storage.devices.hdd_geometry import hdd_parameters
from hybridsim.storage.devices.ssd_timing import flash_timing, timing
from hybridsim.storage.drives import CloudVolume, HardDisk

LEVELS = {"single": Level.STRIPE} | {
    name: Level[name.upper()] for name in ("linear", "stripe", "raid1", "raid5", "raid6", "raid10")
}
ORDERS = {"sptf": Order.POSITION, "sstf": Order.DISTANCE, "clook": Order.SWEEP}


def in_reference(
    site: Scenario, mode: Replay, volume_bytes: int, pages: int, requests: list[Request]
) -> Simulated:
    """Return the machine and its requests."""
    slow = array(site.backing, volume_bytes, site.seed)
    cache = cache_of(site.cache, pages, site.seed)
    host = HostParameters(
        site.host.max_iops or 0,
        site.host.max_bandwidth or 0,
        site.host.overhead_ns,
        site.host.hold_ns,
        site.host.hold_from,
        site.host.hold_within_ns,
    )
    source = SourceParameters(mode, site.replay.depth, site.replay.speed)
    fast = cache_device(site.cache, pages, site.seed + 1)
    throttle = throttle_of(site) if pages else None
    return Simulated(requests, source, cache, slow, fast, host, dram(site.backing), throttle)


def throttle_of(site: Scenario) -> ThrottleParameters | None:
    """Return the throttle of background writes."""
    backing, drive = site.backing, site.backing.drive
    targets = {"off": 0, "auto": 0}
    is_cleaned = site.cache.kind in ("bcache", "dm-cache", "dm-writecache", "open-cas")
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
        path_latency_ns=backing.path_latency_ns,
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
        max_destages=it.max_destages,
        window_bytes=it.window_bytes,
        windows=it.read_memory_bytes // it.window_bytes,
        read_ahead_bytes=it.read_ahead_bytes,
        sequential_after=it.sequential_after,
        streams=it.streams,
        line_bytes=it.line_bytes,
        lines=lines,
        stripe_bytes=max(data.get(backing.kind, backing.members), 1) * backing.chunk_bytes,
        latency_ns=it.latency_ns,
        rate=it.rate,
    )


def cache_device(cache: CacheTable, pages: int, seed: int) -> TierParameters:
    """Return the fast tier, with the drives' own capacity or the part that the cache needs."""
    from hybridsim.scenario.building import metadata_bytes

    needed = max(pages, 1) * cache.page_bytes + metadata_bytes(cache, pages)
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
        return hdd_parameters(drive, capacity_bytes, short)
    if isinstance(drive, CloudVolume):
        return volume_timing.parameters(drive, capacity_bytes, seed)
    if drive.flash is not None:
        return flash_timing(drive, drive.flash, capacity_bytes)
    return timing(drive, capacity_bytes)


def cache_of(cache: CacheTable, pages: int, seed: int) -> Any:
    """Return an empty cache; a cache without pages passes every request on."""
    if pages == 0:
        return CacheParameters(cache.page_bytes, 0, Mode.READ_ONLY, 0, 1, ("touches", 1))
    return cache.parameters(pages, seed)
