"""The pages that a cache starts with: from an earlier trace or a saved cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.answers.result import Warning
from hybridsim.caches import PageCache
from hybridsim.caches.page.preload import WarmStart
from hybridsim.caches.warm_start.ranking import ranked
from hybridsim.caches.warm_start.saved_cache import SavedCache, is_saved_cache
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.units import format_size, human_count, human_size
from hybridsim.scenario import Cache, Scenario
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace

OTHER_POLICY = (
    "{} has also what a learned policy knew. The policies of this cache are others, or of another "
    "version: it begins with the pages only."
)
SAME_POLICY = "with the admission and replacement of then, in [cache], it goes on from there"


class Begin(NamedTuple):
    """The pages to start with, and warnings about them."""

    warm: WarmStart
    source: str
    listed: int  # pages that the source has
    chosen: int  # of these the best ones, as many as there is room for
    end_bytes: int  # that the volume must have
    warnings: list[Warning]


def opened(path: str, device: str | None = None) -> Trace | SavedCache:
    """Open what a cache is to begin with: a file of --save-cache, or a trace."""
    if path == "-":
        raise UsageError("--warm-start reads a file: what comes from standard input is the TRACE")
    return SavedCache.read(path) if is_saved_cache(path) else Trace.read(path, None, device)


def begin(
    source: Trace | SavedCache, scenario: Scenario, summary: Summary, ssd_kept: bool
) -> Begin:
    """Choose the pages for the cache of a scenario that is to serve a trace of this summary."""
    check_kind(scenario, "--warm-start")
    said = scenario.cache
    assert isinstance(said, Cache)
    pages = said.pages(summary.footprint_bytes)
    if isinstance(source, SavedCache):
        return _saved(source, said, pages, ssd_kept)
    if ssd_kept:
        raise UsageError(
            f"--ssd-kept: {source.name} is a trace, which records requests but not what an SSD "
            "has; begin from a file of --save-cache"
        )
    # Pages beyond the capacity are not ranked: the trace is ranked for this size.
    best = ranked(source, said.page_bytes, pages, said.sequential_cutoff_bytes)
    if not len(best):
        raise TraceError(f"{source.name}: no reads in it that a cache would keep")
    return _preloaded(best, source.name, len(best), said.page_bytes, [])


def check_kind(scenario: Scenario, option: str) -> None:
    """Refuse caches that cannot be begun with, or saved."""
    kind = scenario.cache.kind
    if kind != "page":
        raise UsageError(f"{option} is for the page cache, not for {kind}: use --cache page")


def _saved(source: SavedCache, said: Cache, pages: int, ssd_kept: bool) -> Begin:
    if source.page_bytes != said.page_bytes:
        raise UsageError(
            f"{source.name} has pages of {human_size(source.page_bytes)}, this cache of "
            f"{human_size(said.page_bytes)}: use --cache-page {format_size(source.page_bytes)}"
        )
    if not len(source.pages):
        raise UsageError(f"{source.name}: the cache that was saved held no pages")
    warnings = []
    if len(source.pages) > pages:
        text = (
            f"{source.name} has {human_count(len(source.pages))} pages, this cache room for "
            f"{human_count(pages)}: the best ones were taken."
        )
        warnings.append(Warning("warm-start", text, "a larger --cache-size takes all"))
    best = source.pages[:pages]
    memory = source.memory.of_first(pages) if source.memory else None
    if memory and not memory.is_of(said.admission == "learned", said.replacement == "learned"):
        memory = None
        warnings.append(Warning("warm-start", OTHER_POLICY.format(source.name), SAME_POLICY))
    if not ssd_kept:
        result = _preloaded(best, source.name, len(source.pages), said.page_bytes, warnings)
        return result._replace(warm=result.warm._replace(memory=memory))
    if source.granule_bytes != said.granule_bytes:
        raise UsageError(
            f"--ssd-kept: {source.name} has parts of pages of {human_size(source.granule_bytes)},"
            f" this cache of {human_size(said.granule_bytes)}: use the --cache-mode and sub_page "
            "that it was saved with, or have the pages loaded anew without --ssd-kept"
        )
    valid = source.valid[:pages]
    warm = WarmStart(kept=best[::-1].copy(), valid=valid[::-1].copy(), memory=memory)
    end_bytes = _end(best, said.page_bytes)
    return Begin(warm, source.name, len(source.pages), len(best), end_bytes, warnings)


def _preloaded(
    best: Ints, name: str, listed: int, page_bytes: int, warnings: list[Warning]
) -> Begin:
    warm = WarmStart(preload=np.sort(best))
    return Begin(warm, name, listed, len(best), _end(best, page_bytes), warnings)


def _end(pages: Ints, page_bytes: int) -> int:
    """Return where the volume ends at the earliest: in the last page."""
    return int(pages.max(initial=-1)) * page_bytes + 1


def saved(cache: PageCache, volume_bytes: int, path: str) -> None:
    """Write what a cache holds; it is used up by that."""
    SavedCache.of(cache, volume_bytes).write(path)
