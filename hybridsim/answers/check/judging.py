"""Whether a running cache keeps what a simulation promised: each figure against its interval.

The interval of a figure is the promised value with the errors of the model on real runs (see
answers/model_error.py); those of a hit ratio and of the IOPS are widened by
their scatter in the simulated load.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hybridsim.answers.check.observed import TOTAL_BLOCKS, UNUSED, Snapshot
from hybridsim.answers.check.promise import Promise, Window
from hybridsim.answers.dirt import OPEN_CAS_COUNTS
from hybridsim.answers.model_error import FEW_WRITES, LEVEL, based_on, half_of, interval
from hybridsim.foundation.documents import Document
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import human_rate, human_size, parse_percent
from hybridsim.foundation.wording import NONE, counted, latency, percent, span

SECOND = 10**9
EMPTY = 0.03  # share of the cache that formatting fills
SHARE, COUNT, BYTES, TIME, RATE = "share", "count", "bytes", "ns", "per_s"
HIT, READ, WRITE, IOPS = "hit ratio", "read latency", "write latency", "IOPS"
PROMOTIONS, MISSES, DIRTY, WRITTEN = "promotions", "misses", "dirty", "SSD writes"
BETTER_HIGH = (HIT, IOPS)
NAMES = (HIT, IOPS, READ, WRITE, PROMOTIONS, MISSES, DIRTY, WRITTEN)
NEUTRAL = (PROMOTIONS, MISSES)  # more is neither better nor worse
RATE_DIFFERS, SIZE_DIFFERS, SET_DIFFERS, MIX_DIFFERS = 1.2, 1.25, 1.2, 0.05
NOT_FULL = 0.9  # of what the simulated cache held
BYPASS_DIFFERS = 0.05  # of the reads
# What the counters of a kind of cache are; several are added up.
HITS_AND_MISSES = "cache_hits cache_misses cache_bypass_hits cache_bypass_misses"
COUNTERS = {
    "dm-cache": {
        "hits": "read_hits", "reads": "read_hits read_misses", "writes": "write_hits write_misses",
        "changed": "promotions", "earlier": "read_hits read_misses write_hits write_misses",
        "dirty": "dirty_blocks", "held": "used_blocks",
    },
    "bcache": {
        "hits": "cache_hits cache_bypass_hits", "reads": HITS_AND_MISSES, "changed": "cache_misses",
        "earlier": HITS_AND_MISSES, "bypassed": "cache_bypass_hits cache_bypass_misses",
        "dirty": "dirty_data",
    },
    "open-cas": {
        "hits": "read_hits", "reads": "read_total pass_through_reads",
        "writes": "write_total pass_through_writes",
        "earlier": "read_total pass_through_reads write_total", "bypassed": "pass_through_reads",
        "dirty": "dirty", "held": "occupancy", "ssd": "writes_to_cache",
    },
    # It counts blocks, not requests.
    "dm-writecache": {
        "hits": "read_hits", "reads": "reads", "writes": "writes", "earlier": "reads writes",
    },
}  # fmt: skip
FEWEST_READS = 100


@dataclass(frozen=True)
class Observed:
    """What a running cache did between two moments; None for what was not counted."""

    duration_ns: int | None = None
    reads: int | None = None
    writes: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    hit: float | None = None
    read_mean_ns: float | None = None
    write_mean_ns: float | None = None
    changed: int | None = None  # promotions, or misses of bcache
    dirty_bytes: int | None = None  # at the end
    ssd_bytes: int | None = None  # written
    held_before_bytes: int | None = None
    held_bytes: int | None = None  # at the end
    earlier: int | None = None  # requests that the cache had served before
    footprint_bytes: int | None = None  # of a capture
    bypassed: int | None = None  # reads that bcache or Open CAS passed by the cache

    @property
    def requests(self) -> int:
        """Number of requests that were counted."""
        return (self.reads or 0) + (self.writes or 0)

    @property
    def iops(self) -> float | None:
        """Requests per second; None if their number or the time is unknown."""
        if not self.duration_ns or self.reads is None or self.writes is None:
            return None
        return self.requests * SECOND / self.duration_ns


@dataclass(frozen=True)
class Figure(Document):
    """One figure: promised, measured, and the interval that decides."""

    name: str
    unit: str
    promised: float
    measured: float
    low: float | None = None
    high: float | None = None
    basis: str = ""  # of the interval; or why there is none
    simulated: float | None = None  # on the captured load
    explained: bool | None = None  # measured is within the interval of `simulated`

    _more = ("within", "verdict")

    @property
    def within(self) -> bool | None:
        """Whether the measured value is in the interval; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def is_worse(self) -> bool:
        """Whether the measured value is beyond the interval, on the bad side."""
        if self.within is not False or self.low is None:
            return False
        is_above = self.measured > self.low
        return self.name in NEUTRAL or is_above != (self.name in BETTER_HIGH)

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.within is None:
            return "not judged"
        if self.within:
            return "within"
        if self.name in NEUTRAL:
            return "beyond"
        return "beyond, worse" if self.is_worse else "beyond, better"


