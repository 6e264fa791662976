"""Reports of the events of a replay: what happened, how long it took, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import latency, percent, span

Document = Mapping[str, Any]
PERIODS = {"before": "before", "during": "from then on", "after": "after that"}
HEADS = ("", "from", "to", "reads", "hit", "mean", "p99", "writes", "mean", "p99")


def sentences(event: Document, kind: str = "page") -> Iterator[str]:
    """Yield what happened, as sentences; `event` is one of the document of a result.

    `kind` is the kind of cache.
    """
    at = span(event["at_ns"])
    if event["what"] == "reboot":
        yield from _reboot(event)
    elif event["what"] == "detach":
        yield f"Removal of the cache at {at}, with {human_size(event['dirty_bytes'])} dirty."
        done = "Everything was written back and the cache was out after {}."
        yield "The cache was out at once." if event["flush_ns"] == 0 else _flushed(event, done)
    elif event["what"] == "ssd":
        yield f"The SSD died at {at}; the load went on from the disks."
        yield from _lost(event["lost"], kind)
    elif event["what"] == "disk":
        yield f"A disk failed at {at}; the array went on without it."
    elif event["what"] == "rebuild":
        yield f"The rebuild of a disk began at {at}."
        yield _flushed(event, "It was complete after {}.")
    else:
        yield f"A backup began at {at}: reads of 1 MiB in order, through the cache."
        yield _read(event, event["backup"])
    if event["held_ns"]:
        yield f"No request was issued for {latency(event['held_ns'])} before that."
    yield from _latencies(event)


def _reboot(event: Document) -> Iterator[str]:
    down = f", {span(event['down_ns'])} down" if event["down_ns"] else ""
    name = "Clean reboot" if "reboot=clean" in event["how"] else "Unclean reboot"
    cached, dirty = human_size(event["cached_bytes"]), human_size(event["dirty_bytes"])
    yield f"{name} at {span(event['at_ns'])}{down}: {cached} were cached, {dirty} of them dirty."
    left = event["cached_after_bytes"]
    if left < event["cached_bytes"]:
        yield f"The cache came up {f'with {human_size(left)} of it' if left else 'empty'}."
    after = event["dirty_after_bytes"]
    if after > event["dirty_bytes"]:
        yield f"The cache came up with {human_size(after)} dirty."
        yield _flushed(event, "They were written back after {} of the load.")
    hit = event["before"]["hit"]
    again_ns = event["warm_again_ns"]
    if hit is not None and again_ns is None:
        yield f"The hit ratio did not return to the {percent(hit)} before it."
    elif hit is not None:
        again = f"Warm again after {span(again_ns)}" if again_ns else "The cache was warm at once"
        yield f"{again} (hit ratio before: {percent(hit)})."


def _flushed(event: Document, done: str) -> str:
    """Return how long it took, or what was left and how long that would take."""
    if event["flush_ns"] is not None:
        return done.format(span(event["flush_ns"]))
    left = human_size(event["flush_left_bytes"])
    forecast = event["flush_forecast_ns"]
    more = f"another {span(forecast)} at this rate" if forecast else "they have not become fewer"
    return f"{left} were still to be written at the end of that: {more}."


def _lost(lost: Document | None, kind: str) -> Iterator[str]:
    size = lost["bytes"] if lost else 0
    if not size:
        yield "Nothing was lost: no data were dirty."
    if kind == "dm-cache":  # what the real cache does then
        yield "The real dm-cache returns errors until an administrator removes the cache."
    if lost is None or not size:
        return
    if kind == "bcache":
        yield (
            "The real bcache stops its device then (stop_when_cache_set_failed = auto): all "
            "requests fail until it is started by hand without its cache."
        )
    yield f"{human_size(size)} of dirty data were lost."
    if lost["age_p50_ns"] is not None:
        p50, p99 = span(lost["age_p50_ns"]), span(lost["age_p99_ns"])
        yield f"They were written {p50} before (median; p99 {p99})."
    reads = lost["reads_after"]
    yield f"{lost['read_errors']:,} of the {reads:,} reads after that needed lost data: errors."


def _read(event: Document, reads: Document) -> str:
    read, whole = human_size(reads["read_bytes"]), human_size(reads["of_bytes"])
    if event["flush_ns"] is not None:
        return f"It had read all {whole} after {span(event['flush_ns'])}."
    forecast = event["flush_forecast_ns"]
    more = f"; the rest takes another {span(forecast)} at this rate" if forecast else ""
    return f"It had read {read} of {whole} when the load ended{more}."


def _latencies(event: Document) -> Iterator[str]:
    for what in ("read", "write"):
        parts = []
        for name in PERIODS:
            period = event[name]
            if period and period[f"{what}s"]:
                mean, p99 = (latency(period[f"{what}_{each}_ns"]) for each in ("mean", "p99"))
                length = span(period["end_ns"] - period["start_ns"])
                parts.append(f"{mean} (p99 {p99}) in the {length} {PERIODS[name]}")
        if parts:
            yield f"Mean {what} {', '.join(parts)}."


def table(event: Document) -> list[list[str]]:
    """Return the periods of an event as rows under HEADS."""
    return [
        [
            words, span(period["start_ns"]), span(period["end_ns"]),
            f"{period['reads']:,}", percent(period["hit"]),
            *(latency(period[f"read_{each}_ns"]) for each in ("mean", "p99")),
            f"{period['writes']:,}",
            *(latency(period[f"write_{each}_ns"]) for each in ("mean", "p99")),
        ]
        for name, words in PERIODS.items()
        if (period := event[name]) is not None
    ]  # fmt: skip
