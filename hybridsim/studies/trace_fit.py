"""Create a stand-in for a trace, and report how similar it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.answers.warmup import WarmUp, judge
from hybridsim.engine.stack import Stack, count_depths
from hybridsim.foundation.errors import TraceError
from hybridsim.jit import fitting
from hybridsim.requests.pages import Ids, accesses
from hybridsim.requests.rows import Requests, joined
from hybridsim.studies.mrc import Curve, miss_ratio_curve, spread_sizes
from hybridsim.traces.summary import Tally, summarize
from hybridsim.traces.trace import CHUNK_ROWS, Trace
from hybridsim.workloads.generated import generate
from hybridsim.workloads.standin.measured import measured
from hybridsim.workloads.workload import Workload

Floats = NDArray[np.float64]

PAGES = ("4KiB", "64KiB", "256KiB")
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)  # of the distinct pages of the capture
SIZES = 100  # at which curves are compared
WARM_SHARE = 0.1
WARM_PAGE_BYTES = 1 << 16
BINS = 64  # of the accesses


@dataclass(frozen=True)
class Rows:
    """Requests in memory, as a trace is."""

    name: str
    rows: Requests

    def chunks(self) -> Iterator[Requests]:
        """Yield them in order."""
        for start in range(0, self.rows.rows, CHUNK_ROWS):
            yield self.rows.between(start, start + CHUNK_ROWS)

    def from_first(self) -> Iterator[Requests]:
        """Yield them in order; they begin at time 0."""
        return self.chunks()


@dataclass(frozen=True)
class Curves:
    """Two miss-ratio curves of LRU with the same pages, at sizes of the capture."""

    page: str
    capture: list[float]  # at SHARES
    stand_in: list[float]
    mean: float  # difference, over sizes spread evenly over their logarithms
    largest: float


@dataclass(frozen=True)
class Likeness:
    """A capture beside its stand-in."""

    capture: Tally
    stand_in: Tally
    curves: list[Curves]
    hits: tuple[Floats, Floats]  # of an LRU cache, bin by bin
    warm_ups: tuple[WarmUp, WarmUp]

    @property
    def hits_apart(self) -> float:
        """Return the mean difference of the hit ratios over time."""
        return float(np.abs(self.hits[0] - self.hits[1]).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "requests": [self.capture.requests, self.stand_in.requests],
            "footprint_bytes": [self.capture.footprint.bytes, self.stand_in.footprint.bytes],
            "shares": list(SHARES),
            "curves": [vars(each) for each in self.curves],
            "hit_ratio": [each.tolist() for each in self.hits],
            "t90": [each.reached_ns.get(90) for each in self.warm_ups],
        }


@dataclass(frozen=True)
class Fitted:
    """A stand-in, as the table of a workload, and how like it is; None if that was not asked."""

    table: dict[str, Any]
    likeness: Likeness | None

    def to_toml(self, seed: int = 1) -> str:
        """Return the workload file."""
        lines = [*(f"# {line}" for line in REVEALS), "", f"seed = {seed}", "", "[[load]]"]
        lines.append('kind = "stand-in"')
        return "\n".join([*lines, *(f"{key} = {value}" for key, value in self.table.items()), ""])


REVEALS = (
    "A stand-in for a captured trace, made by `hybridsim trace fit`.  It has distributions of",
    "the capture: how many pieces of data of which size are used how often, when in the trace they",
    "are first used and for how long, the pauses between uses, which sizes are neighbours; lengths",
    "and alignments of requests, the share of writes, how gaps between arrivals follow each other,",
    "and how long each 1/64 of the trace took.  It holds no address, no time of a request, no name",
    "and no data.  A class of a single piece of data describes that piece: a journal, perhaps.",
)


def fit(trace: Trace, seed: int = 1, check: bool = True) -> Fitted:
    """Fit a stand-in to a trace; with `check`, make its requests and hold them against the trace.

    All requests are in memory, with some 300 bytes each while they are taken apart.
    """
    rows = joined(list(trace.from_first()))
    table = {"accesses": 0} if not rows.rows else measured(rows)
    if not table["accesses"]:
        raise TraceError(
            f"{trace.name}: no reads or writes in it, so there is nothing to stand for"
        )
    if not check:
        return Fitted(table, None)
    workload = Workload.model_validate({"seed": seed, "load": [{"kind": "stand-in", **table}]})
    return Fitted(table, likeness(rows, joined(list(generate(workload)))))


def likeness(capture: Requests, stand_in: Requests) -> Likeness:
    """Hold two lists of requests against each other."""
    both = Rows("the capture", capture), Rows("the stand-in", stand_in)
    curves = [_curves(page, *both) for page in PAGES]
    known = miss_ratio_curve(both[0], sizes=[1], page=WARM_PAGE_BYTES).distinct
    size = max(int(known * WARM_SHARE), 1)
    hits = hits_over_time(both[0], size), hits_over_time(both[1], size)
    warm_ups = _judged(hits[0]), _judged(hits[1])
    return Likeness(
        summarize(both[0].chunks()), summarize(both[1].chunks()), curves, hits, warm_ups
    )


def _curves(page: str, capture: Rows, stand_in: Rows) -> Curves:
    known, result = (miss_ratio_curve(each, page=page) for each in (capture, stand_in))
    apart = np.abs(
        [known.at(size) - result.at(size) for size in spread_sizes(known.distinct, SIZES)]
    )
    sizes = [max(int(known.distinct * share), 1) for share in SHARES]
    mean, largest = float(apart.mean()), float(apart.max())
    return Curves(page, _at(known, sizes), _at(result, sizes), mean, largest)


def _at(curve: Curve, sizes: list[int]) -> list[float]:
    return [curve.at(size) for size in sizes]


def hits_over_time(trace: Rows, size: int) -> Floats:
    """Return the hit ratios of an LRU cache of `pages` pages, in BINS parts of the accesses."""
    ids = Ids()
    result = np.concatenate([ids.of(part.numbers) for part in accesses(trace, WARM_PAGE_BYTES)])
    stack, depths = Stack.new(ids.capacity), np.zeros(ids.capacity + 1, np.int64)
    count = fitting(count_depths, stack)
    ratios = []
    for part in np.array_split(result, BINS):
        depths[:] = 0
        count(stack, part, depths)
        ratios.append(depths[1 : size + 1].sum() / max(len(part), 1))
    return np.array(ratios)


def _judged(hits: Floats) -> WarmUp:
    """Judge a curve whose clock is the share of the accesses, in 64ths."""
    return judge(np.arange(BINS, dtype=np.int64), hits, 1, initial=0.0, tolerance=0.005)
