"""In the guest of `beside.py`: a dm-cache, a load that moves, and the block events as text.

python3 beside_guest.py SLOW FAST JOB

Prints what `trace_pipe` has of the cached device.  Each 10 s the status of the cache is written to
`trace_marker`, so that it stands in the same text, in order.
"""

import subprocess
import sys
import threading
from pathlib import Path

from validate import mapped

NAME = "cached"
METADATA_SECTORS, DATA_SECTORS, BLOCK_SECTORS = 8192, 131072, 128
TRACING = Path("/sys/kernel/tracing/instances/watch")
EVENTS = ("block_bio_queue", "block_split", "block_bio_complete")
STATUS_S = 10


def sectors(device):
    return int(Path("/sys/class/block", Path(device).name, "size").read_text())


def create(name, table):
    subprocess.run(["dmsetup", "create", name], input=table, text=True, check=True)
    return f"/dev/mapper/{name}"


def cached(slow, fast):
    for module in ("dm-mod", "dm-cache", "dm-cache-smq"):
        subprocess.run(["modprobe", module], check=True)
    metadata = create("metadata", f"0 {METADATA_SECTORS} linear {fast} 0\n")
    data = create("data", f"0 {DATA_SECTORS} linear {fast} {METADATA_SECTORS}\n")
    table = f"{metadata} {data} {slow} {BLOCK_SECTORS} 1 writethrough smq 0"
    return create(NAME, f"0 {sectors(slow)} cache {table}\n")


def traced(device):
    number = Path(device).stat().st_rdev
    major, minor = number >> 8 & 0xFFF, number & 0xFF
    TRACING.mkdir()
    (TRACING / "trace_clock").write_text("mono")
    for event in EVENTS:
        folder = TRACING / "events/block" / event
        (folder / "filter").write_text(f"dev == {major << 20 | minor}")
        (folder / "enable").write_text("1")
    return subprocess.Popen(["cat", TRACING / "trace_pipe"])


def main(slow, fast, job):
    device = cached(slow, fast)
    reader = traced(device)
    ended = threading.Event()

    def mark():
        while True:
            (TRACING / "trace_marker").write_text(mapped.status(NAME)[0])
            if ended.wait(STATUS_S):
                return

    marking = threading.Thread(target=mark)
    marking.start()
    words = ["fio", f"--filename={device}", "--output=/tmp/out/fio.json", "--output-format=json"]
    code = subprocess.run([*words, job], check=False).returncode
    ended.set()
    marking.join()
    (TRACING / "trace_marker").write_text(mapped.status(NAME)[0])
    ended.clear()
    ended.wait(2)
    reader.terminate()
    reader.wait()
    print((TRACING / "per_cpu/cpu0/stats").read_text())
    return code


sys.exit(main(*sys.argv[1:]))
