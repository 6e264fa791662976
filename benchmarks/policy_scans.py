"""What a one-off scan costs: hits of the load's own accesses after it, by policy.

    python benchmarks/policy_scans.py [--tuned] [--load NAME ...] [--policy NAME ...] [--results F]

Three loads (a hot spot, and policy_unseen.py's database and workstation) are joined by six readers,
each of which reads once what nothing else touches: a quarter of what the load does, in requests of
128 KiB (128 sectors), three to each request of the load.  Printed are hit ratios of windows after
the end of a scan, the mean of the six; the best baseline is the one with the most hits in the
20,000 accesses after.  The goal: no more than half a point behind it from 2,000 accesses on.

The seeds that judge are looked at once for a change of a policy; causes are found with --tuned.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from policy_runs import POLICIES, Policy
from policy_traces import KIB, Rows, hot_spot
from policy_unseen import JUDGED_SEEDS, SECTOR, TUNED_SEEDS, desktop, ledger

from hybridsim.foundation.arrays import Ints
from hybridsim.requests.pages import Ids, accesses, split
from hybridsim.requests.rows import Requests
from hybridsim.studies.hits import Cache

SCANS_AT = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)  # share of the load's requests
SCANNED, PER_REQUEST = 0.25, 3
ALIGNED = 1 << 30
SHARES = (0.05, 0.1, 0.2)
WINDOW, WINDOWS = 2_000, 10  # page accesses
MARGIN = 0.5  # points
LOADS: dict[str, tuple[Callable[[int], Requests], tuple[int, ...], int]] = {
    "hot spot": (lambda seed: hot_spot("steady", seed, 250_000), (4 * KIB, 64 * KIB), 128 * KIB),
    "ledger": (lambda seed: ledger(seed, copies=False), (4 * KIB, 64 * KIB), 128 * KIB),
    "desktop": (lambda seed: desktop(seed, reads_all=False), (512,), 128 * SECTOR),
}


class Scanned(NamedTuple):
    """A load with scans."""

    rows: Requests
    ends: Ints  # number of the first request after each scan
    begins: Ints
    pages: dict[int, int]  # distinct ones of the load alone, by page size


def scanned(load: Requests, sizes: tuple[int, ...], read_bytes: int) -> Scanned:
    """Return the load with its scans."""
    pages = {size: distinct(load, size) for size in sizes}
    largest = max(sizes)
    reads = max(int(SCANNED * pages[largest] * largest) // read_bytes, 1)
    last = int((load.offset_bytes + load.length_bytes).max())
    begin = -(-last // ALIGNED) * ALIGNED
    order, ends, begins = [np.arange(load.rows)], [], []
    places: list[Ints] = [load.offset_bytes]
    for number, share in enumerate(SCANS_AT):
        first = int(share * load.rows)
        each = np.arange(reads)
        order.append(first + each / PER_REQUEST)
        places.append(begin + (number * reads + each) * read_bytes)
        begins.append(first + 1 + number * reads)
        ends.append(first + (number + 1) * reads + -(-reads // PER_REQUEST))
    sequence = np.argsort(np.concatenate(order), kind="stable")
    added = len(sequence) - load.rows
    more = {"offset_bytes": np.concatenate(places)[load.rows :]}
    more["length_bytes"] = np.full(added, read_bytes)
    columns = []
    for name, column in load._asdict().items():
        tail = more.get(name, np.zeros(added, column.dtype)).astype(column.dtype)
        columns.append(np.concatenate([column, tail])[sequence])
    rows = Requests._make(columns)
    rows.arrival_ns[:] = np.maximum.accumulate(rows.arrival_ns)
    return Scanned(rows, np.array(ends), np.array(begins), pages)


def distinct(load: Requests, page_bytes: int) -> int:
    """Return the number of distinct pages."""
    ids = Ids()
    for part in accesses(Rows("", load), page_bytes):
        ids.of(part.numbers)
    return ids.count


def curve(trace: Scanned, page_bytes: int, share: float, policy: Policy) -> list[float]:
    """Return the hit ratio of the windows after a scan, and of as many accesses before one."""
    pages = max(int(share * trace.pages[page_bytes]), 1)
    cache = Cache(
        policy.admission, policy.replacement, pages, page_bytes, 0, dict(policy.parameters)
    )
    size = trace.rows
    last = (size.offset_bytes + size.length_bytes - 1) // page_bytes
    ends = np.cumsum(last - size.offset_bytes // page_bytes + 1)
    before = np.concatenate([[0], ends])
    windows = np.arange(-1, WINDOWS + 1) * WINDOW
    windows[0] = -WINDOWS * WINDOW
    cuts = [np.searchsorted(before, before[at] + windows[windows >= 0]) for at in trace.ends] + [
        np.searchsorted(before, [before[at] - WINDOWS * WINDOW, before[at]]) for at in trace.begins
    ]
    marks = np.unique(np.concatenate([*cuts, [size.rows]]))
    served = served_at(cache, trace.rows, page_bytes, marks)
    counts = np.zeros((WINDOWS + 1, 2))
    for at, mine in enumerate(cuts):
        each = np.diff([served[int(mark)] for mark in mine], axis=0)
        rows = slice(0, 1) if at >= len(trace.ends) else slice(1, None)
        counts[rows] += each
    return [float(each) for each in counts[:, 1] / counts[:, 0]]


def served_at(
    cache: Cache, rows: Requests, page_bytes: int, marks: Ints
) -> dict[int, tuple[int, int]]:
    """Return accesses and hits before each of these requests."""
    result, ids, first, request = {}, Ids(), 0, 0
    for whole in accesses(Rows("", rows), page_bytes):
        part = whole
        while len(part.ends):
            result[request] = cache.served()
            ahead = marks[np.searchsorted(marks, request, "right") :]
            count = int(ahead[0]) - request if len(ahead) else len(part.ends)
            mine, part = split(part, count)
            numbers = ids.of(mine.numbers)
            cache.take(numbers, mine, first, ids.capacity)
            first, request = first + len(numbers), request + len(mine.ends)
    result[request] = cache.served()
    return result


def cells(wanted: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the curves of all policies."""
    chosen = [each for each in POLICIES if not (wanted.policy or each.is_offline)]
    chosen += [each for each in POLICIES if each.name in (wanted.policy or ())]
    for name, (make, sizes, read_bytes) in LOADS.items():
        if wanted.load and name not in wanted.load:
            continue
        seed = TUNED_SEEDS[0] if wanted.tuned else JUDGED_SEEDS[0]
        trace = scanned(make(seed), sizes, read_bytes)
        for page in sizes:
            for share in SHARES:
                for policy in chosen:
                    about = {"load": name, "seed": seed, "page_bytes": page, "share": share}
                    yield about | {
                        "policy": policy.name,
                        "is_baseline": policy.baseline,
                        "curve": curve(trace, page, share, policy),
                    }


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a line per cell and learned policy: points behind the best baseline."""
    yield (
        f"{'load':10}{'page':>7}{'size':>5} {'policy':18}{'best baseline':15}"
        f"{'before':>8}{'0-2k':>7}{'2-4k':>7}{'4-20k':>7}   hits before, 2-20k"
    )
    by_cell: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["load"], row["page_bytes"], row["share"])
        by_cell.setdefault(key, []).append(row)
    behind: dict[str, list[bool]] = {}
    for (load, page, share), mine in by_cell.items():
        baselines = [row for row in mine if row["is_baseline"]]
        best = max(baselines, key=lambda row: np.mean(row["curve"][1:]))
        for row in mine:
            if row["is_baseline"] and row["policy"] != "LARC":
                continue
            points = [parts(row["curve"]), parts(best["curve"])]
            before, *after = (100 * (b - a) for a, b in zip(*points))
            behind.setdefault(row["policy"], []).append(max(after[1:]) <= MARGIN)
            yield (
                f"{load:10}{page:>7}{share:>5.0%} {row['policy']:18}{best['policy']:15}"
                f"{before:>8.1f}{after[0]:>7.1f}{after[1]:>7.1f}{after[2]:>7.1f}"
                f"   {row['curve'][0]:.1%}, {np.mean(row['curve'][2:]):.1%}"
            )
    for policy, met in behind.items():
        yield f"{policy}: within {MARGIN} points from {WINDOW} on in {sum(met)} of {len(met)} cells"


def parts(curve: list[float]) -> list[float]:
    """Return the hit ratio before a scan, and in three parts after it."""
    return [curve[0], curve[1], curve[2], float(np.mean(curve[3:]))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tuned", action="store_true", help="the seeds for finding causes")
    parser.add_argument("--load", action="append", choices=list(LOADS), help="these only")
    parser.add_argument("--policy", action="append", help="these only")
    parser.add_argument("--results", type=Path, help="write the curves as JSON lines")
    wanted = parser.parse_args()
    rows = list(cells(wanted))
    if wanted.results:
        wanted.results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()
