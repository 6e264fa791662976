"""The report of a thinned capture: totals, the week by hour, and its worst hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hybridsim.foundation.printable import printable
from hybridsim.foundation.units import human_count, human_size
from hybridsim.foundation.wording import counted, latency, percent, span
from hybridsim.studies.week import DAYS, Week, local_time, week
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.trace import Trace

SHADES = " ·:-=+*#%@"
ASCII = " .:-=+*#%@"
HOURS_LISTED = 24  # of a capture without a clock


def text(trace: Trace, ascii_only: bool = False) -> str:
    """Return the report of the sample of a thinned capture, at most 80 columns wide."""
    capture, found = trace.sample, week(trace)
    assert capture is not None
    assert found is not None
    total = capture.total
    reads = int(total.of("requests")[0])
    lines = [
        ("trace", f"{trace.name} (thinned)"),
        ("recorded", f"{_device(capture)}, {_span(capture)}"),
        ("requests", f"{total.requests:,}: {percent(reads / total.requests)} reads, "
                     f"{human_size(int(total.of('bytes').sum()))}, {_sequential(capture)}"),
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


def _sequential(capture: Thinned) -> str:
    of = capture.total.of
    moves = int(of("requests")[0] + of("requests")[1])
    return f"{percent(int(of('sequential').sum()) / moves) if moves else '0%'} sequential"


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
        cells = found.cells(what)
        if cells:
            out += shaded(title, cells, show, shades)
    return out[:-1]


def shaded(
    title: str, cells: Mapping[tuple[int, int], float], show: Callable[[float], str], shades: str
) -> list[str]:
    """Return a value by weekday and hour as shades, and a blank line."""
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
