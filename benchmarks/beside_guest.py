"""In the guest of `beside.py`: a dm-cache, a load that moves, and the block events as text.

python3 beside_guest.py SLOW FAST JOB

Prints what `trace_pipe` has of the cached device.  Each 10 s the status of the cache is written to
`trace_marker`, so that it stands in the same text, in order.

A second instance has what the cache makes of the bios: `block_bio_remap` of each bio that it sends
on, and of each block that it writes to the fast device; `block_rq_issue` of each request of a
block or more on the slow one.  Their lines stand between the others; the events' names differ.
"""

import os
import subprocess
import sys
import threading
from pathlib import Path

from validate import mapped

NAME = "cached"
METADATA_SECTORS, DATA_SECTORS, BLOCK_SECTORS = 8192, 131072, 128
INSTANCES = Path("/sys/kernel/tracing/instances")
TRACING, BLOCKS = INSTANCES / "watch", INSTANCES / "blocks"
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


def number(device):
    """Return the device number as the kernel's tracing filters take it."""
    user = Path(device).stat().st_rdev
    return os.major(user) << 20 | os.minor(user)


def traced(instance, filters):
    """Trace events in an instance of their own; return what prints them."""
    instance.mkdir()
    (instance / "trace_clock").write_text("mono")
    for event, condition in filters.items():
        folder = instance / "events/block" / event
        (folder / "filter").write_text(condition)
        (folder / "enable").write_text("1")
    return subprocess.Popen(["cat", instance / "trace_pipe"])


def stats(instance):
    return [
        line
        for cpu in sorted(instance.glob("per_cpu/cpu*"))
        for line in (cpu / "stats").read_text().splitlines()
    ]


def main(slow, fast, job):
    device = cached(slow, fast)
    cache, data, whole = number(device), number("/dev/mapper/data"), f"nr_sector >= {BLOCK_SECTORS}"
    sent_on = f"old_dev == {cache} || (old_dev == {data} && {whole})"
    fetched = f"dev == {number(slow)} && {whole}"
    readers = [
        traced(TRACING, dict.fromkeys(EVENTS, f"dev == {cache}")),
        traced(BLOCKS, {"block_bio_remap": sent_on, "block_rq_issue": fetched}),
    ]
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
    for reader in readers:
        reader.terminate()
        reader.wait()
    print(*(f"blocks: {line}" for line in stats(BLOCKS)), sep="\n")
    print(*stats(TRACING), sep="\n")
    return code


sys.exit(main(*sys.argv[1:]))
