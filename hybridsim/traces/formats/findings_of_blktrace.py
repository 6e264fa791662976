"""The findings of a pass over a blktrace capture."""

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
    """Add all findings of a pass."""
    for lane in lanes:
        report_damage(findings, lane)
    report_gaps(findings, log)
    report_missing_files(findings, log, lanes)
    report_records(findings, log)
    report_pairing(findings, pairer)


def report_damage(findings: Findings, lane: Lane) -> None:
    """Add the parts of a file that could not be decoded."""
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
            "the last record is truncated; all records before it are used",
            place=f"{lane.stream.name} byte {lane.cut_at:,}",
            fix="stop blktrace before copying its files",
        )


def report_gaps(findings: Findings, log: Log) -> None:
    """Add the records missing according to sequence numbers."""
    for cpu in np.flatnonzero(log.missing):
        after = (int(log.missing_at[cpu]) - int(log.tally[Tally.FIRST_NS])) / 1e9
        findings.add(
            "dropped",
            "events are missing (dropped by the kernel, or filtered out of a dump); requests "
            "without their queue event are absent, others have no completion",
            count=int(log.missing[cpu]),
            place=f"CPU {cpu} from {after:.3f} s",
            fix=CAPTURE_AGAIN,
        )


def report_missing_files(findings: Findings, log: Log, lanes: Sequence[Lane]) -> None:
    """Add the CPUs whose file is missing."""
    present = {lane.cpu for lane in lanes}
    seen = {int(cpu) for cpu in np.flatnonzero(log.cpus)}
    if len(lanes) == 1 and seen == {cpu_of(Path(lanes[0].stream.name))}:
        present = seen  # not a dump of all CPUs that is named like the file of one
    if -1 in present:
        return
    absent = sorted((set(range(max(present))) | seen) - present)
    if absent:
        findings.add(
            "cpu-file-missing",
            "the files of these CPUs are missing, with the requests that they queued or completed",
            count=len(absent),
            place="CPU " + ", ".join(map(str, absent[:8])) + (" ..." if len(absent) > 8 else ""),
            fix="copy all files of the capture: blktrace writes one for each CPU, even if empty",
        )


def report_records(findings: Findings, log: Log) -> None:
    """Add the records that were skipped on purpose."""
    for what, code, text, fix in (
        (
            Tally.BAD_TIME,
            "corrupt-time",
            "records with an impossible time were skipped",
            "copy the file again from where it was captured",
        ),
        (
            Tally.ABSURD,
            "corrupt-sector",
            "records with an impossible sector were skipped",
            "copy the file again from where it was captured",
        ),
        (
            Tally.UNKNOWN_ACTION,
            "unknown-action",
            "records of an unknown kind were skipped",
            "none needed for a few",
        ),
        (
            Tally.PASSTHROUGH,
            "passthrough",
            "passthrough commands (SG_IO and similar) are not replayed",
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
            "records of further devices were ignored",
            "capture fewer devices at a time",
        ),
    ):
        count = int(log.tally[what])
        if count:
            findings.add(code, text, count=count, fix=fix)


def report_pairing(findings: Findings, pairer: Pairer) -> None:
    """Add the findings of pairing events into requests."""
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
            "completions match no request in the trace",
            f"none needed for a few at the beginning; otherwise {OTHER_FILES} `-a queue` too",
        ),
        (
            At.DISORDER,
            "disorder",
            "events are earlier than a preceding one and were moved to its time",
            "none needed for a few; many mean that the CPUs' clocks differ",
        ),
        (
            At.EMPTY,
            "empty",
            "requests of length 0 that are not flushes were skipped",
            "none needed",
        ),
    ):
        count = pairer.count(what)
        if count:
            findings.add(code, text, count=count, fix=fix)


def report_devices(findings: Findings, devices: Sequence[Device], asked: bool) -> None:
    """Add a finding that there are several devices, and which one is replayed."""
    used = [device for device in devices if device.requests]
    if len(used) < 2:
        return
    chosen = next(device for device in devices if device.chosen)
    others = ", ".join(device.name for device in used if not device.chosen)
    if not asked:
        findings.add(
            "several-devices",
            f"only {chosen.name} is replayed; devices are not combined, as one may be stacked on "
            "another",
            count=len(used),
            place=f"also in the trace: {others}",
            fix="choose another with --device",
        )


def report_lead(findings: Findings, first_ns: int) -> None:
    """Add a finding if the first request is late, as in two captures that were mixed up."""
    if first_ns >= LONG_NS:
        findings.add(
            "late-start",
            f"the first request comes {span(first_ns)} after the first event of the capture, "
            "and the time before it counts as idle",
            fix="if the folder holds several captures, specify one: FOLDER/PREFIX",
        )


def report_issued_only(findings: Findings) -> None:
    """Add a finding that requests arrive at their issue to the driver."""
    findings.add(
        "issued-only",
        "the trace has no queue events: requests arrive at their issue to the device, after "
        "merging and scheduling",
        fix="capture queue events too if the cache is above the scheduler (blktrace `-a queue`, "
        "ftrace block_bio_queue)",
    )
