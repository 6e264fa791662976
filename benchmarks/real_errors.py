"""The errors of the simulated twins of all real runs on file: hybridsim/answers/real_errors.csv.

    python benchmarks/real_errors.py [--report FILE] [--write]

FILE is the output of `python -m validate report validate/results --json`; without it the twins
are simulated here, which takes two CPU minutes.  --write replaces the file of the package, else
the lines are printed.  A new run in validate/results needs nothing but a new call.
"""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "hybridsim" / "answers" / "real_errors.csv"
# Experiments that the devices are calibrated with are no tests.
BARE = ("calibration", "served-calibration")
# Fio's wait in the guest for QEMU's 16 requests is in the latencies of its real runs alone.
WAITS = ("page",)
COUNTED = {"dm-cache": "promotions", "bcache": "cache_misses"}
# Reads that hit, and all of them; counters of caches whose hit ratio `validate` does not compare.
HITS = {
    "open-cas": ("read_hits", ("read_hits", "read_deferred", "read_partial_misses",
                               "read_full_misses", "pass_through_reads")),
    "dm-writecache": ("read_hits", ("reads",)),
}  # fmt: skip
# Runs that differ by the repetition, the throttle of the disk or QEMU's merging are one experiment.
SAME = re.compile(r"(-r[0-9]+|-wbtoff|-default|-off|-unmerged)+$")
HEAD = """\
# Errors of the simulated twins of the real runs in validate/results, one run a line.
# Written by benchmarks/real_errors.py.  iops, steady_iops: real / simulated - 1, of all requests
# of the run, and in the steady state of both.  hit_ratio, steady_hit_ratio: real - simulated.
# promotions (bcache: misses): the largest error at a multiple of 10 s, over the real last value.
# read_mean, write_mean: of the latency, real / simulated - 1.  writes: share of the requests.
# read_p99, write_p99: of the latency below fio, real / simulated - 1.  t90: of the time at which
# the hit ratio is warm (open-cas, dm-writecache: the IOPS), if that takes the twin 10 s or more,
# real / simulated - 1.
# Empty: the real run or its twin has no such figure.
"""
FEWEST_NS = 10e9  # of t90, which is known to a second
FIGURES = (
    "iops", "hit_ratio", "steady_iops", "steady_hit_ratio", "promotions", "read_mean", "write_mean",
    "read_p99", "write_p99", "t90",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.report:
        report = json.loads(Path(arguments.report).read_text())
    else:
        report = simulated(sorted((ROOT / "validate" / "results").iterdir()))
    text = table(report)
    if arguments.write:
        TABLE.write_text(text)
    else:
        print(text, end="")


def simulated(folders: list[Path]) -> dict[str, Any]:
    """Return the report of `validate` on result folders."""
    from validate.report.as_json import document
    from validate.report.holding import held
    from validate.twin.folders import runs

    found = list(runs([str(each) for each in folders if each.is_dir()], lambda error: None))
    return json.loads(json.dumps(document(held(found))))


def table(report: dict[str, Any]) -> str:
    """Return the errors of a report as CSV."""
    lines = [",".join(("kind", "experiment", "run", "writes", *FIGURES))]
    for run in report["runs"]:
        experiment = SAME.sub("", run["name"].removesuffix(", warm"))
        if experiment not in BARE:
            kind = tomllib.loads(run["scenario"])["cache"]["kind"]
            rows = run["comparison"]["rows"]
            errors = dict(_errors(kind, rows))
            cells = (f"{errors[name]:.4f}" if name in errors else "" for name in FIGURES)
            name = run["name"].replace(", ", " ")
            lines.append(",".join((kind, experiment, name, f"{_writes(rows):.2f}", *cells)))
    return HEAD + "\n".join(lines) + "\n"


def _writes(rows: list[dict[str, Any]]) -> float:
    count = {row["what"]: row["real"] for row in rows if row["measure"] == "requests"}
    return count.get("write", 0.0) / sum(count.values())


def _errors(kind: str, rows: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    def of(measure: str) -> list[dict[str, Any]]:
        found = [row for row in rows if row["measure"] == measure]
        return [row for row in found if None not in (row["real"], row["simulated"])]

    def both(found: list[dict[str, Any]]) -> tuple[float, float]:
        return sum(row["real"] for row in found), sum(row["simulated"] for row in found)

    real, modelled = both(of("IOPS"))
    yield "iops", real / modelled - 1
    for name, measure in (("hit_ratio", "hit ratio"), ("steady_hit_ratio", "hit ratio level")):
        found = of(f"{measure} in closed loop")
        if found:
            yield name, found[0]["real"] - found[0]["simulated"]
    if kind in HITS:
        yield from _hits(*HITS[kind], {row["measure"]: row for row in rows})
    steady = [row for row in of("IOPS level") if row["pass"] is not None]
    if steady:
        real, modelled = both(steady)
        yield "steady_iops", real / modelled - 1
    if kind not in WAITS:
        yield from _latencies(of("lat mean"), "mean")
        yield from _latencies(of("clat p99"), "p99")
    for row in of("IOPS t90" if kind in HITS else "hit ratio t90 in closed loop")[:1]:
        if row["real"] > 0 and row["simulated"] >= FEWEST_NS:
            yield "t90", row["real"] / row["simulated"] - 1
    counted = of(COUNTED.get(kind, ""))
    if counted and counted[0]["error"] is not None:
        yield "promotions", abs(counted[0]["error"])


def _latencies(rows: list[dict[str, Any]], name: str) -> Iterator[tuple[str, float]]:
    for row in (each for each in rows if each["what"] in ("read", "write")):
        yield f"{row['what']}_{name}", row["real"] / row["simulated"] - 1


def _hits(
    hits: str, reads: tuple[str, ...], rows: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, float]]:
    """Yield the error of the hit ratio, from the last counts of both."""
    last = {name: rows[f"{name} in closed loop"] for name in (hits, *reads)}
    ratios = []
    for side in ("real", "simulated"):
        whole = sum(last[name][side] for name in reads)
        if not whole:
            return
        ratios.append(last[hits][side] / whole)
    yield "hit_ratio", ratios[0] - ratios[1]


if __name__ == "__main__":
    main()
