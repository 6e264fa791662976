"""A dm-cache in a guest under a load that moves, and its block events as text for `watch -`.

python benchmarks/beside.py OUT [--minutes 120]

OUT/stream.txt grows while the guest runs: `tail -n +1 -f OUT/stream.txt | hybridsim watch - ...`.
Five hot spots of 48 MiB follow one another on a volume of 4 GiB (a cache of 64 MiB), and two scans
pass; the remaining load is skewed over all of the volume.
"""

import argparse
import sys
from pathlib import Path

from validate.lab import guest, running
from validate.lab.machine import Disk

MIB = 1 << 20
SLOW_BYTES, FAST_BYTES = 4096 * MIB, 72 * MIB
SPOTS_MIB = (300, 2100, 1200, 3500, 700)
SCANS = (0.3, 0.7)  # of the time, where they begin
SCAN_SHARE = 0.08


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
    with (args.out / "stream.txt").open("w") as stream:

        def write(line):
            stream.write(line + "\n")
            stream.flush()

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
    return done.codes[-1]


if __name__ == "__main__":
    sys.exit(main())
