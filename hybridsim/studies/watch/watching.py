"""Caches beside a running disk: simulated ones, the counters of a real one, and the loop.

PageCaches are of some sizes and policies, scaled down to a sample of the pages.  A KernelCache is
one of the kernel on simulated devices, which take the requests when they came.  The counters of a
cache that runs say what it hit, beside what its simulation would have hit.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybridsim.answers.check.observed import snapshot
from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.documents import Document
from hybridsim.foundation.errors import MeasurementError, UsageError
from hybridsim.foundation.printable import printable
from hybridsim.foundation.prometheus import Metric, exposition
from hybridsim.foundation.units import human_size
from hybridsim.requests.pages import SPAN, Accesses, PageReads, accesses, hashed
from hybridsim.requests.rows import UNKNOWN, Requests, no_requests
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import Sent, batch_of
from hybridsim.studies.check import state_of
from hybridsim.studies.hits import Cache, Feed, check
from hybridsim.studies.page_sampling import SMALL, refuse_unsampled
from hybridsim.studies.watch.kept import Kept, leaves, outline, regrown
from hybridsim.studies.watch.pieces import SECOND_NS, Piece
from hybridsim.traces.recording import Disk, Host
from hybridsim.traces.recording.privileges import on_signals
from hybridsim.traces.thinned.layout import Counter, Counts

SECTOR = 512
COUNTED = {  # names of the counters of hits, and of misses
    "dm-cache": (("read_hits", "write_hits"), ("read_misses", "write_misses")),
    "bcache": (("cache_hits",), ("cache_misses",)),
}
STATUS = re.compile(
    r"0 (?P<sectors>\d+) cache \d+ \d+/\d+ (?P<block>\d+) \d+/(?P<blocks>\d+)(?: \d+){7}"
    r" (?P<rest>.+)"
)


@dataclass(frozen=True)
class Real(Document):
    """A running cache, over the last interval and since the start of the watch."""

    _more = ("hit_ratio_since_start",)

    kind: str  # as in a scenario: page, bcache, dm-cache; none: the disks alone
    accesses: int  # since the start
    hits: int
    hit_ratio: float | None  # of the last interval; None: it had no access

    @property
    def hit_ratio_since_start(self) -> float | None:
        """Hit ratio since the start; None: no access yet."""
        return share(self.hits, self.accesses)


def share(hits: int, accesses: int) -> float | None:
    """Return a hit ratio; None without accesses."""
    return hits / accesses if accesses else None


def served(kind: str, counters: Mapping[str, int]) -> tuple[int, int]:
    """Return accesses and hits of the counters of a cache, real or simulated."""
    hits, misses = (sum(counters[name] for name in names) for names in COUNTED[kind])
    return hits + misses, hits


class Beside:
    """The growth of a real cache's counters."""

    def __init__(self) -> None:
        """Start without a reading."""
        self.kind = ""
        # Accesses and hits: as last read, before the last interval, in all.
        self._last, self._since, self._total = np.zeros((3, 2), np.int64)

    def read(self, text: str) -> None:
        """Take the counters of a state as `dmsetup status` or sysfs prints it.

        Counters that fell began anew, with the cache; raises MeasurementError for other text.
        """
        seen = snapshot(text, "the counters of the cache")
        if seen.kind not in COUNTED:
            raise MeasurementError(f"{seen.kind}: its counters are not watched")
        now = np.array(served(seen.kind, seen.counters))
        if self.kind:
            grown = now - self._last
            self._total = self._total + (now if grown.min() < 0 else grown)
        self.kind, self._last = seen.kind, now

    def now(self) -> Real | None:
        """Return the cache's figures; a new interval begins.  None: nothing was read."""
        if not self.kind:
            return None
        accesses, hits = (self._total - self._since).tolist()
        self._since = self._total
        return Real(self.kind, int(self._total[0]), int(self._total[1]), share(hits, accesses))

    def pause(self) -> None:
        """Begin anew with the next reading: what happens until then is not counted."""
        self._since, self.kind = self._total, ""

    def state(self) -> list[Any]:
        """Return all that changes, to be saved as JSON."""
        numbers = np.concatenate([self._last, self._since, self._total])
        return [self.kind, *numbers.tolist()]

    def go_on(self, state: list[Any]) -> None:
        """Continue from a saved state."""
        self.kind = str(state[0])
        self._last, self._since, self._total = np.array(state[1:], np.int64).reshape(3, 2)


