"""What else a result tells, one line each, where there is something to tell."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.explain import REASONS
from hybridsim.report.words import LABELS, joined, rows, unbroken
from hybridsim.result import Result
from hybridsim.units import human_count, human_size
from hybridsim.verdict import SHORTEST_NS
from hybridsim.wording import lasting, latency, percent, span


def findings(result: Result) -> list[tuple[str, str]]:
    """Return (label, text) of each finding, in order of interest."""
    told = (
        _iops, _misses, _fills, _write_back, _writecache, _wear, _disk_time, _controller, _rebuild,
        _model,
    )  # fmt: skip
    return [row for tell in told for row in tell(result)]


def _iops(result: Result) -> Iterator[tuple[str, str]]:
    """Throughput, where it is a finding and not given by the trace."""
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
    kind = result.scenario.get("cache_kind")
    what = {"dm-cache": "blocks", "open-cas": "lines"}.get(str(kind), "pages")
    yield LABELS["page_hits"], f"{pages} of the {what} that reads touch ({when})"
    if kind == "dm-cache":
        yield LABELS["blocks"], joined(_blocks(result))
    if kind == "open-cas":
        yield LABELS["usage"], joined(_usage(result))
        yield LABELS["requests"], joined(_requests(result))


def _blocks(result: Result) -> Iterator[str]:
    """What a dm-cache did with its blocks, in the words of `dmsetup status`."""
    counters = result.cached.whole.counters
    for name in ("promotions", "demotions", "write_backs"):
        yield f"{human_count(counters.get(name, 0))} {name.replace('_', '-')}"
    yield f"{human_count(counters.get('dirty_blocks', 0))} dirty at the end"


def _usage(result: Result) -> Iterator[str]:
    """What is in an Open CAS at the end, in the words of `casadm --stats`."""
    counters = result.cached.whole.counters
    for name in ("occupancy", "clean", "dirty"):
        yield f"{name} {human_size(4096 * counters.get(name, 0))}"
    cleaned = counters.get("cleaned_blocks", 0)
    if cleaned:
        yield f"{human_size(4096 * cleaned)} cleaned"


def _requests(result: Result) -> Iterator[str]:
    """What became of the requests to an Open CAS, in the words of `casadm --stats`."""
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


def _fills(result: Result) -> Iterator[tuple[str, str]]:
    """Pages that were wanted, but not filled for the rate that is set."""
    declined = result.cached.whole.counters.get("fills_over_rate", 0)
    if declined:
        begun = result.cached.whole.counters["fills_started"]
        yield (
            LABELS["fill"],
            f"{human_count(begun)} begun, {human_count(declined)} declined by the rate that is set",
        )


def _write_back(result: Result) -> Iterator[tuple[str, str]]:
    """What became of dirty data, and where they have no copy."""
    if result.scenario.get("cache_mode") not in ("write-back", "writeback") or not rows(result):
        return
    counters = result.cached.whole.counters
    members = int(result.scenario.get("cache_members", 1))
    parts = []
    if "dirty_pages" in counters:
        cleaned, writes = counters["cleaned_bytes"], counters["write_backs"]
        parts.append(f"{human_size(cleaned)} written back in {human_count(writes)} writes")
        parts.append(f"{human_count(counters['dirty_pages'])} pages dirty at the end")
    if counters.get("writes_limited"):
        limited = human_count(counters["writes_limited"])
        parts.append(f"{limited} times a page's write went to the disks, as too much was dirty")
    if counters.get("stalls"):
        parts.append(f"{human_count(counters['stalls'])} pages found only dirty ones to replace")
    where = "one SSD" if members == 1 else f"{members} striped SSDs"
    parts.append(f"what is dirty is on {where} only, without a copy")
    yield LABELS["write_back"], joined(parts)


def _writecache(result: Result) -> Iterator[tuple[str, str]]:
    """What a dm-writecache did with the blocks of writes, as `dmsetup status` counts them."""
    if result.scenario.get("cache_kind") != "dm-writecache":
        return
    counters = result.cached.whole.counters
    kinds = (
        ("writes_allocated", "allocated"),
        ("write_hits_uncommitted", "written again before a commit"),
        ("write_hits_committed", "after one"),
        ("writes_around", "around it"),
        ("blocks_written_back", "written back"),
    )
    parts = [f"{human_count(counters.get('writes', 0))} blocks of writes"]
    parts += [f"{human_count(counters.get(name, 0))} {words}" for name, words in kinds]
    yield LABELS["writecache"], joined(parts)


def _wear(result: Result) -> Iterator[tuple[str, str]]:
    wear = result.wear
    if wear is None or not rows(result):
        return
    judged = result.phases["warm"].span_ns
    is_long = judged >= SHORTEST_NS  # enough to speak of days and years
    parts = [f"{human_size(wear.bytes_per_day)} a day"] if is_long else []
    if not is_long:
        parts.append(f"{human_size(wear.bytes_written)} in {span(judged)}")
    if wear.per_host_write is not None:
        often = wear.per_host_write > 99  # the host hardly writes: all of it is promotion
        per_byte = "over 99" if often else f"{wear.per_host_write:.2f}"
        parts.append(f"{per_byte} bytes per byte the host writes")
    if wear.read_per_written is not None:
        parts.append(f"{wear.read_per_written:.2f} bytes read from it per byte written")
    if wear.in_flash is not None:
        parts.append(f"{wear.in_flash:.2f} bytes in the flash per byte written to it")
    if wear.drive_writes_per_day is not None and is_long:
        parts.append(f"{wear.drive_writes_per_day:.2g} DWPD")
    if wear.years is not None and is_long:
        parts.append(f"rated life {lasting(wear.years)}")
    yield LABELS["wear"], joined(parts)


def _disk_time(result: Result) -> Iterator[tuple[str, str]]:
    for label, phase in ((LABELS["none"], result.phases["none"]), *rows(result)[-1:]):
        spent = sum(phase.disk_time_ns.values())
        if spent:
            shares = {what: percent(ns / spent) for what, ns in phase.disk_time_ns.items()}
            parts = [f"{LABELS.get(what, what)} {share}" for what, share in shares.items()]
            kind = "volume_time" if "latency" in shares else "disk_time"
            first = phase is result.phases["none"]
            yield LABELS[kind] if first else "", f"{label}: " + joined(parts)


def _controller(result: Result) -> Iterator[tuple[str, str]]:
    """What went through the DRAM of a RAID controller."""
    told = rows(result) or [(LABELS["none"], result.phases["none"])]
    label, phase = told[-1]
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
        parts.append(f"{percent(share)} of those writes full stripes")
    yield LABELS["controller"], joined(parts)


def _rebuild(result: Result) -> Iterator[tuple[str, str]]:
    ends = {LABELS["none"]: result.plain.rebuild, LABELS["cached"]: result.cached.rebuild}
    for label, progress in ends.items():
        if progress is not None:
            words = f"{percent(progress.share)} done"
            if progress.whole_ns is not None:
                words += f", {span(progress.whole_ns)} in all"
                words += " at this pace" if progress.share < 1 else ""
            yield LABELS["rebuild"] if label == LABELS["none"] else "", f"{label}: {words}"


def _model(result: Result) -> Iterator[tuple[str, str]]:
    """How well the disks alone give the recorded latencies back."""
    fidelity = result.fidelity
    if not fidelity.measured.count:
        return
    measured, modelled = (
        latency(one.percentile(50)) for one in (fidelity.measured, fidelity.modelled)
    )
    if not fidelity.is_known:
        text = f"not held against the recorded latencies: {fidelity.why_not}"
    elif fidelity.is_other_kind:
        text = (
            f"your storage took {measured} at the median, as flash or a cache does; these disks "
            f"alone take {modelled}"
        )
    else:
        text = (
            f"these disks alone take {modelled} at the median, recorded were {measured}; the "
            f"distributions are {percent(fidelity.demerit)} of the mean apart, a "
            f"{fidelity.likeness} likeness"
        )
    yield LABELS["model"], unbroken(text)
