"""The kinds of load and their keys, as a terminal shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybridsim.foundation.units import format_size, format_time
from hybridsim.workloads import KINDS
from hybridsim.workloads.load import Load
from hybridsim.workloads.stand_in import StandIn
from hybridsim.workloads.workload import TABLES, Workload

MEANINGS = {
    "seed": "the same seed, the same requests",
    "requests": "how many, as 500, 100k or 10M; 100k where nothing else ends it",
    "duration": "or how long, as 10m",
    "name": "for people",
    "at": "where its part of the volume begins",
    "span": "how large that part is",
    "size": "of requests: 4k, or weighted: 4k/70:64k/30",
    "read": "share of requests that read; the others write",
    "align": "offsets are multiples of it",
    "rate": "requests a second",
    "arrivals": "poisson or even",
    "burst_every": "from the beginning of one burst to that of the next",
    "burst_lasts": "how long a burst lasts",
    "burst_rate": "requests a second while it lasts",
    "begin": "when the load begins",
    "end": "when it ends",
    "depth": "requests outstanding, as 32, or doubled step by step, as 1-512: replay --mode think",
    "step": "how long a depth lasts at the load's rate",
    "flush_every": "a FLUSH after so many requests, if any of them writes; 0: none",
    "hot": "how large the hot spot is: a size or a share of the span",
    "share": "of the requests that go to it",
    "where": "scattered, start, middle or end",
    "unit": "what is popular or not as a whole",
    "theta": "unit i is asked for in proportion to i^-theta",
    "every": "the hot spot moves after each such time",
    "moved": "share of it that is replaced then",
    "zones": "per cent of the requests / per cent of the span, in order of address",
    "streams": "how many take turns",
    "run": "bytes until a stream begins somewhere else; of iometer, how long a depth is measured",
    "access": "lines of size,% of size,% reads,% random,delay,burst,align,reply; / for , on a line",
    "icf": "Iometer's own file, which says access, depth, ramp, run, begin, end, at and span",
    "spec": "one access specification of that file by name, instead of its tests",
    "ramp": "how long a depth runs before it is measured",
    "test_mode": "seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw",
    "total_size": "of all files",
    "block_size": "of a request",
    "rw_ratio": "reads to writes of rndrw",
    "fsync_freq": "requests from one FLUSH to the next; 0: none",
    "threads": "requests outstanding",
}
HIDDEN = {"kind", "load"}


def keys_text() -> str:
    """Return all kinds with what each adds to the keys that they have in common."""
    lines = ["of the workload as a whole", *_rows(Workload, HIDDEN), "", "of every load"]
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
    """Return a default as it would be written."""
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
