"""IOPS of arrays by level, healthy, degraded and rebuilding, compared with a rule of thumb.

    python benchmarks/raid.py [--json]

The disks are those of the default scenario with 1 TB each, without an SSD cache; with their write
cache on, the factory setting, and off.  Random requests of 4 KiB at depth 32; sequential ones of 1
MiB at depth 4.  The rule: the rate of random reads is n times that of one disk at its share of the
depth; that of writes is n times that of one disk divided by the write penalty (1 without
redundancy, 2 on mirrors, 4 on RAID-5, 6 on RAID-6).
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from hybridsim.engine import loops
from hybridsim.engine.machine import Run
from hybridsim.foundation.codes import Op
from hybridsim.requests.inflight import Batch
from hybridsim.scenario import Scenario, building

KIB, MIB = 1 << 10, 1 << 20
MEMBER = "1TB"
DEPTH = 32
PENALTY = {"raid0": 1, "raid1": 2, "raid5": 4, "raid6": 6, "raid10": 2}
AT_A_TIME = {"raid0": 1, "raid1": 2, "raid5": 2, "raid6": 3, "raid10": 2}  # parallel per write
ARRAYS = [("raid0", 4), ("raid1", 2), ("raid5", 5), ("raid6", 8), ("raid10", 4)]
WRITE_CACHES = {"drive": "on", "off": "off"}  # value in scenarios: word in the table
STATES = ("healthy", "degraded", "rebuilding")
LOADS = [
    ("random read", Op.READ, 4 * KIB, 8_000),
    ("random write", Op.WRITE, 4 * KIB, 8_000),
    ("sequential read", Op.READ, MIB, 3_000),
    ("sequential write", Op.WRITE, MIB, 3_000),
]


def scenario(kind: str, members: int, write_cache: str, state: str = "healthy") -> Scenario:
    """Return the array in that state; the second member is the failed one."""
    lost = {"degraded": "failed = [1]", "rebuilding": "rebuild = {member = 1}"}.get(state, "")
    return Scenario.loads(f'''
        [backing]
        kind = "{kind}"
        members = {members}
        capacity = "{MEMBER}"
        write_cache = "{write_cache}"
        {lost}
    ''')


def rate(site: Scenario, op: Op, length: int, count: int, depth: int) -> float:
    """Return requests per second in closed loop."""
    machine = building.machine(site.with_options(depth=depth), "closed", 1, 0)
    held = machine.below.slow.capacity_bytes
    if length == 4 * KIB:
        places = np.random.default_rng(4).integers(0, held // length, count) * length
    else:
        places = held // 3 // length * length + np.arange(count) * length
    none = np.full(count, -1)
    ops = np.full(count, op, np.uint8)
    run = Run(machine)
    run.feed(Batch(none, ops, places, np.full(count, length), none, none, np.array([0, 1, 0])))
    while run.advance(loops.NEVER)[0] != loops.FINISHED:
        pass
    return float(count / run.now_ns * 1e9)


def rows(write_cache: str) -> list[dict[str, object]]:
    """Return a row for each array and state, with all loads."""
    result: list[dict[str, object]] = []
    for kind, members in ARRAYS:
        for state in STATES if kind != "raid0" else STATES[:1]:
            row: dict[str, object] = {"write cache": WRITE_CACHES[write_cache]}
            row |= {"level": kind, "members": members, "state": state}
            site = scenario(kind, members, write_cache, state)
            for name, op, length, count in LOADS:
                depth = DEPTH if length == 4 * KIB else 4
                row[name] = round(rate(site, op, length, count, depth), 1)
            if state == "healthy":
                row |= arithmetic(kind, members, write_cache)
            result.append(row)
    return result


def arithmetic(kind: str, members: int, write_cache: str) -> dict[str, object]:
    """Return the expected rates of a healthy array, from those of one disk."""
    one = scenario("single", 1, write_cache)
    penalty = PENALTY[kind]
    at_a_time = AT_A_TIME[kind]
    reads = members * rate(one, Op.READ, 4 * KIB, 8_000, DEPTH // members)
    writes = members * rate(one, Op.WRITE, 4 * KIB, 8_000, at_a_time * DEPTH // members) / penalty
    return {"expected read": round(reads, 1), "expected write": round(writes, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = {words: rows(name) for name, words in WRITE_CACHES.items()}
    if options.json:
        print(json.dumps([row for table in result.values() for row in table], indent=2))
        return
    names = [name for name, *_ in LOADS]
    for words, table in result.items():
        print(f"Write caches {words}:\n")
        print("| | " + " | ".join(names) + " | n x disk, read | n x disk / penalty, write |")
        print("|---" * (len(names) + 3) + "|")
        for row in table:
            cells = [f"{row[name]:,.0f}" for name in names]
            cells += [
                f"{row[key]:,.0f}" if key in row else ""
                for key in ("expected read", "expected write")
            ]
            what = f"{row['level']} of {row['members']}, {row['state']}"
            print(f"| {what} | " + " | ".join(cells) + " |")
        print()


if __name__ == "__main__":
    main()
