"""The traces for judging policies; `is_tuned` marks those that were used for tuning.

Captures and lists come from $HYBRIDSIM_DATA (traces/, app-traces/); hot spots are generated from a
seed.  Policies are tuned on some traces, and results are reported for the others.

A hot spot: 1 GiB in regions of 1 MiB, 102 of them hot.  80 % of the requests go to hot regions,
with Zipf frequencies (exponent 0.9), the others to random addresses; 70 % are reads; most have 4
KiB.  They arrive at random times, 60 a second, which the default array can serve without a cache.
    steady   the hot regions stay the same
    moving   after each 1/200 of the trace one hot region is replaced by another
    scans    steady, and eight times a reader scans an eighth of the volume
    bursts   steady, and 200 bursts of writes to random addresses, each of 1/1000 of the requests
"""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from policy_curves import Moves

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import UNKNOWN, Requests, joined, no_requests
from hybridsim.traces.trace import Trace

KIB, MIB, SECOND = 1 << 10, 1 << 20, 10**9
PAGES = (4 * KIB, 64 * KIB, 256 * KIB)
NUMBERED = (512,)  # for lists in which a page is a number, not an address
SEEDS = (1, 2)  # the first is used for tuning
TIMED_REQUESTS = 400_000

REQUESTS = 400_000
VOLUME, REGION = 1 << 30, MIB
HOT_REGIONS, HOT_SHARE, ZIPF = 102, 0.8, 0.9
READ_SHARE = 0.7
SIZES, SIZE_SHARES = (4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB), (0.7, 0.15, 0.1, 0.05)
ARRIVALS_PER_S = 60
MOVES, SCANS, BURSTS = 200, 8, 200
SCAN_BYTES, SCAN_READ = VOLUME // 8, 256 * KIB
MARIADB_MOVES_S = (43.25, 103.25, 163.25, 223.25)  # jumps of the hot keys, each 60 s; +- 0.25 s
MARIADB_STRETCH = 150_000  # requests; the next jump is 160,000 requests later


@dataclass
class Rows:
    """Requests in memory with the interface of a trace."""

    name: str
    rows: Requests
    at_once: int = 65_536

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests in chunks."""
        for start in range(0, self.rows.rows, self.at_once):
            yield self.rows.between(start, start + self.at_once)

    def from_first(self) -> Iterator[Requests]:
        """Yield the requests in chunks, with unchanged times."""
        return self.chunks()


@dataclass(frozen=True)
class Traced:
    """A trace: the function that loads its requests, and the part for full timing."""

    name: str
    is_tuned: bool
    pages: tuple[int, ...]
    load: Callable[[], Requests]
    load_timed: Callable[[], Requests] | None = None  # requests for timing, if different
    mode: str = "open"
    moves: Callable[[], Moves] | None = None  # of its hot spot, if their times are known

    def requests(self, timed: bool = False) -> Rows:
        """Read or generate the requests; for timing only the first TIMED_REQUESTS."""
        if not timed:
            return Rows(self.name, self.load())
        rows = (self.load_timed or self.load)()
        return Rows(self.name, rows.between(0, TIMED_REQUESTS))


def digest(rows: Requests) -> str:
    """Return a hash of the columns that a replay uses."""
    result = hashlib.sha256()
    for column in (rows.arrival_ns, rows.op, rows.offset_bytes, rows.length_bytes):
        result.update(np.ascontiguousarray(column).data)
    return result.hexdigest()[:16]


def data_folder() -> Path:
    """Return the folder of the reference data."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("HYBRIDSIM_DATA", beside))


def all_traces(requests: int = REQUESTS) -> list[Traced]:
    """Return the available traces: those of the data folder if it exists, and generated ones."""
    folder = data_folder()
    result = []
    for name, file, is_tuned, pages, mode in (
        ("OLTP", "OLTP.lis.zst", True, NUMBERED, "closed"),
        ("P2", "P2.lis.zst", False, NUMBERED, "closed"),
        ("cloudPhysics", "cloudPhysicsIO.vscsi.zst", False, PAGES, "open"),
    ):
        path = folder / "traces" / file
        result += [Traced(name, is_tuned, pages, _from(path), mode=mode)] if path.exists() else []
    for name, is_tuned in (
        ("rocksdb_mixgraph", True),
        ("mariadb_moving_hot", True),
        ("pg_zipf", False),
        ("fileserver_newhot", False),
    ):
        table = folder / "app-traces" / name / f"{name}.csv.zst"
        if table.exists():
            capture = _from(*sorted(table.parent.glob("*.blktrace.*")))
            read = functools.partial(read_table, table)
            moves = mariadb_moves(read) if name == "mariadb_moving_hot" else None
            result.append(Traced(name, is_tuned, PAGES, read, capture, "think", moves))
    for seed in SEEDS:
        for kind in KINDS:
            make = functools.partial(hot_spot, kind, seed, requests)
            moves = functools.partial(hot_spot_moves, seed, requests) if kind == "moving" else None
            result.append(Traced(f"{kind} {seed}", seed == SEEDS[0], PAGES, make, moves=moves))
    return result


def _from(*paths: Path) -> Callable[[], Requests]:
    return lambda: joined(list(Trace.read(list(paths)).chunks()))


