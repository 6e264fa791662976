"""Devices fitted to fio's results at depth 1 and the greatest depth; the depths between predicted.

    python benchmarks/fit_fio.py FOLDER ...

Each folder has results of one device as bench-fio names them, randread-DEPTH-1.json and
randwrite-DEPTH-1.json.  Folders below those named are searched.  RESULTS.md used the folders that
the history of github.com/louwrentius/fio-plot has under benchmark_data and test-data*.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from hybridsim import fit
from hybridsim.answers.fitting import fio
from hybridsim.foundation.errors import HybridsimError
from hybridsim.studies.fit import simulated

PATTERNS = ("randread", "randwrite")
Files = dict[int, Path]


def files(folder: Path, pattern: str) -> Files:
    """Return the results of one job at a time, by depth."""
    found = {int(each.stem.split("-")[1]): each for each in folder.glob(f"{pattern}-*-1.json")}
    return dict(sorted(found.items()))


def judged(folder: Path) -> None:
    """Print what was fitted, and the error of each rate that was not used."""
    measured = {pattern: files(folder, pattern) for pattern in PATTERNS}
    ends = [each[depth] for each in measured.values() if each for depth in (min(each), max(each))]
    try:
        found = fit([str(each) for each in ends], check=False)
    except HybridsimError as error:
        print(f"{folder}: {str(error)[:300]}")
        return
    print(f"{folder}: {found.what}")
    for note in found.notes:
        print(f"  note: {note[:120]}")
    for pattern, by_depth in measured.items():
        errors = []
        for depth, path in by_depth.items():
            try:
                [point] = fio.read([str(path)])
            except HybridsimError:
                continue
            is_disk = found.scenario().backing.drive.kind == "hdd"
            count = 3000 if is_disk else 60_000
            off = simulated(found.scenario(), point, count)[0] / point.iops
            used = "*" if path in ends else ""
            errors.append((depth, point.iops, off - 1, used))
        text = "  ".join(f"{d}: {iops:.0f} {off:+.1%}{used}" for d, iops, off, used in errors)
        held = [abs(off) for _, _, off, used in errors if not used]
        if held:
            print(f"  {pattern} (* fitted): {text}; held out {np.mean(held):.1%} on average")


def main() -> None:
    for name in sys.argv[1:]:
        folders = {path.parent for path in Path(name).rglob("randread-1-1.json")}
        for folder in sorted(folders):
            judged(folder)


if __name__ == "__main__":
    main()
