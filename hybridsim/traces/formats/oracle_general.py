"""libCacheSim's oracleGeneral traces: 24-byte records of accesses to objects, in whole seconds.

Layout from its documentation, little-endian, packed: seconds (32 bits), object (64), bytes (32),
number of the object's next access (64; none: -1).  Each object becomes a page of 4 KiB at the
address of its number; all accesses become reads.  Accesses of 0 bytes are skipped, as in
libCacheSim (ignore_size_zero_req).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.arrays import runs
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Findings, Requests, requests_with
from hybridsim.traces.formats.files import records_of
from hybridsim.traces.formats.ordering import SECOND_NS, from_first, in_order, spread_seconds
from hybridsim.traces.formats.text import OneDevice, report_limits

RECORD = np.dtype([("second", "<u4"), ("object", "<u8"), ("bytes", "<u4"), ("next", "<i8")])
PAGE_BYTES = 4096
OBJECTS = 1 << 48  # larger object numbers, which are hashes, wrap around
NEVER = (-1, np.iinfo(np.int64).max)
ACCESSES = 1 << 48  # no trace has more
CHECKED_MIN = 3
BATCH = 1 << 16


def detect(head: bytes) -> bool:
    """Return whether the records of the head name the next accesses of their objects correctly.

    Access numbers count from 0 or from 1; both are tried.  Times must not decrease.
    """
    records = np.frombuffer(head, RECORD, len(head) // RECORD.itemsize)
    if len(records) < CHECKED_MIN or (np.diff(records["second"].astype(np.int64)) < 0).any():
        return False
    number, following = np.arange(len(records)), records["next"]
    never = np.isin(following, NEVER)
    if not (records["bytes"] > 0).any() or not (never | (following > number)).all():
        return False
    return any(_agrees(records["object"], following - base, never) for base in (0, 1))


def _agrees(
    objects: NDArray[np.uint64], following: NDArray[np.int64], never: NDArray[np.bool_]
) -> bool:
    inside = ~never & (following < len(objects)) & (following >= 0)
    matches = objects[following[inside]] == objects[inside]
    return len(matches) >= CHECKED_MIN and bool(matches.all())


class Reader(OneDevice):
    """A trace."""

    format, what = "oracle-general", "an oracleGeneral trace"

    def _parts(self, findings: Findings) -> Iterator[Requests]:
        self._empty = self._wrong = self._rows = 0
        for part in from_first(spread_seconds(in_order(self._records(findings), findings))):
            self._rows += part.rows
            yield part

    def _report(self, findings: Findings) -> None:
        if self._wrong > self._rows // 2:
            raise TraceError(
                f"{self._source.name}: {self._wrong:,} of {self._rows:,} records are malformed as "
                "oracle-general; try another --format"
            )
        findings.count(
            self._empty,
            "empty",
            "accesses of 0 bytes were skipped",
            "none needed: libCacheSim skips them too",
        )
        report_limits(findings, has_times=True, has_ops=True, is_spread=True)
        findings.add(
            "all-reads",
            "objects have no address, size or direction: each access is a read of a page of 4 KiB",
            fix="none needed: hits and mrc with --page 4KiB give the results of libCacheSim",
        )

    def _records(self, findings: Findings) -> Iterator[Requests]:
        for records in records_of(self._source, RECORD, findings):
            following = records["next"]
            possible = np.isin(following, NEVER) | (following >= 0) & (following < ACCESSES)
            self._wrong += int((~possible).sum())
            used = records[records["bytes"] > 0]
            self._empty += len(records) - len(used)
            if len(used):
                yield requests_with(
                    len(used),
                    arrival_ns=used["second"].astype(np.int64) * SECOND_NS,
                    offset_bytes=(used["object"] % OBJECTS).astype(np.int64) * PAGE_BYTES,
                    length_bytes=PAGE_BYTES,
                    op=Op.READ,
                )


def write(chunks: Iterator[Requests], put: Callable[[bytes], object]) -> int:
    """Write an access for each page of 4 KiB that a read or write touches; return the requests.

    Each access names the next one to its object, so all are held in memory: some 40 bytes each.
    """
    seconds, pages, rows = [], [], 0
    for chunk in chunks:
        rows += chunk.rows
        moves = (chunk.op == Op.READ) | (chunk.op == Op.WRITE) | (chunk.op == Op.WRITE_ZEROES)
        first = chunk.offset_bytes[moves] // PAGE_BYTES
        last = (chunk.offset_bytes[moves] + chunk.length_bytes[moves] - 1) // PAGE_BYTES
        counts = last - first + 1
        pages.append(runs(first, counts))
        seconds.append(np.repeat((chunk.arrival_ns[moves] // SECOND_NS).astype(np.uint32), counts))
    objects = np.concatenate(pages) if pages else np.zeros(0, np.int64)
    records = np.zeros(len(objects), RECORD)
    records["second"] = np.concatenate(seconds) if seconds else 0
    records["object"] = objects
    records["bytes"] = PAGE_BYTES
    records["next"] = next_accesses(objects)
    for start in range(0, len(records), BATCH):
        put(records[start : start + BATCH].tobytes())
    return rows


def next_accesses(objects: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each access the number, from 1, of the next one to the same object, or -1."""
    order = np.argsort(objects, kind="stable")
    following = np.full(len(objects), -1, np.int64)
    same = objects[order[1:]] == objects[order[:-1]]
    following[order[:-1][same]] = order[1:][same] + 1
    return following
