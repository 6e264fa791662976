"""How often intervals of sampled curves, of fits and of the model's error hold: see coverage.py.

curves  mrc --sample: the share of sizes whose exact miss ratio is inside, over traces, rates
        and policies; the real traces are those of the repository and of HYBRIDSIM_DATA
fitted  the parameters of simulated disks of the catalog (generated_disks.py)
real    the conformal intervals of the model's error, leaving out one experiment at a time, whose
        runs count in equal parts as in the promise, and leaving out one kind of cache
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from coverage_cases import Case  # noqa: E402

DATA = Path(os.environ.get("HYBRIDSIM_DATA", ROOT.parent / "shared" / "data"))
RATES = ("1%", "5%", "10%", "25%")
POLICIES = ("lru", "s3-fifo", "arc", "sieve",
            "fifo", "clock", "slru", "2q", "lirs", "w-tinylfu")  # fmt: skip
ACCESSES = 160_000  # of each trace
SIZES = 15
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


def made(name: str, seed: int) -> np.ndarray:
    """Return the page numbers of a generated load."""
    rng = np.random.default_rng([seed, *name.encode()])
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


def traces(seed: int) -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Yield what returns the pages that each trace touches, without real traces not there."""
    for name, (path, page_bytes) in REAL_TRACES.items():
        if path.exists():
            yield name, lambda path=path, page_bytes=page_bytes: _recorded(path, page_bytes)
    for name in ("zipf", "steep zipf", "hot regions", "moving", "loop", "mixed"):
        yield name, lambda name=name: made(name, seed).astype(np.int64)


def _recorded(path: Path, page_bytes: int) -> np.ndarray:
    from hybridsim import Trace
    from hybridsim.requests.pages import accesses

    parts, count = [], 0
    for part in accesses(Trace.read(path), page_bytes):
        parts.append(part.numbers)
        count += len(part.numbers)
        if count > ACCESSES:
            break
    return np.concatenate(parts)


def curves_of(numbers: np.ndarray, salts: Iterable[int]) -> Iterator[Case]:
    """Compare sampled curves of a trace with exact ones; other page numbers are another sample."""
    from hybridsim import miss_ratio_curve

    distinct = len(np.unique(numbers))
    for policy in POLICIES:
        sizes = np.unique(np.geomspace(32, distinct, SIZES).round().astype(int))
        exact = miss_ratio_curve(numbers, policy, sizes).miss_ratio
        for rate in RATES:
            seen = sizes >= 8 / (float(rate[:-1]) / 100)
            if not seen.any():
                continue
            for salt in salts:
                other = numbers + salt * (1 << 40)
                curve = miss_ratio_curve(other, policy, sizes[seen], sample=rate)
                off = abs(curve.miss_ratio - exact[seen])
                inside = float(np.mean(off <= curve.error + 1e-12))
                width = float(np.median(curve.error))
                yield Case(f"mrc --sample {rate}, {policy}: share of sizes", 0.95, inside, width)


def real() -> Iterator[Case]:
    """Compare each experiment with the interval from all others, and from all other kinds.

    The promise is one over all groups: of a group alone, the share is for information.
    """
    from hybridsim.answers.model_error import FEW_WRITES, LEVEL, half_of, named, real_runs, size_of

    runs = real_runs()
    for figure in FIGURES:
        for left_out in ("experiment", "kind"):
            held: dict[tuple[str, str], list[tuple[bool, float]]] = {}
            for run in (each for each in runs if figure in each.errors):
                mine = getattr(run, left_out)
                others = tuple(one for one in runs if getattr(one, left_out) != mine)
                kind = run.kind if left_out == "experiment" else "new"
                half = half_of(kind, run.writes > FEW_WRITES, figure, others)
                if half is not None:
                    inside = size_of(figure, run.errors[figure]) <= half.width
                    group = named(run.group) if left_out == "experiment" else run.kind
                    held.setdefault((group, run.experiment), []).append((inside, half.width))
            for (group, _), some in held.items():
                inside, width = np.mean(some, axis=0)
                name = f"model error, {figure}:"
                if left_out == "kind":
                    yield Case(f"{name} a kind of cache left out", LEVEL, inside, width, True)
                    yield Case(f"{name} {group} left out", None, inside, width)
                else:
                    yield Case(f"{name} all experiments", LEVEL, inside, width)
                    yield Case(f"{name} {group}", None, inside, width)


def fitted(kind: str, seeds: range) -> Iterator[Case]:
    """Fit captures of generated disks or stripes, or fio's results; layouts are specified."""
    from benchmarks.generated_disks import known, known_point, known_stripe, known_unusual
    from hybridsim.storage import catalog

    names = catalog.names("hdd")
    made = {
        "disks": known, "stripes": known_stripe, "fio": known_point, "unusual": known_unusual,
    }  # fmt: skip
    for seed in seeds:
        yield from _inside(kind, made[kind](names[seed % len(names)], seed))


def _inside(kind: str, case: Any) -> Iterator[Case]:
    """Yield whether each parameter's interval holds the truth."""
    from benchmarks.generated_disks import estimates
    from hybridsim.answers.fitting import fio
    from hybridsim.foundation.errors import FitError

    refused = f"fit, {kind}: refused"
    is_point = kind in ("fio", "unusual")
    truths = case[1] if is_point else case.truth
    try:
        if is_point:
            found = {each.key: each for each in fio.fit("fio", [case[0]]).estimates}
        else:
            found = estimates(case.observed, case.layout)
    except FitError:
        yield Case(refused, None, True, 0.0)
        return
    yield Case(refused, None, False, 0.0)
    for key, truth in truths.items():
        one = found.get(key)
        if one is None or not one.determined or one.low is None or one.high is None:
            continue
        inside = bool(one.low <= truth <= one.high)
        width = (one.high - one.low) / 2 / truth if truth else 0.0
        yield Case(f"fit, {kind}: {key}", 0.95, inside, width)
        if key == "rpm":  # whether one is taken follows from the interval, which contains it then
            taken = "a usual speed" if one.how.startswith("a usual speed") else "no usual speed"
            yield Case(f"fit, {kind}: {key}, {taken} taken", None, inside, width)
        yield Case(f"fit, {kind}: all parameters", 0.95, inside, width)
