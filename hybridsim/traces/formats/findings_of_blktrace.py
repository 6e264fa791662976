"""What a pass over a blktrace capture has to say about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybridsim.foundation.wording import span
from hybridsim.requests.rows import Device, Findings
from hybridsim.traces.formats.blktrace_files import cpu_of
from hybridsim.traces.formats.blktrace_lane import Lane
from hybridsim.traces.formats.blktrace_records import Log, Tally
from hybridsim.traces.formats.pairing import At, Pairer

LONG_NS = 60 * 10**9  # before the first request
OTHER_FILES = "add the files of the other CPUs (NAME.blktrace.*), or capture"
CAPTURE_AGAIN = "capture again with larger buffers: `blktrace -b 2048 -n 8`"


def report(findings: Findings, log: Log, lanes: Sequence[Lane], pairer: Pairer) -> None:
    """Add everything that the pass has noticed."""
    for lane in lanes:
        report_damage(findings, lane)
    report_gaps(findings, log)
    report_missing_files(findings, log, lanes)
    report_records(findings, log)
    report_pairing(findings, pairer)


def report_damage(findings: Findings, lane: Lane) -> None:
    """Add what could not be decoded of one file."""
    for offset, size in lane.skipped:
        findings.add(
            "corrupt",
            "damaged bytes were skipped; requests recorded there are missing",
            count=size,
            place=f"{lane.stream.name} byte {offset:,} ({size:,} bytes)",
            fix="copy the file again from where it was captured",
        )
    if lane.cut_at >= 0:
        findings.add(
            "truncated",
            "the last record is cut off; everything before it is used",
            place=f"{lane.stream.name} byte {lane.cut_at:,}",
            fix="stop blktrace before copying its files",
        )


def report_gaps(findings: Findings, log: Log) -> None:
    """Add what sequence numbers show to be missing."""
    for cpu in np.flatnonzero(log.missing):
        after = (int(log.missing_at[cpu]) - int(log.tally[Tally.FIRST_NS])) / 1e9
        findings.add(
            "dropped",
            "events are missing (dropped by the kernel, or filtered out of a dump); requests "
            "that lost their queue event are absent, others have no completion",
            count=int(log.missing[cpu]),
            place=f"CPU {cpu} from {after:.3f} s",
            fix=CAPTURE_AGAIN,
        )


def report_missing_files(findings: Findings, log: Log, lanes: Sequence[Lane]) -> None:
    """Add CPUs whose file is not there."""
    present = {lane.cpu for lane in lanes}
    seen = {int(cpu) for cpu in np.flatnonzero(log.cpus)}
    if len(lanes) == 1 and seen == {cpu_of(Path(lanes[0].stream.name))}:
        present = seen  # not a dump or a stream of all CPUs, which any file may be named like
    if -1 in present:
        return
    absent = sorted((set(range(max(present))) | seen) - present)
    if absent:
        findings.add(
            "cpu-file-missing",
            "there is no file for these CPUs; what they queued or completed is missing",
            count=len(absent),
            place="CPU " + ", ".join(map(str, absent[:8])) + (" ..." if len(absent) > 8 else ""),
            fix="copy all files of the capture: blktrace writes one for each CPU, even if empty",
        )


def report_records(findings: Findings, log: Log) -> None:
    """Add records that were left out on purpose."""
    for what, code, text, fix in (
        (
            Tally.BAD_TIME,
            "corrupt-time",
            "records with an impossible time were left out",
            "copy the file again from where it was captured",
        ),
        (
            Tally.ABSURD,
            "corrupt-sector",
            "records with an impossible sector were left out",
            "copy the file again from where it was captured",
        ),
        (
            Tally.UNKNOWN_ACTION,
            "unknown-action",
            "records of an unknown kind were left out",
            "none needed unless they are many",
        ),
        (
            Tally.PASSTHROUGH,
            "passthrough",
            "commands sent past the block layer (SG_IO and the like) are not replayed",
            "none needed",
        ),
        (
            Tally.ZONE,
            "zone-management",
            "zone management commands are not replayed",
            "none needed; zone appends are replayed as writes",
        ),
        (
            Tally.OTHER_DEVICES,
            "too-many-devices",
            "records of further devices were not looked at",
            "capture fewer devices at a time",
        ),
    ):
        count = int(log.tally[what])
        if count:
            findings.add(code, text, count=count, fix=fix)


def report_pairing(findings: Findings, pairer: Pairer) -> None:
    """Add what pairing events to requests has noticed."""
    for what, code, text, fix in (
        (
            At.INCOMPLETE,
            "incomplete",
            "requests have no completion in the trace; they are replayed, their latency is unknown",
            f"none needed for a few at the end; otherwise {OTHER_FILES} `-a complete` too",
        ),
        (
            At.UNMATCHED,
            "unmatched",
            "completions belong to no request that the trace has seen begin",
            f"none needed for a few at the beginning; otherwise {OTHER_FILES} `-a queue` too",
        ),
        (
            At.DISORDER,
            "disorder",
            "events are earlier than one before them and were moved to its time",
            "none needed for a few; many mean that the CPUs' clocks differ",
        ),
        (
            At.EMPTY,
            "empty",
            "requests without length that are no flush were left out",
            "none needed",
        ),
    ):
        count = pairer.count(what)
        if count:
            findings.add(code, text, count=count, fix=fix)


def report_devices(findings: Findings, devices: Sequence[Device], asked: bool) -> None:
    """Add that there are several devices, and which one is replayed."""
    used = [device for device in devices if device.requests]
    if len(used) < 2:
        return
    chosen = next(device for device in devices if device.chosen)
    others = ", ".join(device.name for device in used if not device.chosen)
    if not asked:
        findings.add(
            "several-devices",
            f"only {chosen.name} is replayed; devices are not added up, as one may lie on another",
            count=len(used),
            place=f"also in the trace: {others}",
            fix="choose another with --device",
        )


def report_lead(findings: Findings, first_ns: int) -> None:
    """Add that the capture begins long before the first request, as two captures in one do."""
    if first_ns >= LONG_NS:
        findings.add(
            "late-start",
            f"the first request comes {span(first_ns)} after the first event of the capture, "
            "which counts as time without load",
            fix="if these are captures of different times or devices, name one: FOLDER/PREFIX",
        )


def report_issued_only(findings: Findings) -> None:
    """Add that requests begin where the driver got them."""
    findings.add(
        "issued-only",
        "the trace has no queue events: requests arrive when they were issued to the device, "
        "after merging and scheduling",
        fix="capture `-a queue` too if the cache is to sit above the scheduler",
    )
