"""How often each printed interval holds the truth: what is promised, and what is found.

    HYBRIDSIM_DATA=... python benchmarks/coverage.py [replay] [warm] [real] [fit] [curves]
                                            [--cases 210] [--first 5000] [--disks 200] [--json]

    replay  replay, its money, advise, size, sweep, compare, on generated loads
            (coverage_replays.py)
    warm    the time until a cache is warm, the same
    real    the model's error on all real runs, leaving out one experiment (coverage_models.py)
    fit     the parameters of simulated disks, arrays and fio results, --disks of each
    curves  mrc --sample, by policy and rate

A promise of 90 % is kept by 87 to 97 % of the cases, one of 95 % by 90 to 98 %; the forecast on
loads without drift and `size` promise at least that.  The forecast on captured traces is judged by
decisions.py, a thinned capture by thinned.py.  Without a name: all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

from coverage_models import Row, curves, fitted, real
from coverage_replays import JUDGED, replayed, warmed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="*", help="replay, warm, real, fit, curves")
    parser.add_argument("--cases", type=int, default=210)
    parser.add_argument("--first", type=int, default=JUDGED, help="seed of the first load")
    parser.add_argument("--disks", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    kinds: dict[str, Callable[[], Iterator[Row]]] = {
        "replay": lambda: replayed(options.cases, options.first),
        "warm": lambda: warmed(options.cases),
        "real": real,
        "fit": lambda: fitted(options.disks),
        "curves": curves,
    }
    for name in options.groups:
        if name not in kinds:
            parser.error(f"no group {name}: {', '.join(kinds)}")
    rows = [row for name in options.groups or kinds for row in kinds[name]()]
    if options.json:
        print(json.dumps([asdict(row) | {"found": row.found, "met": row.met} for row in rows],
                         indent=1))  # fmt: skip
        return
    print(f"{'interval':72}{'promised':>9}{'found':>8}{'cases':>7}{'half-width':>12}{'met':>5}")
    for row in rows:
        met = "yes" if row.met else "no"
        print(f"{row.what:72}{row.promised:>9.0%}{row.found:>8.1%}{row.cases:>7}"
              f"{row.half_width:>12.3f}{met:>5}")  # fmt: skip
    print(f"{sum(row.met for row in rows)} of {len(rows)} kept")


if __name__ == "__main__":
    main()
