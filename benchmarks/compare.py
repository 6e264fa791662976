"""Real kernel caches against simulated ones, as `hybridsim compare` tells it: one line a run.

    HYBRIDSIM_DATA=shared/data python benchmarks/compare.py [--markdown] [RUN ...]

The runs are those of kernel-caches/: fio on dm-cache (smq), bcache and the bare disks, in an
emulated guest on a shared host.  Each one's own fio job, as its JSON has it, runs on a scenario of
what its README says of the devices; nothing is taken from the run itself.  IOPS carry the noise of
the host: the same run twice is 15 % apart (first line).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from hybridsim.comparison.rows import Comparison
from hybridsim.fio.jobfile import Written, read_file
from hybridsim.report.fio_json import measurement
from hybridsim.scenario import Scenario
from hybridsim.verbs.compare import compare
from hybridsim.verbs.fio import fio

# Four spindles get at most 16 requests at a time of the emulator, 32 of fio: 1.086 times slower
# (32/35 : 16/19), which is put into arm and platter.  The SSD gave 2,551 a second in the guest.
SLOWER = 1.086
DEVICES = f"""
[backing]
kind = "raid0"
members = 4
chunk = "64KiB"
capacity = "2GiB"
[backing.drive]
kind = "hdd"
name = "nbd"
rpm = {round(7200 / SLOWER)}
capacity = "2GiB"
seek_track_to_track = "{0.5 * SLOWER:.3f}ms"
seek_average = "{4.5 * SLOWER:.3f}ms"
seek_full = "{8 * SLOWER:.3f}ms"
rate_outer = "150MB/s"
rate_inner = "150MB/s"
overhead = "0us"
window = 1
read_ahead = "0B"
"""
SSD = """
[cache.drive]
kind = "ssd"
name = "nbd"
capacity = "1GiB"
read_latency = "392us"
write_latency = "392us"
random_read_iops = 2551
random_write_iops = 2551
sequential_read = "500MB/s"
sequential_write = "300MB/s"
dies = 48
"""
FLAGS = {"time_based": "1", "norandommap": "1", "size": "8G"}  # fio's JSON does not tell flags
COLUMNS = {
    "IOPS": "IOPS", "IOPS level": "end level", "IOPS curve": "curve", "hit ratio": "hit ratio",
    "hit ratio curve": "its curve", "promotions": "promotions", "demotions": "demotions",
    "cache_hits": "bcache hits", "cache_misses": "misses",
}  # fmt: skip


class Setup(NamedTuple):
    """The parameters in a run's README."""

    kind: str
    told: dict[str, str]

    @classmethod
    def load(cls, folder: Path) -> Setup:
        """Read them."""
        told = dict(re.findall(r"(\w+)='([^']*)'", (folder / "README.md").read_text()))
        return cls(told["KIND"], told)

    def scenario(self) -> Scenario:
        """Return the machine."""
        return Scenario.loads(DEVICES + self.cache())

    def cache(self) -> str:
        """Return the table of the cache."""
        if self.kind == "none":
            return '[cache]\nkind = "none"\n'
        size = f'[cache]\nsize = "{self.told["CACHE_MB"]}MiB"\nmode = "{self.told["MODE"]}"\n'
        if self.kind == "bcache":
            if "CONGR" in self.told:  # in sysfs 0 is never
                size += 'congested_read = "0s"\ncongested_write = "0s"\n'
            return f'{size}kind = "bcache"\nsequential_cutoff = "0B"\n{SSD}'
        block = int(self.told["CBS"]) * 512
        threshold = int(self.told.get("MIGTHR", 2048)) * 512
        return (
            f'{size}kind = "dm-cache"\nblock = "{block}B"\nmigration_threshold = "{threshold}B"\n'
            f"{SSD}"
        )


def job(folder: Path) -> str:
    """Return a run's job file, from its JSON."""
    told = json.loads((folder / "fio.json").read_text())
    (one,) = told["jobs"]
    options = {**told["global options"], **one["job options"], **FLAGS}
    kept = {key: value for key, value in options.items() if "log" not in key and key != "name"}
    return f"[{one['jobname']}]\n" + "".join(f"{key}={value}\n" for key, value in kept.items())


def simulated(folder: Path, scratch: Path) -> Comparison:
    """Run a run's job on its machine, and compare."""
    path = scratch / f"{folder.name}.fio"
    path.write_text(job(folder))
    written = Written()
    read_file(str(path), written)
    path.unlink()
    result = fio(written, Setup.load(folder).scenario())
    return compare(str(folder), measurement(result, path.name))


def cells(found: Comparison) -> list[str]:
    """Return the figures of a comparison; with reads and writes, those of the reads."""
    errors = {}
    for row in found.rows:
        if row.error is not None:
            errors.setdefault(row.name.measure, row)
    texts = []
    for measure in COLUMNS:
        row = errors.get(measure)
        is_number = measure.endswith("curve")
        text = "" if row is None else f"{row.error:.3f}" if is_number else f"{row.error:+.1%}"
        texts.append(text + ("*" if row is not None and row.is_met is False else ""))
    return [*texts, f"{len(found.judged) - len(found.failed)}/{len(found.judged)}"]


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    data = Path(os.environ.get("HYBRIDSIM_DATA", "../shared/data")) / "kernel-caches"
    if not data.is_dir():
        sys.exit(f"no {data}: HYBRIDSIM_DATA names the folder of the reference data")
    folders = [each for each in sorted(data.iterdir()) if (each / "fio.json").exists()]
    widths = [34, *(11 for _ in COLUMNS), 8]

    def put(texts: list[str]) -> None:
        padded = (f"{text:{'<' if at == 0 else '>'}{widths[at]}}" for at, text in enumerate(texts))
        print(f"| {' | '.join(texts)} |" if options.markdown else " ".join(padded), flush=True)

    put(["run", *COLUMNS.values(), "within"])
    if options.markdown:
        print("|" + "---|" * len(widths))
    twice = [data / f"dmcache-smq-wt-hot-c512{name}" for name in ("-repeat200s", "")]
    put(["the same real run twice", *cells(compare(*map(str, twice)))])
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            if not options.runs or folder.name in options.runs:
                put([folder.name, *cells(simulated(folder, Path(scratch)))])
    print("* beyond its tolerance; of counters the worst at any 10 s, as a share of the last value")


if __name__ == "__main__":
    main()
