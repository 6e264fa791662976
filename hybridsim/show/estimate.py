"""The report of a thinned capture that was replayed by its minutes: figures of all of it."""

from __future__ import annotations

from collections.abc import Iterator

from hybridsim.answers.forecast import WORTH_IT
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import (
    answered,
    counted,
    latency,
    percent,
    ranged,
    ranged_size,
    span,
)
from hybridsim.show.page import MET, MISSED, mark, page, paragraph, table
from hybridsim.show.week import ASCII, SHADES, shaded
from hybridsim.studies.estimate.answer import Answer
from hybridsim.studies.estimate.estimate import Estimate, Figure
from hybridsim.studies.week import clock, local_time

LATE = 0.01  # share of the minutes without keeping up that is worth a line
HOURS_LISTED = 12
ROWS = {
    "reads, mean": "read_mean_ns",
    "reads, p99": "read_p99_ns",
    "writes, mean": "write_mean_ns",
    "writes, p99": "write_p99_ns",
    "hits of reads": "hit_ratio",
    "disks busy": "disk_busy",
}


def _with_interval(key: str, one: Figure) -> str:
    if key.endswith("_ns"):
        return ranged(one.value, one.low, one.high)
    return f"{percent(one.value)} ({percent(one.low)} to {percent(min(one.high, 1.0))})"


def text(answer: Answer, ascii_only: bool = False) -> str:
    """Return the report, at most 80 columns wide."""
    return page(_lines(answer, ascii_only), ascii_only)


def _lines(answer: Answer, ascii_only: bool) -> Iterator[str]:
    one, capture = answer.picked, answer.trace.sample
    assert capture is not None
    total = capture.total
    yield from paragraph("VERDICT", " ".join(_verdict(answer)))
    for each in answer.require[answer.caches.index(one)]:
        sign = mark(each.met, each.is_sure)
        yield from paragraph("required", f"{sign} {each.requirement.text}: {each.ranged}")
    yield from table(
        ("", "with the cache", "without it"),
        [
            (name, _with_interval(key, one.cached[key]),
             _with_interval(key, one.alone[key]) if key != "hit_ratio" else "")
            for name, key in ROWS.items()
            if one.alone[key].value or one.cached[key].value
        ],
    )  # fmt: skip
    day = one.ssd_bytes_per_day
    yield from paragraph("wear", f"{ranged_size(day.value, day.low, day.high)} a day to the SSD.")
    worst = one.worst
    yield from paragraph(
        "worst hour",
        f"{local_time(capture, worst.begin_ns)}: {human_count(worst.requests / 3600)} requests/s, "
        f"{latency(worst.cached_ns)} on average ({latency(worst.alone_ns)} without the cache).",
    )
    for share, whose in zip(one.late, ("the disks alone", "the disks with the cache")):
        if share > LATE:
            yield from paragraph(
                "note", f"In {percent(share)} of the minutes {whose} cannot keep up: latencies "
                "would grow beyond those printed."
            )  # fmt: skip
    if len(answer.caches) > 1:
        yield ""
        yield from _tried(answer)
    yield ""
    yield from _picture(one, answer, ascii_only)
    arrivals = "at their recorded times" if one.mode == "open" else f"in mode {one.mode}"
    cache = one.scenario.cache
    yield from paragraph(
        "assumed",
        f"{answer.trace.name}: {human_count(total.requests)} requests in {span(total.span_ns)}, "
        f"{percent(capture.rate)} of the regions sampled. "
        f"{counted(one.minutes[0], 'typical minute')} and {one.minutes[1]} worst ones of their "
        f"hours were replayed in full, {arrivals}, and stand for all of it; in brackets: 95%. The "
        "cache was empty at the start of the capture; what it holds before each minute is what "
        f"the sample says. Cache: {human_size(one.cache_bytes)} of {cache.drive.name}, "
        f"{cache.words}, {getattr(cache, 'replacement', '')}, no sequential cutoff.",
    )


def _verdict(answer: Answer) -> Iterator[str]:
    one = answer.picked
    gain = one.gain
    if answer.pick is None:
        yield "No size that was tried meets all requirements; the largest one:"
    yield answered(answer.verdict)
    cached, alone = one.cached["mean_ns"], one.alone["mean_ns"]
    yield (
        f"With {human_size(one.cache_bytes)} of cache requests take "
        f"{ranged(cached.value, cached.low, cached.high)} on average instead of "
        f"{ranged(alone.value, alone.low, alone.high)}: {gain.value:.2f} times less "
        f"({gain.low:.2f} to {gain.high:.2f}; worth a cache: {WORTH_IT})."
    )


def _tried(answer: Answer) -> list[str]:
    heads = ["cache", "hits of reads", "reads, mean", "reads, p99", "gain", ""]
    rows = []
    for at, (one, checked) in enumerate(zip(answer.caches, answer.require)):
        sign = "<-" if at == answer.pick else ""
        if checked:
            sign = f"{MET if all(each.met for each in checked) else MISSED} {sign}"
        cached = one.cached
        rows.append(
            (
                human_size(one.cache_bytes), percent(cached["hit_ratio"].value),
                latency(cached["read_mean_ns"].value), latency(cached["read_p99_ns"].value),
                f"{one.gain.value:.2f} ({one.gain.low:.2f} to {one.gain.high:.2f})", sign,
            )
        )  # fmt: skip
    return table(heads, rows)


def _picture(one: Estimate, answer: Answer, ascii_only: bool) -> Iterator[str]:
    """Yield the mean by weekday and hour; of a capture without a clock the busiest hours."""
    capture = answer.trace.sample
    assert capture is not None
    if capture.origin_unix_ns is None:
        shown = sorted(one.hours, key=lambda each: -each.requests)[:HOURS_LISTED]
        rows = [
            (
                str(clock(capture, each.begin_ns)[1]), human_count(each.requests / 3600),
                percent(each.hit_ratio), latency(each.cached_ns), latency(each.alone_ns),
            )
            for each in sorted(shown, key=lambda each: each.begin_ns)
        ]  # fmt: skip
        yield from table(("hour", "requests/s", "hits", "mean", "without"), rows)
        if len(one.hours) > len(shown):
            yield f"the busiest {len(shown)} of {len(one.hours)} hours; --json lists them all"
        yield ""
        return
    shades = ASCII if ascii_only else SHADES
    for title, name in (
        ("mean with the cache", "cached_ns"), ("mean without it", "alone_ns"),
    ):  # fmt: skip
        sums: dict[tuple[int, int], tuple[float, int]] = {}
        for each in one.hours:
            weekday, hour = clock(capture, each.begin_ns)
            before, requests = sums.get((weekday or 0, hour), (0.0, 0))
            value = getattr(each, name) * each.requests
            sums[(weekday or 0, hour)] = (before + value, requests + each.requests)
        cells = {place: value / max(number, 1) for place, (value, number) in sums.items()}
        yield from shaded(title, cells, latency, shades)
