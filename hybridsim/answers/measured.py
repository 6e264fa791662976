"""How sure a measure of the machine with its cache is: 'p99.warm', 'hit', 'iops', warm-up, wear.

The requests of the phase are cut into blocks of equal recorded time, as those of the judge are;
the sources are those of intervals.py.  The busy share and the maximum have no interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.answers.bootstrap import interval
from hybridsim.answers.intervals import (
    MODEL,
    OF_DIRECTION,
    RATE,
    TRACE,
    Ends,
    Interval,
    combined,
    of_model,
    of_percentile,
    of_share,
    of_trace,
    scaled,
)
from hybridsim.answers.judge import BLOCKS, Both, Floats, Ints
from hybridsim.answers.ledger import JOINED, READ, WRITE
from hybridsim.answers.outcome import DAY, Outcome
from hybridsim.answers.requirements import DIRECTIONS, OF_RUNS, Checked, Measure
from hybridsim.answers.warmup import WarmUp
from hybridsim.answers.wear import WRITTEN

HIT = "hit_ratio"  # figures of real runs
WARM = "t90"
FILLED = "promotions"  # whose error those bytes are taken to have that are written to the SSDs
TAILS = ("read_p99", "write_p99")  # by direction
TAIL = 95.0  # percentiles from this one on have the error of p99, the others that of the mean


def with_intervals(checked: Iterable[Checked], both: Both, warm: int) -> list[Checked]:
    """Return checked requirements with the intervals of their values.

    `warm` is the group from which the machine with the cache is warm.
    """
    return [
        replace(each, interval=of_measure(each.requirement, each.value, both, warm))
        for each in checked
    ]


def of_measure(measure: Measure, value: float | None, both: Both, warm: int) -> Interval | None:
    """Return the interval of a measure of the machine with the cache; None if it has none."""
    if value is None or not value > 0 or measure.measure in (*OF_RUNS, "busy", "max"):
        return None
    start, stop = {
        "warm": (warm, both.groups), "cold": (0, warm), "whole": (0, both.groups),
    }[measure.phase]  # fmt: skip
    if stop <= start:
        return None
    blocks = both.blocks(start, stop)
    count = both.plain.ledger.count[start:stop]
    writes = float(count[:, WRITE].sum() / max(count.sum(), 1))
    kind = both.cached.kind
    if measure.measure == "hit":
        ends = _of_hits(both, blocks, start, stop)
        return of_share(value, ends, of_model(kind, writes, HIT))
    if measure.measure == "iops":
        return _of_rate(value, both, blocks, start, stop, of_model(kind, writes, RATE))
    direction = (READ, WRITE)[DIRECTIONS.index(measure.direction)]
    model = of_model(kind, writes, OF_DIRECTION[direction])
    ledger = both.cached.ledger
    if measure.measure == "mean":
        sums, counts = (
            _by_block(blocks, column[start:stop, direction])
            for column in (ledger.total_ns, ledger.count)
        )
        middle = float(sums.sum() / max(counts.sum(), 1))
        return combined(value, {TRACE: scaled(value, of_trace(sums, counts), middle),
                                MODEL: model})  # fmt: skip
    percent = float(measure.measure[1:])
    if percent >= TAIL:
        model = of_model(kind, writes, TAILS[direction])
    bins = np.zeros((BLOCKS, ledger.latency.shape[2]))
    for joint in range(start // JOINED, -(-stop // JOINED)):
        group = min(max(joint * JOINED - start, 0), len(blocks) - 1)
        bins[blocks[group]] += ledger.latency[joint, direction]
    middle = float(ledger.distribution(start, stop, direction).percentile(percent) or 0)
    ends = scaled(value, of_percentile(bins, percent), middle)
    return combined(value, {TRACE: ends, MODEL: model})


def of_warm_up(warm_up: WarmUp, kind: str, writes: float) -> Interval | None:
    """Return the interval of t90 in ns; None if the run has none.

    `kind` is the kind of cache, `writes` the share of the requests that are writes.
    """
    ends = warm_up.between_ns(90)
    if ends is None:
        return None
    return combined(warm_up.warm_ns, {TRACE: ends, MODEL: of_model(kind, writes, WARM)})


def of_wear(cached: Outcome, kind: str, writes: float) -> Interval | None:
    """Return the interval of the bytes written to the SSDs per day of the run; None if unknown.

    The run is cut into BLOCKS of equal time.
    """
    edges = np.linspace(0, cached.end_ns, BLOCKS + 1).astype(np.int64)
    level = cached.counters.at(WRITTEN, edges)
    per_day = cached.whole.per_day(WRITTEN)
    if level is None or not per_day:
        return None
    ends = of_trace(np.diff(level), np.full(BLOCKS, cached.end_ns / BLOCKS / DAY))
    middle = float(level[-1] - level[0]) * DAY / cached.end_ns
    model = of_model(kind, writes, FILLED)
    return combined(per_day, {TRACE: scaled(per_day, ends, middle), MODEL: model})


def _of_hits(both: Both, blocks: Ints, start: int, stop: int) -> Ends | None:
    """Return the interval of the share of hits among the reads that the ledger keeps."""
    ledger, each = both.cached.ledger, both.each
    first, end = (-(-group * each // ledger.stride) for group in (start, stop))
    end = min(end, -(-both.requests // ledger.stride))
    known = (ledger.sample_ns[first:end] >= 0) & ~ledger.is_write[first:end]
    group = (np.arange(first, end) * ledger.stride) // each - start
    block = blocks[np.minimum(group, len(blocks) - 1)]
    hits = known & ~ledger.from_disks[first:end]
    return of_trace(_by_block(block, hits), _by_block(block, known))


def _by_block(blocks: Ints, values: npt.NDArray[Any]) -> Floats:
    sums: Floats = np.bincount(blocks, values, BLOCKS).astype(np.float64)
    return sums


def _of_rate(
    value: float, both: Both, blocks: Ints, start: int, stop: int, model: float | None
) -> Interval | None:
    """Return the interval of a rate, from how long the requests of each block took."""
    done = both.progress_ns[1]
    edges = start + np.searchsorted(blocks, np.arange(BLOCKS + 1))
    took = np.diff(done[edges]).astype(np.float64)
    counts = _by_block(blocks, both.plain.ledger.count[start:stop].sum(axis=1))
    if not took.sum() > 0 or np.count_nonzero(took) < 2:
        return None
    held = int(np.count_nonzero(took))
    ends: Ends = interval(BLOCKS, lambda often: _rate(often, counts, took), held=held)
    middle = float(counts.sum() / took.sum())
    return combined(value, {TRACE: scaled(value, ends, middle), MODEL: model})


def _rate(often: Floats, counts: Floats, took: Floats) -> Floats:
    result: Floats = (often @ counts) / (often @ took)
    return result
