"""Reports of a thinned capture: its week by hour; figures of all of it, from its minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hybridsim.answers.forecast import WORTH_IT
from hybridsim.foundation.printable import printable
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
from hybridsim.studies.estimate.estimate import Answer, Estimate
from hybridsim.studies.estimate.estimate import Hour as HourOfAll
from hybridsim.studies.estimate.minutes import Figure
from hybridsim.studies.week import DAYS, Hour, Week, local_time, week
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.trace import Trace

SHADES = " ·:-=+*#%@"
ASCII = " .:-=+*#%@"
HOURS_LISTED = 24  # of a capture without a clock
LATE = 0.01  # share of the minutes without keeping up that is worth a line
BUSIEST_LISTED = 12
ROWS = {
    "reads, mean": "read_mean_ns",
    "reads, p99": "read_p99_ns",
    "writes, mean": "write_mean_ns",
    "writes, p99": "write_p99_ns",
    "hits of reads": "hit_ratio",
    "disks busy": "disk_busy",
}


def text(trace: Trace, ascii_only: bool = False) -> str:
    """Return the report of the sample of a thinned capture, at most 80 columns wide."""
    capture, found = trace.sample, week(trace)
    assert capture is not None
    assert found is not None
    total = capture.total
    reads, writes = (int(each) for each in total.of("requests")[:2])
    in_order = percent(int(total.of("sequential").sum()) / ((reads + writes) or 1))
    lines = [
        ("trace", f"{trace.name} (thinned)"),
        ("recorded", f"{_device(capture)}, {_span(capture)}"),
        ("requests", f"{total.requests:,}: {percent(reads / total.requests)} reads, "
                     f"{human_size(int(total.of('bytes').sum()))}, {in_order} sequential"),
        ("latency", _latency(capture)),
        ("sample", f"{percent(capture.rate)} of the regions of "
                   f"{human_size(capture.settings.region_bytes)}: for hits and mrc"),
        ("in full", f"{counted(len(capture.stretches), 'minute')}: for replay, advise and all "
                    "others"),
    ]  # fmt: skip
    if capture.stretches:
        lines += [
            ("", f"--device worst     {capture.worst}"),
            ("", f"--device typical   {capture.typical}"),
        ]
    if capture.interruptions:
        lines.append(("gaps", f"{counted(len(capture.interruptions), 'interruption')}"))
    if lost := int(total.of("lost")[0]):
        lines.append(("dropped", f"{counted(lost, 'event')}: record with a larger --buffer"))
    out = [f"{word:<11}{line}" for word, line in lines if line]
    worst = found.worst
    waited = (
        f", mean {latency(worst.mean_ns)}, p99 {latency(worst.p99_ns)}" if worst.mean_ns else ""
    )
    out.append(
        f"{'worst hour':<11}{local_time(capture, worst.begin_ns)}: "
        f"{human_count(worst.rate)} requests/s{waited}"
    )
    if len(found.hours) > 1:
        out += ["", *picture(found, ascii_only)]
    return "\n".join(out)


def _span(capture: Thinned) -> str:
    days = capture.total.span_ns / 86_400e9
    long = f"{days:.1f} days" if days >= 1 else span(capture.total.span_ns)
    if capture.origin_unix_ns is None:
        return long
    return f"{long} from {local_time(capture, capture.total.begin_ns)}"


def _device(capture: Thinned) -> str:
    """Return the device; formats without devices name it 0."""
    name = capture.settings.device
    return printable(name) if name not in ("", "0") else "a trace"


def _latency(capture: Thinned) -> str:
    total = capture.total
    if total.mean_latency_ns is None:
        return "unknown: no completions"
    return f"mean {latency(total.mean_latency_ns)}, p99 {latency(total.percentile(99))}"


def picture(found: Week, ascii_only: bool = False) -> list[str]:
    """Return load, p99 and hit ratio by weekday and hour as shades; without a clock as a list."""
    if any(each.weekday is None for each in found.hours):
        return _listed(found)
    shades = ASCII if ascii_only else SHADES
    cache = human_size(found.cache_bytes)
    out = []
    for what, title, show in (
        ("rate", "requests/s", human_count),
        ("p99_ns", "p99", latency),
        ("hit_ratio", f"hit ratio of {cache}, LRU", percent),
    ):
        out += shaded(title, found.hours, what, show, shades)
    return out[:-1]


def shaded(
    title: str, hours: Iterable[Hour | HourOfAll], what: str, show: Callable[[float], str],
    shades: str,
) -> list[str]:  # fmt: skip
    """Return the mean of a figure over requests by weekday and hour as shades, and a blank line.

    Nothing if the figure is unknown.
    """
    sums: dict[tuple[int, int], tuple[float, int]] = {}
    for each in hours:
        value = getattr(each, what)
        if value is not None and each.weekday is not None:
            before, requests = sums.get((each.weekday, each.hour), (0.0, 0))
            sums[each.weekday, each.hour] = (
                before + value * each.requests, requests + each.requests
            )  # fmt: skip
    cells = {place: total / requests for place, (total, requests) in sums.items()}
    if not cells:
        return []
    low, high = min(cells.values()), max(cells.values())
    out = [
        f"{title}: {shades[1]} {show(low)} to {shades[-1]} {show(high)}",
        f"{'':5}{''.join(f'{hour:<6}' for hour in range(0, 24, 3))}".rstrip(),
    ]
    for day, name in enumerate(DAYS):
        if not any(each == day for each, _ in cells):
            continue
        marks = ""
        for hour in range(24):
            value = cells.get((day, hour))
            part = 0.0 if value is None or high == low else (value - low) / (high - low)
            mark = shades[0] if value is None else shades[1 + round(part * (len(shades) - 2))]
            marks += mark * 2
        out.append(f"{name:<5}{marks}".rstrip())
    return [*out, ""]


def _listed(found: Week) -> list[str]:
    out = [f"{'hour':>6}{'requests/s':>12}{'p99':>10}{'hits':>8}"]
    shown = sorted(found.hours, key=lambda each: -each.requests)[:HOURS_LISTED]
    out += [f"{each.hour:>6}{human_count(each.rate):>12}{latency(each.p99_ns):>10}"
            f"{percent(each.hit_ratio):>8}"
            for each in sorted(shown, key=lambda each: each.begin_ns)]  # fmt: skip
    if len(found.hours) > len(shown):
        out.append(f"the busiest {len(shown)} of {len(found.hours)} hours; --json lists them all")
    return out


# A capture that was replayed by its minutes.


def _with_interval(key: str, one: Figure) -> str:
    if key.endswith("_ns"):
        return ranged(one.value, one.low, one.high)
    return f"{percent(one.value)} ({percent(one.low)} to {percent(min(one.high, 1.0))})"


def estimate_text(answer: Answer, ascii_only: bool = False) -> str:
    """Return the report, at most 80 columns wide."""
    return page(_lines(answer, ascii_only), ascii_only)


def _lines(answer: Answer, ascii_only: bool) -> Iterator[str]:
    one, capture = answer.picked, answer.capture
    total = capture.total
    yield from paragraph("VERDICT", " ".join(_estimated(answer)))
    for each in one.required:
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
    yield from _hours(one, answer, ascii_only)
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


def _estimated(answer: Answer) -> Iterator[str]:
    one = answer.picked
    gain = one.gain
    if answer.pick is None:
        yield "No size that was tried meets all requirements; the largest one:"
    yield answered(answer.verdict)
    now, then = (_with_interval("mean_ns", each["mean_ns"]) for each in (one.cached, one.alone))
    yield (
        f"With {human_size(one.cache_bytes)} of cache requests take {now} on average instead of "
        f"{then}: {gain.value:.2f} times less ({gain.low:.2f} to {gain.high:.2f}; worth a cache: "
        f"{WORTH_IT})."
    )


def _tried(answer: Answer) -> list[str]:
    heads = ["cache", "hits of reads", "reads, mean", "reads, p99", "gain", ""]
    rows = []
    for at, one in enumerate(answer.caches):
        sign = "<-" if at == answer.pick else ""
        if one.required:
            sign = f"{MET if all(each.met for each in one.required) else MISSED} {sign}"
        cached = one.cached
        rows.append(
            (
                human_size(one.cache_bytes), percent(cached["hit_ratio"].value),
                latency(cached["read_mean_ns"].value), latency(cached["read_p99_ns"].value),
                f"{one.gain.value:.2f} ({one.gain.low:.2f} to {one.gain.high:.2f})", sign,
            )
        )  # fmt: skip
    return table(heads, rows)


def _hours(one: Estimate, answer: Answer, ascii_only: bool) -> Iterator[str]:
    """Yield the mean by weekday and hour; of a capture without a clock the busiest hours."""
    if answer.capture.origin_unix_ns is None:
        shown = sorted(one.hours, key=lambda each: -each.requests)[:BUSIEST_LISTED]
        rows = [
            (
                str(each.hour), human_count(each.requests / 3600),
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
        yield from shaded(title, one.hours, name, latency, shades)
