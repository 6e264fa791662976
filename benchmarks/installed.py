"""Whether a cache that `advise` recommends gains what was promised, built as `setup` prints it.

python benchmarks/installed.py OUT [NAME...]     run those not done yet; then the table of all

Each run is what an administrator would do, in the lab's guest (validate/lab):

    machine    the disks and the SSD as fio measures them in the guest: the site of all its runs
    capture    a part of a recorded capture; what is known when the promise is made is its FIRST
    promise    `advise`, then the `replay` that it prints, with --json; settings as advised
    built      the scripts of `setup`: check, install, verify; later remove
    gain       the whole part is replayed on the plain disks, then on the cache, each request when
               the one that it waits for in the capture is complete (as the promise assumes it);
               how much sooner the same requests are done
    check      `hybridsim check` on the counters before and after: of the promise, and of the
               simulation of the whole part

Two gains are judged: that of the judged half of what `advise` saw, whose interval is the one of
`compare` and `sweep` (trace and model), and that of all that follows it, whose interval is the
forecast's.  Captures come from $HYBRIDSIM_DATA/app-traces and from --recorded; it needs a C
compiler, and some ten minutes a run.  As root and on a busy machine put `chrt -r 5` before it.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import guest_caches as lab  # noqa: E402

from hybridsim.answers.intervals import Blocks, gains  # noqa: E402
from hybridsim.engine.think import Waits  # noqa: E402
from hybridsim.foundation.codes import Op  # noqa: E402
from hybridsim.requests.rows import UNKNOWN, Requests, joined  # noqa: E402
from hybridsim.traces.formats import requests_csv  # noqa: E402
from hybridsim.traces.trace import Trace  # noqa: E402
from validate.lab import guest  # noqa: E402
from validate.lab.machine import Disk  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
SLOW_BYTES, FAST_BYTES = 11 * GIB, 3 * GIB
BLOCK = 4096  # the requests are widened to it: bcache's and dm-writecache's blocks
FIRST = 0.3  # of the requests; a forecast is for 7/3 times as many
FIO_S = 5
BOOT_S = 300
KINDS = ("dm-cache", "bcache", "dm-writecache")  # what the guest has; Open CAS with --open-cas
OPEN_CAS = "open-cas"
DEVICES = {OPEN_CAS: ("/dev/disk/by-id/lab-slow", "/dev/disk/by-id/lab-fast")}  # casadm wants these

MACHINES = {
    "nearline": 'kind = "stripe"\nmembers = 4\n[backing.drive]\nlike = "hgst-ultrastar-7k8"',
    "fast": 'kind = "single"\n[backing.drive]\nlike = "seagate-cheetah-15k7"',
}
SITE = """[backing]
capacity = "drive"
queue_depth = 16 # requests in flight of QEMU's NBD client
writeback_throttle = "auto"
{backing}

