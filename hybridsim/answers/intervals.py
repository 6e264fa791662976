"""How sure the mean latencies and the duration of a capture are: all sources, combined in one way.

Sources of an interval of LEVEL:

    trace   the capture is a sample: its second half is cut into blocks of equal recorded time,
            which are drawn with replacement
    model   the errors of the simulation in real runs on file, for caches of their kinds
            (model_error.py); there are none for disks alone and for other kinds
    seeds   random numbers, where a run is repeated with several seeds

They are independent, so their squares add up, as factors of the figure.  Not covered: another
load, other drives than those of the scenario, a fault; nor a trend of the load, for which see
forecast.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.answers.bootstrap import interval
from hybridsim.answers.model_error import FEW_WRITES, group, half_width, real_runs

Floats = npt.NDArray[np.float64]
Ends = tuple[float, float]

TRACE, MODEL, SEEDS = "trace", "model", "seeds"
FEWEST = 5  # blocks with requests: fewer say nothing of the others
RATE = "iops"  # figure of real runs: a duration has its error
OF_DIRECTION = ("read_mean", "write_mean")  # figures of real runs, by direction


@dataclass(frozen=True)
class Interval:
    """A figure with the ends of its interval, and the sources that these cover."""

    value: float
    low: float
    high: float
    sources: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**asdict(self), "sources": list(self.sources)}


def combined(value: float, parts: Mapping[str, Ends | float | None]) -> Interval | None:
    """Return the interval of a positive figure from its sources; None without any.

    A source is either the ends of its own interval, or half of its width as a share of the figure;
    None: it is not known.
    """
    below = above = 0.0
    known = []
    for name, part in parts.items():
        if part is None or value <= 0:
            continue
        low, high = (value / (1 + part), value * (1 + part)) if isinstance(part, float) else part
        if low <= 0:
            continue
        known.append(name)
        below += math.log(value / min(low, value)) ** 2
        above += math.log(max(high, value) / value) ** 2
    if not known:
        return None
    ends = value * math.exp(-math.sqrt(below)), value * math.exp(math.sqrt(above))
    return Interval(value, *ends, tuple(known))


def of_trace(sums: Floats, counts: Floats) -> Ends | None:
    """Return the interval of sum(sums) / sum(counts) over blocks drawn with replacement."""
    if np.count_nonzero(counts) < FEWEST or not sums.sum():
        return None
    return interval(len(sums), lambda often: (often @ sums) / (often @ counts))


def of_model(kind: str, writes: float, figure: str) -> float | None:
    """Return half the width of the model's error of a figure of real runs, as a share of it.

    `kind` is the kind of cache, `writes` the share of the requests that are writes.
    """
    its = group(kind, writes > FEW_WRITES)
    if not any(run.kind == kind and run.group == its for run in real_runs()):
        return None
    return half_width(real_runs(), its, figure)


def means(
    totals_ns: Floats, counts: Floats, took_ns: Floats, kind: str, writes: float
) -> dict[str, Interval]:
    """Return the intervals of the mean latencies and of the duration of blocks of requests.

    `totals_ns` and `counts` have one row a block and one column a direction (reads, writes);
    `took_ns` is the time that each block took.  Keys: read, write, all, took.
    """
    halves = [of_model(kind, writes, each) for each in OF_DIRECTION]
    result: dict[str, Interval | None] = {}
    for place, name in enumerate(("read", "write")):
        sums, number = totals_ns[:, place], counts[:, place]
        if number.sum():
            result[name] = combined(
                float(sums.sum() / number.sum()),
                {TRACE: of_trace(sums, number), MODEL: halves[place]},
            )
    both = totals_ns.sum(axis=0)
    if counts.sum():
        known: Sequence[float | None] = [each for each, sum in zip(halves, both) if sum]
        # The errors of reads and writes are taken to be in the same direction.
        half = None if None in known else float(
            sum((each or 0.0) * one for each, one in zip(halves, both)) / max(both.sum(), 1)
        )  # fmt: skip
        result["all"] = combined(
            float(both.sum() / counts.sum()),
            {TRACE: of_trace(totals_ns.sum(axis=1), counts.sum(axis=1)), MODEL: half},
        )
    if took_ns.sum() > 0:
        # The time of all blocks: each takes its mean time.
        ends = of_trace(took_ns, np.full(len(took_ns), 1 / len(took_ns)))
        result["took"] = combined(
            float(took_ns.sum()), {TRACE: ends, MODEL: of_model(kind, writes, RATE)}
        )
    return {name: each for name, each in result.items() if each is not None}
