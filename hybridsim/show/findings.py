"""Additional results of a replay for `--details`, one line each.

The activity of a cache is in the terms of its own tool: to add a kind of cache, a line in KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hybridsim.answers.dirt import Dirt
from hybridsim.answers.life import Beginning
from hybridsim.answers.outcome import Phase
from hybridsim.answers.result import Result
from hybridsim.answers.verdict import SHORTEST_NS
from hybridsim.answers.warmup import State, WarmUp
from hybridsim.foundation.explain import REASONS
from hybridsim.foundation.units import human_count, human_rate, human_size
from hybridsim.foundation.wording import (
    lasting,
    latency,
    money,
    of_the_mean,
    percent,
    ranged_money,
    ranged_size,
    span,
)
from hybridsim.show.page import after, joined, unbroken

Rows = Iterator[tuple[str, str]]  # label and text
# All labels of figures; `hybridsim explain` has an entry for each.
SAME = """
trace event verdict gain risks assumed reasons required interval reads writes number hit
mean p50 p99 max busy cold warm before blocks usage requests fill bcache cost controller
rebuild model notes next
"""
LABELS = {word: word for word in SAME.split()} | {
    "site": "machine",
    "warm_up": "warm-up",
    "warm_start": "warm start",
    "hit_ratio": "hit ratio",
    "iops": "IOPS",
    "p999": "p99.9",
    "none": "no cache",
    "cached": "with cache",
    "last_fifth": "at the end",
    "misses": "not from SSD",
    "page_hits": "page hits",
    "write_back": "write-back",
    "metadata_ram": "RAM",
    "writecache": "write cache",
    "wear": "SSD writes",
    "disk_time": "disk time",
    "volume_time": "volume time",
    "iops_limit": "IOPS limit",
    "bandwidth_limit": "bandwidth limit",
}


def rows(result: Result) -> list[tuple[str, Phase]]:
    """Return label and figures of each phase with the cache; nothing if there is no cache."""
    if not result._has_cache:
        return []
    cold, warm = result.phases["cold"], result.phases["warm"]
    state = result.warm_up.state
    if state == State.FLAT or not cold.span_ns:
        return [(LABELS["cached"], warm)]
    border = span(cold.figures.end_ns)
    if state == State.STEADY:
        return [(f"{LABELS['cold']} < {border}", cold), (LABELS["warm"], warm)]
    return [(f"{LABELS['before']} {border}", cold), (LABELS["last_fifth"], warm)]


def findings(result: Result) -> list[tuple[str, str]]:
    """Return (label, text) of each result, the most important first."""
    finders = (
        _iops,
        _warm_start,
        _misses,
        _activity,
        _wear,
        _cost,
        _disk_time,
        _controller,
        _rebuild,
        _model,
    )
    return [row for finder in finders for row in finder(result)]


def _iops(result: Result) -> Rows:
    """Yield the throughput, unless the trace determines it (mode open)."""
    if result.scenario.get("mode", "open") == "open":
        return
    shown = [(LABELS["none"], result.phases["none"]), *rows(result)]
    iops = (f"{label} {human_count(phase.iops or 0)}" for label, phase in shown)
    yield LABELS["iops"], joined(iops)


def _misses(result: Result) -> Rows:
    phase = result.phases["warm"]
    reasons = phase.figures.read_reasons
    if not reasons or not rows(result):
        return
    missed = percent(phase.share_of_reads(sum(reasons.values())))
    when = rows(result)[-1][0]
    parts = [
        f"{REASONS[reason]} {percent(phase.share_of_reads(number))}"
        for reason, number in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    ]
    yield LABELS["misses"], f"{missed} of the reads ({when}): " + joined(parts)
    pages, (units, _) = percent(phase.figures.page_hit_ratio), _kind(result)
    yield LABELS["page_hits"], f"{pages} of the {units} that reads touch ({when})"


def per_day(result: Result) -> str:
    """Return the bytes written to the SSDs per day, with their interval if there is one."""
    known, wear = result.wear_interval, result.wear
    if known is None:
        return human_size(wear.bytes_per_day if wear else 0)
    return ranged_size(known.value, known.low, known.high)


def _wear(result: Result) -> Rows:
    wear = result.wear
    if wear is None or not rows(result):
        return
    judged = result.phases["whole"].span_ns
    is_long = judged >= SHORTEST_NS  # enough to extrapolate to days and years
    written = f"{human_size(wear.bytes_written)} in {span(judged)}"
    parts = [f"{per_day(result)} a day" if is_long else written]
    if wear.per_host_write is not None:
        often = wear.per_host_write > 99  # the host hardly writes: nearly all writes are promotions
        per_byte = "over 99" if often else f"{wear.per_host_write:.2f}"
        parts.append(f"{per_byte} bytes per byte that the host writes")
    if wear.read_per_written is not None:
        parts.append(f"{wear.read_per_written:.2f} bytes read from it per byte written")
    if wear.in_flash is not None:
        parts.append(f"{wear.in_flash:.2f} bytes in the flash per byte written to it")
    if wear.drive_writes_per_day is not None and is_long:
        parts.append(f"{wear.drive_writes_per_day:.2g} DWPD")
    if wear.years is not None and is_long:
        parts.append(f"rated life {lasting(wear.years)}")
    yield LABELS["wear"], joined(parts)


def _cost(result: Result) -> Rows:
    """Yield the cost of the SSD, if the scenario specifies prices."""
    cost = result.cost
    if cost is None or not cost["is_own"] or cost["ssd_cost"] is None:
        return
    unit = cost["price"]["currency"]
    size = human_size(result.scenario["cache_bytes"])
    parts = [f"{money(cost['ssd_cost'], unit)} for {size} of SSD"]
    if cost["disks_cost"] is not None:
        parts.append(f"{money(cost['disks_cost'], unit)} for the disks, {cost['disks']}")
    if cost["per_saved_ms"] is not None:
        each = ranged_money(cost["per_saved_ms"], cost["per_saved_range"], unit)
        parts.append(f"{each} per ms saved of {cost['what']}")
    yield LABELS["cost"], joined([*parts, f"prices of {cost['price']['date']}"])


def _disk_time(result: Result) -> Rows:
    for label, phase in ((LABELS["none"], result.phases["none"]), *rows(result)[-1:]):
        times = phase.disk_time_ns
        requests = phase.figures.requests
        if spent := sum(times.values()):
            parts = [
                f"{LABELS.get(what, what)} {percent(ns / spent)}" for what, ns in times.items()
            ]
            kind = "volume_time" if "latency" in times else "disk_time"
            if phase.disk_queue_ns and requests and not phase.saturated:
                parts.append(f"queue {latency(phase.disk_queue_ns / requests)} per request")
            first = phase is result.phases["none"]
            yield LABELS[kind] if first else "", f"{label}: " + joined(parts)


def _controller(result: Result) -> Rows:
    """Yield the traffic through the DRAM of a RAID controller."""
    shown = rows(result) or [(LABELS["none"], result.phases["none"])]
    label, phase = shown[-1]
    destages = phase.counters.get("controller_destages")
    if destages is None:
        return
    read, written, destaged = (
        human_size(phase.counters[f"controller_{name}_bytes"])
        for name in ("dram_read", "write_back", "destaged")
    )
    parts = [
        f"{label}: {read} read from its DRAM",
        f"{written} written to it",
        f"{destaged} from there to the disks",
    ]
    if destages:
        share = phase.counters["controller_full_stripes"] / destages
        parts.append(f"{percent(share)} of those writes are full stripes")
    yield LABELS["controller"], joined(parts)


def _rebuild(result: Result) -> Rows:
    ends = {LABELS["none"]: result.plain.rebuild, LABELS["cached"]: result.cached.rebuild}
    for label, progress in ends.items():
        if progress is not None:
            words = f"{percent(progress.share)} done"
            if progress.whole_ns is not None:
                words += f", {span(progress.whole_ns)} in total"
                words += " at this pace" if progress.share < 1 else ""
            yield LABELS["rebuild"] if label == LABELS["none"] else "", f"{label}: {words}"


def _model(result: Result) -> Rows:
    """Yield how well the disks alone reproduce the recorded latencies."""
    fidelity = result.fidelity
    if not fidelity.measured.count:
        return
    both = (fidelity.measured, fidelity.modelled)
    measured, modelled = (latency(one.percentile(50)) for one in both)
    if not fidelity.is_known:
        text = f"not compared with the recorded latencies: {fidelity.why_not}"
    elif fidelity.is_other_kind:
        text = (
            f"the recorded median latency, {measured}, is that of flash or of a cache; these "
            f"disks alone take {modelled}"
        )
    else:
        text = (
            f"these disks alone take {modelled} at the median, the recorded latency is {measured}; "
            f"the distributions are {of_the_mean(fidelity.demerit)} apart, a "
            f"{fidelity.likeness} match"
        )
    yield LABELS["model"], unbroken(text)


# The activity of the cache.


def _activity(result: Result) -> Rows:
    """Yield the activity of the cache, if there is one, and the RAM that it takes of the host."""
    if rows(result):
        _, report = _kind(result)
        yield from report(result)
        yield from _write_back(result)
        if ram := result.metadata_ram:
            yield LABELS["metadata_ram"], f"{human_size(ram['size_bytes'])}: {ram['source']}"


def _page(result: Result) -> Rows:
    """Yield the number of fills that the configured rate limit rejected."""
    counters = result.cached.whole.counters
    if counters.get("fills_over_rate"):
        begun, declined = (
            human_count(counters[f"fills_{each}"]) for each in ("started", "over_rate")
        )
        yield LABELS["fill"], f"{begun} started, {declined} beyond the limit fill_rate"


def _write_back(result: Result) -> Rows:
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
    for name, words in (
        ("writes_limited", "page writes went to the disks, as the dirty limit was reached"),
        ("stalls", "pages not cached, as all possible victims were dirty"),
    ):
        if counters.get(name):
            parts.append(f"{human_count(counters[name])} {words}")
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


def _dm_cache(result: Result) -> Rows:
    """Yield the counters of a dm-cache, in the terms of `dmsetup status`."""
    counters = result.cached.whole.counters
    names = ("promotions", "demotions", "write_backs")
    parts = [f"{human_count(counters.get(name, 0))} {name.replace('_', '-')}" for name in names]
    parts.append(f"{human_count(counters.get('dirty_blocks', 0))} dirty at the end")
    yield LABELS["blocks"], joined(parts)


def _writecache(result: Result) -> Rows:
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


def _open_cas(result: Result) -> Rows:
    """Yield the usage and request counters of an Open CAS, in the terms of `casadm --stats`."""
    counters = result.cached.whole.counters
    usage = [f"{name} {human_size(4096 * counters.get(name, 0))}"
             for name in ("occupancy", "clean", "dirty")]  # fmt: skip
    if cleaned := counters.get("cleaned_blocks", 0):
        usage.append(f"{human_size(4096 * cleaned)} cleaned")
    yield LABELS["usage"], joined(usage)
    total = counters.get("total_requests", 0)
    kinds = (
        "read_hits", "read_deferred", "read_partial_misses", "read_full_misses",
        "write_hits", "write_deferred", "write_partial_misses", "write_full_misses",
        "pass_through_reads", "pass_through_writes",
    )  # fmt: skip
    shares = {name: percent(counters[name] / total) for name in kinds if counters.get(name)}
    words = (f"{name.replace('_', ' ')} {share}" for name, share in shares.items())
    yield LABELS["requests"], joined(each.replace("pass t", "pass-t") for each in words)


def _bcache(result: Result) -> Rows:
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


KINDS = {  # the unit of allocation, and the report
    "bcache": ("sectors", _bcache),
    "page": ("pages", _page),
    "dm-cache": ("blocks", _dm_cache),
    "dm-writecache": ("blocks", _writecache),
    "open-cas": ("lines", _open_cas),
}


def _kind(result: Result) -> tuple[str, Callable[[Result], Rows]]:
    return KINDS[str(result.scenario.get("cache_kind", "page"))]


# A warm start.


def _warm_start(result: Result) -> Rows:
    """Yield the effect of a warm start, if there was one."""
    if result.beginning is not None and rows(result):
        yield LABELS["warm_start"], joined(_done(result.beginning))
        yield "", joined(_worth(result.beginning))
        yield "", joined(_spent(result.beginning))


def _done(beginning: Beginning) -> Iterator[str]:
    """Yield the number of pages kept or loaded, and how many of them were used."""
    counters = beginning.counters
    if beginning.is_kept:
        yield f"{human_count(beginning.there)} pages kept on the SSD"
    else:
        yield f"{human_count(beginning.there)} of {human_count(beginning.chosen)} pages loaded"
        read = human_size(counters["preload_bytes"])
        yield f"{read} in {human_count(counters['preload_reads'])} reads"
        if beginning.loaded_ns is not None:
            yield f"loaded within {span(beginning.loaded_ns)}"
    yield f"{percent(beginning.used_share)} of them used"
    yield f"from {beginning.source}"
    if beginning.remembers:
        yield "including the state of the learned policy"


def _worth(beginning: Beginning) -> Iterator[str]:
    """Yield the hit ratio and warm-up time, compared with a cache that begins empty."""
    hit, cold = percent(beginning.first_hit_ratio), percent(beginning.cold_first_hit_ratio)
    yield f"first {span(beginning.first_ns)}: {hit} of the reads from the SSD, {cold} without it"
    yield f"90% warm {_when(beginning.warm_up)}, without it {_when(beginning.cold_warm_up)}"


def _when(warm_up: WarmUp) -> str:
    if warm_up.state == State.FLAT:
        return "at once"
    if warm_up.state != State.STEADY:
        return "at an unknown time"
    return after(warm_up.reached_ns[90])


def _spent(beginning: Beginning) -> Iterator[str]:
    """Yield the busy time of the disks and the SSD writes of the whole run, with and without it."""
    if beginning.disk_ns is not None and beginning.cold_disk_ns is not None:
        yield f"disks busy {span(beginning.disk_ns)}, without it {span(beginning.cold_disk_ns)}"
    if beginning.ssd_bytes is not None and beginning.cold_ssd_bytes is not None:
        written, cold = human_size(beginning.ssd_bytes), human_size(beginning.cold_ssd_bytes)
        yield f"{written} written to the SSD, without it {cold}"