def read_table(path: Path) -> Requests:
    """Read the data requests of a table time_us,op,offset_bytes,length_bytes."""
    from backports import zstd

    window = {zstd.DecompressionParameter.window_log_max: 27}
    columns = [("time_us", "i8"), ("op", "S1"), ("offset", "i8"), ("length", "i8")]
    with zstd.open(path, "rt", options=window) as lines:
        table = np.loadtxt(lines, columns, delimiter=",", skiprows=1)
    table = table[np.isin(table["op"], (b"R", b"W"))]
    return _requests(table["time_us"] * 1000, table["op"] == b"W", table["offset"], table["length"])


def _requests(arrival_ns, is_write, offset, length) -> Requests:
    """Return requests without other attributes."""
    rows = no_requests(len(offset))
    return rows._replace(
        arrival_ns=np.asarray(arrival_ns, np.int64),
        op=np.where(is_write, np.uint8(Op.WRITE), np.uint8(Op.READ)),
        offset_bytes=np.asarray(offset, np.int64),
        length_bytes=np.asarray(length, np.int64),
        stream=np.full(rows.rows, UNKNOWN, np.int32),
        dispatch_ns=np.full(rows.rows, UNKNOWN, np.int64),
        complete_ns=np.full(rows.rows, UNKNOWN, np.int64),
    )


def mariadb_moves(read: Callable[[], Requests]) -> Callable[[], Moves]:
    """Return the jumps, at which all hot keys change: all later accesses are to new hot keys."""

    def moves() -> Moves:
        at_s = read().arrival_ns / SECOND
        requests = np.searchsorted(at_s, MARIADB_MOVES_S)
        return Moves(requests, np.zeros(len(requests), np.int64), 1 << 62, MARIADB_STRETCH)

    return moves


def hot_spot(kind: str, seed: int, requests: int = REQUESTS) -> Requests:
    """Return the generated requests of a hot spot; its duration grows with their number."""
    rng = generator(kind, seed)
    steps = MOVES if kind == "moving" else 0
    region = np.where(
        rng.random(requests) < HOT_SHARE,
        hot_regions(rng, requests, steps)[0],
        rng.integers(VOLUME // REGION, size=requests),
    )
    length = rng.choice(SIZES, size=requests, p=SIZE_SHARES)
    place = rng.integers(REGION // (4 * KIB), size=requests) * 4 * KIB
    offset = np.minimum(region * REGION + place, VOLUME - length)
    is_write = rng.random(requests) >= READ_SHARE
    arrival_ns = np.cumsum(rng.exponential(SECOND / ARRIVALS_PER_S, requests)).astype(np.int64)
    rows = _requests(arrival_ns, is_write, offset, length)
    more = KINDS[kind](rng, int(arrival_ns[-1]), requests)
    rows = joined([rows, *more])
    order = np.argsort(rows.arrival_ns, kind="stable")
    return Requests._make(column[order] for column in rows)


def generator(kind: str, seed: int) -> np.random.Generator:
    """Return the random number generator of a hot spot."""
    return np.random.Generator(np.random.PCG64([seed, list(KINDS).index(kind)]))


def hot_spot_moves(seed: int, requests: int) -> Moves:
    """Return the moves of the moving hot spot, by the same draws."""
    rng = generator("moving", seed)
    rng.random(requests)
    at, regions = np.array(hot_regions(rng, requests, MOVES)[1]).T
    return Moves(at, regions, REGION, requests // 5)


def hot_regions(rng, requests: int, moves: int):
    """Return a hot region for each request, while one of them is replaced `moves` times.

    The second value lists the moves: the first request after it, and the region if it was not hot.
    """
    weight = np.cumsum(np.arange(1, HOT_REGIONS + 1) ** -ZIPF)
    rank = np.searchsorted(weight / weight[-1], rng.random(requests))
    hot = rng.permutation(VOLUME // REGION)[:HOT_REGIONS]
    drawn, moved = np.empty(requests, np.int64), []
    for step in range(moves + 1):
        part = slice(step * requests // (moves + 1), (step + 1) * requests // (moves + 1))
        drawn[part] = hot[rank[part]]
        region = rng.integers(VOLUME // REGION)
        if step < moves and region not in hot:
            moved.append((part.stop, region))
        hot[step % HOT_REGIONS] = region
    return drawn, moved


def nothing(rng, span_ns: int, requests: int) -> list[Requests]:
    """Add nothing."""
    return []


def scans(rng, span_ns: int, requests: int) -> list[Requests]:
    """Return the requests of readers that scan a part of the volume each."""
    result = []
    for scan in range(SCANS):
        begin = rng.integers((VOLUME - SCAN_BYTES) // SCAN_READ) * SCAN_READ
        offset = begin + np.arange(0, SCAN_BYTES, SCAN_READ)
        at_ns = (scan + 0.5) / SCANS * span_ns + np.arange(len(offset)) * SECOND / 50
        reads = np.zeros(len(offset), np.bool_)
        result.append(_requests(at_ns, reads, offset, np.full(len(offset), SCAN_READ)))
    return result


def bursts(rng, span_ns: int, requests: int) -> list[Requests]:
    """Return bursts of writes to random addresses, 1,000 a second."""
    result = []
    count = max(1, requests // 1000)
    for burst in range(BURSTS):
        at_ns = (burst + 0.5) / BURSTS * span_ns + np.arange(count) * SECOND / 1000
        offset = rng.integers(VOLUME // (8 * KIB), size=count) * 8 * KIB
        writes = np.ones(count, np.bool_)
        result.append(_requests(at_ns, writes, offset, np.full(count, 8 * KIB)))
    return result


KINDS = {"steady": nothing, "moving": nothing, "scans": scans, "bursts": bursts}
