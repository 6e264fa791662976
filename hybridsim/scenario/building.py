"""Build the simulated machine that a scenario describes; a kind of cache is a line of CACHES."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hybridsim.caches import (
    Bcache,
    DmCache,
    DmWritecache,
    OpenCas,
    PageCache,
    dmcache,
    opencas,
    writecache,
)
from hybridsim.caches.dmcache.migrations import COPIER as DM_CACHE_COPIER
from hybridsim.caches.nothing import NoCache
from hybridsim.caches.opencas.ways import LET_IN
from hybridsim.caches.page.fills import COLD_START, WarmStart
from hybridsim.caches.policies import ADMISSION, REPLACEMENT, pair
from hybridsim.caches.policies.memory import learner, recall
from hybridsim.caches.writecache.write_back import COPIER
from hybridsim.engine.machine import Machine
from hybridsim.foundation.arrays import doubled
from hybridsim.foundation.codes import Level, Replay, Spread
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.machine_parameters import (
    ArrayParameters,
    HostParameters,
    RebuildParameters,
    ThrottleParameters,
)
from hybridsim.foundation.units import human_size
from hybridsim.jit.events import FAST, SLOW
from hybridsim.jit.lists import NOTHING
from hybridsim.requests.host import Host
from hybridsim.requests.source import Source
from hybridsim.scenario import Backing, Cache, Scenario
from hybridsim.scenario.backing import KINDS
from hybridsim.scenario.bcache import BcacheTable
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.event import check_no_events
from hybridsim.scenario.machine import CacheTable
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.writecache import WritecacheTable
from hybridsim.storage.controller import Controller
from hybridsim.storage.devices.hdd_geometry import ORDERS
from hybridsim.storage.drives import HardDisk, Placement, SolidState
from hybridsim.storage.raid import Tier
from hybridsim.storage.throttle import Throttle

# Event that wakes a thread of a cache, which sleeps while a write of it is held back.
SLEEPERS = {"dm-cache": DM_CACHE_COPIER, "dm-writecache": COPIER, "open-cas": LET_IN}
THROTTLED = {"bcache", *SLEEPERS}  # kinds of cache with background writes
THROTTLE_QUEUE = 256  # nr_requests of a queue, unless its driver sets a depth


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
    place = Place(pages, slow.capacity_bytes, scenario.seed, warm)
    return Machine.new(
        Source.new(int(Replay[mode.upper()]), scenario.replay.depth),
        cache(scenario.cache, place),
        slow,
        fast_tier(scenario.cache, pages, scenario.seed + 1),
        Host.new(scenario.host.parameters_of(HostParameters)),
    )


def slow_tier(table: Backing, volume_bytes: int, seed: int = 0) -> Tier | Controller:
    """Build the idle array below the cache, behind its controller if it has one."""
    member_bytes = table.member_bytes(volume_bytes)
    how = {"window": table.window, "age_limit_ns": table.age_limit_ns}
    if table.scheduler in ORDERS:
        how["order"] = ORDERS[table.scheduler]
    if table.write_cache == "off":
        how["write_cache_bytes"] = 0
    use = Placement(member_bytes, seed, table.stroke == "short", how)
    device = table.drive.bank(table.members, use)
    rebuild = table.rebuild
    parameters = table.parameters_of(
        ArrayParameters,
        level=KINDS[table.kind].level,
        spread=Spread[table.layout.upper()],
        failed=list(table.failed),
        rebuild=RebuildParameters(**vars(rebuild)) if rebuild else None,
        has_fua=table.drive.has_fua,
    )
    array = Tier.new(SLOW, parameters, device, rotates=table.drive.rotates)
    if table.controller is None:
        return array
    stripe_bytes = table.form.row_chunks * table.chunk_bytes
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
    cache_bytes = max(pages, 1) * table.page_bytes + metadata_bytes(table, pages)
    rows = -(-cache_bytes // (table.members * table.chunk_bytes))
    needed = max(rows * table.chunk_bytes, table.drive.capacity_bytes)
    device = table.drive.bank(table.members, Placement(needed, seed))
    form = ArrayParameters(
        Level.STRIPE, table.members, table.chunk_bytes, has_fua=table.drive.has_fua
    )
    return Tier.new(FAST, form, device)


# Caches.

CORE_LINES_MAX = 1 << 36  # a bitmap of 8 GiB
IDS = 1 << 14  # initial capacity of the page tables


class Place(NamedTuple):
    """Size and surroundings of a cache to build."""

    pages: int
    origin_bytes: int  # of the slow tier
    seed: int
    warm: WarmStart = COLD_START  # for a page cache


def cache(table: CacheTable, place: Place) -> Any:
    """Build an empty cache; with 0 pages it passes all requests through."""
    if place.pages == 0 and table.kind != "page":
        return NoCache(table.page_bytes)
    return CACHES[type(table)].build(table, place)


def metadata_bytes(table: CacheTable, pages: int) -> int:
    """Return the bytes of metadata that the cache keeps on the fast tier."""
    return CACHES[type(table)].metadata_bytes(table, pages)


def page_cache(table: Cache, place: Place) -> PageCache:
    """Build a page cache, empty except for the pages of a warm start."""
    pages, memory = place.pages, place.warm.memory
    known = len(memory.numbers) if memory else 0
    ids = doubled(IDS, IDS, known + len(place.warm.kept))
    parameters = table.policy_parameters | {"seed": place.seed, "page_bytes": table.page_bytes}
    admission, replacement = pair(
        ADMISSION[table.admission], REPLACEMENT[table.replacement], ids, pages, parameters
    )
    policy = learner(admission, replacement) if memory else None
    if policy and memory:
        recall(policy, memory)
    return PageCache.new(model(table, place), admission, replacement, ids, place.warm)


def model(table: CacheTable, place: Place) -> Any:
    """Return the parameters of the model of a cache at its place."""
    return table.parameters(place.pages, place.seed)


def open_cas(table: OpenCasTable, place: Place) -> OpenCas:
    """Build an empty Open CAS cache; it keeps one bit for each line of the backing volume."""
    if place.origin_bytes // table.line_bytes > CORE_LINES_MAX:
        raise ScenarioError(
            f"Open CAS keeps 1 bit for each line of the backing volume: "
            f"{human_size(place.origin_bytes // table.line_bytes // 8)} "
            f"for {human_size(place.origin_bytes)}; use longer lines (--cache-line 64KiB), "
            "or check the trace for a wrong offset"
        )
    return OpenCas.new(model(table, place), place.origin_bytes)


class Kind(NamedTuple):
    """Constructor of one kind of cache, empty, and the size of its metadata on the fast tier."""

    build: Callable[[Any, Place], Any]
    metadata_bytes: Callable[[Any, int], int] = lambda table, pages: 0


CACHES: dict[type, Kind] = {
    Cache: Kind(page_cache),
    BcacheTable: Kind(lambda table, place: Bcache.new(model(table, place))),  # in its buckets
    DmCacheTable: Kind(
        lambda table, place: DmCache.new(model(table, place), place.origin_bytes),
        lambda table, blocks: dmcache.METADATA_BYTES,
    ),
    WritecacheTable: Kind(
        lambda table, place: DmWritecache.new(model(table, place)),
        lambda table, blocks: writecache.metadata_bytes(blocks),
    ),
    OpenCasTable: Kind(
        open_cas, lambda table, lines: opencas.metadata_bytes(max(lines, 1), table.line_bytes)
    ),
}