def settings(text: str) -> tuple[dict[str, str], int] | None:
    """Return a dm-cache's settings as keys of a scenario, and the size of its volume in bytes.

    None: the text is not the status of a dm-cache with the policy smq.
    """
    match = next(filter(None, map(STATUS.search, text.splitlines())), None)
    if match is None:
        return None
    count, *words = match["rest"].split()
    features, rest = words[: int(count)], words[int(count) :]
    arguments, policy = rest[1 : 1 + int(rest[0])], rest[1 + int(rest[0])]
    if policy != "smq":
        return None
    block = int(match["block"]) * SECTOR
    found = {
        "cache.kind": "dm-cache",
        "cache.size": f"{block * int(match['blocks'])}B",
        "cache.block": f"{block}B",
        "cache.mode": features[0],
    }
    if "migration_threshold" in arguments:
        threshold = int(arguments[arguments.index("migration_threshold") + 1]) * SECTOR
        found["cache.migration_threshold"] = f"{threshold}B"
    return found, int(match["sectors"]) * SECTOR


def counters_of(disk: Disk, host: Host) -> Callable[[], str] | None:
    """Return what reads the state of a dm-cache or bcache; None: the disk is neither."""
    if (disk.folder / "bcache" / "stats_total").is_dir():
        return lambda: state_of("bcache", disk.path, ())
    name = disk.folder / "dm" / "name"
    if not name.is_file():
        return None
    path = str(Path("/dev/mapper") / name.read_text().strip())
    if not STATUS.search(state_of("dm-cache", path, ())):
        return None
    return lambda: state_of("dm-cache", path, ())


# Simulated caches.

PAGES_MAX = 1 << 16  # of the largest cache in its sample: bounds memory and time
FOREVER = 1 << 62
BACKLOG_MAX = 1 << 16  # requests outstanding: bounds memory
FACTS = 1 << 12


@dataclass(frozen=True)
class Shadow(Real):
    """One simulated cache.

    Accesses are those to the sampled pages of a page cache, and what the kernel counts of its own.
    """

    policy: str | None  # of replacement; None for a cache of the kernel
    size_bytes: int
    page_bytes: int
    # On simulated devices, else None:
    mean_ns: float | None = None  # latency of the requests of the last interval
    ssd_written_bytes: int | None = None  # since the start
    disk_busy_ns: int | None = None  # of all disks together, since the start

    @property
    def name(self) -> str:
        """What distinguishes it from a cache of the same size."""
        return self.policy or self.kind


