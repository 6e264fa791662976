"""A small file of every trace format, and reproducible damage to it from a seed."""

from __future__ import annotations

import gzip
import random
import struct
import tempfile
from pathlib import Path

import numpy as np
from captures import HEADER as RECORD
from captures import TRACES, as_version_8, capture, cpu_files, records, swapped, unpacked

from hybridsim.requests.rows import no_requests
from hybridsim.traces.formats.files import zstd
from hybridsim.traces.formats.requests_csv import HEADER
from hybridsim.traces.thinned.thinner import Settings, Store, Thinner

SMALL = b"".join(records(cpu_files("loop_raw_split_discard_flush")["loop0.blktrace.1"])[:700])
MESSAGES = b"".join(records(cpu_files("loop_part_remap_bfq")["loop0.blktrace.1"])[:500])
TEXT = unpacked(capture("loop_errors") / "blkparse.txt.zst")
CSV = f"{HEADER}\n0,R,4096,512,3,9\n5,W,0,65536,,\n9,F,0,0,,12\n".encode() * 9
ONE_LINE = {
    "msr": "128166372003061629,hm,0,Read,8192,4096,2833\n128166372003061639,hm,0,Write,0,512,10\n",
    "spc": "0,20941264,8192,W,0.551706\n0, 7, 1536, r, 0.554041, extra\n",
    "alibaba": "64,R,126703644672,4096,1577808000000046\n64,W,512,1024,1577808000000146\n",
    "tencent": "1538323200,8,16,0,7\n1538323200,0,8,1,7\n1538323201,0,8,1,7\n",
    "disksim": "0.5 0 8 16 1\n2.25 0 0 8 0\n",
    "mqsim": "1000 0 8 16 1\n5001000 0 0 8 0\n",
}


def thinned() -> bytes:
    """Return a thinned capture of two minutes: all kinds of blocks."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "a")
        thinner = Thinner(store, Settings(rate=0.5, region_bytes=4096))
        rows = no_requests(400)
        rows.arrival_ns[:] = np.arange(400) * 300 * 10**6
        rows.offset_bytes[:] = np.arange(400) * 7919 % 997 * 4096
        rows.length_bytes[:] = 4096
        rows.complete_ns[:] = rows.arrival_ns + 5000
        thinner.take(rows)
        thinner.finish()
        store.close()
        return store.path.read_bytes()


SEEDS = {
    "blktrace": SMALL,
    "messages": MESSAGES,
    "swapped": swapped(SMALL),
    "version-8": as_version_8(SMALL),
    "blkparse": TEXT,
    "fio-3": (TRACES / "fio" / "v3.log").read_bytes(),
    "fio-2": (TRACES / "fio" / "v2.log").read_bytes(),
    "csv": CSV,
    "lis": b"".join(b"%d %d 0 %d\n" % (i * 7919 % 997, i % 5 + 1, i) for i in range(99)),
    "vscsi": b"".join(
        struct.pack("<IIIHHQQ", i, 4096, 1, 0x28 + i % 2 * 2, 0x100, i * 8, i * 100)
        for i in range(99)
    ),
    "systor": b"Timestamp,Response,IOType,LUN,Offset,Size\n"
    + b"".join(
        b"1456095145.%09d,0.0008,%s,%d,%d,512\n" % (i * 7919, b"RW"[i % 2 :][:1], i % 3, i * 99)
        for i in range(99)
    ),
    "fiu": b"".join(b"%d %d a b %d 8 W 6 0 %032x\n" % (i * 999, i, i * 8, i) for i in range(99)),
    "ftrace": b"".join(
        b" fio-4573 [001] ..... 1988.%06d: block_%s 7,0 R %s%d + 16 [fio]\n"
        % (i, *((b"bio_queue:", b"") if i % 2 else (b"rq_complete:", b"() ")), i // 2 * 16)
        for i in range(99)
    ),
    "biosnoop": b"TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)\n"
    + b"".join(
        b"%d.%06d CPU %d/KVM %d sda %s %d 4096 0.%02d\n"
        % (i // 50, i * 20011 % 10**6, i % 4, i, b"RW"[i % 2 :][:1], i * 7919 % 997 * 8, i)
        for i in range(99)
    ),
    **{name: (text * 20).encode() for name, text in ONE_LINE.items()},
    "oracle-general": b"".join(
        struct.pack("<IQIq", i // 9, i * 7919 % 40, 4096, -1 if i > 59 else i + 40)
        for i in range(99)
    ),
    "columns": b"when;lba;kb;rw\n"
    + b"".join(b"%d;%d;4;%s\n" % (i * 999, i * 7919 % 997, b"RW"[i % 2 :][:1]) for i in range(99)),
    "workload": (TRACES / "workloads/mail.toml").read_bytes().replace(b'"10m"', b'"2s"'),
    "line": b"gen:hot-spot,span=1GiB,hot=10%,share=90%,size=4k/70:64k/30,rate=150,requests=99",
    "thinned": thinned(),
    "gzip": gzip.compress(SMALL),
    "zstd": zstd.compress(TEXT),
}
COLUMNS = "time=when:us,offset=lba:sectors,length=kb:KiB,op=rw:R/W"
NASTY = [b"", b"\x00", b"\xff" * 4, b"\x07tae", b"eat\x07", b"\n", b",", b"-1", b"9" * 25, b"\x80"]
NASTY.append(b"9" * 5000)  # more digits than Python converts to a number


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Damage bytes in up to six places: change, delete, duplicate, move or replace them."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(out) + 1)
        size = rng.choice([1, 2, 4, 8, 47, 48, 200])
        match rng.randrange(6):
            case 0:
                out[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del out[at : at + size]
            case 2:
                out[at:at] = out[at : at + size]
            case 3:
                out[at : at + len(nasty)] = (nasty := rng.choice(NASTY))
            case 4:
                out[at:at] = rng.randbytes(size)
            case 5:
                whole = at - at % RECORD.size
                field = rng.choice([0, 4, 8, 16, 24, 28, 32, 36, 40, 44, 46])
                out[whole + field : whole + field + 4] = rng.randbytes(4)
    return bytes(out[: rng.randrange(len(out) + 1)] if rng.random() < 0.15 else out)


def forced(kind: str) -> str | None:
    """Return the format that must be specified for a kind of file; None: auto-detected."""
    return f"columns:{COLUMNS}" if kind == "columns" else None
