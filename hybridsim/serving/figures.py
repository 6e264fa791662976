"""What was served: totals, samples over time, as JSON and in Prometheus' text format."""

from __future__ import annotations

import time
from typing import Any

from hybridsim.answers.measurements.own_json import SERVED
from hybridsim.engine.serving import Decisions
from hybridsim.foundation.codes import Op, Path

OPS = ("read", "write", "discard", "flush")  # by codes.Op
READS = ("read_hits", "read_misses", "read_bypasses")  # bypasses are among the misses
SAMPLED = (*READS, "writes", "fills_done", "evictions", "pages_present")


class Figures:
    """Totals since the start; changed with the lock of the cache held."""

    def __init__(self, decisions: Decisions) -> None:
        """Begin with zeros."""
        self.decisions = decisions
        self.start_ns = time.monotonic_ns()
        self.start_unix_ns = time.time_ns()
        self.requests = [0] * len(OPS)
        self.bytes = [0] * len(OPS)
        self.failed = [0] * len(OPS)
        self.latency_sum_ns = [0] * len(OPS)
        self.read_hits = self.read_bypasses = 0
        self.fast_errors = self.slow_errors = 0
        self.detached_because = ""
        self.pages_warm = 0  # kept from before a restart
        self._series: list[tuple[int, ...]] = []
        self.sample()

    @property
    def is_detached(self) -> bool:
        """Whether the fast device is no longer used."""
        return self.detached_because != ""

    def add(self, op: int, length: int, begin_ns: int, error: int, path: int) -> None:
        """Count an answered request; `path` is the way that it took (codes.Path)."""
        self.requests[op] += 1
        self.bytes[op] += length
        self.failed[op] += error != 0
        self.latency_sum_ns[op] += time.monotonic_ns() - begin_ns
        self.read_hits += op == Op.READ and path == Path.HIT
        self.read_bypasses += op == Op.READ and path == Path.BYPASS

    def counters(self) -> dict[str, int]:
        """Return the counters of the cache, by the names that a simulation has for them."""
        return self.decisions.cache.totals()

    def sample(self) -> None:
        """Record the counters of now."""
        counters = self.counters()
        now = [self.read_hits, self.requests[Op.READ] - self.read_hits, self.read_bypasses]
        now += [self.requests[Op.WRITE], *(counters[name] for name in SAMPLED[4:])]
        self._series.append((time.monotonic_ns() - self.start_ns, *now))

    def document(self, setting: dict[str, Any]) -> dict[str, Any]:
        """Return all figures as a JSON document; `setting` says what is served."""
        self.sample()
        columns = [list(each) for each in zip(*self._series)]
        return {
            "schema": SERVED,
            **setting,
            "start_unix_ns": self.start_unix_ns,
            "seconds": (time.monotonic_ns() - self.start_ns) / 1e9,
            "requests": {
                name: {
                    "n": self.requests[op],
                    "bytes": self.bytes[op],
                    "failed": self.failed[op],
                    "mean_ns": self.latency_sum_ns[op] / max(self.requests[op], 1),
                }
                for op, name in enumerate(OPS)
            },
            "read_hits": self.read_hits,
            "read_bypasses": self.read_bypasses,
            "counters": self.counters(),
            "pages_warm": self.pages_warm,
            "fast_errors": self.fast_errors,
            "slow_errors": self.slow_errors,
            "detached_because": self.detached_because or None,
            "series": dict(zip(("time_ns", *SAMPLED), columns)),
        }

    def prometheus(self) -> str:
        """Return the totals in Prometheus' text format."""
        out: list[str] = []

        def put(name: str, kind: str, text: str, rows: dict[str, Any]) -> None:
            out.append(f"# HELP hybridsim_serve_{name} {text}")
            out.append(f"# TYPE hybridsim_serve_{name} {kind}")
            out.extend(f"hybridsim_serve_{name}{labels} {value}" for labels, value in rows.items())

        def by_op(values: list[Any]) -> dict[str, Any]:
            return {f'{{op="{name}"}}': value for name, value in zip(OPS, values)}

        put("requests_total", "counter", "Requests answered.", by_op(self.requests))
        put("bytes_total", "counter", "Bytes of these requests.", by_op(self.bytes))
        put("failed_requests_total", "counter", "Requests answered by an error.",
            by_op(self.failed))  # fmt: skip
        put("latency_seconds_total", "counter", "Time from arrival to answer of all requests.",
            by_op([each / 1e9 for each in self.latency_sum_ns]))  # fmt: skip
        put("read_hits_total", "counter", "Reads of which the fast device had every byte.",
            {"": self.read_hits})  # fmt: skip
        put("device_errors_total", "counter", "Failed reads and writes of a device.",
            {'{device="fast"}': self.fast_errors, '{device="slow"}': self.slow_errors})  # fmt: skip
        put("detached", "gauge", "1 if the fast device is no longer used, as it failed.",
            {"": int(self.is_detached)})  # fmt: skip
        counters = self.counters()
        put("pages_present", "gauge", "Pages on the fast device.",
            {"": counters["pages_present"]})  # fmt: skip
        put("pages", "gauge", "Pages that the fast device has room for.",
            {"": self.decisions.cache.pages})  # fmt: skip
        put("fills_total", "counter", "Pages copied to the fast device.",
            {"": counters["fills_done"]})  # fmt: skip
        put("evictions_total", "counter", "Pages evicted for others.",
            {"": counters["evictions"]})  # fmt: skip
        return "\n".join(out) + "\n"
