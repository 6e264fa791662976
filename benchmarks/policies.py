"""The yardstick of cache policies: traces x page sizes x cache sizes x policies, in one table.

    HYBRIDSIM_DATA=shared/data python benchmarks/policies.py [--timed] [--all] [--json]
        [--trace NAME ...] [--page BYTES ...] [--share 0.1 ...] [--policy NAME ...]
        [--budget 2% ...] [--anchors [same]] [--results FILE] [--markdown] [--figure FILE]

Without --timed: hits without devices of all cells, with Belady's bound and a bound for every price
of writes (policy_bound.py).  With --timed also the whole machine, with pages of 64 KiB, a cache of
10 % and the traces that were not used for tuning; --all for all cells.  With --budget also all
policies under that write budget, without devices (hybridsim/caches/policies/write_budget.py).  With
--anchors also libCacheSim's policies (policy_anchors.py).

Traces used for tuning: OLTP, rocksdb_mixgraph, mariadb_moving_hot and hot spots with seed 1.  The
summary covers the others: P2, cloudPhysics, pg_zipf, fileserver_newhot, hot spots with seed 2.
Pages have 4, 64 and 256 KiB; in OLTP and P2 they are numbers, and count as 512 bytes.  With --timed
only the first 400,000 requests are replayed: OLTP and P2 at a depth of 32, application captures
with the think times of their blktrace part, the others at their arrivals.  policy_table.py
describes the columns.

Results are kept in FILE by the hash of all their inputs: trace, page, size, policy, parameters,
source code.  A second run computes only the missing ones.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from policy_anchors import compared
from policy_kept import Kept
from policy_runs import ANCHORS, POLICIES, SAME_ANCHORS, SHARES, cached, systems, timed
from policy_table import BASELINES, compact, disk_ns, lines, summary
from policy_traces import Traced, all_traces

RESULTS = Path("policies.jsonl")
COMMON_PAGE = 65_536  # supported by caches of every kind
TIMED_PAGES, TIMED_SHARES = (COMMON_PAGE, 512), (0.1,)


def rows(wanted: argparse.Namespace, traces: list[Traced]) -> Iterator[dict[str, Any]]:
    """Yield all requested results, those of level "hits" first."""
    kept = Kept(wanted.results)
    known = [*POLICIES, *{"newest": ANCHORS, "same": SAME_ANCHORS, "": []}[wanted.anchors]]
    chosen = [each for each in known if not wanted.policy or each.name in wanted.policy]
    for traced, page in cells(wanted, traces):
        begin = time.perf_counter()
        shares, budgets = tuple(wanted.share or SHARES), tuple(wanted.budget or ())
        yield from cached(traced, page, shares, chosen, kept, budgets)
        progress(f"{traced.name} {page}: {time.perf_counter() - begin:.1f} s")
    if not wanted.timed:
        return
    machines = [each for each in chosen if not (each.is_offline or each.library)]
    machines += [each for each in systems() if not wanted.policy or each.name in wanted.policy]
    for traced, page in cells(wanted, traces):
        included = wanted.all or wanted.trace or not traced.is_tuned
        if not included or not (wanted.all or wanted.page or page in TIMED_PAGES):
            continue
        for share in wanted.share or (SHARES if wanted.all else TIMED_SHARES):
            begin = time.perf_counter()
            able = [each for each in machines if not each.toml or page == COMMON_PAGE]
            yield from timed(traced, page, share, able, kept)
            took_s = time.perf_counter() - begin
            progress(f"{traced.name} {page} {share:.0%} timed: {took_s:.1f} s")


def cells(wanted: argparse.Namespace, traces: list[Traced]) -> Iterator[tuple[Traced, int]]:
    """Yield the requested traces and page sizes."""
    for traced in traces:
        if wanted.trace and traced.name not in wanted.trace:
            continue
        for page in traced.pages:
            if not wanted.page or page in wanted.page:
                yield traced, page


def progress(text: str) -> None:
    """Print the progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command-line arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--timed", action="store_true", help="also under full timing")
    parser.add_argument("--all", action="store_true", help="all cells under full timing")
    parser.add_argument("--trace", action="append", help="these only")
    parser.add_argument("--page", action="append", type=int, help="bytes; these only")
    parser.add_argument("--share", action="append", type=float, help="of the pages; these only")
    parser.add_argument("--policy", action="append", help="these only")
    parser.add_argument("--budget", action="append", help="also with this write budget")
    parser.add_argument(
        "--anchors", nargs="?", choices=("newest", "same"), const="newest", default="",
        help="also policies of libCacheSim: those that are missing here, or those of the same name",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON lines")
    parser.add_argument(
        "--figure", type=Path, help="draw disk times, those with timing if there are any"
    )
    parser.add_argument("--markdown", action="store_true", help="print the short table")
    return parser.parse_args(arguments)


def draw(result: list[dict[str, Any]], file: Path) -> None:
    """Draw the disk time of policies over that of the best baseline, in cells not tuned on."""
    from hybridsim.show import plot

    level = "timed" if any(row["level"] == "timed" for row in result) else "hits"
    shown = [
        {**row, "disk_ns": disk_ns(row)}
        for row in result
        if row["level"] == level and not row["is_tuned"]
    ]
    plot.policies(shown, baselines=sorted(BASELINES)).savefig(file)


def main(arguments: list[str] | None = None, traces: list[Traced] | None = None) -> None:
    """Compute the missing results, and print the table."""
    wanted = parsed(arguments)
    result = list(rows(wanted, all_traces() if traces is None else traces))
    if wanted.figure:
        draw(result, wanted.figure)
    if wanted.json:
        print("\n".join(json.dumps(row) for row in result))
    elif wanted.markdown:
        print("\n".join(compact(result)))
    else:
        print("\n".join([*lines(result), *summary(result), *compared(result)]))


if __name__ == "__main__":
    main()
