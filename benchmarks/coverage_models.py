"""How often intervals of sampled curves, of fits and of the model's error hold: see coverage.py.

curves  mrc --sample: the share of sizes whose exact miss ratio is inside, over traces, rates
        and policies; the real traces are those of the repository and of HYBRIDSIM_DATA
fitted  the parameters of simulated disks of the catalog (generated_disks.py)
real    the conformal intervals of the model's error, leaving out one experiment at a time
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
DATA = Path(os.environ.get("HYBRIDSIM_DATA", ROOT.parent / "shared" / "data"))
RATES = ("1%", "5%", "10%", "25%")
POLICIES = ("lru", "s3-fifo", "arc", "sieve",
            "fifo", "clock", "slru", "2q", "lirs", "w-tinylfu")  # fmt: skip
ACCESSES = 160_000  # of each trace
SIZES = 15
JUDGED_DISKS = 4000  # seeds; what a fit allows for was chosen on 2000 to 2115
LIMITS = {0.9: (0.87, 0.97), 0.95: (0.90, 0.98)}  # of the share found, by that promised
FIGURES = ("iops", "hit_ratio", "steady_iops", "steady_hit_ratio", "promotions",
           "read_mean", "write_mean", "read_p99", "write_p99", "t90")  # fmt: skip
REAL_TRACES = {
    "oltp": (DATA / "traces" / "OLTP.lis.zst", 512),
    "p2": (DATA / "traces" / "P2.lis.zst", 4096),
    "cloudphysics": (DATA / "traces" / "cloudPhysicsIO.vscsi.zst", 4096),
    "pg_zipf": (DATA / "app-traces" / "pg_zipf", 4096),
    "mariadb": (DATA / "app-traces" / "mariadb_moving_hot", 4096),
    "fileserver": (DATA / "app-traces" / "fileserver_newhot", 4096),
    "demo": (ROOT / "traces" / "demo", 4096),
    "ext4": (ROOT / "traces" / "blktrace" / "loop_ext4_buffered_meta", 4096),
}


@dataclass(frozen=True)
class Row:
    """One interval: what is promised and found."""

    what: str
    promised: float
    inside: float
    cases: int
    half_width: float  # the median one
    at_least: bool = False  # the promise has no upper limit

    @property
    def found(self) -> float:
        return self.inside / self.cases

    @property
    def limits(self) -> tuple[float, float]:
        """Between which shares the promise is kept."""
        low, high = LIMITS[self.promised]
        return low, 1.0 if self.at_least else high

    @property
    def met(self) -> bool:
        low, high = self.limits
        return low <= self.found <= high


def made(name: str) -> np.ndarray:
    """Return the page numbers of a generated load."""
    rng = np.random.default_rng(sum(map(ord, name)))
    n = ACCESSES

    def zipf(pages, alpha):
        weight = np.cumsum(np.arange(1, pages + 1, dtype=float) ** -alpha)
        return np.searchsorted(weight / weight[-1], rng.random(n))

    at = np.arange(n)
    if name == "zipf":
        return rng.permutation(40_000)[zipf(40_000, 0.9)]
    if name == "steep zipf":
        return rng.permutation(100_000)[zipf(100_000, 1.1)]
    if name == "hot regions":
        return rng.permutation(300)[zipf(300, 0.8)] * 1024 + rng.integers(0, 1024, n)
    if name == "moving":
        hot = at // 30_000 * 10_000 + zipf(10_000, 0.7)
        return np.where(rng.random(n) < 0.7, hot, rng.integers(0, 75_000, n))
    if name == "loop":
        return np.where(rng.random(n) < 0.5, at // 2 % 15_000, 25_000 + zipf(25_000, 0.8))
    uniform, scan = rng.integers(0, 30_000, n), 100_000 + at
    kind = rng.random(n)
    hot = rng.integers(70_000, 80_000, n)
    return np.select([kind < 0.5, kind < 0.85], [uniform, hot], scan)


def traces() -> Iterator[tuple[str, np.ndarray]]:
    """Yield the pages that each trace touches; real traces that are not there are left out."""
    from hybridsim import Trace
    from hybridsim.requests.pages import accesses

    for name, (path, page_bytes) in REAL_TRACES.items():
        if path.exists():
            parts, count = [], 0
            for part in accesses(Trace.read(path), page_bytes):
                parts.append(part.numbers)
                count += len(part.numbers)
                if count > ACCESSES:
                    break
            yield name, np.concatenate(parts)
    for name in ("zipf", "steep zipf", "hot regions", "moving", "loop", "mixed"):
        yield name, made(name).astype(np.int64)


def curves(samples: int = 2) -> Iterator[Row]:
    """Compare sampled curves with exact ones; other page numbers are another sample."""
    from hybridsim import miss_ratio_curve

    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for name, numbers in traces():
        distinct = len(np.unique(numbers))
        for policy in POLICIES:
            sizes = np.unique(np.geomspace(32, distinct, SIZES).round().astype(int))
            exact = miss_ratio_curve(numbers, policy, sizes).miss_ratio
            for rate in RATES:
                seen = sizes >= 8 / (float(rate[:-1]) / 100)
                if not seen.any():
                    continue
                for salt in range(samples):
                    other = numbers + salt * (1 << 40)
                    curve = miss_ratio_curve(other, policy, sizes[seen], sample=rate)
                    off = abs(curve.miss_ratio - exact[seen])
                    inside = float(np.mean(off <= curve.error + 1e-12))
                    found.setdefault((policy, rate), []).append(
                        (inside, float(np.median(curve.error)))
                    )
        print(f"# {name}", flush=True)
    for (policy, rate), cells in found.items():
        inside, width = np.array(cells).T
        what = f"mrc --sample {rate}, {policy}: share of sizes, over {len(cells)} curves"
        yield Row(what, 0.95, float(inside.sum()), len(cells), float(np.median(width)))


def real() -> Iterator[Row]:
    """Compare each real run with the interval from all other experiments."""
    from hybridsim.answers.model_error import (
        FEW_WRITES,
        LEVEL,
        half_of,
        named,
        real_runs,
        size_of,
    )

    runs = real_runs()
    for figure in FIGURES:
        cells: dict[str, list[tuple[bool, float]]] = {}
        for run in runs:
            if figure not in run.errors:
                continue
            others = [one for one in runs if one.experiment != run.experiment]
            half = half_of(run.kind, run.writes > FEW_WRITES, figure, others)
            if half is None:
                continue
            inside = size_of(figure, run.errors[figure]) <= half.width
            for what in ("all runs", named(run.group)):
                cells.setdefault(what, []).append((inside, half.width))
            strange = [one for one in runs if one.kind != run.kind]
            half = half_of(run.kind, run.writes > FEW_WRITES, figure, strange)
            if half is not None:
                inside = size_of(figure, run.errors[figure]) <= half.width
                cells.setdefault("its kind of cache left out", []).append((inside, half.width))
        for what, some in sorted(cells.items()):
            inside, width = np.array(some, float).T
            name = f"model error, {figure}: {what}"
            yield Row(name, LEVEL, float(inside.sum()), len(some), float(np.median(width)))


def fitted(disks: int) -> Iterator[Row]:
    """Fit captures of generated disks and stripes, and fio's results; layouts are specified."""
    from benchmarks.generated_disks import estimates, known, known_point, known_stripe
    from hybridsim.answers.fitting import fio
    from hybridsim.storage import catalog

    names = catalog.names("hdd")

    def cases(kind: str) -> Iterator[tuple[dict[str, float], Any]]:
        for number in range(disks):
            name, seed = names[number % len(names)], JUDGED_DISKS + number
            if kind == "fio":
                point, truth = known_point(name, seed)
                yield truth, lambda point=point: _by_key(fio.fit("fio", [point]).estimates)
            else:
                case = (known if kind == "disks" else known_stripe)(name, seed)
                yield case.truth, lambda case=case: estimates(case.observed, case.layout)

    for kind in ("disks", "stripes", "fio"):
        yield from _inside(kind, cases(kind))


def _by_key(estimates: Iterable[Any]) -> dict[str, Any]:
    return {each.key: each for each in estimates}


def _inside(kind: str, cases: Iterable[tuple[dict[str, float], Any]]) -> Iterator[Row]:
    """Yield how often each parameter's interval, and any, holds the truth."""
    from hybridsim.foundation.errors import FitError

    found: dict[str, list[tuple[bool, float]]] = {}
    refused = count = 0
    for truths, fit in cases:
        count += 1
        try:
            result = fit()
        except FitError:
            refused += 1
            continue
        for key, truth in truths.items():
            one = result.get(key)
            if one is None or not one.determined or one.low is None or one.high is None:
                continue
            inside = bool(one.low <= truth <= one.high)
            width = (one.high - one.low) / 2 / truth if truth else 0.0
            found.setdefault(key, []).append((inside, width))
    for key, cells in found.items():
        inside, width = np.array(cells, float).T
        yield Row(
            f"fit, {kind}: {key}", 0.95, float(inside.sum()), len(cells), float(np.median(width))
        )
    every = [one for cells in found.values() for one, _ in cells]
    what = f"fit, {kind}: all parameters ({refused} of {count} refused)"
    yield Row(what, 0.95, float(sum(every)), len(every), 0.0)
