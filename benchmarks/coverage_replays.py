"""How often the intervals of replays hold on generated loads: see coverage.py.

    one_case  the intervals of replay, advise, size, sweep and compare: a case is a short trace of a
              load that stays the same; its first part is the capture, its later part on the same
              machines, their caches as they are by then, is the truth
    bill      those of the time that a cache saves, and of its cost, on the same loads
    warmed    the time until a cache is warm: a case is one of SEEDS runs of a load, the median of
              the others is the truth

The loads are served by a cache of pages with LRU, which is warm in the capture: a trend, such as a
cache that still fills, is not covered by these intervals.  The forecast of the gain covers it, and
so holds more often than promised here; its promise is for captured traces, with their drift, and is
measured by decisions.py.  `size` promises at least its share, as there are few sizes to choose.

A simulated truth has no error of the model.  So the intervals of the capture as a sample (`trace`)
are held against the later part itself, and those that are printed, which cover the model too,
against the later part times the error of a real run.  Of means each real run on file with such a
load is taken, and the case is the share that is inside, where each experiment counts once; of
costs one run is drawn.  The interval is that of the run's kind of cache without its experiment: an
error that an interval was made from is inside by construction.

An interval is never narrower than FINEST on either side, the precision of what is printed.  Such a
figure is known at least as well as promised, and has a row of its own: a median latency is often
the SSD's own time, which does not change.

Constants of paired.py were chosen on the 120 loads from seed 1000 on, by this table; those from 0
and from 5000 on were seen by earlier work.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from coverage_cases import Case  # noqa: E402
from decision_traces import in_memory  # noqa: E402

from hybridsim.answers.advice.alternatives import NS_PER_MS, cost_per_ms  # noqa: E402
from hybridsim.answers.intervals import (  # noqa: E402
    MODEL,
    TRACE,
    Blocks,
    Ends,
    combined,
    gains,
    means,
    of_trace,
    saved,
)
from hybridsim.answers.judge import Both, Side  # noqa: E402
from hybridsim.answers.metrics import JOINED  # noqa: E402
from hybridsim.answers.model_error import (  # noqa: E402
    FEW_WRITES,
    FINEST,
    RealRun,
    half_of,
    real_runs,
)
from hybridsim.answers.requirements import (  # noqa: E402
    of_measure,
    of_warm_up,
    parse_measure,
)
from hybridsim.foundation.codes import Op  # noqa: E402
from hybridsim.requests.rows import UNKNOWN, Requests, no_requests  # noqa: E402
from hybridsim.scenario import Scenario  # noqa: E402
from hybridsim.studies.replay import Several  # noqa: E402

SECOND = 10**9
CAPTURED, LATER = 8192, 32768  # requests of the capture, of the truth
SIZES = (4 << 20, 8 << 20, 16 << 20)  # bytes; so small that they are warm in the capture
MEASURES = ("mean.reads.warm", "mean.writes.warm", "p50.warm", "p99.warm", "hit.warm", "iops.warm")
COLD_PAGES = 6000  # of 64 KiB
FILLS, SEEDS = 20_000, 10  # requests of a load that warms a cache, and runs of it
LEVEL, ONE_SIDED = 0.9, 0.95
FORECAST = "forecast of the gain (replay, advise), steady load"
AT_FINEST = " (known as precisely as it is printed)"
FIGURES = {"read": "read_mean", "write": "write_mean", "took": "iops"}  # of real runs


def adapts_of(seed: int) -> bool:
    """Whether the load of a seed adapts to the machine: it has no writes then.

    Writes in closed loop fill buffers and write-back caches: a change that these intervals exclude.
    """
    return seed % 3 == 0


def load(seed: int) -> Requests:
    """Return requests of a load that stays the same: a hot spot, reads and writes, bursts."""
    rng = np.random.default_rng(seed)
    count = CAPTURED + LATER
    hot_pages, share = int(rng.integers(40, 300)), rng.uniform(0.5, 0.95)
    hot = rng.random(count) < share
    page = np.where(hot, rng.integers(0, hot_pages, count), rng.integers(0, COLD_PAGES, count))
    writes = rng.random(count) < (0.0 if adapts_of(seed) else rng.choice([0.0, 0.1, 0.4]))
    # The rate varies from one stretch of some requests to the next, as that of applications does.
    stretch = int(rng.integers(8, 33))
    busy = np.repeat(rng.lognormal(0, rng.uniform(0, 0.7), -(-count // stretch)), stretch)[:count]
    gaps = rng.exponential(1.0, count) / busy / rng.uniform(10, 50) * SECOND
    return _requests(np.cumsum(gaps), page, writes)


def _requests(arrival_ns: Any, page: Any, writes: Any) -> Requests:
    count = len(page)
    unknown = np.full(count, UNKNOWN, np.int64)
    return no_requests(count)._replace(
        arrival_ns=arrival_ns.astype(np.int64),
        offset_bytes=page.astype(np.int64) * 65_536,
        length_bytes=np.full(count, 4096, np.int64),
        op=np.where(writes, int(Op.WRITE), int(Op.READ)).astype(np.uint8),
        dispatch_ns=unknown,
        complete_ns=unknown,
    )


def _base(mode: str = "write-through") -> Scenario:
    """Return a cache of pages with LRU in front of the default disks."""
    site = Scenario.default().with_options(cache="page", cache_mode=mode)
    return site.with_values({"cache.admission": "always", "cache.replacement": "lru"})


def machines_of(seed: int) -> tuple[list[Scenario], str]:
    """Return scenarios of a cache of three sizes for the load of a seed, and the mode."""
    mode = "closed" if adapts_of(seed) else "open"
    base = _base(("write-through", "write-back")[seed % 2]).with_options(mode=mode)
    return [base.with_options(cache_size=f"{size}B") for size in SIZES], mode


def sides_of(seed: int, rows: Requests, sites: list[Scenario], mode: str) -> list[Side]:
    """Return what the disks alone and caches do with a load."""
    machines = [(sites[0], False), *((site, True) for site in sites)]
    ran = Several(in_memory(f"load {seed}", rows, True), sites[0]).outcomes(machines, mode)
    sides = [Side(each.collector.ledger, each.counters) for each in ran]
    return [sides[0], *(each._replace(kind="page") for each in sides[1:])]


def border_of(side: Side) -> int:
    """Return the group of requests with which the later part begins."""
    return CAPTURED // side.ledger.each // JOINED * JOINED


def until(side: Side, requests: int) -> Side:
    """Return what was seen of a run before a request."""
    ledger = copy.copy(side.ledger)
    ledger.requests = requests
    return side._replace(ledger=ledger)


def seen_and_later(
    plain: Side, cached: Side, adapts: bool
) -> tuple[dict[str, Blocks], dict[str, Blocks]]:
    """Return the blocks of the judged half of the capture, and of the later part."""
    border = border_of(plain)
    capture = Both(*(until(side, border * plain.ledger.each) for side in (plain, cached)))
    whole = Both(plain, cached)
    judged = capture.sides(capture.half, capture.blocks(capture.half), adapts)
    return judged, whole.sides(border, whole.blocks(border), adapts)


def without_model(blocks: Blocks) -> Blocks:
    """Return the blocks of a kind without errors of the model."""
    return replace(blocks, kind="none")


class Found(list[Case]):
    """Cases of a load."""

    def hold(self, what: str, truth: float, low: float, high: float, level: float = LEVEL) -> None:
        """Add whether an interval holds a truth."""
        self.add(what, float(low <= truth <= high), low, high, level)

    def add(self, what: str, inside: float, low: float, high: float, level: float = LEVEL) -> None:
        """Add an interval and the share of its truths that it holds."""
        middle = (low + high) / 2
        width = (high - low) / 2 / middle if middle and math.isfinite(high) else 1.0
        if level == LEVEL and what != FORECAST and high <= low * (1 + FINEST) ** 2 * (1 + 1e-9):
            what += AT_FINEST
        at_least = level == ONE_SIDED or what == FORECAST or what.endswith(AT_FINEST)
        self.append(Case(what, level, inside, width, at_least))


@dataclass(frozen=True)
class AsPrinted(Blocks):
    """Blocks of a cache as in a real run; the model's error is that of all other experiments."""

    like: RealRun | None = None

    def model(self, name: str) -> float | None:
        figure = FIGURES.get(name)
        if self.like is None or figure is None:
            return None
        others = tuple(run for run in real_runs() if run.experiment != self.like.experiment)
        half = half_of(self.like.kind, self.like.writes > FEW_WRITES, figure, others)
        return None if half is None else half.width


