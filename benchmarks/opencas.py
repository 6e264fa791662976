"""Warm-up of different caches: Open CAS (always, nhit), dm-cache, the page cache.

    python benchmarks/opencas.py [--json]

One hot spot: 4 KiB reads at depth 32, 80 % of them in the first 3 % of 16 GiB, at random, on the
default array (RAID-5 of four disks) with 1 GiB of the default SSD.  Each starts empty.  All figures
are simulated; there is no reference to compare them with.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

SECOND = 10**9
VOLUME_BYTES, CACHE_BYTES, READ_BYTES = 16 << 30, 1 << 30, 4096
HOT_SHARE_OF_READS, HOT_SHARE_OF_BYTES = 0.8, 0.03
DEPTH, ROWS = 32, 65_536
SPAN_S = 900
SHOWN_S = (30, 60, 120, 300, 600, 900)

CACHES = {
    "Open CAS, 4 KiB lines, always": 'kind = "open-cas"',
    "Open CAS, 4 KiB lines, nhit 3 from 0%": (
        'kind = "open-cas"\npromotion = "nhit"\ntrigger_threshold = "0%"'
    ),
    "Open CAS, 4 KiB lines, nhit 3 from 80%": 'kind = "open-cas"\npromotion = "nhit"',
    "Open CAS, 64 KiB lines, always": 'kind = "open-cas"\nline = "64KiB"',
    "dm-cache smq, 64 KiB blocks": 'kind = "dm-cache"',
    "page cache, 64 KiB pages, learned": 'kind = "page"',
    "page cache, 64 KiB pages, always": 'kind = "page"\nadmission = "always"',
    "page cache, 4 KiB pages, always": 'kind = "page"\npage = "4KiB"\nadmission = "always"',
}


def batches() -> Iterator[Batch]:
    """Yield reads without end."""
    rng = np.random.default_rng(1)
    slots = VOLUME_BYTES // READ_BYTES
    hot = int(slots * HOT_SHARE_OF_BYTES)
    start = 0
    while True:
        in_hot = rng.random(ROWS) < HOT_SHARE_OF_READS
        at = np.where(in_hot, rng.integers(0, hot, ROWS), rng.integers(hot, slots, ROWS))
        none, sizes = np.full(ROWS, -1), np.full(ROWS, READ_BYTES)
        state = np.array([0, 0, start])
        yield Batch(none, np.zeros(ROWS, np.uint8), at * READ_BYTES, sizes, none, none, state)
        start += ROWS


def warmed(table: str) -> dict[str, Any]:
    """Run one cache from empty; return its hit ratios, writes, IOPS and mean latency."""
    text = f'[cache]\nsize = "1GiB"\n{table}\n[replay]\nmode = "closed"\ndepth = {DEPTH}'
    site = Scenario.loads(text)
    pages = site.cache.pages(VOLUME_BYTES)
    run, todo = Run(building.machine(site, "closed", VOLUME_BYTES, pages)), batches()
    reads, hits, waited = (np.zeros(SPAN_S) for _ in range(3))
    written, second = [], 1
    while second <= SPAN_S:
        status, facts = run.advance(second * SECOND)
        if facts is None:
            facts = run.facts.drained()
        begun = np.minimum(facts.issue_ns // SECOND, SPAN_S - 1)
        reads += np.bincount(begun, minlength=SPAN_S)
        hits += np.bincount(begun, facts.path == 0, SPAN_S)
        waited += np.bincount(begun, (facts.done_ns - facts.issue_ns) / 1e6, SPAN_S)
        if status == loops.NEEDS_BATCH:
            run.feed(next(todo))
        elif status == loops.REACHED:
            device = run.machine.below.fast.device
            written.append(int(device.totals(second * SECOND)["bytes_written"]))
            second += 1
    hit_ratio = np.convolve(hits, np.ones(10), "full")[:SPAN_S]
    hit_ratio /= np.convolve(reads, np.ones(10), "full")[:SPAN_S]
    end = hit_ratio[-60:].mean()
    return {
        "hit_ratio": {second: float(hit_ratio[second - 1]) for second in SHOWN_S},
        "to_90_percent_s": int(np.argmax(hit_ratio >= 0.9 * end)),
        "iops_at_end": float(reads[-60:].mean()),
        "mean_ms_at_end": float(waited[-60:].sum() / reads[-60:].sum()),
        "written_gib": {second: written[second - 1] / 2**30 for second in (60, SPAN_S)},
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    result = {}
    as_json = parser.parse_args().json
    if not as_json:
        times = "".join(f"{f'{second} s':>7}" for second in SHOWN_S)
        print(f"{'hit ratio after':40}{times}  to 90%   IOPS    mean  GiB written: 60 s, all")
    for name, table in CACHES.items():
        result[name] = one = warmed(table)
        if as_json:
            continue
        ratios = "".join(f"{ratio:7.1%}" for ratio in one["hit_ratio"].values())
        early, late = one["written_gib"].values()
        print(
            f"{name:40}{ratios}{one['to_90_percent_s']:6} s{one['iops_at_end']:7,.0f}"
            f"{one['mean_ms_at_end']:5.1f} ms{early:13.2f}{late:8.2f}",
            flush=True,
        )
    if as_json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
