"""VMware's vscsi traces, versions 1 and 2: records of 32 and 40 bytes, little-endian.

The layout is from libCacheSim's documentation of its vscsi reader.  Version 1, as in the
CloudPhysics corpus: serial number, bytes, scatter-gather entries (32 bits each), SCSI command,
version (16 bits), block, microseconds (64).  Version 2: command, version, serial number, bytes,
entries, block, microseconds, and the response time in microseconds (64).  The version is the
upper byte of its field.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Findings, Requests, requests_with
from hybridsim.traces.formats.columns import SECTOR_BYTES
from hybridsim.traces.formats.files import records_of
from hybridsim.traces.formats.text import OneDevice, report_disorder

SIZES = [("serial", "<u4"), ("length", "<u4"), ("entries", "<u4")]
COMMAND = [("command", "<u2"), ("version", "<u2")]
PLACE = [("block", "<u8"), ("time_us", "<u8")]
RECORD = np.dtype([*SIZES, *COMMAND, *PLACE])
RECORD_2 = np.dtype([*COMMAND, *SIZES, *PLACE, ("response_us", "<u8")])
RECORDS = {2: RECORD_2, 1: RECORD}  # by version, in the order in which they are tried
# READ, WRITE, WRITE AND VERIFY of 6, 10, 12 and 16 bytes: operation codes of the SCSI standard
READS, WRITES = (0x08, 0x28, 0xA8, 0x88), (0x0A, 0x2A, 0xAA, 0x8A, 0x2E, 0xAE, 0x8E)
BLOCK_MAX = 1 << 52
SECONDS_MAX = 1 << 32
RESPONSE_MAX_US = 3_600_000_000


def detect(head: bytes) -> bool:
    """Return whether the first records are of one version, with at least one read or write."""
    return version_of(head) is not None


def version_of(head: bytes) -> int | None:
    """Return the version whose layout the first records fit, or None."""
    for version, layout in RECORDS.items():
        records = np.frombuffer(head, layout, min(len(head) // layout.itemsize, 16))
        is_data = np.isin(records["command"], READS + WRITES)
        if is_data.any() and (records["version"] >> 8 == version).all():
            return version
    return None


class Reader(OneDevice):
    """A trace."""

    format, what = "vscsi", "a vscsi trace"

    def _parts(self, findings: Findings) -> Iterator[Requests]:
        self._others = self._disorder = 0
        origin_us, last_ns = -1, 0
        version = version_of(self._source.head()) or 1
        for part in records_of(self._source, RECORDS[version], findings):
            sound = is_sound(part, version)
            self._others += int((~sound).sum())
            records = part[sound]
            if not len(records):
                continue
            if origin_us < 0:
                origin_us = int(records["time_us"][0])
            time_ns = (records["time_us"].astype(np.int64) - origin_us) * 1000
            ordered = np.maximum.accumulate(np.maximum(time_ns, last_ns))
            self._disorder += int((time_ns < ordered).sum())
            last_ns = int(ordered[-1])
            yield in_columns(records, ordered)

    def _report(self, findings: Findings) -> None:
        findings.count(
            self._others,
            "other-commands",
            "records that are not reads or writes, or are damaged, were skipped",
            "none needed for a few",
        )
        report_disorder(findings, self._disorder, "none needed for a few")


def is_sound(records: NDArray[np.void], version: int) -> NDArray[np.bool_]:
    """Return which records are reads or writes with a valid address and time."""
    sound = np.isin(records["command"], READS + WRITES)
    sound &= (records["version"] >> 8 == version) & (records["block"] < BLOCK_MAX)
    return sound & (records["time_us"] < SECONDS_MAX * 10**6)


def in_columns(records: NDArray[np.void], time_ns: NDArray[np.int64]) -> Requests:
    """Convert records into requests."""
    requests = requests_with(
        len(records),
        arrival_ns=time_ns,
        offset_bytes=records["block"].astype(np.int64) * SECTOR_BYTES,
        length_bytes=records["length"],
        op=np.where(np.isin(records["command"], READS), Op.READ, Op.WRITE),
    )
    if "response_us" in (records.dtype.names or ()):
        valid = records["response_us"] < RESPONSE_MAX_US
        response_ns = np.where(valid, records["response_us"], 0).astype(np.int64) * 1000
        requests.complete_ns[valid] = (time_ns + response_ns)[valid]
    return requests
