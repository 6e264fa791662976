"""From the table `cache` of a scenario to an empty cache.  A new kind is one function, one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hybridsim.caches import Bcache, DmCache, DmWritecache, OpenCas, PageCache
from hybridsim.caches import dmcache as dm_cache_parts
from hybridsim.caches import opencas as open_cas_parts
from hybridsim.caches import writecache as writecache_parts
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
    "write-around": Mode.READ_ONLY,  # another name for the same
    "write-through": Mode.WRITE_THROUGH,
    "write-back": Mode.WRITE_BACK,
}
FILLS = {"re-read": Fill.RE_READ, "piggyback": Fill.PIGGYBACK}
FILLED_WHEN = {"background": FillWhen.BACKGROUND, "foreground": FillWhen.FOREGROUND}
ELEVATOR = 128  # pages of which the next one on the disks is cleaned
CORE_LINES_MAX = 1 << 36  # 8 GiB of bits
IDS = 1 << 14  # pages that there is room for at first


class Place(NamedTuple):
    """Where a cache is to be."""

    pages: int
    origin_bytes: int  # of the slow tier
    seed: int
    warm: WarmStart = COLD_START  # of a page cache


def cache(said: CacheTable, place: Place) -> Any:
    """Build an empty cache; without pages it passes everything on."""
    if place.pages == 0 and not isinstance(said, Cache):
        return no_cache(said.page_bytes)
    return KINDS[type(said)].build(said, place)


def metadata_bytes(said: CacheTable, pages: int) -> int:
    """Return what a cache keeps on the fast tier beside its pages."""
    return KINDS[type(said)].metadata_bytes(said, pages)


def page_cache(said: Cache, place: Place) -> PageCache:
    """Build a page cache, empty but for what it begins with."""
    pages, memory = place.pages, place.warm.memory
    known = len(memory.numbers) if memory else 0
    ids = doubled(IDS, IDS, known + len(place.warm.kept))
    parameters = said.policy_parameters | {"seed": place.seed, "page_bytes": said.page_bytes}
    admission, replacement = pair(
        ADMISSION[said.admission], REPLACEMENT[said.replacement], ids, pages, parameters
    )
    policy = learner(admission, replacement) if memory else None
    if policy and memory:
        recall(policy, memory)
    return PageCache.new(
        page_bytes=said.page_bytes,
        pages=pages,
        mode=int(MODES[said.mode]),
        cutoff_bytes=said.sequential_cutoff_bytes,
        fills_max=said.max_fills,
        admission=admission,
        replacement=replacement,
        ids=ids,
        granule_bytes=said.granule_bytes,
        parameters=fills_and_cleans(said, pages),
        warm=place.warm,
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
        "preload_idle_ns": said.preload_idle_ns,
        "preload_gap_bytes": said.preload_gap_bytes,
        "preload_chunk_bytes": said.preload_chunk_bytes,
        "preload_reads": said.preload_reads,
        "preload_rate": said.preload_rate,
    }


def no_cache(page_bytes: int) -> PageCache:
    """Build what passes everything on."""
    mode = int(Mode.READ_ONLY)
    admission, replacement = ADMISSION["touches"].new(IDS, 0), REPLACEMENT["lru"].new(IDS, 0)
    return PageCache.new(page_bytes, 0, mode, 0, 1, admission, replacement, IDS)


def bcache(said: BcacheTable, place: Place) -> Bcache:
    """Build an empty bcache."""
    bucket_bytes = said.bucket_bytes(place.pages)
    return Bcache.new(
        bucket_bytes,
        place.pages * said.page_bytes // bucket_bytes,
        said.block_bytes,
        int(BcacheMode[said.mode.upper()]),
        replacement=int(Reuse[said.replacement.upper()]),
        cutoff_bytes=said.sequential_cutoff_bytes,
        congested_read_us=said.congested_read_ns // 1000,
        congested_write_us=said.congested_write_ns // 1000,
        writeback_percent=said.writeback_percent,
        writeback_delay_ns=said.writeback_delay_ns,
        seed=place.seed,
    )


def dm_cache(said: DmCacheTable, place: Place) -> DmCache:
    """Build an empty dm-cache."""
    mode = int(DmMode[said.mode.upper()])
    return DmCache.new(said.page_bytes, place.pages, mode, said.threshold_bytes, place.origin_bytes)


def dm_writecache(said: WritecacheTable, place: Place) -> DmWritecache:
    """Build an empty dm-writecache."""
    pause_ns, autocommit_blocks = said.pause_writeback_ns, said.autocommit_blocks
    marks = said.watermarks(place.pages)
    return DmWritecache.new(said.page_bytes, place.pages, *marks, pause_ns, autocommit_blocks)


def open_cas(said: OpenCasTable, place: Place) -> OpenCas:
    """Build an empty Open CAS; it keeps a bit of each line of its disks."""
    if place.origin_bytes // said.line_bytes > CORE_LINES_MAX:
        raise ScenarioError(
            f"Open CAS keeps a bit of each line of the disks: of {human_size(place.origin_bytes)} "
            f"{human_size(place.origin_bytes // said.line_bytes // 8)}; longer lines "
            "(--cache-line 64KiB) need less; or is an offset of the trace wrong?"
        )
    return OpenCas.new(
        said.line_bytes,
        place.pages,
        int(CasMode[said.mode.upper()]),
        place.origin_bytes,
        promotion=int(Promotion[said.promotion.upper()]),
        insertion_threshold=said.insertion_threshold,
        trigger_lines=said.trigger_lines(place.pages),
        cutoff=int(Cutoff[said.sequential_cutoff_policy.upper()]),
        cutoff_bytes=said.sequential_cutoff_bytes,
        cleaning=int(Cleaning[said.cleaning.upper()]),
        wake_ns=said.wake_ns,
        staleness_ns=said.staleness_time_ns,
        activity_ns=said.activity_threshold_ns,
        flush_lines=said.flush_lines,
    )


class Kind(NamedTuple):
    """How caches of one kind are built."""

    build: Callable[[Any, Place], Any]
    metadata_bytes: Callable[[Any, int], int]  # of a table, and pages


KINDS: dict[type, Kind] = {
    Cache: Kind(page_cache, lambda said, pages: 0),
    BcacheTable: Kind(bcache, lambda said, pages: 0),  # in its buckets
    DmCacheTable: Kind(dm_cache, lambda said, pages: dm_cache_parts.METADATA_BYTES),
    WritecacheTable: Kind(
        dm_writecache, lambda said, pages: writecache_parts.metadata_bytes(pages)
    ),
    OpenCasTable: Kind(
        open_cas, lambda said, lines: open_cas_parts.metadata_bytes(max(lines, 1), said.line_bytes)
    ),
}
