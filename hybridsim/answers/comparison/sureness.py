"""How sure the figures of a comparison are: intervals of the simulated ones, and paired gains.

All intervals are those of answers/intervals.py and answers/model_error.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hybridsim.answers.comparison.rows import Comparison, Row
from hybridsim.answers.intervals import NO_CACHE, gains
from hybridsim.answers.measurements.measurement import (
    CACHE,
    COMPLETION,
    HIT_RATIO,
    IOPS,
    LATENCY,
    REQUESTS,
    Measurement,
)
from hybridsim.answers.model_error import FEW_WRITES, LEVEL, Half, based_on, half_of, interval

MEANS = tuple(f"{kind} mean" for kind in (LATENCY, COMPLETION))


def with_intervals(comparison: Comparison) -> None:
    """Add the intervals of the simulated figures, and the gain where both runs were simulated.

    A simulated figure has the error of the model on the same load; the real run is a sample of
    nothing.  Two replays of the same requests are paired.
    """
    real, simulated = comparison.real, comparison.simulated
    if real.kind and real.blocks is not None and simulated.blocks is not None:
        if real.requests_of == simulated.requests_of:
            comparison.gains = gains(real.blocks, simulated.blocks)
            comparison.paired = int(real.blocks.counts.sum())
        return
    if real.kind or simulated.kind in ("", NO_CACHE):
        return
    has_writes = _writes(simulated) > FEW_WRITES
    halves: list[Half] = []

    def sure(row: Row) -> Row:
        half = _half(row, simulated.kind, has_writes)
        if half is None or row.simulated is None:
            return row
        halves.append(half)
        return replace(row, ends=interval(_figure(row), row.simulated, half.width))

    comparison.rows = [sure(row) for row in comparison.rows]
    if halves:
        comparison.basis = f"{LEVEL:.0%} interval from {based_on(halves)}"


def _half(row: Row, kind: str, has_writes: bool) -> Half | None:
    figure = _figure(row)
    return half_of(kind, has_writes, figure) if figure else None


def _figure(row: Row) -> str:
    """Return the figure of real runs that a row is one of; empty: of none."""
    name = row.name
    if name.measure == IOPS:
        return "iops"
    if name.measure in MEANS and name.what in ("read", "write"):
        return f"{name.what}_mean"
    return "hit_ratio" if (name.what, name.measure) == (CACHE, HIT_RATIO) else ""


def _writes(run: Measurement) -> float:
    """Return the share of the requests that are writes."""
    number = dict(_requests(run))
    whole = sum(number.values())
    return number.get("write", 0.0) / whole if whole else 0.0


def _requests(run: Measurement) -> Iterator[tuple[str, float]]:
    for name, value in run.figures.items():
        if name.measure == REQUESTS and name.what in ("read", "write"):
            yield name.what, value
