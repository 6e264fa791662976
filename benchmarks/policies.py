"""The yardstick of cache policies: traces x page sizes x cache sizes x policies, in one table.

    HYBRIDSIM_DATA=shared/data python benchmarks/policies.py [--timed] [--all] [--json]
        [--trace NAME ...] [--page BYTES ...] [--share 0.1 ...] [--policy NAME ...]
        [--budget 2% ...] [--results FILE] [--markdown] [--figure FILE]

Without --timed: hits without devices of all cells, with Belady's bound and a bound for every price
of writes (policy_bound.py).  With --timed also the whole machine, of pages of 64 KiB, a cache of
10 % and the traces that nothing was tuned on; --all for all cells.  With --budget also without
devices, all policies held to that write budget (hybridsim/caches/policies/write_budget.py).

What was tuned on: OLTP, rocksdb_mixgraph, mariadb_moving_hot and hot spots of seed 1.  The summary
is of the others: P2, cloudPhysics, pg_zipf, fileserver_newhot, hot spots of seed 2.  Pages are of
4, 64 and 256 KiB; in OLTP and P2 they are numbers, and stand for 512 bytes.  Under timing the first
400,000 requests count: OLTP and P2 at a depth of 32, application captures with the think times of
their blktrace part, the others as they arrive.  policy_table.py says what each column means.

Results are kept in FILE, by the hash of all that they depend on: trace, page, size, policy,
parameters, source code.  A second run adds what is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policy_kept import Kept
from policy_runs import POLICIES, SHARES, cached, systems, timed
from policy_table import BASELINES, compact, disk_ns, lines, summary
from policy_traces import Traced, all_traces

RESULTS = Path("policies.jsonl")
COMMON_PAGE = 65_536  # that caches of every kind can have
TIMED_PAGES, TIMED_SHARES = (COMMON_PAGE, 512), (0.1,)


def rows(said: argparse.Namespace, traces: list[Traced]) -> Iterator[dict[str, Any]]:
    """Yield all results that were asked for, of level hits first."""
    kept = Kept(said.results)
    chosen = [each for each in POLICIES if not said.policy or each.name in said.policy]
    for traced, page in cells(said, traces):
        begin = time.perf_counter()
        shares, budgets = tuple(said.share or SHARES), tuple(said.budget or ())
        yield from cached(traced, page, shares, chosen, kept, budgets)
        tell(f"{traced.name} {page}: {time.perf_counter() - begin:.1f} s")
    if not said.timed:
        return
    machines = [each for each in chosen if not each.is_offline]
    machines += [each for each in systems() if not said.policy or each.name in said.policy]
    for traced, page in cells(said, traces):
        asked = said.all or said.trace or not traced.is_tuned
        if not asked or not (said.all or said.page or page in TIMED_PAGES):
            continue
        for share in said.share or (SHARES if said.all else TIMED_SHARES):
            begin = time.perf_counter()
            able = [each for each in machines if not each.toml or page == COMMON_PAGE]
            yield from timed(traced, page, share, able, kept)
            tell(f"{traced.name} {page} {share:.0%} timed: {time.perf_counter() - begin:.1f} s")


def cells(said: argparse.Namespace, traces: list[Traced]) -> Iterator[tuple[Traced, int]]:
    """Yield traces and page sizes."""
    for traced in traces:
        if said.trace and traced.name not in said.trace:
            continue
        for page in traced.pages:
            if not said.page or page in said.page:
                yield traced, page


def tell(text: str) -> None:
    """Say how far it is, beside the table."""
    print(text, file=sys.stderr, flush=True)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timed", action="store_true", help="also under full timing")
    parser.add_argument("--all", action="store_true", help="all cells under full timing")
    parser.add_argument("--trace", action="append", help="these only")
    parser.add_argument("--page", action="append", type=int, help="bytes; these only")
    parser.add_argument("--share", action="append", type=float, help="of the pages; these only")
    parser.add_argument("--policy", action="append", help="these only")
    parser.add_argument("--budget", action="append", help="a write budget that all are held to")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON lines")
    parser.add_argument("--figure", type=Path, help="draw disk times, measured where they are")
    parser.add_argument("--markdown", action="store_true", help="print the short table")
    return parser.parse_args(arguments)


def draw(result: list[dict[str, Any]], file: Path) -> None:
    """Draw the disk time of policies in cells not tuned on, over the best baseline's there."""
    from hybridsim.show import plot

    level = "timed" if any(row["level"] == "timed" for row in result) else "hits"
    shown = [
        {**row, "disk_ns": disk_ns(row)}
        for row in result
        if row["level"] == level and not row["is_tuned"]
    ]
    plot.policies(shown, baselines=sorted(BASELINES)).savefig(file)


def main(arguments: list[str] | None = None, traces: list[Traced] | None = None) -> None:
    """Run what is missing, and print the table."""
    said = parsed(arguments)
    result = list(rows(said, all_traces() if traces is None else traces))
    if said.figure:
        draw(result, said.figure)
    if said.json:
        print("\n".join(json.dumps(row) for row in result))
    elif said.markdown:
        print("\n".join(compact(result)))
    else:
        print("\n".join([*lines(result), *summary(result)]))


if __name__ == "__main__":
    main()
