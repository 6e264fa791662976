"""From a scenario to the machine that it describes."""

from __future__ import annotations

from typing import Any

from hybridsim.caches import DmCache, DmWritecache, OpenCas, PageCache
from hybridsim.caches import opencas as open_cas_parts
from hybridsim.caches import writecache as writecache_parts
from hybridsim.caches.dmcache import METADATA_BYTES
from hybridsim.codes import (
    CasMode,
    Cleaning,
    Cutoff,
    DmMode,
    Fill,
    FillWhen,
    Level,
    Mode,
    Promotion,
    Replay,
)
from hybridsim.controller import Controller
from hybridsim.devices import HDD, SSD, Flash, Volume, volume_timing
from hybridsim.devices.flash_timing import flash_timing
from hybridsim.devices.hdd_geometry import ORDERS, hdd_parameters
from hybridsim.devices.ssd_timing import timing
from hybridsim.drives import CloudVolume, HardDisk
from hybridsim.events import FAST, SLOW
from hybridsim.host import Host
from hybridsim.levels import KINDS, SPREADS, row_chunks
from hybridsim.machine import Machine
from hybridsim.policies import ADMISSION, REPLACEMENT, make
from hybridsim.raid import Tier
from hybridsim.scenario import Backing, Cache, Scenario
from hybridsim.scenario.controller import ControllerDram
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.writecache import WritecacheTable
from hybridsim.source import Source
from hybridsim.units import parse_percent

CacheTable = Cache | DmCacheTable | OpenCasTable | WritecacheTable
MODES = {
    "read-only": Mode.READ_ONLY,
    "write-around": Mode.READ_ONLY,  # another name for the same
    "write-through": Mode.WRITE_THROUGH,
    "write-back": Mode.WRITE_BACK,
}
FILLS = {"re-read": Fill.RE_READ, "piggyback": Fill.PIGGYBACK}
FILLED_WHEN = {"background": FillWhen.BACKGROUND, "foreground": FillWhen.FOREGROUND}
ELEVATOR = 128  # pages of which the next one on the disks is cleaned
REPLAYS = {"open": Replay.OPEN, "closed": Replay.CLOSED, "think": Replay.THINK}
IDS = 1 << 14  # pages that there is room for at first


def machine(scenario: Scenario, mode: str, volume_bytes: int, pages: int) -> Machine:
    """Build the machine for a volume of that size, with a cache of `pages` pages (0: none).

    `mode` is open, closed or think; a scenario may leave it to be found out.
    """
    slow = slow_tier(scenario.backing, volume_bytes, scenario.seed)
    return Machine.new(
        Source.new(int(REPLAYS[mode]), scenario.replay.depth),
        cache(scenario.cache, pages, slow.capacity_bytes, scenario.seed),
        slow,
        fast_tier(scenario.cache, pages, scenario.seed + 1),
        host(scenario),
    )


def host(scenario: Scenario) -> Host:
    """Build the host in front of the cache."""
    said = scenario.host
    return Host.new(said.max_iops or 0, said.max_bandwidth or 0, said.overhead_ns)


def cache(said: CacheTable, pages: int, origin_bytes: int, seed: int) -> Any:
    """Build an empty cache."""
    if isinstance(said, DmCacheTable):
        return dm_cache(said, pages, origin_bytes) if pages else no_cache(said.page_bytes)
    if isinstance(said, OpenCasTable):
        return open_cas(said, pages, origin_bytes) if pages else no_cache(said.page_bytes)
    if isinstance(said, WritecacheTable):
        return dm_writecache(said, pages) if pages else no_cache(said.page_bytes)
    parameters = said.policy_parameters | {"seed": seed}
    return PageCache.new(
        page_bytes=said.page_bytes,
        pages=pages,
        mode=int(MODES[said.mode]),
        cutoff_bytes=said.sequential_cutoff_bytes,
        fills_max=said.max_fills,
        admission=make(ADMISSION[said.admission], IDS, pages, parameters),
        replacement=make(REPLACEMENT[said.replacement], IDS, pages, parameters),
        ids=IDS,
        granule_bytes=said.granule_bytes,
        parameters=fills_and_cleans(said, pages),
    )


def fills_and_cleans(said: Cache, pages: int) -> dict[str, int]:
    """Return how a page cache fills pages, and cleans them where it writes back."""
    high = max(1, int(parse_percent(said.dirty_high) * pages))
    return {
        "fill": int(FILLS[said.fill]),
        "fill_when": int(FILLED_WHEN[said.fill_when]),
        "fill_piece_bytes": said.fill_piece_bytes,
        "fill_rate": said.fill_rate or 0,
        "sub_page": int(said.sub_page),
        "discards": int(said.discards),
        "dirty_high": high,
        "dirty_low": min(int(parse_percent(said.dirty_low) * pages), high - 1),
        "clean_above": min(int(parse_percent(said.clean_above) * pages), high - 1),
        "idle_ns": said.clean_idle_ns,
        "cleans_max": said.max_cleans,
        "merge_pages": said.merge_pages,
        "clean_window": ELEVATOR if said.clean_order == "elevator" else 1,
        "clean_rate": said.clean_rate or 0,
    }


def dm_cache(said: DmCacheTable, blocks: int, origin_bytes: int) -> DmCache:
    """Build an empty dm-cache."""
    mode = int(DmMode[said.mode.upper()])
    return DmCache.new(said.page_bytes, blocks, mode, said.threshold_bytes, origin_bytes)


