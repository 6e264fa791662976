"""Ablation of the learned policy: each part is disabled in turn, on the cells it was tuned on.

    HYBRIDSIM_DATA=shared/data python benchmarks/ablations.py [--results FILE] [--part NAME ...]

A part is disabled in the source: a separate process runs a copy of the package with some lines
replaced.  Machine code is cached by source, so the copies do not share it.  A line that is missing
or not unique is an error: update its patch below.

Output per part: the estimated disk time at the default price relative to the best baseline
(geometric mean of the cells); hits relative to the best baseline, in points (mean), at that price
and with free writes.  Results are stored like those of policies.py, and may share their file.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from policy_kept import PACKAGE, Kept
from policy_runs import POLICIES, cached
from policy_table import (
    BASELINES,
    FREE,
    LEARNED,
    Cell,
    Row,
    baselines,
    cells,
    disk_ns,
    hit_ratio,
    mean,
)
from policy_traces import Traced, all_traces

from hybridsim.requests.rows import Requests

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
FOLDER = "caches/policies/learned"
SAMPLED = ("reuse.py", "share = ALL if clock < EARLY else self.state[SHARE]")
LATER = (*SAMPLED, "share = self.state[SHARE]")
Patch = tuple[str, str, str]  # file, original text, replacement
PARTS: dict[str, list[Patch]] = {
    WHOLE: [],
    "no rent: room costs nothing": [("worth.py", "RENT_WEIGHT = 1 / 64", "RENT_WEIGHT = 0.0")],
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
        ("worth.py", "return min(self.value[group], self.price())", "return 0.0"),
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
        ("worth.py", "self.state[READING] * cut / (last - first + 1)", "self.state[READING]"),
    ],
    "pages touched together need not leave together": [
        ("policy.py", "if apart < TOGETHER and", "if False and"),
    ],
    "each page of a request counts as a whole read": [
        ("reuse.py", "1.0 / max(missed + others, 1) + self.kept[touch]", "1.0 + self.kept[touch]"),
    ],
    "not how long the region was at rest": [
        ("regions.py", "self.state[REST] = self.rest(clock, self.touched[place])",
         "self.state[REST] = 0"),
        ("regions.py", "return pace >> PACE_BITS", "return 0"),
    ],
    "a region's last gap, not its usual one": [
        ("regions.py", "pace + ((gap - pace) >> PACE_BITS)", "gap"),
    ],
    "no coarser classes behind those that have seen little": [
        ("worth.py", "PRIOR = 8 * 16.0", "PRIOR = 1e-3"),
    ],
    "unknown classes trusted": [
        ("worth.py", "self.value[group] * (known / (known + DOUBT))", "self.value[group]"),
    ],
    "not whether the last gap was unusual": [
        ("habits.py", "turn = int(gap >= mean - SHORTER) + int(gap > mean + LONGER)", "turn = 1"),
    ],
    "pages of all sizes of request have their class's worth": [
        ("worth.py", "self.part[size] = self.saved[size] / self.expected[size]",
         "self.part[size] = 1.0"),
    ],
    "samples still at an age count wholly": [
        ("worth.py", "at_risk = 0.5 * (reached[age] + touched[age] + reached[age + 1])",
         "at_risk = 1.0 * reached[age]"),
    ],
    "a class's samples are never halved": [
        ("reuse.py", "FORGET = 256 * WEIGHT", "FORGET = 1 << 30"),
    ],
}  # fmt: skip


def without(part: str) -> dict[str, str]:
    """Return the sources that change if a part is disabled, by their path in the package."""
    texts: dict[str, str] = {}
    for name, old, new in PARTS[part]:
        file = f"{FOLDER}/{name}"
        text = texts.get(file) or (PACKAGE / file).read_text()
        if text.count(old) != 1:
            sys.exit(f"{part}: found {text.count(old)} times in {file}, expected once: {old}")
        texts[file] = text.replace(old, new)
    return texts


def patched(part: str, folder: Path) -> Path:
    """Copy the package with a part disabled; return the folder that contains it."""
    package = folder / "hybridsim"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in without(part).items():
        (package / file).write_text(text)
    return folder


def keep(folder: Path) -> None:
    """Save the traces to files: reading a capture takes longer than a run."""
    names = {name for name, _, _ in CELLS}
    for traced in all_traces():
        if traced.name in names:
            np.savez(folder / f"{traced.name}.npz", **traced.requests().rows._asdict())


def kept_cells(folder: Path) -> Iterator[tuple[Traced, int, tuple[float, ...]]]:
    """Yield the cells of the traces that are saved in a folder."""
    for name, page, shares in CELLS:
        file = folder / f"{name}.npz"
        if file.exists():
            load = functools.partial(_loaded, file)
            yield Traced(name, True, (page,), load), page, shares


def _loaded(file: Path) -> Requests:
    with np.load(file) as columns:
        return Requests(**columns)


def run(folder: Path, results: Path, names: set[str]) -> None:
    """Print the rows of some policies as JSON lines; runs in the process of a part."""
    kept = Kept(results)
    chosen = [each for each in POLICIES if each.name in names]
    for traced, page, shares in kept_cells(folder):
        for row in cached(traced, page, shares, chosen, kept):
            print(json.dumps(row))


def rows_of(part: str, traces: Path, results: Path, names: set[str]) -> list[Row]:
    """Return the rows of policies with a part disabled."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": str(patched(part, Path(folder)))}
        command = [sys.executable, __file__, "--rows-of", str(traces), "--results", str(results)]
        command += [word for name in sorted(names) for word in ("--policy", name)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


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
        keep(traces)
        whole = cells(rows_of(WHOLE, traces, results, BASELINES | {LEARNED, FREE}), "hits")
        show(f"| {len(whole)} cells | disk time | hits | hits, writes free |\n|---|---|---|---|")
        for part in parts:
            result = whole
            if part != WHOLE:
                result = cells(rows_of(part, traces, results, {LEARNED, FREE}), "hits")
            time, hits, free = judged(result, whole)
            show(f"| {part} | {time:.3f} | {hits:+.1f} | {free:+.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("policies.jsonl"))
    parser.add_argument("--part", action="append", choices=list(PARTS), help="these only")
    parser.add_argument("--rows-of", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--policy", action="append", default=[], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rows_of:
        run(arguments.rows_of, arguments.results, set(arguments.policy))
    else:
        table(arguments.part or list(PARTS), arguments.results.absolute())


if __name__ == "__main__":
    main()
