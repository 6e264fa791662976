"""Is the interpolation of `hybridsim explore` right?  Replays that it does not have decide.

    python benchmarks/explore.py [TRACE ...] [--points 480] [--check 100] [--time S] [--folder DIR]

Default: the demo's capture.  For each trace: by figure, how many of the replays drawn at random are
within 3% of the estimate or inside its band, and how wide the bands are; how many machines hold in
all figures; whether the answer is that of the replay, or was reported as near a border; the size of
the page.  A replay of the demo takes a second; all results are kept in DIR.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEMO = str(ROOT / "traces" / "demo" / "rocksdb_mixgraph.blktrace.0.zst")
PAGE_MAX = 1.5e6  # bytes


def measured(
    trace: Sequence[str], points: int, check: int, folder: str, limit_s: float | None = None
) -> dict[str, Any]:
    """Return the figures of one trace."""
    from hybridsim.show.html import of
    from hybridsim.studies.explore.exploring import explore
    from hybridsim.studies.sweep.named_trace import NamedTrace

    begun = time.perf_counter()
    named = NamedTrace.here(tuple(trace))
    found = explore(named, points=points, check=check, folder=folder, seconds=limit_s)
    seconds = time.perf_counter() - begun
    places = list(dict.fromkeys(each.place for each in found.checked))
    fewer = replace(found, replays=[each for each in found.replays if each.place not in places])
    answers = [(found.by_place[place].figures["answer"], *fewer.answer(place)) for place in places]
    return {
        "trace": found.trace.name,
        "replays": len(fewer.replays),
        "computed": found.computed,
        "seconds": seconds,
        "page_bytes": len(of(found.to_dict()).encode()),
        "figures": list(by_figure(found, fewer)),
        "machines": len(places),
        "machines_hold": sum(
            all(each.holds for each in found.checked if each.place == place) for place in places
        ),
        "hold": sum(each.holds for each in found.checked) / max(len(found.checked), 1),
        "answers_right": sum(true == given for true, given, _ in answers),
        "answers_wrong": sum(
            true != given and not may_differ for true, given, may_differ in answers
        ),
    }


def by_figure(found: Any, fewer: Any) -> Iterator[tuple[str, int, int, int, float | None, float]]:
    """Yield name, replays, those that hold, those within 3%, median error, median half band."""
    import numpy as np

    document = {each["name"]: each for each in found.to_dict()["checked"]}
    for name, each in document.items():
        estimates = [one.estimate for one in found.checked if one.name == name]
        halves = [(e.high - e.low) / 2 / e.value for e in estimates if e.value]
        yield (name, each["number"], each["hold"], each["close"], each["median_off"],
               float(np.median(halves)) if halves else 0.0)  # fmt: skip


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported, as of hybridsim.cli
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*", default=[DEMO])
    parser.add_argument("--points", type=int, default=480)
    parser.add_argument("--check", type=int, default=100)
    parser.add_argument("--time", type=float, metavar="SECONDS", help="limit for each trace")
    parser.add_argument("--folder", default="hybridsim-explore")
    options = parser.parse_args()
    for trace in options.traces:
        found = measured([trace], options.points, options.check, options.folder, options.time)
        print(f"{found['trace']}: {found['replays']} replays, {found['computed']} computed, "
              f"{found['seconds']:.0f} s; the page {found['page_bytes']:,} bytes")  # fmt: skip
        print(f"| figure | replays | hold | within 3 % | median error | half band |\n{'|---' * 6}|")
        for name, number, hold, close, off, half in found["figures"]:
            error = "" if off is None else f"{off:.1%}"
            print(f"| {name} | {number} | {hold} | {close} | {error} | {half:.1%} |")
        print(f"all figures of {found['machines_hold']} of {found['machines']} machines hold; "
              f"answers: {found['answers_right']} right, {found['answers_wrong']} wrong without "
              "a warning")  # fmt: skip


if __name__ == "__main__":
    main()
