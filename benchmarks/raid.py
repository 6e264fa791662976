"""IOPS of arrays by level, healthy, degraded and rebuilding, against an admin's arithmetic.

    python benchmarks/raid.py [--json]

The disks are the default scenario's, each 1 TB here, without a cache.  Random requests of 4 KiB, 32
under way; sequential ones of 1 MiB, 4 under way.  The arithmetic: random reads come at n times what
one disk reads with its share of the accesses under way; writes at that of one disk's writes times n
divided by the write penalty (1 without redundancy, 2 on mirrors, 4 on RAID-5, 6 on RAID-6).
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
AT_A_TIME = {"raid0": 1, "raid1": 2, "raid5": 2, "raid6": 3, "raid10": 2}  # of a write's accesses
ARRAYS = [("raid0", 4), ("raid1", 2), ("raid5", 5), ("raid6", 8), ("raid10", 4)]
STATES = ("healthy", "degraded", "rebuilding")
LOADS = [
    ("random read", Op.READ, 4 * KIB, 8_000),
    ("random write", Op.WRITE, 4 * KIB, 8_000),
    ("sequential read", Op.READ, MIB, 3_000),
    ("sequential write", Op.WRITE, MIB, 3_000),
]


def scenario(kind: str, members: int, state: str = "healthy") -> Scenario:
    """The array in that state; the second member is the one that is lost."""
    lost = {"degraded": "failed = [1]", "rebuilding": "rebuild = {member = 1}"}.get(state, "")
    text = f'[backing]\nkind = "{kind}"\nmembers = {members}\ncapacity = "{MEMBER}"\n{lost}'
    return Scenario.loads(text)


def rate(site: Scenario, op: Op, length: int, count: int, depth: int) -> float:
    """Requests a second, closed loop."""
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


def rows() -> list[dict[str, object]]:
    """Every array, state and load."""
    found: list[dict[str, object]] = []
    for kind, members in ARRAYS:
        for state in STATES if kind != "raid0" else STATES[:1]:
            row: dict[str, object] = {"level": kind, "members": members, "state": state}
            for name, op, length, count in LOADS:
                depth = DEPTH if length == 4 * KIB else 4
                row[name] = round(rate(scenario(kind, members, state), op, length, count, depth), 1)
            if state == "healthy":
                row |= arithmetic(kind, members)
            found.append(row)
    return found


def arithmetic(kind: str, members: int) -> dict[str, object]:
    """What is expected of a healthy array, from one disk."""
    one = scenario("single", 1)
    penalty = PENALTY[kind]
    at_a_time = AT_A_TIME[kind]
    reads = members * rate(one, Op.READ, 4 * KIB, 8_000, DEPTH // members)
    writes = members * rate(one, Op.WRITE, 4 * KIB, 8_000, at_a_time * DEPTH // members) / penalty
    return {"expected read": round(reads, 1), "expected write": round(writes, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = rows()
    if options.json:
        print(json.dumps(found, indent=2))
        return
    names = [name for name, *_ in LOADS]
    print("| | " + " | ".join(names) + " | n x disk, read | n x disk / penalty, write |")
    print("|---" * (len(names) + 3) + "|")
    for row in found:
        cells = [f"{row[name]:,.0f}" for name in names]
        cells += [
            f"{row[key]:,.0f}" if key in row else "" for key in ("expected read", "expected write")
        ]
        print(f"| {row['level']} of {row['members']}, {row['state']} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
