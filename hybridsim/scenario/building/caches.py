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
from hybridsim.foundation.codes import (
    BcacheMode,
    CasMode,
    Cleaning,
    Cutoff,
    DmMode,
    Fill,
    FillWhen,
    Kernel,
    Mode,
    Promotion,
    Reuse,
)
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.units import human_size, parse_percent
from hybridsim.scenario import Cache
from hybridsim.scenario.bcache import BcacheTable
from hybridsim.scenario.caches import CacheTable
from hybridsim.scenario.dmcache import DmCacheTable
from hybridsim.scenario.opencas import OpenCasTable
from hybridsim.scenario.writecache import WritecacheTable

MODES = {
    "read-only": Mode.READ_ONLY,
    "write-around": Mode.READ_ONLY,  # synonym
    "write-through": Mode.WRITE_THROUGH,
    "write-back": Mode.WRITE_BACK,
}
FILLS = {"re-read": Fill.RE_READ, "piggyback": Fill.PIGGYBACK}
FILLED_WHEN = {"background": FillWhen.BACKGROUND, "foreground": FillWhen.FOREGROUND}
ELEVATOR = 128  # oldest dirty pages, cleaned in order of address
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
    return PageCache.new(
        page_bytes=table.page_bytes,
        pages=pages,
        mode=int(MODES[table.mode]),
        cutoff_bytes=table.sequential_cutoff_bytes,
        fills_max=table.max_fills,
        admission=admission,
        replacement=replacement,
        ids=ids,
        granule_bytes=table.granule_bytes,
        parameters=fills_and_cleans(table, pages),
        warm=place.warm,
    )


def fills_and_cleans(table: Cache, pages: int) -> dict[str, int]:
    """Return the parameters of a page cache for fills, cleaning and preloading."""
    high = max(1, int(parse_percent(table.dirty_high) * pages))
    return {
        "fill": int(FILLS[table.fill]),
        "fill_when": int(FILLED_WHEN[table.fill_when]),
        "fill_piece_bytes": table.fill_piece_bytes,
        "fill_rate": table.fill_rate or 0,
        "sub_page": int(table.sub_page),
        "discards": int(table.discards),
        "dirty_high": high,
        "dirty_low": min(int(parse_percent(table.dirty_low) * pages), high - 1),
        "clean_above": min(int(parse_percent(table.clean_above) * pages), high - 1),
        "idle_ns": table.clean_idle_ns,
        "cleans_max": table.max_cleans,
        "merge_pages": table.merge_pages,
        "clean_window": ELEVATOR if table.clean_order == "elevator" else 1,
        "clean_rate": table.clean_rate or 0,
        "preload_idle_ns": table.preload_idle_ns,
        "preload_gap_bytes": table.preload_gap_bytes,
        "preload_chunk_bytes": table.preload_chunk_bytes,
        "preload_reads": table.preload_reads,
        "preload_rate": table.preload_rate,
    }


def bcache(table: BcacheTable, place: Place) -> Bcache:
    """Build an empty bcache."""
    bucket_bytes = table.bucket_bytes(place.pages)
    return Bcache.new(
        bucket_bytes,
        place.pages * table.page_bytes // bucket_bytes,
        table.block_bytes,
        int(BcacheMode[table.mode.upper()]),
        replacement=int(Reuse[table.replacement.upper()]),
        cutoff_bytes=table.sequential_cutoff_bytes,
        congested_read_us=table.congested_read_ns // 1000,
        congested_write_us=table.congested_write_ns // 1000,
        writeback_percent=table.writeback_percent,
        writeback_delay_ns=table.writeback_delay_ns,
        seed=place.seed,
        kernel=int(Kernel[f"LINUX_{table.kernel.replace('.', '_')}"]),
    )


def dm_cache(table: DmCacheTable, place: Place) -> DmCache:
    """Build an empty dm-cache."""
    mode = int(DmMode[table.mode.upper()])
    return DmCache.new(
        table.page_bytes, place.pages, mode, table.threshold_bytes, place.origin_bytes
    )


def dm_writecache(table: WritecacheTable, place: Place) -> DmWritecache:
    """Build an empty dm-writecache."""
    pause_ns, autocommit_blocks = table.pause_writeback_ns, table.autocommit_blocks
    marks = table.watermarks(place.pages)
    return DmWritecache.new(table.page_bytes, place.pages, *marks, pause_ns, autocommit_blocks)


def open_cas(table: OpenCasTable, place: Place) -> OpenCas:
    """Build an empty Open CAS cache; it keeps one bit for each line of the backing volume."""
    if place.origin_bytes // table.line_bytes > CORE_LINES_MAX:
        raise ScenarioError(
            f"Open CAS keeps 1 bit for each line of the backing volume: "
            f"{human_size(place.origin_bytes // table.line_bytes // 8)} "
            f"for {human_size(place.origin_bytes)}; use longer lines (--cache-line 64KiB), "
            "or check the trace for a wrong offset"
        )
    return OpenCas.new(
        table.line_bytes,
        place.pages,
        int(CasMode[table.mode.upper()]),
        place.origin_bytes,
        promotion=int(Promotion[table.promotion.upper()]),
        insertion_threshold=table.insertion_threshold,
        trigger_lines=table.trigger_lines(place.pages),
        cutoff=int(Cutoff[table.sequential_cutoff_policy.upper()]),
        cutoff_bytes=table.sequential_cutoff_bytes,
        cleaning=int(Cleaning[table.cleaning.upper()]),
        wake_ns=table.wake_ns,
        staleness_ns=table.staleness_time_ns,
        activity_ns=table.activity_threshold_ns,
        flush_lines=table.flush_lines,
        query_ns=table.stats_interval_ns,
        query_start_ns=table.stats_start_ns,
    )


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
