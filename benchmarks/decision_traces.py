"""The traces that decisions are judged on, by family, and which families rules are tuned on.

Captures come from $HYBRIDSIM_DATA (app-traces/, traces/, blktrace/, disksim/, kernel-caches/,
kernel-runs/) and from traces/ of the repository; stand-ins are fitted to some of them; the others
are generated.  All are cut to at most REQUESTS requests.

A family is what resembles itself: windows of one capture, its stand-ins, one workload by several
seeds.  A family is tuned on as a whole, judged as a whole, or unseen: see decision_unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from decision_loads import LOADS
from decision_unseen import UNSEEN, UNSEEN_REQUESTS
from policy_traces import data_folder, read_table

from hybridsim.requests.rows import UNKNOWN, Requests, joined
from hybridsim.studies.trace_fit import fit
from hybridsim.traces.trace import Trace, in_memory
from hybridsim.workloads.workload import Workload, generate

ROOT = Path(__file__).parents[1]
REQUESTS = 70_000
SECOND = 10**9
LIST_RATE = 120  # requests a second of a list that tells no times
SLOWED_RATE = 100  # of captures of fast storage, where their arrivals are to be kept
SEEDS = (1, 2)


@dataclass(frozen=True)
class Case:
    """A trace: its name, what it resembles, and how to get its requests."""

    name: str
    family: str
    load: Callable[[], Requests]
    is_generated: bool = False
    same: str = ""  # cases that differ by their seed alone have the same

    def trace(self) -> Trace:
        """Read or generate it."""
        return in_memory(self.name, self.load(), self.is_generated)


def read(*paths: Path, device: str | None = None) -> Requests:
    """Read all requests of a trace."""
    return joined(list(Trace.read(list(paths), device=device).chunks()))


def window(load: Callable[[], Requests], first: int, requests: int = REQUESTS) -> Requests:
    """Return some of the requests of a trace; fewer if there are no more."""
    rows = load()
    first = max(min(first, rows.rows - requests), 0)
    return rows.between(first, first + requests)


def slowed(load: Callable[[], Requests], rate: float = SLOWED_RATE) -> Requests:
    """Return requests at so many a second on average; without completions, so arrivals are kept."""
    rows = load()
    span = max(int(rows.arrival_ns[-1] - rows.arrival_ns[0]), 1)
    factor = rows.rows * SECOND / rate / span
    first = rows.arrival_ns[0]
    unknown = np.full(rows.rows, UNKNOWN, np.int64)
    return rows._replace(
        arrival_ns=np.rint((rows.arrival_ns - first) * factor).astype(np.int64),
        dispatch_ns=unknown,
        complete_ns=unknown,
    )


def timed(load: Callable[[], Requests], seed: int) -> Requests:
    """Return a list's requests with times, drawn."""
    rows = load()
    gaps = np.random.default_rng(seed).exponential(SECOND / LIST_RATE, rows.rows)
    return rows._replace(arrival_ns=np.cumsum(gaps).astype(np.int64))


def stand_in(load: Callable[[], Requests], name: str, seed: int) -> Requests:
    """Fit a stand-in and make its requests."""
    table = fit(in_memory(name, load()), check=False).table
    workload = Workload.model_validate({"seed": seed, "load": [{"kind": "stand-in", **table}]})
    return joined(list(generate(workload)))


def generated(line: str, seed: int) -> Requests:
    """Make a workload's requests: what follows gen: on a command line, or a file."""
    is_file = line.endswith((".toml", ".icf"))
    trace = Trace.read(ROOT / line if is_file else f"gen:{line}").seeded(seed)
    rows = joined(list(trace.chunks(REQUESTS * 4)))
    return rows.between(0, REQUESTS)


