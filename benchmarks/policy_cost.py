"""What an access costs: the CPU time of policies beside LRU's, with a million ids and with more.

    python benchmarks/policy_cost.py [--ids N ...] [--policies NAME ...] [--rounds N] [--quick]

Single pages are read at random, the number of a page a third power of a uniform one, in shuffled
order, by the loop of `hybridsim hits`; the cache holds a tenth of the pages that are touched.  All
policies take turns on the same accesses, so the ratio holds on a busy machine, the times do not.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from hybridsim.requests.pages import Accesses, Ids, PageReads
from hybridsim.studies.hits import Cache

PAGE = 4096
PART = 1 << 15  # accesses
ACCESSES_PER_ID = 3
TOUCHED = 0.72  # share of the numbers that are touched by so many accesses
PAIRS = {"learned": ("learned", "learned"), "larc": ("larc", "lru")}  # others admit every page
PEER = "lru"


def accesses(ids: int) -> Iterator[Accesses]:
    """Yield accesses to about as many distinct pages."""
    rng = np.random.default_rng(3)
    space, number = int(ids / TOUCHED), ACCESSES_PER_ID * ids
    numbers = rng.permutation(space)[(space * rng.random(number) ** 3).astype(np.int64)]
    for first in range(0, number, PART):
        yield PageReads(numbers[first : first + PART], PAGE).as_requests()


def access_ns(policy: str, parts: list[tuple[np.ndarray, Accesses]], ids: int) -> float:
    """Return the CPU time of an access in ns."""
    cache = Cache(*PAIRS.get(policy, ("always", policy)), ids // 10, PAGE)
    begun, first = time.thread_time_ns(), 0
    for page_ids, part in parts:
        cache.take(page_ids, part, first, ids)
        first += len(page_ids)
    return (time.thread_time_ns() - begun) / first


def measured(ids: int, policies: list[str], rounds: int) -> dict[str, float]:
    """Return the least time of each policy in some rounds in turn."""
    known = Ids()
    parts = [(known.of(part.numbers), part) for part in accesses(ids)]
    best = dict.fromkeys(policies, float("inf"))
    for _ in range(rounds):
        for policy in policies:
            best[policy] = min(best[policy], access_ns(policy, parts, known.count))
    return best


def main() -> None:
    """Print a row for each number of ids and policy."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ids", type=int, nargs="+", default=[1_000_000, 7_000_000])
    parser.add_argument("--policies", nargs="+", default=["learned"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="ids / 100")
    arguments = parser.parse_args()
    policies = [PEER, *arguments.policies]
    measured(10_000, policies, 1)  # compiles
    print("| ids | policy | ns an access | LRU's | ratio |\n|---|---|---|---|---|")
    for ids in arguments.ids:
        best = measured(ids // 100 if arguments.quick else ids, policies, arguments.rounds)
        for policy in arguments.policies:
            ratio = best[policy] / best[PEER]
            print(f"| {ids:,} | {policy} | {best[policy]:.0f} | {best[PEER]:.0f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
