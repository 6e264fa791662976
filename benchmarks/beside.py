"""A dm-cache in a guest under a load that moves, and its block events as text for `watch -`.

python benchmarks/beside.py OUT [--minutes 120]

OUT/stream.txt grows while the guest runs: `tail -n +1 -f OUT/stream.txt | hybridsim watch - ...`.
OUT/blocks.txt has what the cache makes of the bios: where each was sent, and each promotion.
At the end it prints how long a thread of the guest's kernel takes to wake in a commit of metadata:
`worker_delay` of the simulated cache (`beside_watch.py --worker-delay`).
Five hot spots of 48 MiB follow one another on a volume of 4 GiB (a cache of 64 MiB), and two scans
pass; the remaining load is skewed over all of the volume.
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np

from hybridsim.foundation.codes import Op
from validate.lab import guest, running
from validate.lab.machine import Disk

MIB = 1 << 20
SLOW_BYTES, FAST_BYTES = 4096 * MIB, 72 * MIB
METADATA_BYTES = 4 * MIB
SPOTS_MIB = (300, 2100, 1200, 3500, 700)
SCANS = (0.3, 0.7)  # of the time, where they begin
SCAN_SHARE = 0.08
OF_BLOCKS = ("block_bio_remap: ", "block_rq_issue: ", "blocks: ")


def job(seconds):
    """Return the fio job."""
    each = seconds // len(SPOTS_MIB)
    scan = int(seconds * SCAN_SHARE)
    parts = [
        "[global]\ndirect=1\nioengine=libaio\ntime_based\nrate_process=poisson\nallrandrepeat=1\n"
        "norandommap\nthread\ngroup_reporting=0",
        f"[skewed]\nrw=randrw\nrwmixread=80\nbs=4k\niodepth=4\nsize={SLOW_BYTES}\n"
        f"random_distribution=zipf:1.1\nrate_iops=20,5\nruntime={seconds}",
    ]
    parts += [
        f"[spot{i}]\nrw=randrw\nrwmixread=80\nbs=4k\niodepth=4\noffset={at}m\nsize=48m\n"
        f"rate_iops=48,12\nstartdelay={i * each}\nruntime={each}"
        for i, at in enumerate(SPOTS_MIB)
    ]
    parts += [
        f"[scan{i}]\nrw=read\nbs=128k\niodepth=1\noffset=0\nsize={SLOW_BYTES}\nrate_iops=30\n"
        f"rate_process=linear\nstartdelay={int(seconds * begin)}\nruntime={scan}"
        for i, begin in enumerate(SCANS)
    ]
    return "\n\n".join(parts) + "\n"


def commit_gaps_ms(path):
    """Return the times from the answer to a request of a commit to the next request.

    A commit is writes of metadata, a flush, the write of the superblock, a flush.
    """
    log = np.sort(np.load(path), order="arrival_ns")
    is_flush = log["op"] == Op.FLUSH
    is_kept = is_flush | ((log["op"] == Op.WRITE) & (log["offset"] < METADATA_BYTES))
    log, is_flush = log[is_kept], is_flush[is_kept]
    kinds = np.where(is_flush, "f", np.where(log["offset"] == 0, "s", "w"))
    text = "".join(kinds)
    gaps = [
        log["arrival_ns"][at + 1] - log["sent_ns"][at]
        for match in re.finditer("wfsf", text)
        for at in range(match.start(), match.start() + 3)
    ]
    return np.array(gaps) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=120)
    args = parser.parse_args()
    seconds = int(args.minutes * 60)
    args.out.mkdir(parents=True, exist_ok=True)
    served = [
        running.Served(Disk("slow", SLOW_BYTES, is_served=True), "array"),
        running.Served(Disk("fast", FAST_BYTES, is_served=True, is_rotational=False), "ssd"),
    ]
    text = job(seconds)
    (args.out / "load.fio").write_text(text)
    with (
        (args.out / "stream.txt").open("w") as stream,
        (args.out / "blocks.txt").open("w") as blocks,
    ):

        def write(line):
            file = blocks if any(name in line for name in OF_BLOCKS) else stream
            file.write(line + "\n")
            file.flush()

        done = guest.run(
            [["python3", "-s", "beside_guest.py", "{slow}", "{fast}", "load.fio"]],
            [each.disk for each in served],
            args.out,
            server=running._server(running.MACHINE, served),
            files={
                "load.fio": text.encode(),
                "beside_guest.py": Path(__file__).with_name("beside_guest.py").read_bytes(),
            },
            limit_s=seconds * 1.2 + 600,
            on_output=write,
            progress=lambda line: print(line, file=sys.stderr, flush=True),
        )
    gaps = commit_gaps_ms(args.out / "disks/fast.requests.npy")
    print(
        f"from one request of a commit to the next: {gaps.mean():.2f} ms, median "
        f"{np.median(gaps):.2f} ({len(gaps)})"
    )
    return done.codes[-1]


if __name__ == "__main__":
    sys.exit(main())