def runs_like(has_writes: bool, figure: str) -> dict[str, list[RealRun]]:
    """Return the real runs with such a load and figure, by experiment."""
    runs: dict[str, list[RealRun]] = {}
    for run in real_runs():
        if figure in run.errors and (run.writes > FEW_WRITES) == has_writes:
            runs.setdefault(run.experiment, []).append(run)
    return runs


def drawn_run(rng: Any, has_writes: bool, figure: str) -> RealRun:
    """Return a real run with such a load and figure: of an experiment, one of its runs."""
    runs = runs_like(has_writes, figure)
    some = runs[str(rng.choice(sorted(runs)))]
    return some[int(rng.integers(len(some)))]


def one_case(seed: int) -> list[Case]:
    """Judge one load: hold the intervals of its capture against its later part."""
    found = Found()
    rng = np.random.default_rng(10_000 + seed)
    adapts, rows, (sites, mode) = adapts_of(seed), load(seed), machines_of(seed)
    whole = sides_of(seed, rows, sites, mode)
    each, border = whole[0].ledger.each, border_of(whole[0])
    seen = [until(side, border * each) for side in whole]
    half = Both(seen[0], seen[1]).half
    judged, later = zip(*(seen_and_later(whole[0], side, adapts) for side in whole[1:]))
    times_ns = Both(whole[0], whole[1]).times_ns  # of all requests, as recorded
    stretch = (times_ns[border - 1] - times_ns[half]) / (times_ns[-1] - times_ns[border])
    _means(found, judged[1], later[1], float(stretch))
    for first, second in (("cached", "none"), ("cached", "cached")):
        a, b = judged[0][first], judged[2][second if second == "none" else first]
        truths = (later[0][first], later[2][second if second == "none" else first])
        for name, known in gains(without_model(a), without_model(b)).items():
            truth = _mean(truths[0], name) / _mean(truths[1], name)
            pair = "with and without the cache" if second == "none" else "two sizes"
            _named(found, f"gain of {name}, {pair} (compare, sweep)", truth, known)
    captured = in_memory(f"capture {seed}", rows.between(0, border * each), True)
    answer = Several(captured, sites[-1]).results(sites[-1:])[0].judgement
    goal = "took" if adapts else "all"
    truth = _mean(later[2]["none"], goal) / _mean(later[2]["cached"], goal)
    if answer.sampled is not None:
        found.hold("gain of the capture less luck (JSON `sampled`)", truth, *answer.sampled)
    if answer.low is not None and answer.high is not None:
        found.hold(FORECAST, truth, answer.low, answer.high)
    _measures(found, seen, whole, half, border)
    _sizes(found, rng, judged, later)
    return found


