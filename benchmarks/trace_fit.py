"""Stand-ins compared with their captures, and the speed of generating workloads.

HYBRIDSIM_DATA=... python benchmarks/trace_fit.py [--speed]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from policy_traces import Rows, all_traces

from hybridsim import hits
from hybridsim.requests.rows import joined
from hybridsim.studies import trace_fit
from hybridsim.traces.trace import Trace
from hybridsim.workloads.workload import Workload, generate

NAMES = (
    "cloudPhysics",
    "pg_zipf",
    "rocksdb_mixgraph",
    "mariadb_moving_hot",
    "fileserver_newhot",
    "moving 2",
)
SMALL = ("loop_ext4_buffered_meta", "loop_ext4_mqdl_randrw", "loop_raw_split_discard_flush")
POLICIES = (("lru", "always"), ("lfu", "always"), ("s3-fifo", "always"), ("lru", "larc"))
SPEEDS = (
    "random",
    "hot-spot",
    "hot-spot,theta=1,every=1m",
    "zipf",
    "zoned",
    "sequential,streams=4",
    "iometer,depth=32",
    "random,rate=150+sequential,rate=50",
)
REQUESTS = 4_000_000


def speeds() -> None:
    print("| workload | M requests/CPU s |\n|---|---|")
    for line in SPEEDS:
        best = 0.0
        for _ in range(3):
            begun = time.process_time()
            rows = sum(
                chunk.rows for chunk in Trace.read(f"gen:{line},requests={REQUESTS}").chunks()
            )
            best = max(best, rows / (time.process_time() - begun) / 1e6)
        print(f"| {line} | {best:.1f} |")


def likenesses() -> None:
    print(
        "| capture | requests | misses 4 KiB, 1/10/50% | 64 KiB | 256 KiB | apart, mean/largest |",
        end="",
    )
    print(" hits over time apart | sequential | other policies, hits at 10% | KB | CPU s |")
    print("|---" * 11 + "|")
    for name, load in captures():
        capture = load()
        begun = time.process_time()
        table = trace_fit.measured(capture)
        workload = Workload.model_validate({"load": [{"kind": "stand-in", **table}]})
        stand_in = joined(list(generate(workload)))
        taken = time.process_time() - begun
        result = trace_fit.likeness(capture, stand_in)
        size = len(trace_fit.Fitted(table, None).to_toml()) / 1e3
        print(row(name, result, policies(capture, stand_in), size, taken), flush=True)


def captures():
    """Yield (name, load function) of the available traces, and of captures in this repository."""
    for traced in all_traces():
        if traced.name in NAMES:
            yield traced.name, traced.load
    for name in SMALL:
        trace = Trace.read(Path(__file__).parents[1] / "traces" / "blktrace" / name)
        yield name, lambda trace=trace: joined(list(trace.chunks()))


def row(name, result, policies_text, size_kb, taken_s) -> str:
    curves = [
        "/".join(f"{each.capture[at]:.1%}".rstrip("%") for at in (0, 2, 4))
        + " ; "
        + "/".join(f"{each.stand_in[at]:.1%}".rstrip("%") for at in (0, 2, 4))
        for each in result.curves
    ]
    apart = ", ".join(f"{each.mean * 100:.1f}/{each.largest * 100:.1f}" for each in result.curves)
    cells = [
        name,
        f"{result.capture.requests:,} ; {result.stand_in.requests:,}",
        *curves,
        apart,
        f"{result.hits_apart * 100:.1f}",
        " ; ".join(f"{sequential(each):.0%}" for each in (result.capture, result.stand_in)),
        policies_text,
        f"{size_kb:.0f}",
        f"{taken_s:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def sequential(tally) -> float:
    return sum(tally.sequential.values()) / max(sum(tally.count[op] for op in tally.sequential), 1)


def policies(capture, stand_in) -> str:
    """Return hit ratios of caches of a tenth of the capture's pages of 64 KiB, as text."""
    distinct = trace_fit.miss_ratio_curve(Rows("", capture), page="64KiB", sizes=[1]).distinct
    cells = []
    for replacement, admission in POLICIES:
        ratios = [
            next(
                iter(
                    hits(
                        Rows("", rows),
                        [distinct // 10 * 65536],
                        replacement,
                        admission=admission,
                        page="64KiB",
                    )
                )
            ).page_hit_ratio
            for rows in (capture, stand_in)
        ]
        name = replacement if admission == "always" else admission
        cells.append(f"{name} {ratios[0] * 100:.1f};{ratios[1] * 100:.1f}")
    return ", ".join(cells)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", action="store_true")
    speeds() if parser.parse_args().speed else likenesses()