def open_cas(said: OpenCasTable, lines: int, origin_bytes: int) -> OpenCas:
    """Build an empty Open CAS."""
    return OpenCas.new(
        said.line_bytes,
        lines,
        int(CasMode[said.mode.upper()]),
        origin_bytes,
        promotion=int(Promotion[said.promotion.upper()]),
        insertion_threshold=said.insertion_threshold,
        trigger_lines=said.trigger_lines(lines),
        cutoff=int(Cutoff[said.sequential_cutoff_policy.upper()]),
        cutoff_bytes=said.sequential_cutoff_bytes,
        cleaning=int(Cleaning[said.cleaning.upper()]),
        wake_ns=said.wake_ns,
        staleness_ns=said.staleness_time_ns,
        activity_ns=said.activity_threshold_ns,
        flush_lines=said.flush_lines,
    )


def dm_writecache(said: WritecacheTable, blocks: int) -> DmWritecache:
    """Build an empty dm-writecache."""
    pause_ns, autocommit_blocks = said.pause_writeback_ns, said.autocommit_blocks
    marks = said.watermarks(blocks)
    return DmWritecache.new(said.page_bytes, blocks, *marks, pause_ns, autocommit_blocks)


def no_cache(page_bytes: int) -> PageCache:
    """Build what passes everything on."""
    mode = int(Mode.READ_ONLY)
    admission, replacement = ADMISSION["touches"].new(IDS, 0), REPLACEMENT["lru"].new(IDS, 0)
    return PageCache.new(page_bytes, 0, mode, 0, 1, admission, replacement, IDS)


def slow_tier(said: Backing, volume_bytes: int, seed: int = 0) -> Tier | Controller:
    """Build the idle array below the cache, behind its controller if it has one."""
    member_bytes = said.member_bytes(volume_bytes)
    how: dict[str, int] = {"seed": seed}
    if said.scheduler in ORDERS:
        how["order"] = int(ORDERS[said.scheduler])
    if said.write_cache == "off":
        how["write_cache_bytes"] = 0
    queue = (said.window, said.age_limit_ns)
    short = said.stroke == "short"
    device = bank(said.drive, said.members, member_bytes, *queue, short, **how)
    new = said.rebuild
    array = Tier.new(
        SLOW,
        int(KINDS[said.kind].level),
        said.members,
        said.chunk_bytes,
        device,
        spread=int(SPREADS[said.layout]),
        rmw_level=said.rmw_level,
        rotates=isinstance(said.drive, HardDisk),
        failed=said.failed,
        rebuild=(new.member, new.min_bytes_per_s, new.max_bytes_per_s) if new else None,
        queue_depth=said.queue_depth,
    )
    if said.controller is None:
        return array
    stripe_bytes = row_chunks(said.kind, said.members) * said.chunk_bytes
    return controller(said.controller, array, stripe_bytes)


def controller(said: ControllerDram, array: Tier, stripe_bytes: int) -> Controller:
    """Put empty DRAM in front of an array."""
    parameters = {
        "protected": int(said.protected),
        "high_lines": said.share_of_lines(said.high_water),
        "low_lines": said.share_of_lines(said.low_water),
        "oldest_above_lines": said.share_of_lines(said.oldest_first_above),
        "idle_ns": said.idle_ns,
        "destages_max": said.max_destages,
        "window_bytes": said.window_bytes,
        "windows": said.read_memory_bytes // said.window_bytes,
        "ahead_bytes": said.read_ahead_bytes,
        "after": said.sequential_after,
        "streams": said.streams,
        "line_bytes": said.line_bytes,
        "lines": said.lines,
        "stripe_bytes": stripe_bytes,
        "latency_ns": said.latency_ns,
        "bytes_per_s": said.rate,
    }
    return Controller.new(array, parameters)


def fast_tier(said: CacheTable, pages: int, seed: int = 0) -> Tier:
    """Build the idle cache device: drives that together hold the cache and its metadata."""
    metadata_bytes = METADATA_BYTES
    if isinstance(said, OpenCasTable):
        metadata_bytes = open_cas_parts.metadata_bytes(max(pages, 1), said.line_bytes)
    if isinstance(said, WritecacheTable):
        metadata_bytes = writecache_parts.metadata_bytes(pages)
    cache_bytes = max(pages, 1) * said.page_bytes + metadata_bytes
    rows = -(-cache_bytes // (said.members * said.chunk_bytes))
    needed = max(rows * said.chunk_bytes, said.drive.capacity_bytes)
    device = bank(said.drive, said.members, needed, 1, 0, seed=seed)
    return Tier.new(FAST, int(Level.STRIPE), said.members, said.chunk_bytes, device)


def bank(
    drive: Any,
    members: int,
    capacity_bytes: int,
    window: int,
    age_limit_ns: int,
    short_stroke: bool = False,
    seed: int = 0,
    **how: int,
) -> Any:
    """Build idle drives of one model; what follows the capacity is of hard disks only."""
    if isinstance(drive, CloudVolume):
        return Volume.new(
            members, **volume_timing.parameters(drive), capacity_bytes=capacity_bytes, seed=seed
        )
    if isinstance(drive, HardDisk):
        how |= {"window": window, "age_limit_ns": age_limit_ns}
        return HDD.new(members, hdd_parameters(drive, capacity_bytes, short_stroke, **how))
    if drive.flash is not None:
        return Flash.new(members, flash_timing(drive, drive.flash, capacity_bytes))
    return SSD.new(members, timing(drive)._asdict() | {"capacity_bytes": capacity_bytes})