def _means(
    found: Found, judged: dict[str, Blocks], later: dict[str, Blocks], stretch: float
) -> None:  # fmt: skip
    """Hold means and durations against what came; `stretch` is the recorded time judged by later.

    A duration is that of a stretch of recorded time, whatever number of requests is in it.
    """
    cached = judged["cached"]
    for name, known in means(without_model(cached)).items():
        truth = _mean(later["cached"], name) * (stretch if name == "took" else 1.0)
        _named(found, f"mean of {name}: trace", truth, known)
        if name not in FIGURES:
            continue
        what = f"mean of {name}, as printed: trace and model"
        inside, ends = _with_real_errors(cached, name, truth)
        low, high = (float(each) for each in np.median(ends, axis=0))
        found.add(what, inside, low, high)


def _with_real_errors(cached: Blocks, name: str, truth: float) -> tuple[float, list[Ends]]:
    """Return the share of real runs whose error the printed interval of a mean holds, and its ends.

    Each experiment has the same weight, its runs equal parts of it.
    """
    figure, trace = FIGURES[name], of_trace(*cached.of(name))
    value = float(cached.whole_ns) if name == "took" else _mean(cached, name)
    inside, ends = 0.0, []
    runs = runs_like(cached.writes > FEW_WRITES, figure)
    for some in runs.values():
        for like in some:
            model = AsPrinted(**vars(cached), like=like).model(name)
            known = combined(value, {TRACE: trace, MODEL: model})
            error = like.errors[figure]
            true = truth / (1 + error) if figure == "iops" else truth * (1 + error)
            inside += (known.low <= true <= known.high) / len(some) / len(runs)
            ends.append((known.low, known.high))
    return inside, ends


def bill(seed: int) -> list[Case]:
    """Hold the time that a cache saves, and the cost of a saved millisecond if it costs 1.

    Both follow from the time saved, so that the cost promises as much as that does, over all loads:
    more, as a cost without an upper end, where perhaps nothing is saved, holds whatever is saved
    less.  Which costs have an upper end follows from the interval: a promise for these alone would
    be another one, and their share is for information.  Without an interval nothing is saved for
    sure.
    """
    found, rng = Found(), np.random.default_rng([seed, 1])
    sites, mode = machines_of(seed)
    plain, cached = sides_of(seed, load(seed), sites[-1:], mode)
    judged, later = seen_and_later(plain, cached, adapts_of(seed))
    figure = FIGURES["read"]
    like = drawn_run(rng, judged["cached"].writes > FEW_WRITES, figure)
    printed = AsPrinted(**vars(judged["cached"]), like=like)
    for error, after, what in (
        (0.0, without_model(judged["cached"]), "trace"),
        (like.errors[figure], printed, "as printed: trace and model"),
    ):
        known = saved(judged["none"], after, "read")
        if known is None:
            continue
        saved_ns = _mean(later["none"], "read") - _mean(later["cached"], "read") * (1 + error)
        _named(found, f"time saved of a read: {what}", saved_ns, known)
        if ends := cost_per_ms(1.0, known):
            truth = NS_PER_MS / saved_ns if saved_ns > 0 else math.inf
            cost = f"cost per millisecond saved: {what}"
            low, high = ends[0], math.inf if ends[1] is None else ends[1]
            inside = float(low <= truth <= high)
            width = (high - low) / (high + low) if math.isfinite(high) else 1.0
            found.append(Case(cost, LEVEL, inside, width, True))
            which = "without" if ends[1] is None else "with"
            found.append(Case(f"{cost}, {which} an upper end", None, inside, width))
    return found


