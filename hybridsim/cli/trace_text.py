"""The reports of the trace commands, in human units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hybridsim.foundation.codes import Flag
from hybridsim.foundation.wording import counted, percent

if TYPE_CHECKING:
    from hybridsim.traces.trace import Device, Requests, Summary, Trace

LETTERS = "RWDFZ"
HARMLESS = {"several-devices", "passthrough", "zone-management", "issued-only", "no-times"}
HARMLESS |= {"whole-seconds", "all-reads"}
AT_THE_ENDS = {"incomplete", "unmatched"}  # requests outstanding at the start or end of a capture
FEW = 0.001  # of the requests
DEVICES_SHOWN = 8
FLAGS = {flag: str(flag.name).lower() for flag in Flag} | {Flag.AHEAD: "readahead"}


def labelled(lines: Iterable[tuple[str, str]], width: int = 9) -> str:
    """Return labelled lines, the label to the left."""
    return "\n".join(f"{word:<{width}} {text}" for word, text in lines)


def size(amount: float) -> str:
    """Return bytes in the unit that leaves at most four digits."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            return (
                f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
            )
        amount /= 1024
    return f"{amount:,.1f} PiB"


def duration(time_ns: float) -> str:
    """Return a time in the unit that a person would use."""
    if time_ns < 0:
        return "-"
    for unit, factor in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if time_ns < 999.5 * factor:  # a larger one would be rounded to 1000
            return f"{time_ns / factor:.3g} {unit}"
    seconds = time_ns / 1e9
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {seconds:02}s"


def share(part: int, whole: int) -> str:
    """Return a part in percent of the whole; '-' if the whole is 0."""
    return f"{100 * part / whole:.0f}%" if whole else "-"


def info_text(opened: Trace, summary: Summary) -> str:
    """Return the report of `trace info`."""
    took = "an unknown time" if summary.is_untimed else duration(summary.span_ns)
    lines = [
        ("trace", f"{opened.name} ({opened.format})"),
        ("requests", f"{summary.requests:,} in {took}{_since(opened)}"),
        (
            "reads",
            f"{summary.reads:,} ({share(summary.reads, summary.requests)}), "
            f"{size(summary.bytes_read)}, "
            f"{share(summary.sequential_reads, summary.reads)} sequential",
        ),
        (
            "writes",
            f"{summary.writes:,} ({share(summary.writes, summary.requests)}), "
            f"{size(summary.bytes_written)}, "
            f"{share(summary.sequential_writes, summary.writes)} sequential",
        ),
    ]
    if summary.discards:
        lines.append(("discards", f"{summary.discards:,}, {size(summary.bytes_discarded)}"))
    if summary.flushes:
        lines.append(("flushes", f"{summary.flushes:,}"))
    about = "" if summary.footprint_is_exact else "about "
    lines.append(("footprint", f"{about}{size(summary.footprint_bytes)} in units of 64 KiB"))
    lines.append(("highest offset", size(summary.max_end_bytes)))
    has_none = 0 < summary.requests == summary.incomplete  # most formats record none
    if has_none:
        lines.append(("completions", "none: latencies are unknown"))
    for word, count in (
        ("incomplete", 0 if has_none else summary.incomplete),
        ("errors", summary.errors),
        ("requeued", summary.requeues),
    ):
        if count:
            lines.append((word, f"{count:,} ({percent(count / summary.requests)})"))
    several = not all(device.chosen for device in summary.devices)
    for device in shown_devices(summary.devices):
        mark = "  <- used" if device.chosen and several else ""
        amount = f"{counted(device.requests, 'request')}, {size(device.bytes)}"
        lines.append(("device", f"{device.name}  {amount}{mark}"))
    if len(summary.devices) > DEVICES_SHOWN:
        others = len(summary.devices) - DEVICES_SHOWN
        lines.append(("", f"and {counted(others, 'other')}; --json lists them all"))
    if summary.warnings:
        codes = ", ".join(f"{each.code} ({each.count:,})" for each in summary.warnings)
        lines.append(("warnings", f"{codes}; see `hybridsim trace doctor`"))
    return labelled(lines, 11)


def shown_devices(devices: Sequence[Device]) -> list[Device]:
    """Return the devices with most bytes, and the chosen one, in the order of the trace."""
    ranked = sorted(devices, key=lambda each: (not each.chosen, -each.bytes))[:DEVICES_SHOWN]
    return [each for each in devices if each in ranked]


def _since(opened: Trace) -> str:
    if opened.origin is None:
        return ""
    try:
        began = datetime.fromtimestamp(opened.origin // 10**9, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f", from {began:%Y-%m-%d %H:%M:%S} UTC"


def diagnose(summary: Summary) -> str:
    """Return the verdict on a trace: unusable, usable with reservations, or sound."""
    if not summary.reads + summary.writes:
        return "unusable"
    few = FEW * summary.requests
    serious = [
        each
        for each in summary.warnings
        if each.code not in HARMLESS and not (each.code in AT_THE_ENDS and each.count <= few)
    ]
    return "usable with reservations" if serious else "sound"


def doctor_text(opened: Trace, summary: Summary) -> str:
    """Return the report of `trace doctor`."""
    verdict = diagnose(summary)
    lines = [f"{verdict}  {opened.name}: {counted(summary.requests, 'request')} ({opened.format})"]
    if summary.requests and not summary.reads + summary.writes:
        lines.append("  no reads and no writes: nothing to replay")
    for each in summary.warnings:
        lines += ["", f"{each.code} x {each.count:,}", f"  {each.text}"]
        if each.place:
            lines.append(f"  where  {each.place}")
        if each.fix:
            lines.append(f"  fix    {each.fix}")
    return "\n".join(lines)


def head_text(requests: Requests) -> str:
    """Return requests as a table."""
    lines = [
        f"{'arrival':>15}  op {'offset':>15} {'length':>9} {'queued':>9} {'latency':>9}  flags"
    ]
    rows = zip(*(column.tolist() for column in requests))
    for arrival, offset, length, op, flags, _, _, dispatch, complete in rows:
        queued = duration(dispatch - arrival) if dispatch >= 0 else "-"
        latency = duration(complete - arrival) if complete >= 0 else "-"
        words = " ".join(word for flag, word in FLAGS.items() if flags & flag)
        lines.append(
            f"{arrival / 1e9:>13.6f} s   {LETTERS[op]} {offset:>15,} {size(length):>9} "
            f"{queued:>9} {latency:>9}  {words}".rstrip()
        )
    return "\n".join(lines)