def tolerances(texts: Sequence[str]) -> dict[str, float]:
    """Parse `hit-ratio=5%,ssd-writes=20%`: half of an interval, as a share of the promised value.

    That of the hit ratio is a difference.  Raises UsageError for an unknown name or value.
    """
    names = {name.replace(" ", "-").casefold(): name for name in NAMES}
    result = {}
    for part in (each.strip() for text in texts for each in text.split(",")):
        name, equals, text = part.partition("=")
        key = name.strip().replace("_", "-").replace(" ", "-").casefold()
        if not equals or key not in names:
            raise UsageError(f"--tolerance {part}: {hint(key, names)}; write it as hit-ratio=5%")
        try:
            share = float(parse_percent(text.strip()))
        except ValueError as error:
            raise UsageError(f"--tolerance {part}: {error}") from None
        result[names[key]] = share
    return result


@dataclass(frozen=True)
class Judged:
    """The answer: each figure, and what may be the cause."""

    figures: list[Figure]
    start: str  # of the comparison, in words
    reasons: list[str]

    @property
    def answer(self) -> str:
        """One of kept, broken and unsure."""
        judged = [each for each in self.figures if each.within is not None]
        if any(each.is_worse for each in judged):
            return "broken"
        return "kept" if judged else "unsure"


def observed(
    promise: Promise, kind: str, first: Snapshot, last: Snapshot, size_bytes: int, copies: int = 1
) -> Observed:
    """Return what a cache did between two snapshots.

    `copies` is the number of SSDs that hold each byte: their writes count once.  Where a kind
    counts blocks, their number per request is that of the promise.
    """
    page_bytes, whole, names = promise.page_bytes, promise.whole, COUNTERS[kind]
    unit = {"bcache": 1, "open-cas": OPEN_CAS_COUNTS}.get(kind, page_bytes)  # of levels, in bytes

    def count(state: Snapshot, what: str) -> int | None:
        return state.count(*names[what].split()) if what in names else None

    def grown(what: str) -> int | None:
        before, after = count(first, what), count(last, what)
        return None if before is None or after is None else after - before

    def held(state: Snapshot) -> int | None:
        if kind == "bcache":
            unused = state.count(UNUSED)
            return None if unused is None else (100 - unused) * size_bytes // 100
        if kind != "dm-writecache":
            return _times(count(state, "held"), unit)
        total, free = state.count(TOTAL_BLOCKS), state.count("free_blocks")
        return None if total is None or free is None else (total - free) * unit

    reads, writes, hits = grown("reads"), grown("writes"), grown("hits")
    hit = None if hits is None or not reads else hits / reads
    if kind == "dm-writecache":
        per_read = whole.counters.get("reads", 0) / max(whole.reads, 1)
        per_write = whole.counters.get("writes", 0) / max(whole.writes, 1)
        reads, writes = (
            None if blocks is None or not each else round(blocks / each)
            for blocks, each in ((reads, per_read), (writes, per_write))
        )
    duration = None
    if first.uptime_ns is not None and last.uptime_ns is not None:
        duration = last.uptime_ns - first.uptime_ns
    dirty = held(last) if kind == "dm-writecache" else _times(count(last, "dirty"), unit)
    result = Observed(
        duration, reads, writes, hit=hit, changed=grown("changed"), bypassed=grown("bypassed"),
        dirty_bytes=dirty, ssd_bytes=_times(grown("ssd"), unit), held_before_bytes=held(first),
        held_bytes=held(last), earlier=count(first, "earlier"),
    )  # fmt: skip
    if first.cached is not None and last.cached is not None:
        io = last.cached.since(first.cached)
        result = replace(
            result,  # the cache's own counts of requests stay
            reads=io.reads if reads is None else reads,
            writes=io.writes if writes is None else writes,
            bytes_read=io.read_bytes,
            bytes_written=io.written_bytes,
            read_mean_ns=io.read_ns / io.reads if io.reads else None,
            write_mean_ns=io.write_ns / io.writes if io.writes else None,
        )
    if last.ssds and len(first.ssds) == len(last.ssds):
        written = sum(mine.since(other).written_bytes for mine, other in zip(last.ssds, first.ssds))
        result = replace(result, ssd_bytes=written // copies)
    return result


def _times(number: int | None, each: int) -> int | None:
    return None if number is None else number * each


def window(promise: Promise, seen: Observed, size_bytes: int) -> tuple[Window, str]:
    """Return what was promised over as many requests from an equally full cache, and from where."""
    before = seen.held_before_bytes
    is_empty = before is not None and before <= EMPTY * size_bytes
    if before is None and seen.earlier is not None:
        is_empty = seen.earlier <= EMPTY * promise.cold.requests
    start = 0 if is_empty else None
    words = "from an empty cache" if is_empty else "in a warm cache"
    if before is not None and not is_empty and seen.held_bytes is not None:
        start = promise.start_of(before)
        if start is not None:
            words = f"from a cache that held {human_size(before)}"
    if start is None and promise.warm is None:
        start, words = promise.start_of(promise.held_bytes) or 0, "over the simulated run"
    basis = "reads" if promise.whole.reads and seen.reads else "requests"
    return promise.over(start, seen.reads or seen.requests, basis), words


def judged(
    promise: Promise, kind: str, seen: Observed, size_bytes: int, again: Promise | None = None,
    differences: list[str] | None = None, tolerance: Mapping[str, float] | None = None,
) -> Judged:  # fmt: skip
    """Judge what was observed; `again` is the simulation of the captured load.

    `differences` are those of the settings; None: not read.  `tolerance` replaces intervals.
    """
    promised, start = window(promise, seen, size_bytes)
    own = tolerance or {}
    figures = [_tolerated(each, own) for each in _figures(promise, promised, kind, seen)]
    if again is not None:
        other, _ = window(again, seen, size_bytes)
        anew = {each.name: _tolerated(each, own) for each in _figures(again, other, kind, seen)}
        figures = [
            replace(each, simulated=anew[each.name].promised, explained=anew[each.name].within)
            if each.name in anew else each
            for each in figures
        ]  # fmt: skip
    reasons = []
    if differences:
        listed = "; ".join(differences)
        reasons.append(f"The settings are not those that were simulated: {listed}.")
    reasons += [*_load(promise, seen), *_bypass(promise, kind, seen)]
    reasons += [*_warmth(promise, promised, seen), *_explained(figures)]
    return Judged(figures, start, reasons)


def _tolerated(figure: Figure, tolerance: Mapping[str, float]) -> Figure:
    """Return a figure with the interval of the user, if there is one for it."""
    share = tolerance.get(figure.name)
    if share is None:
        return figure
    reach = share if figure.unit == SHARE else share * figure.promised
    return replace(
        figure, low=max(figure.promised - reach, 0.0), high=figure.promised + reach,
        basis="--tolerance",
    )  # fmt: skip


def _figures(
    promise: Promise, promised: Window, kind: str, seen: Observed
) -> Iterator[Figure]:  # fmt: skip
    whole = promise.whole
    has_writes = whole.writes > FEW_WRITES * max(whole.requests, 1)
    few = uncovered = ""
    if (seen.reads or 0) < FEWEST_READS:
        few = f"fewer than {FEWEST_READS} reads were counted"
    if promised.beyond >= 0.05 * max(promised.number, 1):
        uncovered = "the simulated run has fewer requests, and did not get steady"

    def figure(
        name: str, unit: str, value: float | None, measured: float | None, error: str,
        ends: Callable[[float, float], tuple[float | None, float | None, str]], why_not: str = "",
    ) -> Iterator[Figure]:  # fmt: skip
        """Yield a figure if there is one, with its interval: `ends` of the value and half of it.

        Where too few real runs are of that kind of cache, the other kinds count.
        """
        if value is None or measured is None:
            return
        half, why_not = half_of(kind, has_writes, error), why_not or uncovered
        if why_not or half is None:
            basis = why_not or "no real runs on file"
            yield Figure(name, unit, value, measured, basis=basis)
            return
        low, high, more = ends(value, half.width)
        basis = f"{LEVEL:.0%} interval from {based_on([half])}{more}"
        yield Figure(name, unit, value, measured, low, high, basis)

    def of_hits(value: float, width: float) -> tuple[float, float, str]:
        scatter = promise.scatter(seen.reads or 0)
        reach = math.hypot(width, scatter)
        words = f", and {scatter * 100:.1f} points of scatter in the load"
        return max(value - reach, 0.0), min(value + reach, 1.0), words

    def of_rate(value: float, width: float) -> tuple[float, float, str]:
        scatter = promise.rate_scatter(seen.duration_ns or 0)
        low, high = interval("iops", value, math.hypot(width, scatter))
        return low, high, f", and {scatter:.1%} of scatter in the load"

    def of_changes(value: float, width: float) -> tuple[float | None, float | None, str]:
        """Return the interval where the error is a share of the real value."""
        if width >= 1:
            return None, None, ""
        return value / (1 + width), value / (1 - width), ""

    steady = "steady_hit_ratio" if promised.is_steady else "hit_ratio"
    yield from figure(HIT, SHARE, promised.hit, seen.hit, steady, of_hits, few)
    if promise.mode != "open":
        yield from figure(IOPS, RATE, promised.iops, seen.iops, "iops", of_rate)
    part = promise.warm if promised.is_steady else promise.whole
    for name, error, value, measured in (
        (READ, "read_mean", promised.read_mean_ns, seen.read_mean_ns),
        (WRITE, "write_mean", part.write_mean_ns if part else None, seen.write_mean_ns),
    ):
        yield from figure(
            name, TIME, value, measured, error,
            lambda value, width, error=error: (*interval(error, value, width), ""),  # type: ignore[misc]
        )  # fmt: skip
    title, name = (
        (MISSES, "cache_misses") if kind == "bcache" else (PROMOTIONS, "promotions")
    )  # fmt: skip
    value = promised.counters.get(name)
    why_not = ""
    if not value:
        why_not = "none were promised"
    elif not uncovered and promised.later > 0.05 * promised.number and promise.still_filled:
        why_not = "the simulated cache was still filling at its end, and has fewer requests"
    yield from figure(title, COUNT, value, seen.changed, "promotions", of_changes, why_not)
    if seen.dirty_bytes is not None and promise.dirty is not None:
        low, high = (None, None) if uncovered else (0.0, float(promise.dirty["max_bytes"]))
        basis = "from 0 to the largest that was simulated; promised is the median of the time"
        yield Figure(
            DIRTY, BYTES, float(promise.dirty["p50_bytes"]), seen.dirty_bytes, low, high,
            (few or uncovered) if uncovered else basis,
        )  # fmt: skip
    if seen.ssd_bytes is not None and promised.ssd_bytes:
        yield Figure(
            WRITTEN, BYTES, promised.ssd_bytes, seen.ssd_bytes,
            basis="no errors of real runs are on file; --tolerance ssd-writes=20% judges them",
        )  # fmt: skip


# Possible causes.


def _load(promise: Promise, seen: Observed) -> Iterator[str]:
    """Yield how the load differs from the simulated one."""
    whole = promise.whole
    if seen.iops is not None and promise.mode == "open" and whole.span_ns:
        promised = whole.requests * SECOND / whole.span_ns
        if not promised / RATE_DIFFERS <= seen.iops <= promised * RATE_DIFFERS:
            more = "More" if seen.iops > promised else "Fewer"
            yield f"{more} requests: {seen.iops:,.0f} instead of {promised:,.0f} a second."
    if seen.writes is not None and seen.requests and whole.requests:
        mine, other = (seen.reads or 0) / seen.requests, whole.reads / whole.requests
        if abs(mine - other) > MIX_DIFFERS:
            yield f"Another mix: {percent(mine)} of the requests are reads, not {percent(other)}."
    pairs = [
        ("reads", seen.bytes_read, seen.reads, whole.bytes_read, whole.reads),
        ("writes", seen.bytes_written, seen.writes, whole.bytes_written, whole.writes),
    ]
    for name, size, number, promised_size, promised_number in pairs:
        if size and number and promised_size and promised_number:
            mine, other = size / number, promised_size / promised_number
            if not other / SIZE_DIFFERS <= mine <= other * SIZE_DIFFERS:
                larger = "Larger" if mine > other else "Smaller"
                sizes = f"{human_size(round(mine))} instead of {human_size(round(other))}"
                yield f"{larger} {name}: {sizes} on average."
    touched, promised_set = seen.footprint_bytes, promise.footprint_bytes
    if touched and promised_set:
        is_shorter, is_larger = seen.requests <= whole.requests, touched > promised_set
        sizes = f"touches {human_size(touched)}, the simulated one {human_size(promised_set)}"
        if touched > SET_DIFFERS * promised_set:
            beside = "" if is_shorter else (
                f"; it has {seen.requests / whole.requests:.1f} times as many requests"
            )  # fmt: skip
            yield f"A larger working set: the capture {sizes}{beside}."
        elif not is_larger and not is_shorter and touched * SET_DIFFERS < promised_set:
            yield f"A smaller working set: the capture {sizes}, with fewer requests."


def _bypass(promise: Promise, kind: str, seen: Observed) -> Iterator[str]:
    counts, reads = promise.whole.counters, promise.whole.reads
    names = COUNTERS.get(kind, {}).get("bypassed", "").split()
    if seen.bypassed is None or not seen.reads or not reads or names[0] not in counts:
        return
    promised = sum(counts.get(name, 0) for name in names) / reads
    measured = seen.bypassed / seen.reads
    if abs(measured - promised) > BYPASS_DIFFERS:
        why = (
            "they were sequential, or its SSD was congested (congested_read_threshold_us)"
            if kind == "bcache" else "they were sequential, or no line was free"
        )  # fmt: skip
        yield (
            f"{percent(measured)} of the reads passed by the cache, {percent(promised)} in the "
            f"simulation: {why}."
        )


def _warmth(promise: Promise, promised: Window, seen: Observed) -> Iterator[str]:
    held, full = seen.held_bytes, promise.held_bytes
    if held is not None and full and held < NOT_FULL * full:
        yield (
            f"The cache is not yet warm: it holds {human_size(held)}; the simulated one held "
            f"{human_size(round(full))} at the end."
        )
    if promised.beyond > 0.05 * max(promised.number, 1):
        yield (
            "The simulated run was not steady at its end, and has fewer requests than were "
            "counted: replay a longer capture for a promise that goes on."
        )


def _explained(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield whether the captured load explains the figures that are beyond."""
    beyond = [each for each in figures if each.within is False]
    for is_explained, words in (
        (True, "The load explains {}: simulated again on the capture, the figure is within."),
        (False, "The load does not explain {}: simulated again on the capture, it is beyond too; "
                "the machine, the settings or the model differs."),
    ):  # fmt: skip
        names = [each.name for each in beyond if each.explained is is_explained]
        if names:
            yield words.format(" and ".join(names))


def words_of(value: float | None, unit: str) -> str:
    """Return a figure as text."""
    if value is None:
        return NONE
    if unit == SHARE:  # with a decimal: whole percents hide what is just beyond
        return f"{value:.1%}"
    if unit == BYTES:
        return human_size(round(value))
    if unit == TIME:
        return latency(value)
    return f"{value:,.0f}" if unit == COUNT else f"{value:,.1f}"


def about(seen: Observed) -> str:
    """Return what was counted, in words."""
    parts = []
    if seen.duration_ns:
        parts.append(span(seen.duration_ns))
    if seen.reads is not None:
        parts.append(counted(seen.reads, "read"))
    if seen.writes is not None:
        parts.append(counted(seen.writes, "write"))
    if seen.iops is not None:
        parts.append(f"{seen.iops:,.0f} a second")
    if seen.duration_ns and seen.ssd_bytes:
        parts.append(f"{human_rate(seen.ssd_bytes * SECOND / seen.duration_ns)} to the SSD")
    return ", ".join(parts)
