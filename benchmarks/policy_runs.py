"""Runs of policies on traces, on two levels.

hits    only the contents of a cache: no devices, a page is valid as soon as it is admitted
timed   the default machine, with the page cache of the row

Both have no sequential cutoff, so that only policies differ; other kinds of cache have their
defaults.  If pages are numbers, the limit of fills is higher, as a request has several pages.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from policy_anchors import NEWEST, PREFIX, SAME, library_version
from policy_anchors import counts as counts_of
from policy_anchors import hits as library_hits
from policy_bound import PRICES, bound, gaps
from policy_curves import MERGED, PIECES, WINDOWS, Followed, short
from policy_kept import Kept, key, of_class, version
from policy_traces import NUMBERED, Rows, Traced, digest

from hybridsim.answers.metrics import Collector, Counters
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.warmup import WarmUp, judge, of_hits
from hybridsim.caches import CACHES
from hybridsim.caches.policies import ADMISSION, OFFLINE
from hybridsim.caches.policies.belady import NEVER
from hybridsim.caches.policies.budget import Budgeted
from hybridsim.caches.policies.write_budget import parse_write_budget
from hybridsim.requests.pages import Ids, accesses, next_uses
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import batches
from hybridsim.studies.hits import REPLACEMENTS, Cache
from hybridsim.studies.runs import Pump
from hybridsim.traces.summary import summarize

SHARES = (0.01, 0.05, 0.1, 0.2)  # of the distinct pages
FORM = 3  # version of the rows' format
THREADS = 2
COUNTS = (
    "page_accesses",
    "page_hits",
    "read_page_accesses",
    "read_page_hits",
    "requests",
    "request_hits",
)
SAMPLES = 256
PRICED = (0.0, 0.1, 0.25, 1.0, 2.0, 4.0, 8.0, 32.0, 128.0)  # prices other than the default
FILLS_OF_SMALL = 512


@dataclass(frozen=True)
class Policy:
    """Two policies of the page cache, or another kind of cache with its TOML."""

    name: str
    admission: str = "always"
    replacement: str = "lru"
    parameters: tuple[tuple[str, int], ...] = ()
    toml: str = ""
    baseline: bool = True
    library: str = ""  # the class of libCacheSim

    @property
    def sources(self) -> set[Path]:
        """The source files of this policy."""
        if self.toml or self.library:
            return set()
        return of_class(ADMISSION[self.admission]) | of_class(REPLACEMENTS[self.replacement])

    @property
    def can_be_held(self) -> bool:
        """Whether it supports a write budget."""
        other = self.toml or self.library or self.is_offline
        return not (other or self.name in PRICED_NAMES)

    @property
    def is_offline(self) -> bool:
        """Whether it is an offline bound."""
        return self.replacement in OFFLINE


def priced(price: float) -> Policy:
    """Return the learned policy with this price of a fill, in disk reads."""
    parameters = (("write_price_per_thousand", round(price * 1000)),)
    return Policy(f"learned, price {price:g}", "learned", "learned", parameters, baseline=False)


def _policies() -> list[Policy]:
    always = ("fifo", "lru", "lfu", "arc", "lirs", "2q", "s3-fifo", "sieve", "w-tinylfu", "lhd")
    return [
        *(Policy(name, "always", name) for name in always),
        Policy("2 touches", "touches", parameters=(("touches", 2),)),
        Policy("reject-first", "reject-first"),
        Policy("LARC", "larc"),
        Policy("probabilistic 10%", "probabilistic", parameters=(("seed", 1),)),
        Policy("LARC, s3-fifo", "larc", "s3-fifo"),
        Policy("learned", "learned", "learned", baseline=False),
        *(priced(price) for price in PRICED),
        Policy("belady", "always", "belady", baseline=False),
    ]


POLICIES = _policies()
PRICED_NAMES = {priced(price).name for price in PRICED}
ANCHORS = [Policy(PREFIX + name, library=kind) for name, kind in NEWEST.items()]
SAME_ANCHORS = [Policy(PREFIX + name, library=kind) for name, kind in SAME.items()]
HELD = "fills <= "  # prefix of levels with a write budget
SYSTEMS = [
    Policy("dm-cache smq", toml='kind = "dm-cache"\nblock = "{page}"'),
    Policy("bcache", toml='kind = "bcache"'),
    Policy("Open CAS nhit", toml='kind = "open-cas"\nline = "{page}"\npromotion = "nhit"'),
]


def systems() -> list[Policy]:
    """Return the other kinds of cache that this version supports."""
    return [each for each in SYSTEMS if each.toml.split('"')[1] in CACHES]


class Stream:
    """The page accesses of a trace."""

    def __init__(self, traced: Traced, page_bytes: int) -> None:
        self.traced, self.page_bytes = traced, page_bytes
        self._rows = traced.requests()
        self.digest = digest(self._rows.rows)

    @cached_property
    def pieces(self) -> list[list[Any]]:
        """PIECES lists of parts with the ids of their pages, of equally many requests."""
        self._ids = Ids()
        pieces = []
        rows, size = self._rows.rows, max(1, self._rows.rows.rows // PIECES)
        at_once = -(-size // WINDOWS)
        for start in range(0, rows.rows, size):
            piece = Rows("", rows.between(start, start + size), at_once)
            parts = accesses(piece, self.page_bytes)
            pieces.append([(self._ids.of(part.numbers), part) for part in parts])
        return pieces

    @cached_property
    def followed(self) -> Followed | None:
        """The accesses after moves of the hot spot; None if the moves are unknown."""
        if not self.traced.moves:
            return None
        moves = self.traced.moves().seen_in(self._rows.rows.rows)
        windows = (window for piece in self.pieces for window in piece)
        return Followed(moves, windows, self.page_bytes)

    @cached_property
    def ids(self) -> Any:
        """The ids of all accesses in order."""
        return np.concatenate([ids for piece in self.pieces for ids, _ in piece])

    @cached_property
    def distinct(self) -> int:
        """Number of distinct pages."""
        return self._ids.count if self.pieces else 0

    @cached_property
    def future(self) -> Any:
        """The next use of the page of each access."""
        return next_uses(self.ids, self.distinct, NEVER)

    @cached_property
    def gaps(self) -> Any:
        """The gaps between accesses, input of the bounds."""
        return gaps(self.ids)

    def prepared(self, policy: Policy) -> Any:
        """Return the input of the runs of a policy, computed before threads need it."""
        return self.future if policy.is_offline else self.pieces, self.followed

    def pages(self, share: float) -> int:
        """Return the number of pages of a cache."""
        return max(1, int(share * self.distinct))

    def about(self, share: float) -> dict[str, Any]:
        """Return the fields that are equal in all rows of a cell."""
        return {
            "trace": self.traced.name,
            "is_tuned": self.traced.is_tuned,
            "page_bytes": self.page_bytes,
            "share": share,
        }

    def run(self, policy: Policy, share: float, budget: str = "") -> dict[str, Any]:
        """Run one cache over the whole trace, with a write budget if one is specified."""
        if policy.library:
            return self._run_library(policy, share)
        pages = self.pages(share)
        parameters: dict[str, Any] = dict(policy.parameters)
        if budget:
            parameters["write_budget"] = parse_write_budget(budget, self.page_bytes)
        cache = Cache(policy.admission, policy.replacement, pages, self.page_bytes, 0, parameters)
        begin, first, number = time.thread_time(), 0, 0
        followed = self.followed
        after = followed.empty() if followed else None
        served, ends = [cache.served()], [0]
        for piece in self.pieces:
            for ids, part in piece:
                if followed:
                    followed.add(after, number, ids, cache)
                if policy.is_offline:
                    future = self.future[first : first + len(ids)]
                    cache.take(ids, part, first, self._ids.capacity, future)
                else:
                    cache.take(ids, part, first, self._ids.capacity)
                first += len(ids)
                number += 1
                served.append(cache.served())
            ends.append(number)
        end = cache.result(self.page_bytes)
        counts = {name: getattr(end, name) for name in COUNTS}
        counts |= {"pages": pages, "fills": end.admitted, "re_reads": end.re_read}
        counts |= {"t90": warm(between(served, ends))}
        counts |= {"curve": short(between(served, range(0, number + 1, MERGED)))}
        if followed:
            counts |= {"window": followed.window, "followed": followed.curve(after)}
        return self._row(share, counts, begin)

    def _run_library(self, policy: Policy, share: float) -> dict[str, Any]:
        pages, begin, first, number = self.pages(share), time.thread_time(), 0, 0
        hit = library_hits(policy.library, pages, self.ids)
        counts = dict.fromkeys((*COUNTS, "fills", "re_reads"), 0)
        served, ends = [(0, 0)], [0]
        for piece in self.pieces:
            for ids, part in piece:
                mine = counts_of(part, hit[first : first + len(ids)], self.page_bytes)
                counts = {name: count + mine[name] for name, count in counts.items()}
                first, number = first + len(ids), number + 1
                served.append((first, counts["page_hits"]))
            ends.append(number)
        about: dict[str, Any] = {"pages": pages, "t90": warm(between(served, ends))}
        about |= {"curve": short(between(served, range(0, number + 1, MERGED)))}
        return self._row(share, counts | about, begin)

    def _row(self, share: float, counts: dict[str, Any], begin_s: float) -> dict[str, Any]:
        counts["mean_bytes"] = float(self._rows.rows.length_bytes.mean())
        return self.about(share) | counts | {"cpu_s": round(time.thread_time() - begin_s, 3)}


def between(served: list[tuple[int, int]], ends: Iterable[int]) -> np.ndarray:
    """Return the hit ratios between the counts at these indices."""
    touched, hits = np.diff(np.array(served)[list(ends)], axis=0).T
    return hits / np.maximum(touched, 1)


def warm(curve: np.ndarray) -> float | None:
    """Return the share of the trace after which the cache is warm; None if it never is."""
    warm_up = judge(np.arange(len(curve)), curve, 1, "hit ratio", 0.0, 0.005)
    return warm_up.reached_ns[90] / len(curve) if 90 in warm_up.reached_ns else None


def cached(
    traced: Traced,
    page_bytes: int,
    shares: tuple[float, ...],
    policies: list[Policy],
    kept: Kept,
    budgets: tuple[str, ...] = (),
    with_bounds: bool = True,
) -> Iterator[dict[str, Any]]:
    """Yield the results of level hits, those with budgets, and the bounds."""
    stream = Stream(traced, page_bytes)
    for budget in ("", *budgets):
        yield from _cached(stream, shares, policies, kept, budget)
    here = Path(__file__).parent / "policy_bound.py"
    for share in shares if with_bounds else ():
        digest_key = key("bound", [stream.digest, page_bytes, share], [here])
        yield kept.get(digest_key) or kept.add(
            {"key": digest_key, "level": "bound", "policy": "bound"}
            | stream.about(share)
            | {"bounds": [[p, bound(stream.gaps, stream.pages(share), p)] for p in PRICES]}
        )


def _cached(
    stream: Stream, shares: tuple[float, ...], policies: list[Policy], kept: Kept, budget: str
) -> Iterator[dict[str, Any]]:
    level = f"{HELD}{budget}" if budget else "hits"
    with ThreadPoolExecutor(THREADS) as threads:
        for policy in policies:
            if budget and not policy.can_be_held:
                continue
            paths = version("hits", policy) | (of_class(Budgeted) if budget else set())
            about = [FORM, stream.digest, stream.page_bytes]
            keys = {share: key(level, [*about, share, _inputs(policy)], paths) for share in shares}
            missing = [share for share in shares if not kept.get(keys[share])]
            if missing:
                stream.prepared(policy)

            def run(share: float, policy: Policy = policy) -> dict[str, Any]:
                return stream.run(policy, share, budget)

            for share, row in zip(missing, threads.map(run, missing)):
                kept.add({"key": keys[share], "level": level, "policy": policy.name} | row)
            yield from (kept.get(keys[share]) for share in shares)


def _inputs(policy: Policy) -> list[Any]:
    if policy.library:
        return [policy.library, library_version()]
    return [policy.admission, policy.replacement, policy.parameters]


def timed(
    traced: Traced, page_bytes: int, share: float, policies: list[Policy], kept: Kept
) -> Iterator[dict[str, Any]]:
    """Yield the results of one cell with full timing."""
    rows = traced.requests(timed=True)
    ids = Ids()
    for part in accesses(rows, page_bytes):
        ids.of(part.numbers)
    pages = max(1, int(share * ids.count))
    about = [FORM, digest(rows.rows), traced.mode, page_bytes, share]
    with ThreadPoolExecutor(THREADS) as threads:
        keys = {
            each: key("timed", [*about, machine_toml(each, page_bytes)], version("timed", each))
            for each in policies
        }
        missing = [each for each in policies if not kept.get(keys[each])]
        runs = threads.map(lambda each: replayed(traced, rows, page_bytes, pages, each), missing)
        for each, row in zip(missing, runs):
            cell = {"trace": traced.name, "is_tuned": traced.is_tuned}
            cell |= {"page_bytes": page_bytes, "share": share, "pages": pages}
            kept.add({"key": keys[each], "level": "timed", "policy": each.name} | cell | row)
    yield from (kept.get(keys[each]) for each in policies)


def machine_toml(policy: Policy, page_bytes: int) -> str:
    """Return the scenario as TOML; all other values are the defaults."""
    if policy.toml:
        return "[cache]\n" + policy.toml.format(page=f"{page_bytes}B")
    lines = [
        "[cache]",
        f'page = "{page_bytes}B"',
        f'admission = "{policy.admission}"',
        f'replacement = "{policy.replacement}"',
        "sequential_cutoff = 0",
        *(_in_toml(name, value) for name, value in policy.parameters if name != "seed"),
    ]
    if page_bytes in NUMBERED:  # small pages: a request has several
        lines.append(f"max_fills = {FILLS_OF_SMALL}")
    return "\n".join(lines)


def _in_toml(name: str, value: int) -> str:
    if name == "write_price_per_thousand":
        return f"write_price = {value / 1000}"
    return f"{name} = {value}"


def replayed(
    traced: Traced, rows: Rows, page_bytes: int, pages: int, policy: Policy
) -> dict[str, Any]:
    """Replay requests on a machine; return its figures."""
    begin = time.thread_time()
    site = Scenario.loads(machine_toml(policy, page_bytes))
    if policy.toml:
        pages = max(1, pages * page_bytes // site.cache.page_bytes)
    tally = summarize(rows.chunks())
    pump = Pump(
        building.machine(site, traced.mode, tally.max_end_bytes, pages),
        max(tally.span_ns // SAMPLES, 10**7),
    )
    for batch in batches(rows, with_waits=traced.mode == "think"):
        pump.take(batch)
    return figures(pump.collector, pump.counters, traced.mode) | {
        "cpu_s": round(time.thread_time() - begin, 3)
    }


def figures(collector: Collector, counters: Counters, mode: str) -> dict[str, Any]:
    """Return the figures of a whole run, cold phase included."""
    whole = Outcome(collector, counters, mode == "open").whole.figures
    latency = whole.reads + whole.writes
    warm_up = of_hits(collector)
    t90_ns = warm_up.reached_ns.get(90)
    return {
        "requests": latency.count,
        "hit_ratio": whole.hit_ratio,
        "page_hit_ratio": whole.page_hit_ratio,
        "ssd_bytes": int(counters["fast_bytes_written"][-1]),
        "disk_ns": int(counters["slow_busy_ns"][-1]),
        "mean_ns": latency.mean_ns,
        "p99_ns": latency.percentile(99),
        "read_mean_ns": whole.reads.mean_ns,
        "read_p99_ns": whole.reads.percentile(99),
        "t90": None if t90_ns is None else t90_ns / max(collector.end_ns, 1),
        "curve": in_pieces(warm_up, collector.end_ns),
    }


def in_pieces(warm_up: WarmUp, end_ns: int) -> list[float]:
    """Return hit ratios in PIECES parts of the time; without reads, those of the part before."""
    if not len(warm_up.curve):
        return []
    at_ns = (np.arange(PIECES) + 0.5) * (end_ns / PIECES)
    last = np.searchsorted(warm_up.times_ns, at_ns, "right") - 1
    return short(warm_up.curve[np.maximum(last, 0)])
