"""`hybridsim watch` beside the dm-cache of `beside.py`, killed and started again.

    python benchmarks/beside_watch.py OUT [--kill MINUTE ...] [--down SECONDS]

Follows OUT/stream.txt as it grows, from its begin; OUT/watch.jsonl gets a line a minute, and
OUT/use.csv the CPU time and memory of the process.  After a kill the stream is read from its end
on, as a pipe from another machine would be.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from validate.lab import running

ENDED = b"dropped events:"  # what the guest prints last


def started(out, lines):
    """Return `tail` and `watch`; `lines` is the argument of tail."""
    tail = subprocess.Popen(
        ["tail", "-n", lines, "-F", "-s", "0.5", out / "stream.txt"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    words = ["-m", "hybridsim", "watch", "-", "--every", "1m", "--json"]
    words += ["--scenario", str(running.MACHINE), "--state", str(out / "state.npz")]
    with (out / "watch.jsonl").open("a") as lines_out, (out / "watch.err").open("a") as errors:
        watch = subprocess.Popen(
            [sys.executable, *words], stdin=tail.stdout, stdout=lines_out, stderr=errors
        )
    tail.stdout.close()
    return tail, watch


def has_ended(path):
    """Return whether the guest has printed its last line."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 2000, 0))
        return ENDED in file.read()


def use(pid):
    """Return CPU seconds, and resident memory in MiB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGESIZE") / (1 << 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kill", type=float, nargs="*", default=[], metavar="MINUTE")
    parser.add_argument("--down", type=float, default=60, metavar="SECONDS")
    args = parser.parse_args()
    begin = time.time()
    kills = sorted(args.kill)
    tail, watch = started(args.out, "+1")
    next_s = begin
    with (args.out / "use.csv").open("a") as table:
        while not has_ended(args.out / "stream.txt"):
            time.sleep(1)
            if watch.poll() is not None:
                sys.exit(f"watch ended with {watch.returncode}: see {args.out / 'watch.err'}")
            minute = (time.time() - begin) / 60
            if kills and minute >= kills[0]:
                kills.pop(0)
                watch.send_signal(signal.SIGKILL)
                watch.wait()
                tail.kill()
                tail.wait()
                table.write(f"{minute:.2f},killed\n")
                time.sleep(args.down)
                tail, watch = started(args.out, "0")
            if time.time() >= next_s:
                next_s += 60
                cpu_s, mib = use(watch.pid)
                table.write(f"{minute:.2f},{watch.pid},{cpu_s:.2f},{mib:.0f}\n")
                table.flush()
    time.sleep(5)
    tail.kill()
    watch.wait(60)


if __name__ == "__main__":
    main()
