"""Create a stand-in for a trace, and compare the two."""

from __future__ import annotations

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
from hybridsim.studies.batches import Sent
from hybridsim.studies.mrc import miss_ratio_curve, spread_sizes
from hybridsim.traces.summary import Tally, summarize
from hybridsim.traces.trace import CHUNK_ROWS, Trace
from hybridsim.workloads.stand_in import measured
from hybridsim.workloads.workload import Workload, generate

Floats = NDArray[np.float64]

PAGES = ("4KiB", "64KiB", "256KiB")
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)  # cache sizes, as shares of the capture's distinct pages
SIZES = 100  # number of sizes at which curves are compared
WARM_SHARE = 0.1  # size of the cache whose warm-up is compared
WARM_PAGE_BYTES = 1 << 16
BINS = 64  # parts of the accesses


@dataclass(frozen=True)
class Curves:
    """The miss-ratio curves of LRU of a capture and its stand-in, for one page size."""

    page: str
    capture: list[float]  # at SHARES
    stand_in: list[float]
    mean: float  # mean absolute difference, over sizes evenly spaced on a logarithmic scale
    largest: float  # largest absolute difference


@dataclass(frozen=True)
class Likeness:
    """The comparison of a capture with its stand-in."""

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
        """Return the fields of the JSON."""
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
    """A stand-in as the table of a workload, and its comparison; None if not requested."""

    table: dict[str, Any]
    likeness: Likeness | None

    def to_toml(self, seed: int = 1) -> str:
        """Return the workload file."""
        lines = [*(f"# {line}" for line in REVEALS), "", f"seed = {seed}", "", "[[load]]"]
        lines.append('kind = "stand-in"')
        return "\n".join([*lines, *(f"{key} = {value}" for key, value in self.table.items()), ""])


REVEALS = (
    "A stand-in for a captured trace, created by `hybridsim trace fit`.  It contains distributions",
    "of the capture: the sizes of pieces of data and how often they are used, when they are first",
    "used and for how long, the pauses between uses, the sizes of neighbours; the lengths and",
    "alignments of requests, the share of writes, sequences of gaps between arrivals, and the",
    "duration of each 1/64 of the trace.  It contains no addresses, no times of requests, no names",
    "and no data.  A class of a single piece of data describes that piece, for example a journal.",
)


def fit(trace: Trace, seed: int = 1, check: bool = True) -> Fitted:
    """Fit a stand-in to a trace; with `check`, generate its requests and compare them.

    All requests are in memory, at about 300 bytes each during the analysis.  Raises TraceError for
    a trace without reads and writes.
    """
    rows = joined(list(trace.from_first()))
    table = {"accesses": 0} if not rows.rows else measured(rows)
    if not table["accesses"]:
        raise TraceError(f"{trace.name}: has no reads or writes, so a stand-in cannot be created")
    if not check:
        return Fitted(table, None)
    workload = Workload.model_validate({"seed": seed, "load": [{"kind": "stand-in", **table}]})
    return Fitted(table, likeness(rows, joined(list(generate(workload)))))


def likeness(capture: Requests, stand_in: Requests) -> Likeness:
    """Compare two lists of requests."""
    both = tuple(
        Sent(name, rows, CHUNK_ROWS)
        for name, rows in (("the capture", capture), ("the stand-in", stand_in))
    )
    curves = [_curves(page, *both) for page in PAGES]
    distinct = miss_ratio_curve(both[0], sizes=[1], page=WARM_PAGE_BYTES).distinct
    size = max(int(distinct * WARM_SHARE), 1)
    hits = hits_over_time(both[0], size), hits_over_time(both[1], size)
    warm_ups = _judged(hits[0]), _judged(hits[1])
    return Likeness(
        summarize(both[0].chunks()), summarize(both[1].chunks()), curves, hits, warm_ups
    )


def _curves(page: str, capture: Sent, stand_in: Sent) -> Curves:
    real, other = (miss_ratio_curve(each, page=page) for each in (capture, stand_in))
    apart = np.abs([real.at(size) - other.at(size) for size in spread_sizes(real.distinct, SIZES)])
    sizes = [max(int(real.distinct * share), 1) for share in SHARES]
    mean, largest = float(apart.mean()), float(apart.max())
    ratios, made = ([each.at(size) for size in sizes] for each in (real, other))
    return Curves(page, ratios, made, mean, largest)


def hits_over_time(trace: Sent, size: int) -> Floats:
    """Return the hit ratios of an LRU cache of `size` pages in BINS parts of the accesses."""
    ids = Ids()
    page_ids = np.concatenate([ids.of(part.numbers) for part in accesses(trace, WARM_PAGE_BYTES)])
    stack, depths = Stack.new(ids.capacity), np.zeros(ids.capacity + 1, np.int64)
    count = fitting(count_depths, stack)
    ratios = []
    for part in np.array_split(page_ids, BINS):
        depths[:] = 0
        count(stack, part, depths)
        ratios.append(depths[1 : size + 1].sum() / max(len(part), 1))
    return np.array(ratios)


def _judged(hits: Floats) -> WarmUp:
    """Return the warm-up of hit ratios by 64ths of the accesses instead of time."""
    return judge(np.arange(BINS, dtype=np.int64), hits, 1, initial=0.0, tolerance=0.005)
