"""From a scenario to the machine that it describes; caches.py builds those."""

from __future__ import annotations

from typing import Any

from hybridsim.caches.page.preload import COLD_START, WarmStart
from hybridsim.engine.machine import Machine
from hybridsim.foundation.codes import Level, Replay
from hybridsim.jit.events import FAST, SLOW
from hybridsim.requests.host import Host
from hybridsim.requests.source import Source
from hybridsim.scenario import Backing, Scenario
from hybridsim.scenario.building import caches
from hybridsim.scenario.caches import CacheTable
from hybridsim.scenario.controller import ControllerDram
from hybridsim.scenario.levels import KINDS, SPREADS, row_chunks
from hybridsim.storage.controller import Controller
from hybridsim.storage.devices import HDD, SSD, Flash, Volume, volume_timing
from hybridsim.storage.devices.flash_timing import flash_timing
from hybridsim.storage.devices.hdd_geometry import ORDERS, hdd_parameters
from hybridsim.storage.devices.ssd_timing import timing
from hybridsim.storage.drives import CloudVolume, HardDisk, SolidState
from hybridsim.storage.raid import Tier

REPLAYS = {"open": Replay.OPEN, "closed": Replay.CLOSED, "think": Replay.THINK}


def machine(
    scenario: Scenario,
    mode: str,
    volume_bytes: int,
    pages: int,
    warm: WarmStart = COLD_START,
) -> Machine:
    """Build the machine for a volume of that size, with a cache of `pages` pages (0: none).

    `mode` is open, closed or think; a scenario may leave it to be found out.
    """
    slow = slow_tier(scenario.backing, volume_bytes, scenario.seed)
    place = caches.Place(pages, slow.capacity_bytes, scenario.seed, warm)
    return Machine.new(
        Source.new(int(REPLAYS[mode]), scenario.replay.depth),
        caches.cache(scenario.cache, place),
        slow,
        fast_tier(scenario.cache, pages, scenario.seed + 1),
        host(scenario),
    )


def host(scenario: Scenario) -> Host:
    """Build the host in front of the cache."""
    said = scenario.host
    return Host.new(said.max_iops or 0, said.max_bandwidth or 0, said.overhead_ns)


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
        path_ns=said.path_latency_ns,
        has_fua=knows_fua(said.drive),
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
    metadata_bytes = caches.metadata_bytes(said, pages)
    cache_bytes = max(pages, 1) * said.page_bytes + metadata_bytes
    rows = -(-cache_bytes // (said.members * said.chunk_bytes))
    needed = max(rows * said.chunk_bytes, said.drive.capacity_bytes)
    device = bank(said.drive, said.members, needed, 1, 0, seed=seed)
    return Tier.new(
        FAST,
        int(Level.STRIPE),
        said.members,
        said.chunk_bytes,
        device,
        has_fua=knows_fua(said.drive),
    )


def knows_fua(drive: Any) -> bool:
    """Tell whether a drive writes to its medium when asked to, without a flush behind."""
    return not isinstance(drive, SolidState) or drive.fua


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
