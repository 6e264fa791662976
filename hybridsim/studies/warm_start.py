"""The pages that a cache starts with: from an earlier trace or a saved cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.answers.result import Warning
from hybridsim.caches.page.fills import WarmStart
from hybridsim.caches.warm_start.ranking import ranked
from hybridsim.caches.warm_start.saved_cache import SavedCache, is_saved_cache
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.units import format_size, human_count, human_size
from hybridsim.scenario import Cache, Scenario
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace

OTHER_POLICY = (
    "{} also has the state of a learned policy. The policies of this cache are others, or of "
    "another version: only the pages are restored."
)
SAME_POLICY = "set the admission and replacement of the saved cache in [cache] to restore it"


class Begin(NamedTuple):
    """The pages to start with, and warnings about them."""

    warm: WarmStart
    source: str
    listed: int  # pages in the source
    chosen: int  # pages that fit into the cache, the best ones of the source
    end_bytes: int  # minimum size of the volume
    warnings: list[Warning]


def opened(path: str, device: str | None = None) -> Trace | SavedCache:
    """Open the source of a warm start: a file of --save-cache, or a trace."""
    if path == "-":
        raise UsageError("--warm-start needs a file: standard input is for TRACE")
    return SavedCache.read(path) if is_saved_cache(path) else Trace.read(path, None, device)


def begin(
    source: Trace | SavedCache, scenario: Scenario, summary: Summary, ssd_kept: bool
) -> Begin:
    """Choose the pages that a scenario's cache starts with, for a trace with this summary."""
    check_kind(scenario, "--warm-start")
    cache = scenario.cache
    assert isinstance(cache, Cache)
    pages = cache.pages(summary.footprint_bytes)
    if isinstance(source, SavedCache):
        return _saved(source, cache, pages, ssd_kept)
    if ssd_kept:
        raise UsageError(
            f"--ssd-kept: {source.name} is a trace, which has requests but not the contents of an "
            "SSD; use a file of --save-cache"
        )
    # The ranking is for this capacity, and has no more pages.
    best = ranked(source, cache.page_bytes, pages, cache.sequential_cutoff_bytes)
    if not len(best):
        raise TraceError(f"{source.name}: has no reads that a cache would keep")
    return _preloaded(best, source.name, len(best), cache.page_bytes, [])


def check_kind(scenario: Scenario, option: str) -> None:
    """Raise UsageError for kinds of caches that cannot be saved or restored."""
    kind = scenario.cache.kind
    if kind != "page":
        raise UsageError(f"{option} is for the page cache, not for {kind}: use --cache page")


def _saved(source: SavedCache, cache: Cache, pages: int, ssd_kept: bool) -> Begin:
    if source.page_bytes != cache.page_bytes:
        raise UsageError(
            f"{source.name} has pages of {human_size(source.page_bytes)}, this cache of "
            f"{human_size(cache.page_bytes)}: use --cache-page {format_size(source.page_bytes)}"
        )
    if not len(source.pages):
        raise UsageError(f"{source.name}: the saved cache is empty")
    warnings = []
    if len(source.pages) > pages:
        text = (
            f"{source.name} has {human_count(len(source.pages))} pages, but this cache holds "
            f"{human_count(pages)}: only the best ones are used."
        )
        warnings.append(Warning("warm-start", text, "specify a larger --cache-size to use all"))
    best = source.pages[:pages]
    memory = source.memory.of_first(pages) if source.memory else None
    if memory and not memory.is_of(cache.admission == "learned", cache.replacement == "learned"):
        memory = None
        warnings.append(Warning("warm-start", OTHER_POLICY.format(source.name), SAME_POLICY))
    if not ssd_kept:
        result = _preloaded(best, source.name, len(source.pages), cache.page_bytes, warnings)
        return result._replace(warm=result.warm._replace(memory=memory))
    if source.granule_bytes != cache.granule_bytes:
        raise UsageError(
            f"--ssd-kept: {source.name} has parts of pages of {human_size(source.granule_bytes)},"
            f" this cache of {human_size(cache.granule_bytes)}: use the --cache-mode and sub_page "
            "of the saved cache, or load the pages again without --ssd-kept"
        )
    valid = source.valid[:pages]
    warm = WarmStart(kept=best[::-1].copy(), valid=valid[::-1].copy(), memory=memory)
    end_bytes = _end(best, cache.page_bytes)
    return Begin(warm, source.name, len(source.pages), len(best), end_bytes, warnings)


def _preloaded(
    best: Ints, name: str, listed: int, page_bytes: int, warnings: list[Warning]
) -> Begin:
    warm = WarmStart(preload=np.sort(best))
    return Begin(warm, name, listed, len(best), _end(best, page_bytes), warnings)


def _end(pages: Ints, page_bytes: int) -> int:
    """Return the minimum size of a volume with these pages, in bytes."""
    return int(pages.max(initial=-1)) * page_bytes + 1