# family: (workload, how many requests a case has)
GENERATED = {
    "uniform": ("random,span=49MiB,size=512,align=512,read=100%,rate=80,requests=5000",
                "random,span=2GiB,read=70%,rate=90,requests={n}"),
    "hot-spot": ("hot-spot,span=4GiB,hot=5%,share=80%,read=90%,rate=120,requests={n}",
                 "hot-spot,span=2GiB,hot=10%,share=60%,read=30%,rate=80,requests={n}"),
    "moving": ("hot-spot,span=2GiB,hot=5%,share=85%,every=40s,moved=20%,rate=110,requests={n}",
               "hot-spot,span=4GiB,hot=2%,share=70%,every=10s,moved=50%,rate=110,requests={n}"),
    "zipf": ("zipf,span=4GiB,theta=1.1,read=80%,rate=120,requests={n}",
             "zipf,span=8GiB,theta=0.8,read=95%,rate=120,requests={n}"),
    "zoned": ("zoned,span=4GiB,zones=70/5:20/15:10/80,read=60%,rate=90,requests={n}",),
    "sequential": ("sequential,span=4GiB,streams=4,run=32MiB,rate=60,requests={n}",),
    "writes": ("random,span=1GiB,read=10%,rate=70,requests={n}",
               "hot-spot,span=1GiB,hot=10%,share=80%,read=5%,rate=90,requests={n}"),
    "bursts": ("hot-spot,span=2GiB,hot=10%,share=80%,read=70%,rate=40,burst_every=60s,"
               "burst_lasts=5s,burst_rate=600,requests={n}",),
    "mail": ("traces/workloads/mail.toml",),
    "sysbench": ("sysbench,test-mode=rndrw,total-size=1GiB,rate=70,requests={n}",),
}  # fmt: skip

TUNED = frozenset({
    "rocksdb", "mariadb", "cloudphysics", "oltp", "loops", "mqsim", "dmcache-run",
    "uniform", "moving", "zipf", "writes", "mail", *LOADS,
})  # fmt: skip


def is_tuned(family: str) -> bool:
    """Tell whether rules may be tuned on a family."""
    return family in TUNED


def part_of(family: str) -> str:
    """Return which part of the yardstick a family belongs to."""
    return "tuned" if is_tuned(family) else "unseen" if family in UNSEEN else "judged"


def all_cases(requests: int = REQUESTS) -> list[Case]:
    """Return the traces at hand, those of the data folder only if there is one."""
    return [*captures(data_folder(), requests), *made(requests)]


