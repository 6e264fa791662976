"""The figures in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hybridsim.studies.watch.shadow import Shadow
from hybridsim.studies.watch.watching import Snapshot


def prometheus(state: Snapshot | None) -> str:
    """Return a state in Prometheus' text format; nothing before the first interval."""
    if state is None:
        return ""
    label = f'device="{_escaped(state.device)}"'
    of = state.total.of
    out: list[str] = []

    def put(name: str, kind: str, text: str, rows: list[tuple[str, Any]]) -> None:
        rows = [(labels, value) for labels, value in rows if value is not None]
        if not rows:
            return
        out.append(f"# HELP hybridsim_{name} {text}")
        out.append(f"# TYPE hybridsim_{name} {kind}")
        out.extend(
            f"hybridsim_{name}{{{label}{',' if labels else ''}{labels}}} {value}"
            for labels, value in rows
        )

    ops = ("read", "write", "discard", "flush", "write_zeroes")
    put("requests_total", "counter", "Requests queued to the device.",
        [(f'op="{op}"', int(count)) for op, count in zip(ops, of("requests"))])  # fmt: skip
    put("bytes_total", "counter", "Bytes of these requests.",
        [(f'op="{op}"', int(count)) for op, count in zip(ops, of("bytes"))])  # fmt: skip
    moves = ("read", "write")
    put("latency_seconds_sum", "counter", "Time from arrival to completion of all requests.",
        [(f'op="{op}"', int(ns) / 1e9) for op, ns in zip(moves, of("latency_sum_ns"))])  # fmt: skip
    put("latency_seconds_count", "counter", "Completed requests.",
        [(f'op="{op}"', int(count)) for op, count in zip(moves, of("completed"))])  # fmt: skip
    put("dropped_events_total", "counter", "Events that the kernel dropped.", [("", state.lost)])
    put("sampled_share", "gauge", "Share of the pages simulated.", [("", state.rate)])

    def of_shadows(value: Callable[[Shadow], Any]) -> list[tuple[str, Any]]:
        return [(_labels(each), value(each)) for each in state.shadows]

    def in_seconds(ns: float | None) -> float | None:
        return None if ns is None else ns / 1e9

    put("shadow_accesses_total", "counter", "Sampled page accesses of a simulated cache.",
        of_shadows(lambda each: each.accesses))  # fmt: skip
    put("shadow_hits_total", "counter", "Hits of these accesses.",
        of_shadows(lambda each: each.hits))  # fmt: skip
    put("shadow_hit_ratio", "gauge", "Hit ratio over the last interval.",
        of_shadows(lambda each: each.recent))  # fmt: skip
    put("shadow_latency_seconds", "gauge",
        "Mean latency with a simulated cache over the last interval.",
        of_shadows(lambda each: in_seconds(each.mean_ns)))  # fmt: skip
    put("shadow_ssd_written_bytes_total", "counter", "Bytes written to the simulated SSDs.",
        of_shadows(lambda each: each.ssd_written_bytes))  # fmt: skip
    put("shadow_disk_busy_seconds_total", "counter",
        "Busy time of all simulated disks together.",
        of_shadows(lambda each: in_seconds(each.disk_busy_ns)))  # fmt: skip
    if state.real is not None:
        kind = f'kind="{state.real.kind}"'
        put("real_accesses_total", "counter", "Hits and misses that the running cache counted.",
            [(kind, state.real.accesses)])  # fmt: skip
        put("real_hits_total", "counter", "Hits that the running cache counted.",
            [(kind, state.real.hits)])  # fmt: skip
        put("real_hit_ratio", "gauge", "Hit ratio of the running cache over the last interval.",
            [(kind, state.real.recent)])  # fmt: skip
    return "\n".join(out) + "\n"


def _labels(each: Shadow) -> str:
    return (
        f'policy="{_escaped(each.name)}",size_bytes="{each.size_bytes}",'
        f'page_bytes="{each.page_bytes}"'
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
