"""Coverage of the errors that `replay` states for thinned captures: generated days at 2 to 10 %.

    python benchmarks/weeks.py [--hours 30] [NAME ...]

Each load has days and nights, and most have something that happens rarely.  It is replayed in full,
and thinned with other seeds; the figures of the whole from the minutes that were kept are compared
with those of the full replay.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from hybridsim import Scenario, Trace, replay
from hybridsim.answers.metrics import Kind
from hybridsim.foundation.errors import UsageError
from hybridsim.studies.estimate.estimate import estimate
from hybridsim.studies.record_thinned import thin
from hybridsim.traces.thinned.thinner import Settings

BUSY = 'burst_every = "12h"\nburst_lasts = "4h"\n'  # day and night, twice a day
BACKUP = """
[[load]]
kind = "sequential"
span = "16GiB"
size = "256KiB"
rate = 0.01
burst_every = "10h"
burst_lasts = "30m"
burst_rate = 20
"""
LOADS = {  # workload, size of the cache, rate of the sample
    "zipf": ('kind = "zipf"\nspan = "16GiB"\nsize = "4KiB/70:64KiB/30"\nrate = 2\n'
             + BUSY + "burst_rate = 8\n" + BACKUP, "1GiB", 0.10),
    "moving": ('kind = "hot-spot"\nspan = "16GiB"\nhot = "5%"\nevery = "3h"\nmoved = "30%"\n'
               "rate = 3\n" + BUSY + "burst_rate = 9\n", "1GiB", 0.05),
    "bursts": ('kind = "zipf"\nspan = "8GiB"\ntheta = 1.1\nrate = 2\nburst_every = "7m"\n'
               'burst_lasts = "10s"\nburst_rate = 200\n', "256MiB", 0.05),
    "writes": ('kind = "zipf"\nspan = "16GiB"\nread = "25%"\nsize = "8KiB"\nrate = 2\n'
               + BUSY + "burst_rate = 12\n", "2GiB", 0.03),
    "random": ('kind = "random"\nspan = "8GiB"\nrate = 4\n' + BUSY + "burst_rate = 10\n" + BACKUP,
               "2GiB", 0.02),
    "evening": ('kind = "zipf"\nspan = "8GiB"\nrate = 3\n\n[[load]]\nkind = "hot-spot"\n'
                'span = "8GiB"\nhot = "2%"\nrate = 12\nbegin = "16h"\nend = "22h"\n',
                "512MiB", 0.05),
    "mail": ('kind = "zipf"\nspan = "64GiB"\ntheta = 0.8\nsize = "16KiB"\nread = "60%"\nrate = 5\n'
             'burst_every = "24h"\nburst_lasts = "9h"\nburst_rate = 11\n\n[[load]]\n'
             'kind = "sequential"\nspan = "64GiB"\nsize = "256KiB"\nread = "100%"\nrate = 8\n'
             'begin = "13h"\nend = "15h"\n', "4GiB", 0.04),
    "database": ('kind = "hot-spot"\nspan = "32GiB"\nsize = "8KiB"\nread = "90%"\nhot = "3%"\n'
                 'every = "8h"\nmoved = "20%"\nrate = 12\n\n[[load]]\nkind = "sequential"\n'
                 'at = "32GiB"\nspan = "1GiB"\nread = "0%"\nrate = 3\n', "2GiB", 0.02),
    "quiet": ('kind = "zipf"\nspan = "2GiB"\ntheta = 0.9\nrate = 0.4\n' + BUSY
              + "burst_rate = 0.8\n", "128MiB", 0.20),
    "scans": ('kind = "random"\nspan = "12GiB"\nsize = "64KiB"\nrate = 1.5\narrivals = "even"\n\n'
              '[[load]]\nkind = "sequential"\nspan = "12GiB"\nsize = "128KiB"\nread = "100%"\n'
              'rate = 0.01\nburst_every = "6h"\nburst_lasts = "20m"\nburst_rate = 40\n',
              "3GiB", 0.08),
    "copies": ('kind = "zipf"\nspan = "8GiB"\nsize = "64KiB/50:256KiB/50"\nread = "80%"\nrate = 2\n'
               + BUSY + "burst_rate = 6\n", "1GiB", 0.10),
    "notebook": ('kind = "hot-spot"\nspan = "3GiB"\nsize = "16KiB"\nhot = "10%"\nevery = "5h"\n'
                 'moved = "50%"\nrate = 0.6\n', "256MiB", 0.25),
    "tables": ('kind = "zipf"\nspan = "24GiB"\ntheta = 1.0\nsize = "32KiB"\nrate = 2\n\n[[load]]\n'
               'kind = "sequential"\nspan = "24GiB"\nsize = "512KiB"\nread = "100%"\nrate = 0.01\n'
               'burst_every = "8h"\nburst_lasts = "1h"\nburst_rate = 12\n', "4GiB", 0.06),
    "little": ('kind = "zipf"\nspan = "768MiB"\ntheta = 0.7\nsize = "8KiB"\nread = "50%"\n'
               "rate = 0.8\n", "64MiB", 0.30),
}  # fmt: skip
REGION_BYTES = 1 << 16


def figures(phase) -> dict[str, float | None]:
    """Return the figures of a full replay that an estimate has too."""
    found = phase.figures
    both = found.reads.count + found.writes.count
    return {
        "read_mean_ns": found.reads.mean_ns,
        "read_p99_ns": found.reads.percentile(99),
        "write_mean_ns": found.writes.mean_ns,
        "write_p99_ns": found.writes.percentile(99),
        "mean_ns": (found.reads.total_ns + found.writes.total_ns) / both,
        "hit_ratio": found.latency[Kind.HIT].count / found.reads.count,
        "disk_busy": phase.utilisation,
    }


def main() -> None:
    """Print for each load how many figures lie within their errors, and those that do not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *LOADS], metavar="NAME")
    parser.add_argument("--hours", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    whole, inside = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in given.names or LOADS:
            load, size, rate = LOADS[name]
            file, thinned = Path(folder) / f"{name}.toml", Path(folder) / "a.thin"
            file.write_text(f'seed = 7\nduration = "{given.hours}h"\n\n[[load]]\n{load}')
            trace = Trace.read(str(file))
            site = Scenario.default().with_options(
                cache_size=size, admission="always", replacement="lru", sequential_cutoff="0B",
                mode="open",
            )  # fmt: skip
            begin = time.process_time()
            result = replay(trace, site)
            truth = {"alone": figures(result.phases["none_whole"]),
                     "cached": figures(result.phases["whole"])}  # fmt: skip
            gain = truth["alone"]["mean_ns"] / truth["cached"]["mean_ns"]
            full_s = time.process_time() - begin
            for seed in range(given.seeds):
                thin(trace, thinned, Settings(rate=rate, region_bytes=REGION_BYTES, seed=seed))
                begin = time.process_time()
                try:
                    (found,) = estimate(Trace.read(str(thinned)), [site])
                except UsageError as error:
                    print(f"{name:8} {seed} refused: {error}", flush=True)
                    continue
                took_s = time.process_time() - begin
                rows = [
                    (f"{side} {key}", value, getattr(found, side)[key])
                    for side, values in truth.items()
                    for key, value in values.items()
                    if value
                ]
                rows.append(("gain", gain, found.gain))
                beyond = [
                    f"{what} {value:.4g} for {each.value:.4g} +- {each.error:.2g}"
                    for what, value, each in rows
                    if abs(each.value - value) > each.error
                ]
                whole, inside = whole + len(rows), inside + len(rows) - len(beyond)
                wide = sorted(each.error / each.value for _, _, each in rows)[len(rows) // 2]
                print(
                    f"{name:8} {seed} {rate:.0%}: {len(rows) - len(beyond)} of {len(rows)}, median "
                    f"error {wide:.1%}; {full_s:.0f} s in full, {took_s:.0f} s from minutes; "
                    + "; ".join(beyond),
                    flush=True,
                )
    print(f"{inside} of {whole}")


if __name__ == "__main__":
    main()
