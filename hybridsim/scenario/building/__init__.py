"""Build the simulated machine that a scenario describes; caches.py builds the caches."""

from __future__ import annotations

from typing import Any

from hybridsim.caches.dmcache.migrations import COPIER as DM_CACHE_COPIER
from hybridsim.caches.opencas.ways import LET_IN
from hybridsim.caches.page.preload import COLD_START, WarmStart
from hybridsim.caches.writecache.write_back import COPIER
from hybridsim.engine.machine import Machine
from hybridsim.foundation.codes import Level, Replay
from hybridsim.foundation.machine_parameters import (
    ArrayParameters,
    RebuildParameters,
    ThrottleParameters,
)
from hybridsim.jit.events import FAST, SLOW
from hybridsim.requests.host import Host
from hybridsim.requests.source import Source
from hybridsim.scenario import Backing, Scenario
from hybridsim.scenario.building import caches
from hybridsim.scenario.caches import CacheTable
from hybridsim.scenario.event import check_no_events
from hybridsim.scenario.levels import KINDS, SPREADS, row_chunks
from hybridsim.storage.controller import Controller
from hybridsim.storage.devices.hdd_geometry import ORDERS
from hybridsim.storage.drives import HardDisk, Placement, SolidState
from hybridsim.storage.raid import Tier
from hybridsim.storage.throttle import NOTHING, Throttle

THROTTLED = {
    "bcache",
    "dm-cache",
    "dm-writecache",
    "open-cas",
}  # kinds of cache with background writes
# Event that wakes a thread of a cache, which sleeps while a write of it is held back.
SLEEPERS = {"dm-cache": DM_CACHE_COPIER, "dm-writecache": COPIER, "open-cas": LET_IN}
THROTTLE_QUEUE = 256  # nr_requests of a queue, unless its driver sets a depth
REPLAYS = {"open": Replay.OPEN, "closed": Replay.CLOSED, "think": Replay.THINK}


def machine(
    scenario: Scenario,
    mode: str,
    volume_bytes: int,
    pages: int,
    warm: WarmStart = COLD_START,
    has_life: bool = False,
) -> Machine:
    """Build the machine for a volume of `volume_bytes`, with a cache of `pages` pages (0: none).

    `mode` is "open", "closed" or "think"; the caller resolves a scenario's "auto".  Raises
    UsageError for a scenario with events, unless the caller carries them out (`has_life`).
    """
    if not has_life:
        check_no_events(scenario)
    array = slow_tier(scenario.backing, volume_bytes, scenario.seed)
    kind = scenario.cache.kind if pages > 0 else "none"
    calls = SLEEPERS.get(kind, NOTHING)
    slow = throttle(scenario.backing, array, kind in THROTTLED, calls)
    place = caches.Place(pages, slow.capacity_bytes, scenario.seed, warm)
    return Machine.new(
        Source.new(int(REPLAYS[mode]), scenario.replay.depth),
        caches.cache(scenario.cache, place),
        slow,
        fast_tier(scenario.cache, pages, scenario.seed + 1),
        Host.new(scenario.host.parameters),
    )


def slow_tier(table: Backing, volume_bytes: int, seed: int = 0) -> Tier | Controller:
    """Build the idle array below the cache, behind its controller if it has one."""
    member_bytes = table.member_bytes(volume_bytes)
    how: dict[str, Any] = {}
    if table.scheduler in ORDERS:
        how["order"] = ORDERS[table.scheduler]
    if table.write_cache == "off":
        how["write_cache_bytes"] = 0
    use = Placement(
        member_bytes, seed, table.window, table.age_limit_ns, table.stroke == "short", how
    )
    device = table.drive.bank(table.members, use)
    rebuild = table.rebuild
    parameters = ArrayParameters(
        KINDS[table.kind].level,
        table.members,
        table.chunk_bytes,
        spread=SPREADS[table.layout],
        rmw_level=table.rmw_level,
        failed=list(table.failed),
        rebuild=RebuildParameters(**vars(rebuild)) if rebuild else None,
        queue_depth=table.queue_depth,
        path_ns=table.path_latency_ns,
        has_fua=table.drive.has_fua,
    )
    array = Tier.new(SLOW, parameters, device, rotates=table.drive.rotates)
    if table.controller is None:
        return array
    stripe_bytes = row_chunks(table.kind, table.members) * table.chunk_bytes
    return Controller.new(array, table.controller.parameters(stripe_bytes))


def throttle(
    table: Backing, tier: Tier | Controller, by_default: bool, calls: int = NOTHING
) -> Tier | Controller | Throttle:
    """Put writeback throttling in front of a tier, if the scenario has it.

    `by_default`: whether "auto" is on; `calls`: as of Throttle.
    """
    target_ns = table.throttle_ns(by_default)
    if target_ns == 0:
        return tier
    parameters = ThrottleParameters(target_ns, THROTTLE_QUEUE, has_volatile_cache(table))
    return Throttle.new(tier, parameters, calls=calls)


def has_volatile_cache(table: Backing) -> bool:
    """Return whether a drive reports a volatile write cache to the kernel."""
    drive = table.drive
    if isinstance(drive, HardDisk):
        return table.write_cache == "drive" and drive.write_cache_bytes > 0
    return isinstance(drive, SolidState) and not drive.power_loss_protection


def fast_tier(table: CacheTable, pages: int, seed: int = 0) -> Tier:
    """Build the idle cache device: striped drives that hold the cache and its metadata."""
    metadata_bytes = caches.metadata_bytes(table, pages)
    cache_bytes = max(pages, 1) * table.page_bytes + metadata_bytes
    rows = -(-cache_bytes // (table.members * table.chunk_bytes))
    needed = max(rows * table.chunk_bytes, table.drive.capacity_bytes)
    device = table.drive.bank(table.members, Placement(needed, seed))
    form = ArrayParameters(
        Level.STRIPE, table.members, table.chunk_bytes, has_fua=table.drive.has_fua
    )
    return Tier.new(FAST, form, device)