[cache.drive]
kind = "ssd"
name = "an SSD of the lab"
capacity = "64GB"
read_latency = "{read_us}us"
write_latency = "{write_us}us"
random_read_iops = {read_iops}
random_write_iops = {write_iops}
sequential_read = "{read_mb}MB/s"
sequential_write = "{write_mb}MB/s"
dies = 128
fua = false # like virtio-blk
volatile_cache = true # like virtio-blk: the guest sends FLUSH
"""
# The SSD itself: the guest adds as much again.
SSD = {"read_us": 250, "write_us": 250, "read_iops": 8000, "write_iops": 8000, "read_mb": 500,
       "write_mb": 400}  # fmt: skip
MEASURED = {
    "write_us": ("randwrite", "4k", 1), "write_iops": ("randwrite", "4k", 16),
    "write_mb": ("write", "256k", 4), "read_us": ("randread", "4k", 1),
    "read_iops": ("randread", "4k", 16), "read_mb": ("read", "256k", 4),
}  # fmt: skip
FIO = """fio --name=one --filename=$FAST --direct=1 --ioengine=libaio --rw={} --bs={} --iodepth={} \
--thinktime={} --norandommap --runtime={} --time_based --output-format=json --output=$OUT/{}.json
"""
THINK = {1: "1ms"}  # by depth: a single request is rarely issued as soon as one is complete
PLAIN = """chmod 755 replay
./replay $SLOW requests $OUT/plain
"""
# What its `make install` and udev do: there is neither in the guest.
WITH_OPEN_CAS = """insmod cas_cache.ko; cp casadm /tmp/bin; mkdir -p /etc/opencas /dev/disk/by-id
ln -s $SLOW /dev/disk/by-id/lab-slow; ln -s $FAST /dev/disk/by-id/lab-fast
cd /dev/disk/by-id
printf "#!/bin/sh\\nln -sf $(readlink -f lab-fast)1 $PWD/lab-fast-part1\\n" > /tmp/bin/udevadm
cd /job
printf '#!/bin/sh\\n' > /tmp/bin/systemctl
chmod 755 /tmp/bin/*
"""
CACHED = """sh check.sh > $OUT/before.txt
sh install.sh > $OUT/install.txt 2>&1 || { cat $OUT/install.txt; exit 1; }
sh verify.sh > $OUT/verify.txt
counters first
cat /proc/stat > $OUT/stat-first.txt
./replay DEVICE requests $OUT/cached
cat /proc/stat > $OUT/stat-last.txt
counters last
sh verify.sh > $OUT/verify-last.txt
sh remove.sh > $OUT/remove.txt 2>&1 || { cat $OUT/remove.txt; exit 1; }
"""


@dataclass(frozen=True)
class Run:
    """A part of a capture, on a machine."""

    name: str
    capture: str  # below $HYBRIDSIM_DATA/app-traces, or in the folder --recorded
    requests: int
    machine: str = "nearline"
    skip: int = 0  # requests at the capture's begin

    def file(self, recorded: Path) -> Path:
        """Return one file of its capture."""
        if "/" in self.capture:
            return Path(os.environ["HYBRIDSIM_DATA"], "app-traces", self.capture)
        return recorded / self.capture


RUNS = [
    Run("rocksdb", "rocksdb_mixgraph/rocksdb_mixgraph.blktrace.0.zst", 30_000),
    Run("postgresql", "pg_zipf/pg_zipf.blktrace.0.zst", 40_000),
    Run("mariadb", "mariadb_moving_hot/mariadb_moving_hot.blktrace.0.zst", 40_000),
    Run("file-server", "fileserver_newhot/fileserver_newhot.blktrace.0.zst", 40_000),
    Run("photos", "photos.blktrace.0.zst", 40_000),
    Run("pgbench", "pgbench.blktrace.0.zst", 40_000),
    Run("sqlite", "sqlite.blktrace.0.zst", 40_000),
    Run("mail", "mail.blktrace.0.zst", 40_000),
    Run("sysbench", "maria.blktrace.0.zst", 40_000, "fast"),
    Run("tree", "tree.blktrace.0.zst", 40_000, "fast"),
    Run(
        "rocksdb-later", "rocksdb_mixgraph/rocksdb_mixgraph.blktrace.0.zst", 40_000, "fast", 100_000
    ),
    Run("postgresql-later", "pg_zipf/pg_zipf.blktrace.0.zst", 40_000, "fast", 100_000),
]


def widened(capture, run):
    """Return the requests of a run: those of the capture, widened to whole blocks."""
    rows = joined(list(Trace.read(capture).chunks()))
    keep = np.isin(rows.op, [Op.READ, Op.WRITE, Op.FLUSH]) & (rows.complete_ns != UNKNOWN)
    kept = np.flatnonzero(keep)[run.skip : run.skip + run.requests]
    rows = Requests._make(column[kept] for column in rows)
    moves = rows.op != Op.FLUSH
    offset = np.where(moves, rows.offset_bytes // BLOCK * BLOCK, 0)
    end = -(-(rows.offset_bytes + rows.length_bytes) // BLOCK) * BLOCK
    return rows._replace(offset_bytes=offset, length_bytes=np.where(moves, end - offset, 0))


def written(rows, path):
    """Write requests as the CSV of `trace convert`; return them as it is read again."""
    with path.open("w") as file:
        requests_csv.write(iter([rows]), file.write)
    return joined(list(Trace.read(path).chunks()))


def orders(rows):
    """Return the requests for installed_replay.c: as `--mode think` issues them."""
    parent, gap_ns = Waits().parents(rows.arrival_ns, rows.complete_ns, rows.stream)
    columns = [rows.op, rows.offset_bytes, rows.length_bytes, parent, gap_ns, rows.arrival_ns]
    return np.stack([each.astype(np.int64) for each in columns], axis=1).tobytes()


def in_guest(script, files, out, model, limit_s):
    """Run a shell script in a guest with the disks of a model; raise if it fails."""
    out.mkdir(parents=True, exist_ok=True)
    scenario = out / "machine.toml"
    scenario.write_text(model)
    server = [sys.executable, "-m", "validate.lab.serve", str(scenario)]
    server += [f"slow=array:{SLOW_BYTES}", f"fast=ssd:{FAST_BYTES}"]
    own = {"systemctl": lab.SYSTEMCTL, "udevadm": lab.UDEVADM, "all.sh": lab.PRELUDE + script}
    packed = {name: text.encode() for name, text in own.items()} | files
    disks = [
        Disk("slow", SLOW_BYTES, is_served=True),
        Disk("fast", FAST_BYTES, is_served=True, is_rotational=False),
    ]
    done = guest.run(
        [["sh", "all.sh"]], disks, out, server=server, files=packed, memory_mb=lab.MEMORY_MB,
        limit_s=limit_s, on_output=print,
    )  # fmt: skip
    if done.codes != [0]:
        sys.exit(f"{out}: the guest's script failed")


def site_of(machine, folder):
    """Measure a machine in the guest with fio, once; return the file of its scenario.

    The disks are those of the catalog: the guest adds to their times what it adds to a single read
    of the SSD.  The SSD is as fio finds it.
    """
    site = folder / "site.toml"
    if site.exists():
        return site
    model = SITE.format(backing=MACHINES[machine], **SSD)
    jobs = {
        name: FIO.format(*job, THINK.get(job[2], 0), FIO_S, name) for name, job in MEASURED.items()
    }
    in_guest("".join(jobs.values()), {}, folder, model, BOOT_S)
    found = {}
    for name, (rw, _, _) in MEASURED.items():
        job = json.loads((folder / f"{name}.json").read_text())["jobs"][0]
        one = job["write" if "write" in rw else "read"]
        kinds = {
            "us": one["lat_ns"]["mean"] / 1e3,
            "iops": one["iops"],
            "mb": one["bw_bytes"] / 1e6,
        }
        found[name] = round(kinds[name.partition("_")[2]])
    text = SITE.format(backing=MACHINES[machine], **found)
    path_us = found["read_us"] - SSD["read_us"]
    site.write_text(text.replace("[backing]", f'[backing]\npath_latency = "{path_us}us"', 1))
    return site


def hybridsim(*words, codes=(0,)):
    """Run a command of hybridsim, at the usual priority; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "hybridsim", *map(str, words)], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0)),
    )  # fmt: skip
    if done.returncode not in codes:
        sys.exit(f"hybridsim {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def options(one):
    """Return the options of `replay` of a row of `advise`."""
    return [word for option in one["options"] for word in option.split()]


def promised(seen, site, out, kinds):
    """Promise the cache that `advise` recommends, and plan its setup; return its row.

    Where it recommends a kind that the guest lacks: the next best that it has.
    """
    advice, promise, plan = (out / f"{each}.json" for each in ("advice", "promise", "setup"))
    text = hybridsim("advise", seen, "--scenario", site, "--mode", "think", "--json", advice)
    (out / "advice.txt").write_text(text)
    document = json.loads(advice.read_text())
    rows = [document["recommended"], *document["rows"]]
    one = next((row for row in rows[:1] if row and row["kind"] in kinds), None)
    others = [row for row in rows[1:] if row["kind"] in kinds]
    one = one or max(others, key=lambda row: row["cautious"])
    text = hybridsim("replay", seen, "--scenario", site, *options(one), "--json", promise)
    (out / "promise.txt").write_text(text)
    slow, fast = DEVICES.get(one["kind"], ("/dev/vda", "/dev/vdb"))
    more = ["--from-source"] if one["kind"] == OPEN_CAS else []
    hybridsim("setup", promise, "--slow", slow, "--fast", fast, *more, "--json", plan)
    (out / "chosen.json").write_text(json.dumps(one))
    return one


def done_ns(path):
    """When all requests up to each were complete."""
    return np.maximum.accumulate(np.fromfile(path, np.int64).reshape(-1, 2)[:, 1])


def gain(plain, cached, first, end):
    """How many times sooner requests [first, end) are done on the cache."""
    return float(np.divide(*(each[end - 1] - each[first - 1] for each in (plain, cached))))


def prepared(run, recorded, folder, out, open_cas):
    """Make promise and scripts of a run, and do it in the guest, once."""
    if (out / "last.txt").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    site = site_of(run.machine, folder / f"machine-{run.machine}")
    rows = written(widened(run.file(recorded), run), out / "all.csv")
    written(rows.between(0, round(FIRST * rows.rows)), out / "seen.csv")
    kinds = (*KINDS, *([OPEN_CAS] if open_cas else []))
    one = promised(out / "seen.csv", site, out, kinds)
    sections = json.loads((out / "setup.json").read_text())["sections"]
    files = {f"{each['name']}.sh": each["script"].encode() for each in sections}
    files |= {"requests": orders(rows), "replay": (folder / "replay").read_bytes()}
    model = SITE.format(backing=MACHINES[run.machine], **SSD)
    script = PLAIN
    device = lab.cached_device(one["kind"])
    if one["kind"] == OPEN_CAS:
        script, device = WITH_OPEN_CAS + PLAIN, "/dev/cas1-1"
        files |= {name: (open_cas / name).read_bytes() for name in ("cas_cache.ko", "casadm")}
    script += CACHED.replace("DEVICE", device)
    in_guest(script, files, out, model, 1800)


def checked(out, promise):
    """Return what `check` says of the counters of a run."""
    found = out / f"check-{promise}"
    words = ("check", out / promise, out / "first.txt", out / "last.txt", "--json", found)
    found.with_suffix(".txt").write_text(hybridsim(*words, codes=(0, 4)))
    answer = json.loads(found.read_text())
    return answer["answer"], {each["name"]: each["verdict"] for each in answer["figures"]}


def facts_of(run, folder, out):
    """Hold a run against its promise, and against the simulation of all its requests."""
    one = json.loads((out / "chosen.json").read_text())
    site, whole = folder / f"machine-{run.machine}" / "site.toml", out / "whole.json"
    if not whole.exists():
        hybridsim(
            "replay", out / "all.csv", "--scenario", site, *options(one), "--json", whole
        )  # fmt: skip
    promise, simulated, advice = (
        json.loads((out / f"{name}.json").read_text()) for name in ("promise", "whole", "advice")
    )
    plain, cached = done_ns(out / "plain"), done_ns(out / "cached")
    judgement = promise["judgement"]
    sides = [Blocks.from_dict(judgement["blocks"][each]) for each in ("none", "cached")]
    first, seen = sides[0].first, sides[0].end
    half = gains(*sides)["took"]
    late = {
        disk: json.loads((out / "disks" / f"{disk}.model.json").read_text())["mean_late_us"]
        for disk in ("slow", "fast")
    }
    return {
        "name": run.name, "machine": run.machine, "requests": len(plain), "seen": seen,
        "answer": advice["answer"], "recommended": advice["recommended"]["name"],
        "adapts": judgement["load_adapts"],
        "cache": f"{one['name']}, {one['size_bytes'] // MIB} MiB {one['setting']}".strip(),
        "half": [half.value, half.low, half.high, gain(plain, cached, first, seen)],
        "rest": [
            *(judgement["forecast"][each] for each in ("gain", "low", "high")),
            gain(plain, cached, seen, len(plain)),
        ],
        "whole": [
            simulated["judgement"]["pairs"]["whole"]["took_gain"], float(plain[-1] / cached[-1])
        ],
        "half_s": {
            name: [side.whole_ns / 1e9, (done[seen - 1] - done[first - 1]) / 1e9]
            for name, side, done in zip(("plain", "cached"), sides, (plain, cached))
        },
        "whole_s": [plain[-1] / 1e9, cached[-1] / 1e9],
        "mean_late_us": late,
        "check": checked(out, "promise.json"),
        "check_whole": checked(out, "whole.json"),
    }  # fmt: skip


def row(facts):
    """Return a line of the table."""
    cells = [facts["name"], facts["machine"], facts["cache"]]
    for part in ("half", "rest"):
        value, low, high, found = facts[part]
        inside = "yes" if low <= found <= high else "NO"
        cells.append(f"{value:.2f} ({low:.2f} to {high:.2f}), {found:.2f}: {inside}")
    cells.append("{:.2f}, {:.2f}".format(*facts["whole"]))
    checks = (facts[each][0] for each in ("check", "check_whole"))
    return " | ".join(["", *cells, *checks, ""]).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--recorded", type=Path, default=Path("recorded"))
    parser.add_argument(
        "--open-cas",
        type=Path,
        help="folder of cas_cache.ko and casadm, built for the guest's kernel",
    )
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("installed_replay.c")
    subprocess.run(["cc", "-O2", "-static", "-o", args.out / "replay", source], check=True)
    found = []
    for run in RUNS:
        out = args.out / run.name
        if not args.names or run.name in args.names:
            prepared(run, args.recorded, args.out, out, args.open_cas)
            found.append(facts_of(run, args.out, out))
            (out / "summary.json").write_text(json.dumps(found[-1], indent=1) + "\n")
            print(row(found[-1]), flush=True)
    print(
        "| capture | machine | cache | gain of the half seen: promised, guest | of what follows: "
        "forecast, guest | of all: simulated, guest | check of the promise | of all |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    print("\n".join(map(row, found)))


if __name__ == "__main__":
    main()
