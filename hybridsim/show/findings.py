"""Additional results of a replay for `--details`, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.answers.result import Result
from hybridsim.answers.verdict import SHORTEST_NS
from hybridsim.foundation.explain import REASONS
from hybridsim.foundation.units import human_count, human_size
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
from hybridsim.show.caches import units, what_it_did
from hybridsim.show.labels import LABELS, joined, rows, unbroken
from hybridsim.show.warm_start import warm_start


def findings(result: Result) -> list[tuple[str, str]]:
    """Return (label, text) of each result, the most important first."""
    finders = (
        _iops,
        warm_start,
        _misses,
        what_it_did,
        _wear,
        _cost,
        _disk_time,
        _controller,
        _rebuild,
        _model,
    )
    return [row for finder in finders for row in finder(result)]


def _iops(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the throughput, unless the trace determines it (mode open)."""
    if result.scenario.get("mode", "open") == "open":
        return
    shown = [(LABELS["none"], result.phases["none"]), *rows(result)]
    iops = (f"{label} {human_count(phase.iops or 0)}" for label, phase in shown)
    yield LABELS["iops"], joined(iops)


def _misses(result: Result) -> Iterator[tuple[str, str]]:
    phase = result.phases["warm"]
    reasons = phase.figures.read_reasons
    if not reasons or not rows(result):
        return
    all_of_them = phase.share_of_reads(sum(reasons.values()))
    parts = [
        f"{REASONS[reason]} {percent(phase.share_of_reads(number))}"
        for reason, number in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    ]
    when = rows(result)[-1][0]
    text = f"{percent(all_of_them)} of the reads ({when}): " + joined(parts)
    yield LABELS["misses"], text
    pages = percent(phase.figures.page_hit_ratio)
    yield LABELS["page_hits"], f"{pages} of the {units(result)} that reads touch ({when})"


def per_day(result: Result) -> str:
    """Return the bytes written to the SSDs per day, with their interval if there is one."""
    known, wear = result.wear_interval, result.wear
    if known is None:
        return human_size(wear.bytes_per_day if wear else 0)
    return ranged_size(known.value, known.low, known.high)


def _wear(result: Result) -> Iterator[tuple[str, str]]:
    wear = result.wear
    if wear is None or not rows(result):
        return
    judged = result.phases["whole"].span_ns
    is_long = judged >= SHORTEST_NS  # enough to extrapolate to days and years
    parts = [f"{per_day(result)} a day"] if is_long else []
    if not is_long:
        parts.append(f"{human_size(wear.bytes_written)} in {span(judged)}")
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


def _cost(result: Result) -> Iterator[tuple[str, str]]:
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


def _disk_time(result: Result) -> Iterator[tuple[str, str]]:
    for label, phase in ((LABELS["none"], result.phases["none"]), *rows(result)[-1:]):
        spent = sum(phase.disk_time_ns.values())
        if spent:
            shares = {what: percent(ns / spent) for what, ns in phase.disk_time_ns.items()}
            parts = [f"{LABELS.get(what, what)} {share}" for what, share in shares.items()]
            kind = "volume_time" if "latency" in shares else "disk_time"
            first = phase is result.phases["none"]
            if phase.disk_queue_ns and phase.figures.requests and not phase.saturated:
                parts.append(
                    f"queue {latency(phase.disk_queue_ns / phase.figures.requests)} per request"
                )
            yield LABELS[kind] if first else "", f"{label}: " + joined(parts)


def _controller(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the traffic through the DRAM of a RAID controller."""
    shown = rows(result) or [(LABELS["none"], result.phases["none"])]
    label, phase = shown[-1]
    counted = phase.counters
    destages = counted.get("controller_destages")
    if destages is None:
        return
    parts = [
        f"{label}: {human_size(counted['controller_dram_read_bytes'])} read from its DRAM",
        f"{human_size(counted['controller_write_back_bytes'])} written to it",
        f"{human_size(counted['controller_destaged_bytes'])} from there to the disks",
    ]
    if destages:
        share = counted["controller_full_stripes"] / destages
        parts.append(f"{percent(share)} of those writes are full stripes")
    yield LABELS["controller"], joined(parts)


def _rebuild(result: Result) -> Iterator[tuple[str, str]]:
    ends = {LABELS["none"]: result.plain.rebuild, LABELS["cached"]: result.cached.rebuild}
    for label, progress in ends.items():
        if progress is not None:
            words = f"{percent(progress.share)} done"
            if progress.whole_ns is not None:
                words += f", {span(progress.whole_ns)} in total"
                words += " at this pace" if progress.share < 1 else ""
            yield LABELS["rebuild"] if label == LABELS["none"] else "", f"{label}: {words}"


def _model(result: Result) -> Iterator[tuple[str, str]]:
    """Yield how well the disks alone reproduce the recorded latencies."""
    fidelity = result.fidelity
    if not fidelity.measured.count:
        return
    measured, modelled = (
        latency(one.percentile(50)) for one in (fidelity.measured, fidelity.modelled)
    )
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
