"""The list of load kinds and their keys, for `trace gen --keys`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybridsim.foundation.units import format_size, format_time
from hybridsim.workloads import KINDS
from hybridsim.workloads.load import Load
from hybridsim.workloads.stand_in import StandIn
from hybridsim.workloads.workload import TABLES, Workload

MEANINGS = {
    "seed": "random seed: the same seed generates the same requests",
    "requests": "number of requests: 500, 100k, 10M; default 100k if nothing else ends the load",
    "duration": "length of the load, as 10m",
    "name": "a comment",
    "at": "offset of the load's range on the volume",
    "span": "size of the load's range",
    "size": "request size: 4k, or weighted: 4k/70:64k/30",
    "read": "share of reads; the other requests are writes",
    "align": "offsets are multiples of this",
    "rate": "requests per second",
    "arrivals": "arrival times: poisson or even",
    "burst_every": "time from the start of one burst to the start of the next",
    "burst_lasts": "length of a burst",
    "burst_rate": "requests per second during a burst",
    "begin": "start time of the load",
    "end": "end time of the load",
    "depth": "queue depth: 32; or 1-512, doubled at each step; replay it with --mode think",
    "step": "duration of each queue depth of a range",
    "flush_every": "a FLUSH after every N requests, if any of them is a write; 0: none",
    "hot": "size of the hot spot: bytes or a share of the span",
    "share": "share of requests to the hot spot",
    "where": "place of the hot spot: scattered, start, middle or end",
    "unit": "block size of the popularity distribution",
    "theta": "unit i is requested in proportion to i^-theta",
    "every": "interval at which the hot spot moves",
    "moved": "share of the hot spot that is replaced at each move",
    "zones": "percent of requests / percent of the span, in order of address",
    "streams": "number of streams, served round-robin",
    "run": "bytes until a stream jumps to another offset; iometer: measured time at each depth",
    "access": "lines of size,% of size,% reads,% random,delay,burst,align,reply; in gen: / for ,",
    "icf": "Iometer's file, which sets access, depth, ramp, run, begin, end, at and span",
    "spec": "name of one access specification in that file, instead of its tests",
    "ramp": "time at each queue depth before the measurement",
    "test_mode": "sysbench test: seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw",
    "total_size": "total size of all files",
    "block_size": "request size",
    "rw_ratio": "ratio of reads to writes in rndrw",
    "fsync_freq": "requests between two FLUSHes; 0: none",
    "threads": "number of threads: requests outstanding",
}
HIDDEN = {"kind", "load"}


def keys_text() -> str:
    """Return the common keys, then each kind with its additional keys and changed defaults."""
    lines = ["keys of the workload", *_rows(Workload, HIDDEN), "", "keys of every load"]
    lines += _rows(Load, HIDDEN)
    for name, table in zip(KINDS, TABLES):
        if table is StandIn:
            continue  # written by `trace fit`, not by hand
        about = " ".join((table.__doc__ or "").split("\n\n")[0].split())
        lines += ["", f"{name}: {about}"]
        inherited = set(Load.model_fields) if issubclass(table, Load) else set()
        changed = {
            key
            for key in inherited
            if table.model_fields[key].default != Load.model_fields[key].default
        }
        lines += _rows(table, HIDDEN | (inherited - changed))
    return "\n".join(lines)


def _rows(table: Any, hidden: Iterable[str]) -> list[str]:
    return [
        f"  {fact.alias or name:<12} {_shown(name, fact.default):<24} {MEANINGS[name]}"
        for name, fact in table.model_fields.items()
        if name not in hidden
    ]


def _shown(key: str, value: Any) -> str:
    """Return a default value in the notation of a workload file."""
    if value is None or value == "":
        return "-"
    if key in ("burst_lasts", "begin", "step", "ramp", "run") and isinstance(value, int):
        return format_time(value)
    if key in ("at", "span", "align", "unit", "total_size", "block_size"):
        return format_size(value)
    if key in ("read", "share", "hot", "moved"):
        return f"{value:.0%}"
    if key == "access":
        return ",".join(map(str, value[0]))
    if key == "size":
        return ":".join(f"{format_size(size)}/{weight:g}" for size, weight in value)
    if key == "zones":
        return ":".join(f"{accesses:g}/{size:g}" for accesses, size in value)
    if key == "depth":
        return "-".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