class PageCaches:
    """Caches of pages; all see the same sample."""

    def __init__(self, sizes: list[int], policies: list[str], page_bytes: int) -> None:
        """Create empty caches; raise UsageError for sizes or policies that cannot be sampled."""
        check({}, "always", policies)
        self.page_bytes = page_bytes
        largest = max(sizes) // page_bytes
        self.threshold = min(SPAN, SPAN * PAGES_MAX // max(largest, 1))
        self.rate = self.threshold / SPAN  # share of the pages that is simulated
        smallest = min(sizes) // page_bytes
        if smallest * self.rate < SMALL:
            raise UsageError(
                f"--cache-size {human_size(min(sizes))} is too small beside "
                f"{human_size(max(sizes))}: a cache needs {SMALL} pages of the sample; watch them "
                "separately, or take smaller pages (--page)"
            )
        if self.rate < 1:
            most = human_size(PAGES_MAX * page_bytes)
            refuse_unsampled(policies, f": watch caches of at most {most}")
        self._which = [(policy, size) for policy in policies for size in sizes]
        self._caches = [
            Cache("always", policy, max(round(size // page_bytes * self.rate), 1), page_bytes)
            for policy, size in self._which
        ]
        self._feed = Feed(self._caches)
        self._before = [(0, 0)] * len(self._caches)

    def take(self, rows: Requests) -> None:
        """Process requests."""
        for part in accesses(Sent("the stream", rows), self.page_bytes):
            assert isinstance(part, Accesses)
            numbers = part.numbers
            if self.rate < 1:
                numbers = numbers[hashed(numbers) < self.threshold]
            if len(numbers):
                self._feed.take(PageReads(numbers, self.page_bytes))

    def now(self) -> list[Shadow]:
        """Return the state of the caches; a new interval begins."""
        out = []
        for (policy, size), cache, before in zip(self._which, self._caches, self._before):
            served, hits = cache.served()
            recent = share(hits - before[1], served - before[0])
            out.append(Shadow("page", served, hits, recent, policy, size, self.page_bytes))
        self._before = [each.served() for each in self._caches]
        return out

    def setting(self) -> list[Any]:
        """Return what a saved state must agree with, as JSON: the page size and the caches."""
        return [self.page_bytes, [list(each) for each in self._which]]

    def state(self) -> Any:
        """Return the pages seen, all caches, and what they served before the interval."""
        return (
            self._feed.ids.numbers,
            tuple(each.state for each in self._caches),
            tuple(self._before),
        )

    def go_on(self, state: list[Any]) -> None:
        """Continue with saved caches, given as the leaves of `state`."""
        numbers, caches, before = regrown(self.state(), iter(state))
        self._feed.ids.of(numbers)
        for cache, saved in zip(self._caches, caches):
            cache.state = saved
        self._before = list(before)


class KernelCache:
    """A cache and its devices as in a simulation; time 0 is that of the first state or request.

    Between requests the machine's time stands at the last one: what would have happened since
    happens when the next one comes.
    """

    rate = 1.0  # share of the pages that is simulated

    def __init__(self, site: Scenario, volume_bytes: int, origin_ns: int) -> None:
        """Build the scenario's cache, empty, on a volume of that size."""
        self._site, self._volume_bytes, self._origin_ns = site, volume_bytes, origin_ns
        self.kind = site.cache.kind
        self.page_bytes = site.cache.page_bytes
        pages = site.cache.pages(volume_bytes)
        self.size_bytes = pages * self.page_bytes
        machine = building.machine(site, "open", volume_bytes, pages)
        self._run = Run(machine, FACTS)
        self._number = 0
        self._before = (0, 0)
        self._done = self._waited_ns = 0  # of the interval

    def take(self, rows: Requests) -> None:
        """Simulate up to the arrival of the last of these requests."""
        if not rows.rows:
            return
        end = int((rows.offset_bytes + rows.length_bytes).max())
        if end > self._volume_bytes:
            raise UsageError(
                f"a request ends at byte {end:,} of the disk, which has "
                f"{human_size(self._volume_bytes)}: specify its size (--volume)"
            )
        batch = batch_of(rows, 1.0, None, self._number, False, "the watched requests")
        now_ns = self._run.now_ns
        if int(batch.arrival_ns[0]) - self._origin_ns < now_ns:  # after a reboot
            self._origin_ns = int(batch.arrival_ns[0]) - now_ns
        self._number += rows.rows
        self._run.feed(batch._replace(arrival_ns=batch.arrival_ns - self._origin_ns))
        status = loops.FACTS_FULL
        while status != loops.NEEDS_BATCH:
            status, facts = self._run.advance(FOREVER)
            if facts is not None:
                self._count(facts)
        self._count(self._run.drained())
        if self._run.machine.source.outstanding > BACKLOG_MAX:
            raise UsageError(
                f"{BACKLOG_MAX:,} requests wait for the simulated disks, which are slower than the "
                "watched one: describe it, such as with --set backing.members=24"
            )

    def _count(self, facts: Any) -> None:
        self._done += len(facts.done_ns)
        self._waited_ns += int(np.sum(facts.done_ns - facts.issue_ns))

    def now(self) -> list[Shadow]:
        """Return the state of the cache; a new interval begins."""
        machine, now_ns = self._run.machine, self._run.now_ns
        totals = machine.below.slow.device.totals(now_ns)
        busy_ns = int(totals["busy_ns"]) if "busy_ns" in totals else None
        accesses, hits = (
            served(self.kind, self._run.cache_totals()) if self.kind in COUNTED else (0, 0)
        )
        recent = share(hits - self._before[1], accesses - self._before[0])
        mean_ns = self._waited_ns / self._done if self._done else None
        self._before = accesses, hits
        self._done = self._waited_ns = 0
        written_bytes = int(machine.below.fast.device.totals(now_ns)["bytes_written"])
        return [Shadow(self.kind, accesses, hits, recent, None, self.size_bytes, self.page_bytes,
                       mean_ns, written_bytes, busy_ns)]  # fmt: skip

    def setting(self) -> list[Any]:
        """Return what a saved state must agree with, as JSON: machine and size of the volume."""
        return [self._site.to_toml(), self._volume_bytes]

    def state(self) -> Any:
        """Return the machine and what is counted."""
        counted = self._origin_ns, self._number, *self._before, self._done, self._waited_ns
        return self._run.machine, counted

    def go_on(self, state: list[Any]) -> None:
        """Continue with a saved machine, given as the leaves of `state`."""
        machine, rest = regrown(self.state(), iter(state))
        self._run = Run(machine, FACTS)
        self._origin_ns, self._number, accesses, hits, self._done, self._waited_ns = rest
        self._before = accesses, hits


Simulated = PageCaches | KernelCache  # one or more caches that take the same requests


# The loop.

GAP_NS = 5 * SECOND_NS  # without requests at a restart: some may have been missed


@dataclass(frozen=True)
class Snapshot:
    """The state after an interval."""

    device: str
    seconds: float  # watched since the start, without the time between a kill and the next start
    interval_s: float
    recent: Counts  # of the interval
    total: Counts
    lost: int  # events, since the start
    rate: float  # share of the pages simulated in page caches
    shadows: list[Shadow]
    real: Real | None = None  # None: the device is no cache, or its counters are not known


class Watch:
    """Caches beside a device, and what was counted."""

    def __init__(self, device: str, caches: Sequence[Simulated], kept: Kept) -> None:
        """Start; go on from a saved state if there is one."""
        self.device, self.caches, self.kept = device, caches, kept
        self.recent, self.total = Counts.none(0, 0), Counts.none(0, 0)
        self.lost, self.watched_ns = 0, 0
        self.last_ns: int | None = None  # when the interval began
        self.seen_ns = 0  # until when pieces were taken
        self.real = Beside()
        self.status = kept.status()  # of the real cache, as last read
        self._counter = Counter()
        if found := kept.load(self._setting()):
            self._go_on(*found)

    def take(self, piece: Piece) -> None:
        """Process a piece.

        The first counters of a real cache begin an interval, so that it covers the same requests.
        """
        if self.last_ns is None:
            self.last_ns = _begin_ns(piece)
        self.seen_ns = piece.now_ns
        self.lost += piece.lost
        self._counter.add(piece.rows, self.recent)
        for each in self.caches:
            each.take(piece.rows)
        if piece.state:
            is_first = not self.real.kind
            self.real.read(piece.state)
            self.status = piece.state
            if is_first:
                self.snapshot(piece.now_ns)

    def join(self, piece: Piece) -> None:
        """Begin a new interval before the first piece after a restart, unless it follows at once.

        Without it, requests that were missed would be in the real cache's counters only.
        """
        if self.last_ns is not None and not 0 <= _begin_ns(piece) - self.seen_ns <= GAP_NS:
            self.snapshot(self.seen_ns)
            self.last_ns = None
            self.real.pause()

    def is_due(self, piece: Piece, every_s: float) -> bool:
        """Return whether the interval is over; beside a real cache it ends with its counters."""
        assert self.last_ns is not None
        is_over = piece.now_ns - self.last_ns >= every_s * SECOND_NS
        return is_over and (not self.real.kind or bool(piece.state))

    def snapshot(self, now_ns: int) -> Snapshot:
        """Return the state; a new interval begins."""
        assert self.last_ns is not None
        self.total.add(self.recent)
        passed_ns = max(now_ns - self.last_ns, 0)
        self.watched_ns += passed_ns
        state = Snapshot(
            self.device, self.watched_ns / SECOND_NS, passed_ns / SECOND_NS, self.recent,
            Counts(0, 0, self.total.vector.copy()), self.lost,
            min((each.rate for each in self.caches), default=1.0),
            [shadow for each in self.caches for shadow in each.now()], self.real.now(),
        )  # fmt: skip
        self.recent, self.last_ns = Counts.none(0, 0), now_ns
        return state

    def save(self) -> None:
        """Save the state."""
        about = {
            "lost": self.lost,
            "watched_ns": self.watched_ns,
            "last_ns": self.last_ns,
            "seen_ns": self.seen_ns,
            "real": self.real.state(),
            "status": self.status,
        }
        states = tuple(each.state() for each in self.caches)
        about["leaves"] = [[len(leaves(each)), outline(each)] for each in states]
        self.kept.save(self._setting(), about, (self.total.vector, self.recent.vector, states))

    def _setting(self) -> list[Any]:
        return [self.device, *(each.setting() for each in self.caches)]

    def _go_on(self, about: dict[str, Any], state: list[Any]) -> None:
        try:
            self.lost, self.watched_ns = int(about["lost"]), int(about["watched_ns"])
            self.last_ns, self.seen_ns = int(about["last_ns"]), int(about["seen_ns"])
            self.real.go_on(about["real"])
            self.total.vector[:], self.recent.vector[:] = state[:2]
            first = 2
            for each, (count, fields) in zip(self.caches, about["leaves"], strict=True):
                if fields != outline(each.state()):
                    raise ValueError("the fields of its machine are others now")
                each.go_on(state[first : first + count])
                first += count
        except (KeyError, ValueError, TypeError, IndexError, StopIteration, AttributeError):
            raise UsageError(
                f"--state {printable(self.kept.path)}: damaged, or of another version: remove it"
            ) from None


def watch(
    pieces: Iterable[Piece],
    device: str,
    caches: Sequence[Simulated],
    every_s: float,
    show: Callable[[Snapshot], None],
    seconds: float | None = None,
    kept: Kept | None = None,
) -> Snapshot | None:
    """Feed requests to the caches, and call `show` after each interval; return the last state.

    Intervals are those of the requests' clock.  Ends with the stream, after `seconds`, or with a
    signal.  The state is saved in `kept` now and then, and at the end; in between, what came is
    noted there.  None: there was no request.
    """
    kept = kept or Kept()
    with contextlib.closing(kept.journal):
        state = Watch(device, caches, kept)
        last: Snapshot | None = None
        begin_ns: int | None = None
        for each in kept.pieces():  # came after the saved state; its intervals were shown before
            state.take(each)
            if state.is_due(each, every_s):
                state.snapshot(each.now_ns)
        piece: Piece | None = None
        with on_signals() as stop:
            for piece in pieces:
                if begin_ns is None:
                    state.join(piece)
                    begin_ns = _begin_ns(piece)
                kept.journal.add(piece)
                state.take(piece)
                if state.is_due(piece, every_s):
                    last = state.snapshot(piece.now_ns)
                    show(last)
                if kept.is_due():
                    state.save()
                if stop.is_set() or (seconds and piece.now_ns - begin_ns >= seconds * SECOND_NS):
                    break
        if piece is not None and state.recent.requests:
            assert state.last_ns is not None
            last = state.snapshot(max(piece.now_ns, state.last_ns + 1))
            show(last)
        if last is not None:
            state.save()
        return last


def unseen(state: str) -> Piece:
    """Return a piece without requests at time 0, with the state of a real cache."""
    return Piece(no_requests(), 0, 0, state)


def compile_for(caches: Sequence[Simulated]) -> None:
    """Compile what caches need, by one request: the kernel's buffer holds some seconds only."""
    one = no_requests(1)
    one.length_bytes[:] = 4096
    one.complete_ns[:] = one.dispatch_ns[:] = UNKNOWN
    Counter().add(one, Counts.none(0, 0))
    for each in caches:
        each.take(one)


def _begin_ns(piece: Piece) -> int:
    """Return when a piece begins: with its first request, or when it ends."""
    return int(piece.rows.arrival_ns[0]) if piece.rows.rows else piece.now_ns


OPS = ("read", "write", "discard", "flush", "write_zeroes")
OF_REQUESTS = (  # name, field of the counts, text
    ("requests_total", "requests", "Requests queued to the device."),
    ("bytes_total", "bytes", "Bytes of these requests."),
    ("latency_seconds_sum", "latency_sum_ns",
     "Time from arrival to completion of all requests."),
    ("latency_seconds_count", "completed", "Completed requests."),
)  # fmt: skip
OF_SHADOWS = (  # name, field, text
    ("shadow_accesses_total", "accesses", "Sampled page accesses of a simulated cache."),
    ("shadow_hits_total", "hits", "Hits of these accesses."),
    ("shadow_hit_ratio", "hit_ratio", "Hit ratio over the last interval."),
    ("shadow_latency_seconds", "mean_ns",
     "Mean latency with a simulated cache over the last interval."),
    ("shadow_ssd_written_bytes_total", "ssd_written_bytes",
     "Bytes written to the simulated SSDs."),
    ("shadow_disk_busy_seconds_total", "disk_busy_ns",
     "Busy time of all simulated disks together."),
)  # fmt: skip
OF_REAL = (
    ("real_accesses_total", "accesses", "Hits and misses that the running cache counted."),
    ("real_hits_total", "hits", "Hits that the running cache counted."),
    ("real_hit_ratio", "hit_ratio", "Hit ratio of the running cache over the last interval."),
)


def prometheus(state: Snapshot | None) -> str:
    """Return a state in Prometheus' text format; nothing before the first interval."""
    return "" if state is None else exposition(_metrics(state), device=state.device)


def _metrics(state: Snapshot) -> Iterator[Metric]:
    for name, field, text in OF_REQUESTS:
        counts = map(int, state.total.of(field))
        yield name, text, [({"op": op}, _in_seconds(field, n)) for op, n in zip(OPS, counts)]
    yield "dropped_events_total", "Events that the kernel dropped.", state.lost
    yield "sampled_share", "Share of the pages simulated.", state.rate
    shadows = [
        ({"policy": each.name, "size_bytes": each.size_bytes, "page_bytes": each.page_bytes}, each)
        for each in state.shadows
    ]
    real = [({"kind": each.kind}, each) for each in (state.real,) if each]
    for labelled, table in ((shadows, OF_SHADOWS), (real, OF_REAL)):
        for name, field, text in table:
            yield name, text, [(to, _in_seconds(field, getattr(of, field))) for to, of in labelled]


def _in_seconds(field: str, value: Any) -> Any:
    return value / 1e9 if field.endswith("_ns") and value is not None else value
