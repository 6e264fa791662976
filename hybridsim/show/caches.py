"""Report the activity of a cache in the terms of its own tool.

To add a kind of cache: a line in KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hybridsim.answers.dirt import Dirt
from hybridsim.answers.result import Result
from hybridsim.foundation.units import human_count, human_rate, human_size
from hybridsim.foundation.wording import percent, span
from hybridsim.show.labels import LABELS, joined, rows


def units(result: Result) -> str:
    """Return the name of the cache's unit of allocation, such as pages or blocks."""
    return _kind(result).units


def what_it_did(result: Result) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of the activity of the cache, if there is one."""
    if rows(result):
        yield from _kind(result).report(result)
        yield from _write_back(result)
        yield from _memory(result)


def _page(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the number of fills that the configured rate limit rejected."""
    declined = result.cached.whole.counters.get("fills_over_rate", 0)
    if declined:
        begun = result.cached.whole.counters["fills_started"]
        yield (
            LABELS["fill"],
            f"{human_count(begun)} started, {human_count(declined)} beyond the limit fill_rate",
        )


def _write_back(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the counts of dirty data, and on which SSDs they have no copy."""
    if result.scenario.get("cache_mode") != "write-back":
        return
    counters = result.cached.whole.counters
    members = int(result.scenario.get("cache_members", 1))
    parts = []
    if "dirty_pages" in counters:
        cleaned, writes = counters["cleaned_bytes"], counters["write_backs"]
        parts.append(f"{human_size(cleaned)} written back in {human_count(writes)} writes")
        dirty = counters["dirty_pages"]
        parts.append(f"{human_count(dirty)} page{'s' * (dirty != 1)} dirty at the end")
    if counters.get("writes_limited"):
        limited = human_count(counters["writes_limited"])
        parts.append(f"{limited} page writes went to the disks, as the dirty limit was reached")
    if counters.get("stalls"):
        stalls = human_count(counters["stalls"])
        parts.append(f"{stalls} pages not cached, as all possible victims were dirty")
    if result.dirty is not None:
        parts += _dirty(result.dirty)
    where = "one SSD" if members == 1 else f"{members} striped SSDs"
    parts.append(f"simulated without a mirror: dirty data exist on {where} only")
    yield LABELS["write_back"], joined(parts)


def _dirty(found: Dirt) -> Iterator[str]:
    """Yield how much is dirty, for how long, and how long a flush takes."""
    p50, p99, end = map(human_size, (found.p50_bytes, found.p99_bytes, found.end_bytes))
    yield f"dirty: {p50} at the median of the time, {p99} at the p99, {end} at the end"
    oldest = f"no byte is dirty for longer than {span(found.oldest_ns)}"
    if found.mean_stay_ns is not None:
        oldest += f", on average for {span(found.mean_stay_ns)}"
    yield oldest
    if found.flush_bytes_per_s and found.flush_ns is not None and found.flush_p99_ns is not None:
        at_end = span(found.flush_ns) if found.end_bytes else "no time"
        yield (
            f"a flush takes {at_end} at the end, {span(found.flush_p99_ns)} at the "
            f"p99: {human_rate(found.flush_bytes_per_s)} without other load"
        )


def _memory(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the RAM that the cache takes of the host."""
    ram = result.metadata_ram
    if ram is not None:
        yield LABELS["metadata_ram"], f"{human_size(ram['size_bytes'])}: {ram['source']}"


def _dm_cache(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the counters of a dm-cache, in the terms of `dmsetup status`."""
    counters = result.cached.whole.counters
    names = ("promotions", "demotions", "write_backs")
    parts = [f"{human_count(counters.get(name, 0))} {name.replace('_', '-')}" for name in names]
    parts.append(f"{human_count(counters.get('dirty_blocks', 0))} dirty at the end")
    yield LABELS["blocks"], joined(parts)


def _writecache(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the counters of a dm-writecache, in the terms of `dmsetup status`."""
    counters = result.cached.whole.counters
    kinds = (
        ("writes_allocated", "allocated"),
        ("write_hits_uncommitted", "overwritten before a commit"),
        ("write_hits_committed", "overwritten after one"),
        ("writes_around", "past the cache"),
        ("blocks_written_back", "written back"),
    )
    parts = [f"{human_count(counters.get('writes', 0))} blocks written"]
    parts += [f"{human_count(counters.get(name, 0))} {words}" for name, words in kinds]
    yield LABELS["writecache"], joined(parts)


def _open_cas(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the usage and request counters of an Open CAS, in the terms of `casadm --stats`."""
    yield LABELS["usage"], joined(_usage(result))
    yield LABELS["requests"], joined(_requests(result))


def _usage(result: Result) -> Iterator[str]:
    """Yield the usage at the end of the run."""
    counters = result.cached.whole.counters
    for name in ("occupancy", "clean", "dirty"):
        yield f"{name} {human_size(4096 * counters.get(name, 0))}"
    cleaned = counters.get("cleaned_blocks", 0)
    if cleaned:
        yield f"{human_size(4096 * cleaned)} cleaned"


def _requests(result: Result) -> Iterator[str]:
    """Yield the share of requests by outcome."""
    counters = result.cached.whole.counters
    total = counters.get("total_requests", 0)
    for name in (
        "read_hits", "read_deferred", "read_partial_misses", "read_full_misses",
        "write_hits", "write_deferred", "write_partial_misses", "write_full_misses",
        "pass_through_reads", "pass_through_writes",
    ):  # fmt: skip
        number = counters.get(name, 0)
        if number:
            yield f"{name.replace('_', ' ').replace('pass t', 'pass-t')} {percent(number / total)}"


def _bcache(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the counters of a bcache for the whole run, by their names in sysfs."""
    counters = result.cached.whole.counters
    parts = []
    for name in ("cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses"):
        counted, shown = counters.get(name, 0), counters.get(f"sysfs_{name}", 0)
        if counted:
            parts.append(f"{name} {human_count(counted)} (sysfs shows {human_count(shown)})")
    parts.append(f"bypassed {human_size(512 * counters.get('bypassed_sectors', 0))}")
    parts.append(f"dirty_data {human_size(counters.get('dirty_data', 0))} at the end")
    parts.append(f"{human_count(counters.get('evictions', 0))} buckets evicted")
    yield LABELS["bcache"], joined(parts)


class Kind(NamedTuple):
    """How caches of one kind are reported."""

    units: str
    report: Callable[[Result], Iterator[tuple[str, str]]]


KINDS = {
    "bcache": Kind("sectors", _bcache),
    "page": Kind("pages", _page),
    "dm-cache": Kind("blocks", _dm_cache),
    "dm-writecache": Kind("blocks", _writecache),
    "open-cas": Kind("lines", _open_cas),
}


def _kind(result: Result) -> Kind:
    return KINDS[str(result.scenario.get("cache_kind", "page"))]
