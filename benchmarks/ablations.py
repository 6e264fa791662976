"""Ablation of the learned policy: each part is disabled in turn, on the cells it was tuned on.

    HYBRIDSIM_DATA=shared/data python benchmarks/ablations.py [--results FILE] [--part NAME ...]

A part is disabled in the source of a copy of the package (policy_changed.py).

Output per part: the estimated disk time at the default price relative to the best baseline
(geometric mean of the cells); hits relative to the best baseline, in points (mean), at that price
and with free writes.  Results are stored like those of policies.py, and may share their file.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from policy_changed import Patch, keep, rows_of
from policy_table import BASELINES, FREE, LEARNED, Cell, Row, baselines, disk_ns, hit_ratio, mean
from policy_traces import all_traces

KIB = 1024
CELLS = (  # trace, page, shares: twelve of those tuned on
    ("OLTP", 512, (0.01, 0.05, 0.1)),
    ("rocksdb_mixgraph", 4 * KIB, (0.05,)),
    ("rocksdb_mixgraph", 64 * KIB, (0.01, 0.1)),
    ("mariadb_moving_hot", 4 * KIB, (0.05,)),
    ("mariadb_moving_hot", 64 * KIB, (0.01, 0.1)),
    ("steady 1", 64 * KIB, (0.05,)),
    ("moving 1", 64 * KIB, (0.01, 0.1)),
)
WHOLE = "all of it"
SAMPLED = ("reuse.py", "share = ALL if clock < EARLY else self.state[SHARE]")
LATER = (*SAMPLED, "share = self.state[SHARE]")
PARTS: dict[str, list[Patch]] = {
    WHOLE: [],
    "no rent: room costs nothing": [("reuse.py", "RENT_WEIGHT = 1 / 64", "RENT_WEIGHT = 0.0")],
    "a sample of 64 requests, also at first": [
        ("reuse.py", "SHARE_MAX = ALL // 2", "SHARE_MAX = ALL // 64"), LATER,
    ],
    "a sample of 16 requests, also at first": [
        ("reuse.py", "SHARE_MAX = ALL // 2", "SHARE_MAX = ALL // 16"), LATER,
    ],
    "every request sampled": [(*SAMPLED, "share = ALL")],
    "all pages of a sampled request": [("reuse.py", "fours = (pages + 3) >> 2", "fours = 1")],
    "a page that was away for long is the same one": [
        ("habits.py", "MUCH_LONGER = 32", "MUCH_LONGER = 1 << 10"),
    ],
    "a hit saves the read only, not the fill too": [
        ("reuse.py", "return min(self.value[group], self.price())", "return 0.0"),
    ],
    "no optimism while places lie idle": [
        (
            "policy.py",
            "if not full or (self.state[TAKEN] < len(self.held) and not is_new and not is_held):",
            "if False:",
        ),
        ("policy.py", "if self.state[HELD] == 0:\n            return True", "if not full:\n"
         "            return True"),
    ],
    "8 pages drawn instead of 32": [("policy.py", "DRAWN = 32", "DRAWN = 8")],
    "a fill costs a read also where the request has all of the page": [
        ("reuse.py", "self.state[READING] * cut / (last - first + 1)", "self.state[READING]"),
    ],
    "pages touched together need not leave together": [
        ("policy.py", "if apart < TOGETHER and", "if False and"),
    ],
    "each page of a request counts as a whole read": [
        ("reuse.py", "1.0 / max(missed + others, 1) + self.kept[touch]", "1.0 + self.kept[touch]"),
    ],
    "not how long the region was at rest": [
        ("habits.py", "self.state[REST] = self.rest(clock, self.places[place].touched)",
         "self.state[REST] = 0"),
        ("habits.py", "return pace >> PACE_BITS", "return 0"),
    ],
    "a region's last gap, not its usual one": [
        ("habits.py", "pace + ((gap - pace) >> PACE_BITS)", "gap"),
    ],
    "no coarser classes behind those that have seen little": [
        ("reuse.py", "PRIOR = 8 * 16.0", "PRIOR = 1e-3"),
    ],
    "unknown classes trusted": [
        ("reuse.py", "self.value[group] * (known / (known + DOUBT))", "self.value[group]"),
    ],
    "not whether the last gap was unusual": [
        ("habits.py", "turn = int(gap >= mean - SHORTER) + int(gap > mean + LONGER)", "turn = 1"),
    ],
    "pages of all sizes of request have their class's worth": [
        ("reuse.py", "self.part[size] = self.saved[size] / self.expected[size]",
         "self.part[size] = 1.0"),
    ],
    "samples still at an age count wholly": [
        ("reuse.py", "at_risk = 0.5 * (reached[age] + touched[age] + reached[age + 1])",
         "at_risk = 1.0 * reached[age]"),
    ],
    "a class's samples are never halved": [
        ("reuse.py", "FORGET = 256 * WEIGHT", "FORGET = 1 << 30"),
    ],
}  # fmt: skip


def judged(
    result: dict[Cell, dict[str, Row]], whole: dict[Cell, dict[str, Row]]
) -> tuple[Any, ...]:
    """Return disk time, hits, and hits with free writes, relative to the best baselines."""
    best = {cell: baselines(rows) for cell, rows in whole.items()}
    best_hits = {cell: max(map(hit_ratio, rows)) for cell, rows in best.items()}
    best_ns = {cell: min(map(disk_ns, rows)) for cell, rows in best.items()}

    def points(policy: str) -> float:
        gains = [hit_ratio(result[at][policy]) - best_hits[at] for at in result]
        return 100 * float(np.mean(gains))

    time = mean([disk_ns(rows[LEARNED]) / best_ns[at] for at, rows in result.items()])
    return time, points(LEARNED), points(FREE)


def table(parts: list[str], results: Path, show: Callable[[str], None] = print) -> None:
    """Print the table, each line as soon as it is complete."""
    with tempfile.TemporaryDirectory() as folder:
        traces = Path(folder)
        known = {each.name: each for each in all_traces()}
        keep(traces, [(known[name], *cell) for name, *cell in CELLS if name in known])
        whole = rows_of(PARTS[WHOLE], traces, results, BASELINES | {LEARNED, FREE})
        show(f"| {len(whole)} cells | disk time | hits | hits, writes free |\n|---|---|---|---|")
        for part in parts:
            result = whole
            if part != WHOLE:
                result = rows_of(PARTS[part], traces, results, {LEARNED, FREE})
            time, hits, free = judged(result, whole)
            show(f"| {part} | {time:.3f} | {hits:+.1f} | {free:+.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("policies.jsonl"))
    parser.add_argument("--part", action="append", choices=list(PARTS), help="these only")
    arguments = parser.parse_args()
    table(arguments.part or list(PARTS), arguments.results.absolute())


if __name__ == "__main__":
    main()