def made(requests: int) -> Iterator[Case]:
    """Return the generated ones."""
    for family, lines in GENERATED.items():
        for number, line in enumerate(lines, 1):
            for seed in SEEDS:
                text = line.replace("{n}", str(requests))
                yield Case(
                    f"{family} {number} seed {seed}", family,
                    lambda text=text, seed=seed: generated(text, seed).between(0, requests),
                    True, f"{family} {number}",
                )  # fmt: skip
    for family, lines in LOADS.items():
        for number, line in enumerate(lines, 1):
            text = line.replace("{n}", str(requests // 2))
            yield Case(
                f"{family} {number}", family,
                lambda text=text, seed=number: generated(text, seed), True,
            )  # fmt: skip
    for family, line in UNSEEN.items():
        for seed in SEEDS:
            text = line.replace("{n}", str(UNSEEN_REQUESTS))
            yield Case(
                f"{family} seed {seed}", family,
                lambda text=text, seed=seed: generated(text, seed), True, family,
            )  # fmt: skip


def captures(folder: Path, n: int) -> Iterator[Case]:
    """Return captures, windows of them, and their stand-ins."""
    demo = sorted((ROOT / "traces" / "demo").glob("*.blktrace.*"))
    yield Case("rocksdb demo", "rocksdb", lambda: window(lambda: read(*demo), 35_000, n // 2))
    apps = {"rocksdb": "rocksdb_mixgraph", "mariadb": "mariadb_moving_hot",
            "pg": "pg_zipf", "fileserver": "fileserver_newhot"}  # fmt: skip
    for family, name in apps.items():
        at = folder / "app-traces" / name
        if not at.is_dir():
            continue
        parts = sorted(at.glob("*.blktrace.*"))
        table = at / f"{name}.csv.zst"

        def first(parts: list[Path] = parts) -> Requests:
            return window(lambda: read(*parts), 0, n)

        yield Case(f"{name} think", family, first)
        yield Case(
            f"{name} think later", family,
            lambda parts=parts: window(lambda: read(*parts), 120_000, n),
        )  # fmt: skip
        yield Case(
            f"{name} slowed", family,
            lambda table=table: slowed(lambda: window(lambda: read_table(table), 300_000, n)),
        )  # fmt: skip
        yield Case(
            f"{name} every 8th slowed", family,
            lambda table=table: slowed(lambda: every(window(lambda: read_table(table), 0, 8 * n))),
        )  # fmt: skip
        for seed in SEEDS[:2]:
            yield Case(
                f"{name} stand-in {seed}", family,
                lambda first=first, seed=seed, name=name: slowed(
                    lambda: stand_in(first, name, seed)
                ),
                True, f"{name} stand-in",
            )  # fmt: skip
    yield from public(folder / "traces", n)
    yield from kernel(folder, n)


def every(rows: Requests, step: int = 8) -> Requests:
    """Return the requests to every eighth MiB or so: a longer time of a smaller load."""
    mine = (rows.offset_bytes >> 20).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(
        32
    )
    return Requests._make(column[mine % np.uint64(step) == 0] for column in rows)


def public(folder: Path, n: int) -> Iterator[Case]:
    """Return public traces."""
    path = folder / "cloudPhysicsIO.vscsi.zst"
    if path.exists():
        for number in range(2):
            yield Case(
                f"cloudphysics {number + 1}", "cloudphysics",
                lambda number=number: window(lambda: read(path), number * n, n),
            )  # fmt: skip
        yield Case(
            "cloudphysics stand-in", "cloudphysics",
            lambda: stand_in(lambda: window(lambda: read(path), 0, n), "cloudphysics", 1), True,
        )  # fmt: skip
    for name, family in (("OLTP", "oltp"), ("P2", "p2")):
        file = folder / f"{name}.lis.zst"
        if file.exists():
            for number, first in enumerate((0, 300_000), 1):
                yield Case(
                    f"{name} {number}", family,
                    lambda file=file, first=first: timed(
                        lambda: window(lambda: read(file), first, n), 1
                    ),
                )  # fmt: skip
    for file, device, rate in (
        ("msr-cambridge1-sample.csv", None, 0), ("systor17-traces-sample.csv.gz", None, 60),
        ("cloud_storage-sample.bz2", "1418", 60), ("cloud_storage-sample.bz2", "1730", 60),
        ("wsrch-small.trace", "2", 0), ("wsrch-small.trace", "0", 0),
    ):  # fmt: skip
        if (folder / file).exists():
            family = {"m": "msr", "s": "systor", "c": "tencent", "w": "mqsim"}[file[0]]

            def load(file: str = file, device: str | None = device, rate: int = rate) -> Requests:
                rows = window(lambda: read(folder / file, device=device), 0, n)
                return slowed(lambda: rows, rate) if rate else rows

            yield Case(f"{file.split('.')[0]} {device or ''}".strip(), family, load)


def kernel(folder: Path, n: int) -> Iterator[Case]:
    """Return captures of fio on loop devices and on caches."""
    for case, name in (
        ("loop_ext4_mqdl_randrw", "loop0"), ("loop_part_remap_bfq", "loop0"),
        ("loop_ext4_buffered_meta", "loop0"), ("zram_bio_based", "zram0"),
    ):  # fmt: skip
        parts = sorted((ROOT / "traces" / "blktrace" / case).glob(f"{name}.blktrace.*"))
        yield Case(case, "loops", lambda parts=parts: window(lambda: read(*parts), 0, n))
    for place, name, family in (
        ("kernel-caches/dmcache-smq-wt-hot-c512", "dm-2", "dmcache-run"),
        ("kernel-caches/bcache-wt-hot-c512", "bcache0", "bcache-run"),
        ("kernel-caches/fs-ext4-on-dmcache-wb", "dm-2", "ext4-run"),
        ("kernel-runs/dm-writecache-randrw", "vda", "writecache-run"),
        ("kernel-runs/opencas-wb-randrw-alru", "vda", "opencas-run"),
    ):
        parts = sorted((folder / place / "trace").glob(f"{name}.blktrace.*"))
        if parts:
            yield Case(
                place.split("/")[1], family,
                lambda parts=parts: window(lambda: read(*parts), 0, n),
            )  # fmt: skip
