"""Reports of the events of a replay: what happened, how long it took, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, latency, percent, span

Document = Mapping[str, Any]
BY_HAND = "The real dm-cache returns errors until an administrator removes the cache."
PERIODS = ("before", "during", "after")
HEADS = ("", "from", "to", "reads", "hit", "mean", "p99", "writes", "mean", "p99")


def sentences(event: Document, kind: str = "page") -> Iterator[str]:
    """Yield what happened, as sentences; `event` is one of the document of a result.

    `kind` is the kind of cache.
    """
    yield from WORDS[event["what"]](event, kind)
    if event["held_ns"]:
        yield f"No request was issued for {latency(event['held_ns'])} before that."
    yield from _latencies(event)


def _reboot(event: Document, kind: str) -> Iterator[str]:
    is_clean = "reboot=clean" in event["how"]
    down = f", {span(event['down_ns'])} down" if event["down_ns"] else ""
    name = "Clean reboot" if is_clean else "Unclean reboot"
    cached, dirty = human_size(event["cached_bytes"]), human_size(event["dirty_bytes"])
    yield f"{name} at {span(event['at_ns'])}{down}: {cached} were cached, {dirty} of them dirty."
    left = event["cached_after_bytes"]
    if left < event["cached_bytes"]:
        yield f"The cache came up {f'with {human_size(left)} of it' if left else 'empty'}."
    after = event["dirty_after_bytes"]
    if after > event["dirty_bytes"]:
        yield f"The cache came up with {human_size(after)} dirty."
        if event["flush_ns"] is None:
            yield from _unfinished(event)
        else:
            yield f"They were written back after {span(event['flush_ns'])} of the load."
    yield from _warm(event)


def _warm(event: Document) -> Iterator[str]:
    hit = event["before"]["hit"]
    if hit is None:
        return
    if event["warm_again_ns"] is None:
        yield f"The hit ratio did not return to the {percent(hit)} before it."
    elif event["warm_again_ns"] == 0:
        yield f"The cache was warm at once (hit ratio before: {percent(hit)})."
    else:
        yield f"Warm again after {span(event['warm_again_ns'])} (hit ratio before: {percent(hit)})."


def _unfinished(event: Document) -> Iterator[str]:
    left = human_size(event["flush_left_bytes"])
    forecast = event["flush_forecast_ns"]
    more = f"another {span(forecast)} at this rate" if forecast else "they have not become fewer"
    yield f"{left} were still to be written at the end of that: {more}."


def _detach(event: Document, kind: str) -> Iterator[str]:
    dirty = human_size(event["dirty_bytes"])
    yield f"Removal of the cache at {span(event['at_ns'])}, with {dirty} dirty."
    if event["flush_ns"] is None:
        yield from _unfinished(event)
    elif event["flush_ns"] == 0:
        yield "The cache was out at once."
    else:
        yield f"Everything was written back and the cache was out after {span(event['flush_ns'])}."


def _ssd(event: Document, kind: str) -> Iterator[str]:
    yield f"The SSD died at {span(event['at_ns'])}; the load went on from the disks."
    lost = event["lost"]
    if lost is None or not lost["bytes"]:
        yield "Nothing was lost: no data were dirty."
        yield from REAL.get((kind, False), ())
        return
    yield from REAL.get((kind, True), ())
    yield f"{human_size(lost['bytes'])} of dirty data were lost."
    if lost["age_p50_ns"] is not None:
        p50, p99 = span(lost["age_p50_ns"]), span(lost["age_p99_ns"])
        yield f"They were written {p50} before (median; p99 {p99})."
    reads = lost["reads_after"]
    yield f"{lost['read_errors']:,} of the {reads:,} reads after that needed lost data: errors."


def _disk(event: Document, kind: str) -> Iterator[str]:
    yield f"A disk failed at {span(event['at_ns'])}; the array went on without it."


def _rebuild(event: Document, kind: str) -> Iterator[str]:
    yield f"The rebuild of a disk began at {span(event['at_ns'])}."
    if event["flush_ns"] is None:
        yield from _unfinished(event)
    else:
        yield f"It was complete after {span(event['flush_ns'])}."


# What the real cache does when its SSD dies: by kind, and whether data were dirty.
REAL = {
    ("dm-cache", False): [BY_HAND],
    ("dm-cache", True): [BY_HAND],
    ("bcache", True): [
        "The real bcache stops its device then (stop_when_cache_set_failed = auto): all requests "
        "fail until it is started by hand without its cache."
    ],
}


def _backup(event: Document, kind: str) -> Iterator[str]:
    reads = event["backup"]
    read, whole = human_size(reads["read_bytes"]), human_size(reads["of_bytes"])
    yield f"A backup began at {span(event['at_ns'])}: reads of 1 MiB in order, through the cache."
    if event["flush_ns"] is None:
        forecast = event["flush_forecast_ns"]
        more = f"; the rest takes another {span(forecast)} at this rate" if forecast else ""
        yield f"It had read {read} of {whole} when the load ended{more}."
    else:
        yield f"It had read all {whole} after {span(event['flush_ns'])}."


WORDS = {
    "reboot": _reboot,
    "detach": _detach,
    "ssd": _ssd,
    "disk": _disk,
    "rebuild": _rebuild,
    "backup": _backup,
}


def _latencies(event: Document) -> Iterator[str]:
    for what in ("read", "write"):
        parts = []
        for name in PERIODS:
            period = event[name]
            if period and period[f"{what}s"]:
                mean, p99 = (latency(period[f"{what}_{each}_ns"]) for each in ("mean", "p99"))
                length = span(period["end_ns"] - period["start_ns"])
                parts.append(f"{mean} (p99 {p99}) in the {length} {NAMES[name]}")
        if parts:
            yield f"Mean {what} {', '.join(parts)}."


NAMES = {"before": "before", "during": "from then on", "after": "after that"}


def table(event: Document) -> list[list[str]]:
    """Return the periods of an event as rows under HEADS."""
    rows = []
    for name in PERIODS:
        period = event[name]
        if period is None:
            continue
        cells = [NAMES[name], span(period["start_ns"]), span(period["end_ns"])]
        hit = NONE if period["hit"] is None else percent(period["hit"])
        cells += [f"{period['reads']:,}", hit]
        cells += [latency(period[f"read_{each}_ns"]) for each in ("mean", "p99")]
        cells += [f"{period['writes']:,}"]
        cells += [latency(period[f"write_{each}_ns"]) for each in ("mean", "p99")]
        rows.append(cells)
    return rows
