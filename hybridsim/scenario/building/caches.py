"""Build an empty cache from the table `cache`.  A new kind: one function, one line of KINDS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hybridsim.caches import Bcache, DmCache, DmWritecache, OpenCas, PageCache
from hybridsim.caches import dmcache as dm_cache_parts
from hybridsim.caches import opencas as open_cas_parts
from hybridsim.caches import writecache as writecache_parts
from hybridsim.caches.nothing import NoCache
from hybridsim.caches.page.preload import COLD_START, WarmStart
from hybridsim.caches.policies import ADMISSION, REPLACEMENT, pair
from hybridsim.caches.policies.memory import learner, recall
from hybridsim.foundation.arrays import doubled
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.units import human_size
from hybridsim.scenario import Cache
from hybridsim.scenario.bcache import BcacheTable
from hybridsim.scenario.caches import CacheTable
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.writecache import WritecacheTable

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
    return KINDS[type(table)].build(table, place)


def metadata_bytes(table: CacheTable, pages: int) -> int:
    """Return the bytes of metadata that the cache keeps on the fast tier."""
    return KINDS[type(table)].metadata_bytes(table, pages)


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
    model = table.parameters(pages, place.seed)
    return PageCache.new(model, admission, replacement, ids, place.warm)


def bcache(table: BcacheTable, place: Place) -> Bcache:
    """Build an empty bcache."""
    return Bcache.new(table.parameters(place.pages, place.seed))


def dm_cache(table: DmCacheTable, place: Place) -> DmCache:
    """Build an empty dm-cache."""
    return DmCache.new(table.parameters(place.pages, place.seed), place.origin_bytes)


def dm_writecache(table: WritecacheTable, place: Place) -> DmWritecache:
    """Build an empty dm-writecache."""
    return DmWritecache.new(table.parameters(place.pages, place.seed))


def open_cas(table: OpenCasTable, place: Place) -> OpenCas:
    """Build an empty Open CAS cache; it keeps one bit for each line of the backing volume."""
    if place.origin_bytes // table.line_bytes > CORE_LINES_MAX:
        raise ScenarioError(
            f"Open CAS keeps 1 bit for each line of the backing volume: "
            f"{human_size(place.origin_bytes // table.line_bytes // 8)} "
            f"for {human_size(place.origin_bytes)}; use longer lines (--cache-line 64KiB), "
            "or check the trace for a wrong offset"
        )
    return OpenCas.new(table.parameters(place.pages, place.seed), place.origin_bytes)


class Kind(NamedTuple):
    """Constructor and metadata size of one kind of cache."""

    build: Callable[[Any, Place], Any]
    metadata_bytes: Callable[[Any, int], int]  # (table, pages)


KINDS: dict[type, Kind] = {
    Cache: Kind(page_cache, lambda table, pages: 0),
    BcacheTable: Kind(bcache, lambda table, pages: 0),  # in its buckets
    DmCacheTable: Kind(dm_cache, lambda table, pages: dm_cache_parts.METADATA_BYTES),
    WritecacheTable: Kind(
        dm_writecache, lambda table, pages: writecache_parts.metadata_bytes(pages)
    ),
    OpenCasTable: Kind(
        open_cas,
        lambda table, lines: open_cas_parts.metadata_bytes(max(lines, 1), table.line_bytes),
    ),
}
