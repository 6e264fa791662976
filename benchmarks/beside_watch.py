"""`hybridsim watch` beside the dm-cache of `beside.py`, killed and started again.

    python benchmarks/beside_watch.py OUT [--kill MINUTE ...] [--down SECONDS] [--worker-delay TIME]

Follows OUT/stream.txt as it grows, from its begin.  OUT/watch.jsonl gets a line a minute,
OUT/use.csv the CPU time and memory of the process, OUT/hits.csv at the end the hit ratios of both
caches.  After a kill the stream goes on where its reader was, as `trace_pipe` does: the kernel's
buffer keeps what is not read, up to its size; what was in the pipe is lost.  The minutes are those
of the stream, so that a recorded one can be fed once more, at once (`--down 0`).
"""

import argparse
import csv
import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from validate.lab import running

ENDED = b"dropped events:"  # what the guest prints last
BUFFERED_BYTES = 2_500_000  # of text: 24,000 events of 60 bytes in the 1,410 kB of one CPU
BLOCK_BYTES = 1 << 16
TIME = re.compile(rb" (\d+\.\d{6}): ")


class Feed(threading.Thread):
    """Writes a growing file to a pipe, until the pipe breaks or the file ends.

    It halts at a second of the stream, until `go_on` is set.
    """

    def __init__(self, path, at, pipe, halt_s):
        super().__init__(daemon=True)
        self.path, self.at, self.pipe, self.halt_s = path, at, pipe, halt_s
        self.halted, self.go_on = threading.Event(), threading.Event()

    def run(self):
        with self.path.open("rb") as file:
            while True:
                data = os.pread(file.fileno(), BLOCK_BYTES, self.at)
                if not data:
                    if has_ended(self.path):
                        break
                    time.sleep(0.2)
                    continue
                try:
                    self.at += os.write(self.pipe, data)
                except BrokenPipeError:
                    break
                times = TIME.findall(data)
                if times and float(times[-1]) >= self.halt_s:
                    self.halted.set()
                    self.go_on.wait()
                    break
        os.close(self.pipe)


def first_s(path):
    """Return the time of the first line of a stream, as soon as there is one."""
    while True:
        with path.open("rb") as file:
            found = TIME.search(file.read(BLOCK_BYTES))
        if found:
            return float(found[1])
        time.sleep(0.2)


def started(out, at, halt_s, worker_delay):
    """Return `watch`, and what feeds it from that byte of the stream on."""
    words = ["-m", "hybridsim", "watch", "-", "--every", "1m", "--json"]
    words += ["--scenario", str(running.MACHINE), "--state", str(out / "state.npz")]
    words += ["--set", f"cache.worker_delay={worker_delay}"]
    read, write = os.pipe()
    with (out / "watch.jsonl").open("a") as lines_out, (out / "watch.err").open("a") as errors:
        watch = subprocess.Popen(
            [sys.executable, *words], stdin=read, stdout=lines_out, stderr=errors
        )
    os.close(read)
    feed = Feed(out / "stream.txt", at, write, halt_s)
    feed.start()
    return feed, watch


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


def compared(out):
    """Write the hit ratios of both caches by interval; print by how much they differ."""
    rows = []
    with (out / "hits.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["minute", "requests", "real_hit_ratio", "simulated_hit_ratio"])
        for line in (out / "watch.jsonl").read_text().splitlines():
            state = json.loads(line)
            both = state["real"]["hit_ratio"], state["caches"][0]["hit_ratio"]
            if state["interval_s"] < 30 or None in both:  # the last one may be cut
                continue
            rows.append(abs(both[0] - both[1]))
            minute = f"{state['seconds'] / 60:.2f}"
            table.writerow([minute, state["requests"], *(f"{each:.4f}" for each in both)])
    within = sum(each <= 0.05 for each in rows)
    print(
        f"{within} of {len(rows)} minutes within 5 points; mean difference "
        f"{100 * sum(rows) / len(rows):.2f} points, largest {100 * max(rows):.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--kill", type=float, nargs="*", default=[], metavar="MINUTE")
    parser.add_argument("--down", type=float, default=60, metavar="SECONDS")
    parser.add_argument(
        "--worker-delay", default="20us", metavar="TIME", help="of the guest's kernel"
    )
    args = parser.parse_args()
    begin, begin_s = time.time(), first_s(args.out / "stream.txt")
    halts_s = [begin_s + 60 * each for each in sorted(args.kill)] + [math.inf]
    feed, watch = started(args.out, 0, halts_s.pop(0), args.worker_delay)
    next_s = begin
    with (args.out / "use.csv").open("a") as table:
        while feed.is_alive():
            time.sleep(1)
            if watch.poll() is not None:
                sys.exit(f"watch ended with {watch.returncode}: see {args.out / 'watch.err'}")
            minute = (time.time() - begin) / 60
            if feed.halted.is_set():
                watch.kill()
                watch.wait()
                feed.go_on.set()
                table.write(f"{minute:.2f},killed\n")
                time.sleep(args.down)
                feed.join()
                oldest = (args.out / "stream.txt").stat().st_size - BUFFERED_BYTES
                at = feed.at if args.down == 0 else max(feed.at, oldest)
                feed, watch = started(args.out, at, halts_s.pop(0), args.worker_delay)
            if time.time() >= next_s:
                next_s += 60
                cpu_s, mib = use(watch.pid)
                table.write(f"{minute:.2f},{watch.pid},{cpu_s:.2f},{mib:.0f}\n")
                table.flush()
    watch.wait(600)
    compared(args.out)


if __name__ == "__main__":
    main()
