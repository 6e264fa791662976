"""The learned policy with some lines of its source replaced, run on cells of traces.

A separate process runs a copy of the package.  Machine code is cached by source, so the copies do
not share it.  A line that is missing or not unique is an error: update its patch.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from policy_kept import PACKAGE, Kept
from policy_runs import POLICIES, cached
from policy_table import Cell, Row, cells
from policy_traces import Traced

from hybridsim.requests.rows import Requests

FOLDER = "caches/policies/learned"
CELLS = "cells.jsonl"
Patch = tuple[str, str, str]  # file, original text, replacement
Cells = Iterable[tuple[Traced, int, tuple[float, ...]]]  # page size, shares


def changed(patches: Sequence[Patch]) -> dict[str, str]:
    """Return the sources that patches change, by their path in the package."""
    texts: dict[str, str] = {}
    for name, old, new in patches:
        file = f"{FOLDER}/{name}"
        text = texts.get(file) or (PACKAGE / file).read_text()
        if text.count(old) != 1:
            sys.exit(f"found {text.count(old)} times in {file}, expected once: {old}")
        texts[file] = text.replace(old, new)
    return texts


def keep(folder: Path, wanted: Cells) -> None:
    """Save cells and the requests of their traces: reading a capture takes longer than a run."""
    for traced, page, shares in wanted:
        file = folder / f"{traced.name}.npz"
        if not file.exists():
            np.savez(file, **traced.requests().rows._asdict())
        with (folder / CELLS).open("a") as lines:
            lines.write(json.dumps([traced.name, traced.is_tuned, page, shares]) + "\n")


def rows_of(
    patches: Sequence[Patch], traces: Path, results: Path, names: set[str]
) -> dict[Cell, dict[str, Row]]:
    """Return the rows of policies on the cells of a folder, with lines of the source replaced."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "hybridsim"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        for file, text in changed(patches).items():
            (package / file).write_text(text)
        command = [sys.executable, __file__, str(traces), str(results), *sorted(names)]
        environment = os.environ | {"PYTHONPATH": folder}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return cells((json.loads(line) for line in done.stdout.splitlines()), "hits")


def _print_rows(traces: Path, results: Path, names: Sequence[str]) -> None:
    """Print the rows of some policies as JSON lines, in the process of a copy."""
    kept = Kept(results)
    chosen = [each for each in POLICIES if each.name in names]
    for traced, page, shares in _kept_cells(traces):
        for row in cached(traced, page, shares, chosen, kept, with_bounds=False):
            print(json.dumps(row))


def _kept_cells(folder: Path) -> Iterator[tuple[Traced, int, tuple[float, ...]]]:
    """Yield the cells of a folder."""
    for line in (folder / CELLS).read_text().splitlines():
        name, is_tuned, page, shares = json.loads(line)
        load = functools.partial(_loaded, folder / f"{name}.npz")
        yield Traced(name, is_tuned, (page,), load), page, tuple(shares)


def _loaded(file: Path) -> Requests:
    with np.load(file) as columns:
        return Requests(**columns)


if __name__ == "__main__":
    _print_rows(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