def _mean(blocks: Blocks, name: str) -> float:
    sums, counts = blocks.of(name)
    return float(sums.sum() / max(counts.sum(), 1e-9))


def _named(found: Found, what: str, truth: float, known: Any) -> None:
    found.hold(what, truth, known.low, known.high)


def _measures(found: Found, seen: list[Side], whole: list[Side], half: int, border: int) -> None:
    """Hold the intervals of requirements (size, replay --require, sweep) against what came."""
    capture = seen[2]._replace(kind="none")  # without the error of the model
    both, after = Both(seen[0], capture), Both(whole[0], whole[2])
    for text in MEASURES:
        measure = parse_measure(text)
        value, truth = (_value(measure, each, start)
                        for each, start in ((both, half), (after, border)))  # fmt: skip
        if value is None or truth is None:
            continue
        known = of_measure(measure, value, both, half)
        if known is not None:
            found.hold(f"{text} (size, --require, sweep): trace", truth, known.low, known.high)


def _value(measure: Any, both: Both, start: int) -> float | None:
    stretch = both.pair(start, both.groups).cached
    requests = stretch.reads if measure.direction == "reads" else stretch.writes
    if measure.measure == "mean":
        return requests.mean_ns
    if measure.measure == "iops":
        return stretch.both.count * SECOND / max(stretch.took_ns, 1)
    if measure.measure == "hit":
        ledger = both.cached.ledger
        first = -(-start * both.each // ledger.stride)
        end = -(-both.requests // ledger.stride)
        known = (ledger.sample_ns[first:end] >= 0) & ~ledger.is_write[first:end]
        return float((known & ~ledger.from_disks[first:end]).sum() / max(known.sum(), 1))
    value = requests.percentile(float(measure.measure[1:]))
    return None if value is None else float(value)


def _sizes(found: Found, rng: Any, judged: Sequence[Any], later: Sequence[Any]) -> None:
    """Hold `size` against what came: the smallest size whose interval meets a limit meets it."""
    figures = [means(without_model(each["cached"])).get("read") for each in judged]
    if None in figures:
        return
    values = [each.value for each in figures]
    limit = float(rng.uniform(min(values), max(values)) * rng.uniform(1.0, 1.2))
    for known, after in zip(figures, later):
        if known.high < limit:
            what = "size: the smallest whose interval meets a limit meets it later"
            found.hold(what, _mean(after["cached"], "read"), 0.0, limit, ONE_SIDED)
            return


def filling(number: int, seed: int) -> Requests:
    """Return random reads of a hot spot whose size, share and rate follow from the number."""
    shape = np.random.default_rng(number)
    hot_pages, share = int(shape.integers(300, 3000)), shape.uniform(0.5, 0.98)
    rate = shape.uniform(20, 80)
    rng = np.random.default_rng([number, seed])
    hot = rng.random(FILLS) < share
    page = np.where(hot, rng.integers(0, hot_pages, FILLS), rng.integers(0, COLD_PAGES, FILLS))
    gaps = rng.exponential(SECOND / rate, FILLS)
    return _requests(np.cumsum(gaps), page, np.zeros(FILLS, bool))


def warmed(number: int) -> list[Case]:
    """Hold the interval of the time until a cache is warm against other runs of the same load."""
    found = Found()
    site = _base().with_options(mode="open", cache_size="256MiB")
    runs = []
    for seed in range(SEEDS):
        trace = in_memory(f"filling {number} {seed}", filling(number, seed), True)
        warm_up = Several(trace, site).results([site])[0].warm_up
        known = of_warm_up(warm_up, "none", 0.0)  # without the error of the model
        if known is not None:
            runs.append(known)
    for each in runs if len(runs) > 2 else ():
        others = [one.value for one in runs if one is not each]
        _named(found, "time until the cache is warm: trace", float(np.median(others)), each)
    return found
