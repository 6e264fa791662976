"""What a fill costs the disks beside a missed read, under full timing.

    HYBRIDSIM_DATA=... python benchmarks/policy_fills.py [--judged] [--fill piggyback] [--json]

A fill reads its page again in the background (`fill = "re-read"`), when the arm may have moved on,
or with the read that missed (`piggyback`), which becomes longer.
Eleven caches of 10 % of the pages, which fill more or less, replay each trace of pages of 64 KiB on
the default array: their disk time is fitted by least squares to a constant, the missed reads and
the fills.  The traces are those that policies were tuned on; --judged takes the others.  The ratio
of both slopes is FILL_READS of policy_table.py and READING_MAX of the learned policy (reuse.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
from policy_runs import SAMPLES
from policy_traces import Traced, all_traces

from hybridsim.answers.outcome import Outcome
from hybridsim.requests.pages import Ids, accesses
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import batches
from hybridsim.studies.runs import Pump
from hybridsim.traces.summary import summarize

PAGE, SHARE = 65_536, 0.1
PRICES = (0.1, 0.25, 0.5, 1, 2, 4)
CACHES = (
    *(
        f'admission = "{admission}"\nreplacement = "{replacement}"'
        for admission, replacement in (
            ("always", "lru"), ("always", "s3-fifo"), ("larc", "lru"), ("larc", "s3-fifo"),
            ("reject-first", "lru"),
        )
    ),
    *(f'admission = "learned"\nwrite_price = {price}' for price in PRICES),
)  # fmt: skip


@dataclass(frozen=True)
class Replayed:
    """The disk work of one cache."""

    trace: str
    cache: str
    missed_reads: int
    fills: int
    disk_s: float
    mean_ms: float


def replayed(traced: Traced, fill: str) -> Iterator[Replayed]:
    """Yield the disk work of each cache."""
    rows = traced.requests(timed=True)
    ids = Ids()
    for part in accesses(rows, PAGE):
        ids.of(part.numbers)
    tally = summarize(rows.chunks())
    for cache in CACHES:
        site = Scenario.loads(
            f'[cache]\npage = "{PAGE}B"\nsequential_cutoff = 0\nfill = "{fill}"\n{cache}'
        )
        machine = building.machine(
            site, traced.mode, tally.max_end_bytes, max(1, int(SHARE * ids.count))
        )
        pump = Pump(machine, max(tally.span_ns // SAMPLES, 10**7))
        for batch in batches(rows, with_waits=traced.mode == "think"):
            pump.take(batch)
        counters = pump.counters
        figures = Outcome(pump.collector, counters, traced.mode == "open").whole.figures
        yield Replayed(
            traced.name,
            cache.replace("\n", ", "),
            round(figures.reads.count * (1 - (figures.hit_ratio or 0))),
            int(counters["fills_done"][-1]),
            float(counters["slow_busy_ns"][-1]) / 1e9,
            (figures.reads + figures.writes).mean_ns / 1e6,
        )


def slopes(runs: list[Replayed]) -> tuple[float, float, float]:
    """Return the disk time of a missed read and of a fill in ms, and the largest misfit in %."""
    disk_ms = np.array([1e3 * each.disk_s for each in runs])
    known = np.array([(1, each.missed_reads, each.fills) for each in runs], float)
    fitted = np.linalg.lstsq(known, disk_ms, rcond=None)[0]
    misfit = float(np.abs(known @ fitted - disk_ms).max() / disk_ms.mean())
    return float(fitted[1]), float(fitted[2]), 100 * misfit


def main() -> None:
    """Replay, fit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judged", action="store_true", help="the traces not used for tuning")
    parser.add_argument("--fill", choices=("re-read", "piggyback"), default="re-read")
    parser.add_argument("--json", action="store_true", help="print the runs as JSON lines")
    wanted = parser.parse_args()
    for traced in all_traces():
        if traced.is_tuned == wanted.judged or PAGE not in traced.pages:
            continue
        runs = []
        for run in replayed(traced, wanted.fill):
            runs.append(run)
            print(f"{run.trace}: {run.cache}", file=sys.stderr, flush=True)
            if wanted.json:
                print(json.dumps(asdict(run)), flush=True)
        read_ms, fill_ms, misfit = slopes(runs)
        print(
            f"{traced.name:20} missed read {read_ms:5.1f} ms, fill {fill_ms:5.1f} ms, "
            f"ratio {fill_ms / read_ms:.2f}, misfit at most {misfit:.1f} %",
            file=sys.stderr if wanted.json else sys.stdout,
            flush=True,
        )


if __name__ == "__main__":
    main()
